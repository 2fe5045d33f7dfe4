//! Calls on files whose safe wrappers elsewhere lose something: the error of a close, a truncation by path.

#![expect(unsafe_code, reason = "close(2), truncate(2)")]

use std::ffi::CStr;
use std::os::fd::{IntoRawFd, OwnedFd};

use rustix::io::Result;

/// Closes a descriptor and reports what the file system says to it (`close(2)`): some write back only then. The
/// descriptor is gone in any case.
pub fn close(fd: OwnedFd) -> Result<()> {
    // SAFETY: the descriptor is ours alone and not used again.
    if unsafe { libc::close(fd.into_raw_fd()) } == 0 { Ok(()) } else { Err(crate::last_errno()) }
}

/// Truncates or extends a file by its path (`truncate(2)`): needs no open for writing.
pub fn truncate(path: &CStr, length: u64) -> Result<()> {
    let length = i64::try_from(length).map_err(|_| rustix::io::Errno::FBIG)?;
    // SAFETY: the path is NUL-terminated and outlives the call.
    if unsafe { libc::truncate64(path.as_ptr(), length) } == 0 { Ok(()) } else { Err(crate::last_errno()) }
}
