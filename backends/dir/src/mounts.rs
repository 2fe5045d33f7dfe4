//! The mounts that the tree spans, and what each one's file system can be trusted with.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hither_rt::sync::RwLock;
use hither_sys::creds;
use hither_sys::handles::FileHandle;
use hither_vfs::{FileKind, Result};
use rustix::fs::{OFlags, Statx};

use crate::attr;
use crate::options::Handles;
use crate::proc::ProcFd;

/// A mount that a node was seen on.
pub(crate) struct Mount {
    /// What `statx` calls it.
    id: u64,
    /// The file system's type.
    pub fs: FsType,
    /// The file system's own id (`f_fsid`), the same after a restart where it has one.
    pub fsid: u64,
    /// Any open file of the mount that is not an `O_PATH` one, which some calls insist on.
    anchor: Option<OwnedFd>,
    /// Nodes are found again by file handle.
    pub handles: bool,
    /// Files have project ids, as far as is known.
    pub projects: AtomicBool,
}

/// File systems that differ in what matters here (`f_type` of `statfs(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FsType {
    /// ext4, XFS, Btrfs, tmpfs, F2FS, bcachefs, ZFS: local, and an inode keeps its time of birth for ever.
    Local,
    /// overlayfs: an inode may get another time of birth when it is copied up.
    Overlay,
    /// FUSE: file handles name what the daemon may have forgotten.
    Fuse,
    /// FAT, exFAT: no links, no special files.
    Fat,
    /// NFS, SMB, Lustre and the like, and whatever else is not known.
    Other,
}

impl FsType {
    fn of(magic: u64) -> Self {
        match magic {
            0xef53 | 0x5846_5342 | 0x9123_683e | 0x0102_1994 | 0xf2f5_2010 | 0xca45_1a4e | 0x2fc1_2fc1 => {
                FsType::Local
            }
            0x794c_7630 => FsType::Overlay,
            0x6573_5546 => FsType::Fuse,
            0x4d44 | 0x2011_bab0 => FsType::Fat,
            _ => FsType::Other,
        }
    }

    /// Whether the time of birth tells an inode from another one that got its number later.
    pub fn keeps_birth(self) -> bool {
        self == FsType::Local
    }

    /// Whether a read lease is refused for a writer on this machine only.
    pub fn tells_writers(self) -> bool {
        self != FsType::Other
    }

    /// Whether closing a descriptor does work that can fail.
    pub fn flushes(self) -> bool {
        !matches!(self, FsType::Local | FsType::Overlay | FsType::Fat)
    }
}

impl Mount {
    /// Finds out about the mount that `fd`, a node's `O_PATH` descriptor, lies on.
    fn probe(stat: &Statx, fd: BorrowedFd<'_>, proc: &ProcFd, handles: Handles) -> Result<Self> {
        let _own = creds::own();
        let magic = rustix::fs::fstatfs(fd)?.f_type as u64 & 0xffff_ffff;
        let fsid = rustix::fs::fstatvfs(fd)?.f_fsid;
        let fs = FsType::of(magic);
        // The first node seen of a mount is its root. A root that is no directory (a bind mount of one file) is not
        // opened: it may be a device.
        let is_dir = attr::kind_of(stat) == FileKind::Directory;
        let open = || proc.reopen(fd, OFlags::RDONLY | OFlags::DIRECTORY).ok();
        let anchor = is_dir.then(open).flatten();
        let usable = |anchor: &OwnedFd| {
            let handle = FileHandle::of(fd)?;
            let again = handle.open(anchor.as_fd(), OFlags::PATH)?;
            let found = attr::statx_fd(again.as_fd())?;
            Ok::<_, rustix::io::Errno>(found.stx_ino == stat.stx_ino)
        };
        let handles = handles == Handles::Auto
            && fs != FsType::Fuse
            && anchor.as_ref().is_some_and(|anchor| usable(anchor).unwrap_or(false));
        tracing::debug!(?fs, handles, mount = attr::mount_of(stat), "mount");
        Ok(Mount { id: attr::mount_of(stat), fs, fsid, anchor, handles, projects: AtomicBool::new(true) })
    }

    /// An open file of the mount that is not an `O_PATH` one, if one could be had.
    pub fn anchor(&self) -> Option<BorrowedFd<'_>> {
        self.anchor.as_ref().map(AsFd::as_fd)
    }

    /// Whether a file may have a project id.
    pub fn has_projects(&self) -> bool {
        self.projects.load(Ordering::Relaxed)
    }
}

/// All mounts seen.
pub(crate) struct Mounts {
    handles: Handles,
    root: Arc<Mount>,
    others: RwLock<HashMap<u64, Arc<Mount>>>,
}

impl Mounts {
    /// Of a tree whose root is `fd`.
    pub fn new(stat: &Statx, fd: BorrowedFd<'_>, proc: &ProcFd, handles: Handles) -> Result<Self> {
        let root = Arc::new(Mount::probe(stat, fd, proc, handles)?);
        Ok(Mounts { handles, root, others: RwLock::default() })
    }

    /// The mount of a node.
    pub fn of(&self, stat: &Statx, fd: BorrowedFd<'_>, proc: &ProcFd) -> Result<Arc<Mount>> {
        let id = attr::mount_of(stat);
        if id == self.root.id {
            return Ok(self.root.clone());
        }
        if let Some(known) = self.others.read().get(&id) {
            return Ok(known.clone());
        }
        let probed = Arc::new(Mount::probe(stat, fd, proc, self.handles)?);
        Ok(self.others.write().entry(id).or_insert(probed).clone())
    }

    /// The root's.
    pub fn root(&self) -> &Arc<Mount> {
        &self.root
    }

    /// Every mount seen.
    pub fn all(&self) -> Vec<Arc<Mount>> {
        let mut all = vec![self.root.clone()];
        all.extend(self.others.read().values().cloned());
        all
    }
}
