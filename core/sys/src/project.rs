//! Project ids of files: what project quotas count by (`FS_IOC_FSGETXATTR`).

#![expect(unsafe_code, reason = "ioctl(2)")]

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::{Errno, Result};

/// `struct fsxattr` of `linux/fs.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct FsXattr {
    xflags: u32,
    extsize: u32,
    nextents: u32,
    projid: u32,
    cowextsize: u32,
    pad: [u8; 8],
}

const _: () = assert!(size_of::<FsXattr>() == 28);

/// `_IOR('X', 31, struct fsxattr)` and `_IOW('X', 32, struct fsxattr)`, as most architectures encode them.
const FS_IOC_FSGETXATTR: u32 = 0x801c_581f;
const FS_IOC_FSSETXATTR: u32 = 0x401c_5820;

/// The project id of an open file (not an `O_PATH` one); `None` where the file system has none.
pub fn project_id(fd: BorrowedFd<'_>) -> Result<Option<u32>> {
    match get(fd) {
        Ok(attr) => Ok(Some(attr.projid)),
        Err(Errno::NOTTY | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Gives an open file a project id. Needs the rights of its owner, in the initial user namespace.
pub fn set_project_id(fd: BorrowedFd<'_>, id: u32) -> Result<()> {
    let attr = FsXattr { projid: id, ..get(fd)? };
    // SAFETY: the request reads one `struct fsxattr`, which `attr` is, and keeps no pointer.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), FS_IOC_FSSETXATTR as libc::Ioctl, &raw const attr) };
    if done == 0 { Ok(()) } else { Err(crate::last_errno()) }
}

fn get(fd: BorrowedFd<'_>) -> Result<FsXattr> {
    let mut attr = MaybeUninit::<FsXattr>::zeroed();
    // SAFETY: the request writes one `struct fsxattr`, for which `attr` is room, and keeps no pointer.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), FS_IOC_FSGETXATTR as libc::Ioctl, attr.as_mut_ptr()) };
    if done != 0 {
        return Err(crate::last_errno());
    }
    // SAFETY: all its bytes were zeroed, and any bits are a value of its integers.
    Ok(unsafe { attr.assume_init() })
}
