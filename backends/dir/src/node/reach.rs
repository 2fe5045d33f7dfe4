//! From a node to a descriptor: the one it keeps, or a new one by file handle or by name.

use std::ffi::OsStr;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use hither_sys::creds;
use hither_sys::handles::FileHandle;
use hither_vfs::{Call, Errno, Result, Timestamp};
use rustix::fs::{Mode, OFlags, Statx};

use super::{DirNode, GONE, STALE, USED};
use crate::attr;
use crate::descriptors::LetGo;

/// Directories on the way to a node that are walked at most: a limit for rings that concurrent moves behind our back
/// may leave in what is remembered.
const WALK_MAX: usize = 1 << 16;

/// How nodes are opened: leading to the inode, good for no I/O, without regard to its permissions.
pub(crate) const PATH: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What a node has at hand to be reached by.
#[derive(Default)]
pub(crate) struct Slot {
    /// Its descriptor, while it is kept.
    pub path: Option<Arc<OwnedFd>>,
    /// Its handle, from the first time that it lost the descriptor (or was asked for the handle).
    pub handle: Option<FileHandle>,
    /// Where it was seen last; kept on mounts without handles only, and right over our own renames.
    pub place: Option<Place>,
    /// The bytes' version at the last open: what the kernel may have kept pages of.
    pub last_open: Option<Box<Version>>,
}

/// A name in a directory.
#[derive(Clone)]
pub(crate) struct Place {
    pub parent: Arc<DirNode>,
    pub name: Box<OsStr>,
}

/// What changes whenever a file's bytes do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    pub mtime: Timestamp,
    pub ctime: Timestamp,
    pub size: u64,
}

impl DirNode {
    /// A descriptor that leads to this inode. The identity that the thread acts under is another one afterwards, unless
    /// a guard holds it.
    pub(crate) fn reach(&self, call: &Call) -> Result<Arc<OwnedFd>> {
        if let Some(path) = self.kept() {
            return Ok(path);
        }
        if self.has(STALE) {
            return Err(Errno::STALE.into());
        }
        if let Some(path) = self.by_handle()? {
            return Ok(path);
        }
        self.by_name(call)
    }

    /// The descriptor, if it is kept.
    fn kept(&self) -> Option<Arc<OwnedFd>> {
        let slot = self.slot.lock();
        let path = slot.path.as_ref()?;
        self.set(USED, true);
        Some(path.clone())
    }

    /// Whether the descriptor is kept at this moment.
    pub(super) fn is_kept(&self) -> bool {
        self.slot.lock().path.is_some()
    }

    /// Opens the inode by its handle; `None` if it has none.
    fn by_handle(&self) -> Result<Option<Arc<OwnedFd>>> {
        let Some(anchor) = self.mount.anchor() else { return Ok(None) };
        let Some(handle) = self.slot.lock().handle.clone() else { return Ok(None) };
        let opened = {
            let _own = creds::own();
            self.shared.descriptors.with_room(|| handle.open(anchor, PATH))
        };
        match opened {
            Ok(fd) => Ok(Some(self.keep(fd))),
            Err(errno) => {
                self.set(STALE, errno == Errno::STALE);
                Err(errno.into())
            }
        }
    }

    /// Opens the inode by name from the nearest directory above that can be reached otherwise.
    fn by_name(&self, call: &Call) -> Result<Arc<OwnedFd>> {
        let mut steps: Vec<(Arc<DirNode>, Box<OsStr>)> = Vec::new();
        let mut place = self.place()?;
        let mut at = loop {
            let Place { parent, name } = place;
            let reached = match parent.kept() {
                Some(path) => Some(path),
                None => parent.by_handle()?,
            };
            let next = parent.clone();
            steps.push((parent, name));
            match reached {
                Some(path) => break path,
                None if steps.len() > WALK_MAX => return Err(Errno::STALE.into()),
                None => place = next.place()?,
            }
        };
        // Downwards: each step leads to the directory of the step before it in the list, the last one here.
        while let Some((_, name)) = steps.pop() {
            let target = steps.last().map_or(self, |(node, _)| node);
            let fd = self.shared.as_own(call, || {
                self.shared.descriptors.with_room(|| rustix::fs::openat(&at, &*name, PATH, Mode::empty()))
            });
            let fd = fd.map_err(|error| if error == Errno::NOENT { Errno::STALE.into() } else { error })?;
            if !target.is_inode(&self.shared.asking.of_fd(fd.as_fd())?) {
                return Err(Errno::STALE.into());
            }
            at = target.keep(fd);
        }
        Ok(at)
    }

    fn place(&self) -> Result<Place> {
        self.slot.lock().place.clone().ok_or_else(|| Errno::STALE.into())
    }

    /// Whether that is this inode, as far as device, number and time of birth tell.
    pub(crate) fn is_inode(&self, stat: &Statx) -> bool {
        let same = attr::dev_of(stat) == self.identity.dev && stat.stx_ino == self.identity.ino;
        same && (self.btime.is_none() || self.btime == attr::btime_of(stat))
    }

    /// Keeps a descriptor that leads here, unless there is one already; returns the one that is kept.
    pub(crate) fn keep(&self, fd: OwnedFd) -> Arc<OwnedFd> {
        let mut slot = self.slot.lock();
        if let Some(path) = &slot.path {
            return path.clone();
        }
        let path = slot.path.insert(Arc::new(fd)).clone();
        drop(slot);
        self.shared.descriptors.opened(&self.this);
        path
    }

    /// Gives up the descriptor if it can be had again and is not in use.
    pub(crate) fn let_go(&self) -> LetGo {
        if self.has(GONE) {
            return LetGo::Pinned;
        }
        if self.has(USED) {
            self.set(USED, false);
            return LetGo::Later;
        }
        let Some(mut slot) = self.slot.try_lock() else { return LetGo::Later };
        let Some(path) = &slot.path else { return LetGo::Absent };
        // A descriptor that somebody holds beside us is an open file's backing: it must stay the one of all opens.
        if Arc::strong_count(path) > 1 {
            return LetGo::Later;
        }
        // Asked again: whoever takes the last name away holds the descriptor until that is noted.
        fence(Ordering::Acquire);
        if self.has(GONE) {
            return LetGo::Pinned;
        }
        if !self.can_be_found(&mut slot) {
            return LetGo::Later;
        }
        slot.path.take().map_or(LetGo::Absent, LetGo::Closed)
    }

    /// Gives up the descriptor of an inode that no name leads to, unless it is open: for good, but for a handle that may
    /// work as long as somebody else holds the inode. False if it is kept.
    pub(crate) fn give_up(&self) -> bool {
        if !self.has(GONE) {
            return true;
        }
        let Some(mut slot) = self.slot.try_lock() else { return false };
        if slot.path.as_ref().is_some_and(|path| Arc::strong_count(path) > 1) {
            return false;
        }
        self.can_be_found(&mut slot);
        slot.path = None;
        true
    }

    /// Whether there is another way here than the descriptor. The handle is asked for now, when it is first needed:
    /// most nodes never lose their descriptor.
    fn can_be_found(&self, slot: &mut Slot) -> bool {
        if slot.handle.is_none()
            && self.mount.handles
            && let Some(path) = &slot.path
        {
            slot.handle = FileHandle::of(path.as_fd()).ok();
        }
        slot.handle.is_some() || slot.place.is_some()
    }

    /// The handle, where there is one.
    pub(crate) fn handle(&self, call: &Call) -> Result<Option<FileHandle>> {
        if !self.mount.handles {
            return Ok(None);
        }
        if let Some(handle) = &self.slot.lock().handle {
            return Ok(Some(handle.clone()));
        }
        let handle = FileHandle::of(self.reach(call)?.as_fd())?;
        Ok(Some(self.slot.lock().handle.insert(handle).clone()))
    }

    /// Whether `fd` leads to the inode whose handle this node has; `None` if that cannot be told.
    pub(super) fn has_handle_of(&self, fd: Option<BorrowedFd<'_>>) -> Option<bool> {
        let slot = self.slot.lock();
        let handle = slot.handle.as_ref()?;
        Some(FileHandle::of(fd?).is_ok_and(|other| other == *handle))
    }

    /// Remembers where this node was seen, on mounts without handles.
    pub(super) fn seen_at(&self, parent: &DirNode, name: &OsStr) {
        if self.mount.handles {
            return;
        }
        let Some(parent) = parent.this.upgrade() else { return };
        let before = {
            let mut slot = self.slot.lock();
            if slot.place.as_ref().is_some_and(|old| Arc::ptr_eq(&old.parent, &parent) && *old.name == *name)
            {
                return;
            }
            slot.place.replace(Place { parent, name: name.into() })
        };
        // Not under the lock: it may be the last of the old parent.
        drop(before);
    }

    /// Forgets that name if it is the one remembered.
    pub(super) fn not_at(&self, parent: &DirNode, name: &OsStr) {
        let mut slot = self.slot.lock();
        let is = |old: &Place| std::ptr::eq(&*old.parent, parent) && *old.name == *name;
        let before = if slot.place.as_ref().is_some_and(is) { slot.place.take() } else { None };
        drop(slot);
        drop(before);
    }
}

impl Drop for DirNode {
    /// Takes the chain of parents apart step by step: dropped from within each other, a deep one would exhaust the stack.
    fn drop(&mut self) {
        let mut place = self.slot.get_mut().place.take();
        while let Some(Place { parent, .. }) = place {
            place = Arc::into_inner(parent).and_then(|mut node| mem::take(&mut node.slot.get_mut().place));
        }
    }
}
