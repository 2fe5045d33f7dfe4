//! The ioctls of `/dev/fuse` (`linux/fuse.h`, protocol 7.40): further descriptors of one session, and the files that
//! the kernel reads and writes by itself (passthrough).

#![expect(unsafe_code, reason = "ioctl(2)")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `_IOR(229, 0, uint32_t)`
const DEV_IOC_CLONE: libc::c_ulong = 0x8004_e500;
/// `_IOW(229, 1, struct fuse_backing_map)`
const DEV_IOC_BACKING_OPEN: libc::c_ulong = 0x4010_e501;
/// `_IOW(229, 2, uint32_t)`
const DEV_IOC_BACKING_CLOSE: libc::c_ulong = 0x4004_e502;

/// `struct fuse_backing_map`
#[repr(C)]
struct BackingMap {
    fd: i32,
    flags: u32,
    padding: u64,
}

/// Makes `fresh`, a descriptor of `/dev/fuse` that was opened and not used yet, a further one of the session of
/// `session`. Requests are read from either; each is answered where it was read.
pub fn clone_session(fresh: BorrowedFd<'_>, session: BorrowedFd<'_>) -> io::Result<()> {
    let session = session.as_raw_fd() as u32;
    // SAFETY: the ioctl reads the `uint32_t` behind the pointer, which lives until the call has returned.
    let result = unsafe { libc::ioctl(fresh.as_raw_fd(), DEV_IOC_CLONE as _, &raw const session) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Tells the kernel of a file that may back opens; returns its backing id. The kernel keeps the file open until
/// [`backing_close`], and acts on it with the credentials that this thread has now.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN, or if the session did not ask for passthrough; ELOOP if the file's own file system is
/// stacked too deep.
pub fn backing_open(session: BorrowedFd<'_>, file: BorrowedFd<'_>) -> io::Result<i32> {
    let map = BackingMap { fd: file.as_raw_fd(), flags: 0, padding: 0 };
    // SAFETY: the ioctl reads the `struct fuse_backing_map` behind the pointer, whose layout is the kernel's and which
    // lives until the call has returned.
    let id = unsafe { libc::ioctl(session.as_raw_fd(), DEV_IOC_BACKING_OPEN as _, &raw const map) };
    if id <= 0 { Err(io::Error::last_os_error()) } else { Ok(id) }
}

/// Gives a backing id back. Opens that use it go on.
pub fn backing_close(session: BorrowedFd<'_>, id: i32) -> io::Result<()> {
    let id = id as u32;
    // SAFETY: the ioctl reads the `uint32_t` behind the pointer, which lives until the call has returned.
    let result = unsafe { libc::ioctl(session.as_raw_fd(), DEV_IOC_BACKING_CLOSE as _, &raw const id) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
