//! What the host's file system can do: asked of it where that leaves no trace, known by its type elsewhere.

use std::os::fd::{AsFd, BorrowedFd};

use hither_vfs::{Capabilities, Errno};
use rustix::fs::{FallocateFlags, Mode, OFlags, SeekFrom};

use crate::mounts::{FsType, Mount};
use crate::options::Options;
use crate::proc::{ProcFd, ProcPath};

/// The capabilities of a tree whose root is `root`.
pub(crate) fn capabilities(
    options: &Options,
    mount: &Mount,
    proc: &ProcFd,
    root: BorrowedFd<'_>,
) -> Capabilities {
    let posix = mount.fs != FsType::Fat;
    let scratch = scratch(proc, root);
    Capabilities {
        timeouts: options.timeouts,
        backings: options.backings,
        persistent_ids: mount.handles || mount.fs.keeps_birth(),
        hard_links: posix,
        symlinks: posix,
        special_files: posix,
        xattrs: knows_xattr(root, c"user.hither.probe"),
        acls: knows_xattr(root, c"system.posix_acl_access"),
        rename_exchange: matches!(mount.fs, FsType::Local | FsType::Overlay),
        tmpfile: scratch.tmpfile,
        fallocate: scratch.fallocate,
        sparse: scratch.sparse,
    }
}

/// Whether the file system has attributes of that namespace: the answer to a name that is not there says it.
fn knows_xattr(root: BorrowedFd<'_>, name: &std::ffi::CStr) -> bool {
    let mut value = [0; 256];
    let got = rustix::fs::getxattr(ProcPath::of(root).as_c_str(), name, &mut value[..]);
    !matches!(got, Err(Errno::OPNOTSUPP | Errno::NOSYS))
}

struct Scratch {
    tmpfile: bool,
    fallocate: bool,
    sparse: bool,
}

/// Tries calls on a nameless file. A tree that is not ours to write to, or is read-only, is believed to be able.
fn scratch(proc: &ProcFd, root: BorrowedFd<'_>) -> Scratch {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let dir = proc.reopen(root, OFlags::RDONLY | OFlags::DIRECTORY);
    let file = dir.and_then(|dir| rustix::fs::openat(dir, c".", flags, Mode::RUSR | Mode::WUSR));
    match file {
        Ok(file) => {
            let block = 64 * 1024;
            let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let fallocate = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 2 * block).is_ok()
                && rustix::fs::fallocate(&file, punch, 0, block).is_ok();
            Scratch { tmpfile: true, fallocate, sparse: knows_holes(file.as_fd(), block) }
        }
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOSYS) => {
            Scratch { tmpfile: false, fallocate: false, sparse: false }
        }
        Err(_) => Scratch { tmpfile: true, fallocate: true, sparse: true },
    }
}

/// Whether a byte behind a long hole leaves the hole to be seen.
fn knows_holes(file: BorrowedFd<'_>, block: u64) -> bool {
    let made = rustix::fs::ftruncate(file, 0).is_ok() && rustix::io::pwrite(file, b"1", 16 * block) == Ok(1);
    made && rustix::fs::seek(file, SeekFrom::Data(0)).is_ok_and(|at| at > 0)
}
