//! The ioctls of `/dev/fuse` (`linux/fuse.h`, protocol 7.40): further descriptors of one session, and the files that
//! the kernel reads and writes by itself (passthrough).

#![expect(unsafe_code, reason = "ioctl(2)")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::creds;

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
/// [`backing_close`], and acts on it with the credentials that this thread has now, whoever reads and writes: the
/// daemon's, but without the capabilities that would let everybody keep set-id bits on a file that he writes to, or go
/// past a quota.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN, or if the session did not ask for passthrough; ELOOP if the file's own file system is
/// stacked too deep.
pub fn backing_open(session: BorrowedFd<'_>, file: BorrowedFd<'_>) -> io::Result<i32> {
    let _own = creds::own();
    let _reduced = Reduced::without(CapabilitySet::FSETID | CapabilitySet::SYS_RESOURCE);
    let map = BackingMap { fd: file.as_raw_fd(), flags: 0, padding: 0 };
    // SAFETY: the ioctl reads the `struct fuse_backing_map` behind the pointer, whose layout is the kernel's and which
    // lives until the call has returned.
    let id = unsafe { libc::ioctl(session.as_raw_fd(), DEV_IOC_BACKING_OPEN as _, &raw const map) };
    if id <= 0 { Err(io::Error::last_os_error()) } else { Ok(id) }
}

/// Capabilities of this thread out of effect while it lives.
struct Reduced(Option<CapabilitySets>);

impl Reduced {
    fn without(capabilities: CapabilitySet) -> Self {
        let Ok(before) = rustix::thread::capabilities(None) else { return Reduced(None) };
        if !before.effective.intersects(capabilities) {
            return Reduced(None);
        }
        let reduced = CapabilitySets { effective: before.effective.difference(capabilities), ..before };
        Reduced(rustix::thread::set_capabilities(None, reduced).is_ok().then_some(before))
    }
}

impl Drop for Reduced {
    fn drop(&mut self) {
        if let Some(before) = self.0.take() {
            // They are permitted, and what is permitted can be put into effect. A thread that stays without them could
            // not act for its callers as it should.
            if rustix::thread::set_capabilities(None, before).is_err() {
                std::process::abort();
            }
        }
    }
}

/// Gives a backing id back. Opens that use it go on.
pub fn backing_close(session: BorrowedFd<'_>, id: i32) -> io::Result<()> {
    let id = id as u32;
    // SAFETY: the ioctl reads the `uint32_t` behind the pointer, which lives until the call has returned.
    let result = unsafe { libc::ioctl(session.as_raw_fd(), DEV_IOC_BACKING_CLOSE as _, &raw const id) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
