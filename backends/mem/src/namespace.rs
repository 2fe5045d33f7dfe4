//! Making and removing names.
//!
//! Order of locks: the file system's `names`, then the state of one or two directories, then the state of the node
//! that a name leads to. Only a holder of `names` holds more than one state, so no order among states is needed, and a
//! name can neither appear nor vanish while `names` is held.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hither_vfs::{Caller, Created, Entry, Errno, FileKind, OFlags, Result};

use crate::attrs::new_permissions;
use crate::directory::Directory;
use crate::names::{check_name, check_target};
use crate::node::{Body, MemNode, Seed, State};
use crate::pages::Pages;

/// Names that one inode may have.
const LINK_MAX: u32 = i32::MAX as u32;

/// `S_IFMT` and `S_IFREG`.
const TYPE_BITS: u32 = 0o170_000;
const REGULAR_BITS: u32 = 0o100_000;

impl MemNode {
    /// What a name leads to; ENOENT if nothing, ENOTDIR if this is no directory.
    pub(crate) fn child(&self, name: &OsStr) -> Result<Arc<MemNode>> {
        let state = self.state().read();
        let directory = state.directory()?;
        check_name(name)?;
        directory.get(name).cloned().ok_or_else(|| Errno::NOENT.into())
    }

    /// Makes an inode and its name here.
    fn make(
        &self,
        caller: &Caller,
        name: &OsStr,
        kind: FileKind,
        mode: u32,
        body: Body,
    ) -> Result<Arc<MemNode>> {
        let _names = self.shared().names.lock();
        self.make_locked(caller, name, kind, mode, body)
    }

    /// The same, with `names` held.
    fn make_locked(
        &self,
        caller: &Caller,
        name: &OsStr,
        kind: FileKind,
        mode: u32,
        body: Body,
    ) -> Result<Arc<MemNode>> {
        let mut state = self.state().write();
        let directory = state.directory()?;
        check_name(name)?;
        if directory.is_dead() {
            return Err(Errno::NOENT.into());
        }
        if directory.get(name).is_some() {
            return Err(Errno::EXIST.into());
        }
        let node = self.new_inode(caller, &state, kind, mode, body)?;
        state.directory_mut()?.put(name, node.clone());
        if kind == FileKind::Directory {
            state.nlink += 1;
        }
        state.changed(self.shared().clock.tick());
        Ok(node)
    }

    fn new_inode(
        &self,
        caller: &Caller,
        parent: &State,
        kind: FileKind,
        mode: u32,
        body: Body,
    ) -> Result<Arc<MemNode>> {
        let (permissions, gid) = new_permissions(caller, kind, mode, parent);
        let nlink = if kind == FileKind::Directory { 2 } else { 1 };
        MemNode::new(self.shared(), Seed { kind, permissions, uid: caller.uid, gid, nlink, body })
    }

    pub(crate) fn create_file(
        &self,
        caller: &Caller,
        name: &OsStr,
        flags: OFlags,
        mode: u32,
    ) -> Result<Created> {
        let names = self.shared().names.lock();
        let made = self.make_locked(caller, name, FileKind::Regular, mode, empty_file());
        let (node, flags) = match made {
            // A new file is empty, and its opener may write it whatever its mode: nothing is left to check.
            Ok(node) => (node, flags - OFlags::TRUNC),
            Err(error) if error == Errno::EXIST && !flags.contains(OFlags::EXCL) => {
                (self.child(name)?, flags)
            }
            Err(error) => return Err(error),
        };
        drop(names);
        let handle = node.open_file(caller, flags, 0)?;
        Ok(Created { entry: node.entry(), handle })
    }

    pub(crate) fn create_nameless(&self, caller: &Caller, flags: OFlags, mode: u32) -> Result<Created> {
        if !flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
            return Err(Errno::INVAL.into());
        }
        let node = {
            let state = self.state().read();
            if state.directory()?.is_dead() {
                return Err(Errno::NOENT.into());
            }
            self.new_inode(caller, &state, FileKind::Regular, mode, empty_file())?
        };
        node.state().write().nlink = 0;
        node.nameless_linkable.store(!flags.contains(OFlags::EXCL), Ordering::Relaxed);
        let handle = node.open_file(caller, flags - OFlags::TRUNC, 0)?;
        Ok(Created { entry: node.entry(), handle })
    }

    pub(crate) fn make_directory(&self, caller: &Caller, name: &OsStr, mode: u32) -> Result<Entry> {
        let body = Body::Directory(Directory::new(self.me().clone()));
        Ok(self.make(caller, name, FileKind::Directory, mode, body)?.entry())
    }

    pub(crate) fn make_node(&self, caller: &Caller, name: &OsStr, mode: u32, rdev: u64) -> Result<Entry> {
        let kind = FileKind::of_mode(mode);
        let body = match kind {
            FileKind::Regular if matches!(mode & TYPE_BITS, 0 | REGULAR_BITS) => empty_file(),
            FileKind::BlockDevice | FileKind::CharDevice => Body::Special { rdev },
            FileKind::Fifo | FileKind::Socket => Body::Special { rdev: 0 },
            FileKind::Directory => return Err(Errno::PERM.into()),
            FileKind::Regular | FileKind::Symlink => return Err(Errno::INVAL.into()),
        };
        Ok(self.make(caller, name, kind, mode, body)?.entry())
    }

    pub(crate) fn make_symlink(&self, caller: &Caller, name: &OsStr, target: &OsStr) -> Result<Entry> {
        check_target(target)?;
        let body = Body::Symlink(target.to_owned());
        Ok(self.make(caller, name, FileKind::Symlink, 0o777, body)?.entry())
    }

    pub(crate) fn add_link(&self, name: &OsStr, node: &MemNode) -> Result<Entry> {
        let _names = self.shared().names.lock();
        let mut state = self.state().write();
        let directory = state.directory()?;
        check_name(name)?;
        if directory.is_dead() {
            return Err(Errno::NOENT.into());
        }
        if directory.get(name).is_some() {
            return Err(Errno::EXIST.into());
        }
        if node.is_directory() {
            return Err(Errno::PERM.into());
        }
        let node = node.me().upgrade().ok_or(Errno::STALE)?;
        let now = self.shared().clock.tick();
        {
            let mut linked = node.state().write();
            if linked.nlink == 0 && !node.nameless_linkable.swap(false, Ordering::Relaxed) {
                return Err(Errno::NOENT.into());
            }
            if linked.nlink >= LINK_MAX {
                return Err(Errno::MLINK.into());
            }
            linked.nlink += 1;
            linked.ctime = now;
        }
        state.directory_mut()?.put(name, node.clone());
        state.changed(now);
        drop(state);
        Ok(node.entry())
    }

    pub(crate) fn remove_file(&self, name: &OsStr) -> Result<()> {
        let _names = self.shared().names.lock();
        let node = self.child(name)?;
        if node.is_directory() {
            return Err(Errno::ISDIR.into());
        }
        let now = self.shared().clock.tick();
        let mut state = self.state().write();
        state.directory_mut()?.remove(name);
        state.changed(now);
        node.lose_name(now);
        Ok(())
    }

    pub(crate) fn remove_directory(&self, name: &OsStr) -> Result<()> {
        let _names = self.shared().names.lock();
        let node = self.child(name)?;
        if !node.is_empty_directory()? {
            return Err(Errno::NOTEMPTY.into());
        }
        let now = self.shared().clock.tick();
        let mut state = self.state().write();
        state.directory_mut()?.remove(name);
        state.nlink -= 1;
        state.changed(now);
        node.lose_name(now);
        Ok(())
    }

    /// Whether a directory has no entries; ENOTDIR if it is none.
    pub(crate) fn is_empty_directory(&self) -> Result<bool> {
        Ok(self.state().read().directory()?.is_empty())
    }

    /// One name less; a directory had only the one.
    pub(crate) fn lose_name(&self, now: hither_vfs::Timestamp) {
        let mut state = self.state().write();
        state.ctime = now;
        match &mut state.body {
            Body::Directory(directory) => {
                directory.die();
                state.nlink = 0;
            }
            _ => state.nlink -= 1,
        }
    }
}

fn empty_file() -> Body {
    Body::File { pages: Pages::default(), size: 0 }
}
