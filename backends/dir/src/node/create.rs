//! Making files, directories, links.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hither_sys::umask;
use hither_vfs::{Call, Created, Entry, Errno, FileKind, Node, OFlags, Result};
use rustix::fs::{AtFlags, FileType, Mode};

use super::interning::Found;
use super::open::passed;
use super::{DirNode, EPOCH, GONE};
use crate::proc::{self, ProcPath, checked};

/// How often a file that is there and gone again in turns is tried.
const TRIES: usize = 64;

impl DirNode {
    pub(super) fn create_file(&self, call: &Call, name: &OsStr, flags: OFlags, mode: u32) -> Result<Created> {
        self.shared.admit(call)?;
        let name = checked(name)?;
        let dir = self.reach(call)?;
        let new = (passed(flags) - OFlags::TRUNC) | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        for _ in 0..TRIES {
            let not_before = self.shared.births.load(Ordering::Relaxed);
            // First as if nothing were there: then a file that was made is known to be new, and nothing that is there
            // is opened before its type is known (a FIFO would make us wait).
            let made = self.make(call, dir.as_fd(), mode, |mode| {
                self.shared.descriptors.with_room(|| rustix::fs::openat(&dir, name, new, mode))
            });
            match made {
                Ok(file) => return self.created(call, file, Some((self, name)), not_before),
                Err(error) if error == Errno::EXIST && !flags.contains(OFlags::EXCL) => {}
                Err(error) => return Err(error),
            }
            match self.open_existing(call, dir.as_fd(), name, flags) {
                Err(error) if error == Errno::NOENT || error == Errno::STALE => {}
                opened => return opened,
            }
        }
        Err(Errno::STALE.into())
    }

    fn open_existing(
        &self,
        call: &Call,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        flags: OFlags,
    ) -> Result<Created> {
        let (node, stat) = self.find(call, dir, name)?;
        let handle = node.open_file(call, flags, EPOCH)?;
        let stat =
            if flags.contains(OFlags::TRUNC) { self.shared.asking.of_fd(handle.file())? } else { stat };
        Ok(Created { entry: node.entry(&stat), handle })
    }

    pub(super) fn create_nameless(&self, call: &Call, flags: OFlags, mode: u32) -> Result<Created> {
        self.shared.admit(call)?;
        let dir = self.reach(call)?;
        let new = (passed(flags) - OFlags::TRUNC) | OFlags::TMPFILE | (flags & OFlags::EXCL);
        let not_before = self.shared.births.load(Ordering::Relaxed);
        let file = self.make(call, dir.as_fd(), mode, |mode| {
            self.shared.descriptors.with_room(|| rustix::fs::openat(&dir, c".", new, mode))
        })?;
        self.created(call, file, None, not_before)
    }

    /// The node and handle of a file that was just made.
    fn created(
        &self,
        call: &Call,
        file: OwnedFd,
        place: Option<(&DirNode, &OsStr)>,
        not_before: u64,
    ) -> Result<Created> {
        let stat = self.shared.asking.of_fd(file.as_fd())?;
        // The node's descriptor is another one than the open's, which has to close when the program closes it.
        let path =
            self.shared.descriptors.with_room(|| self.shared.proc.reopen(file.as_fd(), OFlags::PATH))?;
        let (node, _) = self.shared.intern(&Found { stat: &stat, place, not_before }, path)?;
        node.set(GONE, place.is_none());
        let path = node.reach(call)?;
        let handle = node.opened(file, path)?;
        Ok(Created { entry: node.entry(&stat), handle })
    }

    pub(super) fn create_dir(&self, call: &Call, name: &OsStr, mode: u32) -> Result<Entry> {
        self.make_entry(call, name, mode, |dir, name, mode| rustix::fs::mkdirat(dir, name, mode))
    }

    pub(super) fn create_special(&self, call: &Call, name: &OsStr, mode: u32, rdev: u64) -> Result<Entry> {
        let kind = match FileKind::of_mode(mode) {
            FileKind::Regular => FileType::RegularFile,
            FileKind::Fifo => FileType::Fifo,
            FileKind::Socket => FileType::Socket,
            FileKind::BlockDevice => FileType::BlockDevice,
            FileKind::CharDevice => FileType::CharacterDevice,
            FileKind::Directory | FileKind::Symlink => return Err(Errno::PERM.into()),
        };
        self.make_entry(call, name, mode, |dir, name, mode| rustix::fs::mknodat(dir, name, kind, mode, rdev))
    }

    pub(super) fn create_symlink(&self, call: &Call, name: &OsStr, target: &OsStr) -> Result<Entry> {
        self.make_entry(call, name, 0, |dir, name, _| rustix::fs::symlinkat(target, dir, name))
    }

    fn make_entry(
        &self,
        call: &Call,
        name: &OsStr,
        mode: u32,
        make: impl Fn(BorrowedFd<'_>, &OsStr, Mode) -> rustix::io::Result<()>,
    ) -> Result<Entry> {
        self.shared.admit(call)?;
        let name = checked(name)?;
        let dir = self.reach(call)?;
        self.make(call, dir.as_fd(), mode, |mode| make(dir.as_fd(), name, mode))?;
        let (node, stat, _) = self.find_unknown(call, dir.as_fd(), name)?;
        Ok(node.entry(&stat))
    }

    /// Makes something as the caller and under his mask.
    fn make<T>(
        &self,
        call: &Call,
        dir: BorrowedFd<'_>,
        mode: u32,
        make: impl Fn(Mode) -> rustix::io::Result<T>,
    ) -> Result<T> {
        // Where the thread may not have its own mask, the kernel's rule is kept by hand: no mask under a default ACL.
        let mask = if umask::set(call.caller.umask) || has_default_acl(dir) { 0 } else { call.caller.umask };
        let mode = mode & 0o7777 & !mask;
        let make = || make(Mode::from_raw_mode(mode));
        // A file that is to be set-group-id and is made in a set-group-id directory loses the bit, unseen, if the caller
        // is not in the directory's group.
        if mode & 0o2000 != 0 {
            self.shared.as_caller_exactly(call, make)
        } else {
            self.shared.as_caller(call, make)
        }
    }

    pub(super) fn add_name(&self, call: &Call, name: &OsStr, node: &dyn Node) -> Result<Entry> {
        self.shared.admit(call)?;
        let name = checked(name)?;
        let node = node.as_any().downcast_ref::<DirNode>().ok_or(Errno::XDEV)?;
        if !Arc::ptr_eq(&node.shared, &self.shared) {
            return Err(Errno::XDEV.into());
        }
        let (from, dir) = (node.reach(call)?, self.reach(call)?);
        let (from_proc, from_name) = (self.shared.proc.dir(), proc::name(from.as_fd()));
        self.shared.as_caller(call, || {
            rustix::fs::linkat(from_proc, from_name.as_c_str(), &dir, name, AtFlags::SYMLINK_FOLLOW)
        })?;
        let stat = self.shared.asking.of_fd(from.as_fd())?;
        if node.has(GONE) {
            node.set(GONE, false);
            self.shared.descriptors.opened(&node.this);
        }
        node.seen_at(self, name);
        Ok(node.this.upgrade().ok_or(Errno::STALE)?.entry(&stat))
    }
}

/// Whether what is made in a directory gets its mode from an ACL.
fn has_default_acl(dir: BorrowedFd<'_>) -> bool {
    let mut value = [0; 8];
    let got = rustix::fs::getxattr(ProcPath::of(dir).as_c_str(), c"system.posix_acl_default", &mut value[..]);
    matches!(got, Ok(1..) | Err(Errno::RANGE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::XattrFlags;

    #[test]
    fn a_default_acl_is_seen() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let fd = rustix::fs::open(dir.path(), OFlags::PATH, Mode::empty()).unwrap();
        assert!(!has_default_acl(fd.as_fd()));
        // Version 2; owner, group, others with all rights.
        let entry = |tag: u16| [tag.to_le_bytes(), 7_u16.to_le_bytes(), [0xff; 2], [0xff; 2]].concat();
        let acl = [2_u32.to_le_bytes().to_vec(), entry(1), entry(4), entry(0x20)].concat();
        rustix::fs::setxattr(dir.path(), c"system.posix_acl_default", &acl, XattrFlags::empty()).unwrap();
        assert!(has_default_acl(fd.as_fd()));
    }
}
