//! Opening files and directories.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use hither_vfs::{Call, Epoch, Errno, FileKind, OFlags, Result, Timestamp};

use super::reach::Version;
use super::{DirNode, EPOCH};
use crate::file::FileHandle;
use crate::listing::Listing;

/// What is passed on of a program's flags. Not among them:
/// - `APPEND`: the trait says with each write where it goes.
/// - `DIRECT`: it would want aligned buffers, which a front end's are not. It is a matter of the program's page cache,
///   which the front end leaves out; with a backing the kernel passes it on itself.
const PASSED: OFlags =
    OFlags::RWMODE.union(OFlags::TRUNC).union(OFlags::SYNC).union(OFlags::DSYNC).union(OFlags::NOATIME);

/// A change within this time of another may leave the times as they are (the tick of a clock, up to a second on some file
/// systems): a version that was younger when it was seen is not relied upon.
const SETTLED_NANOS: i128 = 2_000_000_000;

/// The flags to open with.
pub(super) fn passed(flags: OFlags) -> OFlags {
    (flags & PASSED) | OFlags::CLOEXEC | OFlags::NOCTTY
}

impl DirNode {
    pub(super) fn open_file(&self, call: &Call, flags: OFlags, at: Epoch) -> Result<Arc<FileHandle>> {
        self.shared.admit(call)?;
        if at != EPOCH {
            return Err(Errno::STALE.into());
        }
        match self.kind {
            FileKind::Regular => {}
            FileKind::Directory => return Err(Errno::ISDIR.into()),
            FileKind::Symlink => return Err(Errno::LOOP.into()),
            // The kernel serves these itself; for us to open them might wait, or work a device.
            _ => return Err(Errno::NXIO.into()),
        }
        let path = self.reach(call)?;
        let flags = passed(flags);
        let open = |flags| {
            let open = || self.shared.proc.reopen(path.as_fd(), flags);
            self.shared.as_caller(call, || self.shared.descriptors.with_room(open))
        };
        let file = match open(flags) {
            // The owner may ask for this. Where we cannot act as him it is only left undone.
            Err(error)
                if error == Errno::PERM && flags.contains(OFlags::NOATIME) && !self.shared.assumes() =>
            {
                open(flags - OFlags::NOATIME)?
            }
            other => other?,
        };
        self.opened(file, path)
    }

    /// The handle of an open of this file.
    pub(super) fn opened(&self, file: OwnedFd, path: Arc<OwnedFd>) -> Result<Arc<FileHandle>> {
        let node = self.this.upgrade().ok_or(Errno::STALE)?;
        Ok(Arc::new(FileHandle::new(node, file, path)))
    }

    /// Whether the bytes are those of the last open that was asked for, for sure; from now on this open is the last.
    /// Asked only where the kernel keeps pages of ours, so only there it costs a system call.
    pub(crate) fn is_as_last_opened(&self, file: &OwnedFd) -> Result<bool> {
        let attr = self.attr(&self.shared.asking.of_fd(file.as_fd())?);
        let version = Version { mtime: attr.mtime, ctime: attr.ctime, size: attr.size };
        let is_settled = Timestamp::now().as_nanos() - attr.ctime.as_nanos() > SETTLED_NANOS;
        let mut slot = self.slot.lock();
        let is_same = slot.last_open.as_deref() == Some(&version);
        slot.last_open = is_settled.then(|| Box::new(version));
        Ok(is_same)
    }

    pub(super) fn open_dir(&self, call: &Call) -> Result<Arc<Listing>> {
        self.shared.admit(call)?;
        if self.kind != FileKind::Directory {
            return Err(Errno::NOTDIR.into());
        }
        let path = self.reach(call)?;
        let open = || self.shared.proc.reopen(path.as_fd(), OFlags::RDONLY | OFlags::DIRECTORY);
        let dir = self.shared.as_caller(call, || self.shared.descriptors.with_room(open))?;
        let node = self.this.upgrade().ok_or(Errno::STALE)?;
        Ok(Arc::new(Listing::new(node, dir)))
    }
}
