//! Changing attributes; permissions; link targets; project ids.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::Ordering;

use hither_sys::files;
use hither_sys::project;
use hither_vfs::{Attr, Call, Errno, FileKind, Handle, OFlags, Result, SetAttr, SetTime};
use rustix::fs::{Access, AtFlags, Gid, Mode, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid};

use super::DirNode;
use crate::file::FileHandle;
use crate::proc::{self, ProcPath};

impl DirNode {
    pub(super) fn change_attr(
        &self,
        call: &Call,
        set: &SetAttr,
        handle: Option<&dyn Handle>,
    ) -> Result<Attr> {
        self.shared.admit(call)?;
        // All ones mean "leave as it is" to the host.
        if set.uid == Some(u32::MAX) || set.gid == Some(u32::MAX) {
            return Err(Errno::INVAL.into());
        }
        let path = self.reach(call)?;
        let handle = handle.and_then(|handle| handle.as_any().downcast_ref::<FileHandle>());
        let apply = || self.apply(&path, set, handle);
        // Not being in the file's group takes the set-group-id bit away in silence.
        let group_bit = set.mode.unwrap_or(0) & 0o2000 != 0 || self.set_id_bits() & 0o2000 != 0;
        let silent =
            set.uid.is_some() || set.gid.is_some() || (set.mode.is_some() | set.size.is_some() && group_bit);
        if silent {
            self.shared.as_caller_exactly(call, apply)?
        } else {
            self.shared.as_caller(call, apply)?
        }
        Ok(self.attr(&self.shared.asking.of_fd(path.as_fd())?))
    }

    /// The size first, whose change clears set-id bits; then the owner, whose change does too; then the mode, which may
    /// set them; at last the times, which all of these change.
    fn apply(&self, path: &OwnedFd, set: &SetAttr, handle: Option<&FileHandle>) -> rustix::io::Result<()> {
        if let Some(size) = set.size {
            match handle {
                Some(handle) => rustix::fs::ftruncate(handle.file(), size)?,
                None => files::truncate(ProcPath::of(path.as_fd()).as_c_str(), size)?,
            }
        }
        if set.uid.is_some() || set.gid.is_some() {
            let (uid, gid) = (set.uid.map(Uid::from_raw), set.gid.map(Gid::from_raw));
            rustix::fs::chownat(path, c"", uid, gid, AtFlags::EMPTY_PATH)?;
        }
        let (dir, name) = (self.shared.proc.dir(), proc::name(path.as_fd()));
        if let Some(mode) = set.mode {
            let mode = Mode::from_raw_mode(mode & 0o7777);
            rustix::fs::chmodat(dir, name.as_c_str(), mode, AtFlags::empty())?;
        }
        if set.atime.is_some() || set.mtime.is_some() {
            let times =
                Timestamps { last_access: timespec(set.atime), last_modification: timespec(set.mtime) };
            rustix::fs::utimensat(dir, name.as_c_str(), &times, AtFlags::empty())?;
        }
        Ok(())
    }

    pub(super) fn may_access(&self, call: &Call, mask: u32) -> Result<()> {
        self.shared.admit(call)?;
        let path = self.reach(call)?;
        let (dir, name) = (self.shared.proc.dir(), proc::name(path.as_fd()));
        let mask = Access::from_bits(mask).ok_or(Errno::INVAL)?;
        // With the groups from the start: without them "others" may be let in where the group is not.
        self.shared
            .as_caller_exactly(call, || rustix::fs::accessat(dir, name.as_c_str(), mask, AtFlags::EACCESS))
    }

    pub(super) fn target(&self, call: &Call) -> Result<OsString> {
        self.shared.admit(call)?;
        if self.kind != FileKind::Symlink {
            return Err(Errno::INVAL.into());
        }
        let path = self.reach(call)?;
        let target = self.shared.as_caller(call, || rustix::fs::readlinkat(&path, c"", Vec::new()))?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    pub(super) fn project(&self, call: &Call) -> Result<u32> {
        self.shared.admit(call)?;
        if !matches!(self.kind, FileKind::Regular | FileKind::Directory) || !self.mount.has_projects() {
            return Ok(0);
        }
        let path = self.reach(call)?;
        let open = || self.shared.proc.reopen(path.as_fd(), OFlags::RDONLY | OFlags::NONBLOCK);
        let file = self.shared.as_own(call, || self.shared.descriptors.with_room(open))?;
        match project::project_id(file.as_fd())? {
            Some(id) => Ok(id),
            None => {
                self.mount.projects.store(false, Ordering::Relaxed);
                Ok(0)
            }
        }
    }

    /// Whether only root may do that to an attribute of that name. Acting as a caller takes the capabilities for files
    /// away, not `CAP_SYS_ADMIN`, by which the kernel would let us.
    pub(super) fn is_for_root_only(&self, call: &Call, name: &OsStr, change: bool) -> bool {
        let name = name.as_encoded_bytes();
        let reserved = name.starts_with(b"trusted.") || (change && name.starts_with(b"security."));
        reserved && self.shared.is_restricted(call)
    }
}

fn timespec(time: Option<SetTime>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(SetTime::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(SetTime::At(time)) => Timespec { tv_sec: time.sec, tv_nsec: time.nsec.into() },
    }
}
