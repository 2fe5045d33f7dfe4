//! Calls on files whose safe wrappers elsewhere lose something: the error of a close, a truncation by path; and one on
//! all descriptors of the process.

#![expect(unsafe_code, reason = "close(2), close_range(2), truncate(2)")]

use std::ffi::CStr;
use std::os::fd::{IntoRawFd, OwnedFd};

use rustix::io::Result;

/// Closes a descriptor and reports what the file system says to it (`close(2)`): some write back only then. The
/// descriptor is gone in any case.
pub fn close(fd: OwnedFd) -> Result<()> {
    // SAFETY: the descriptor is ours alone and not used again.
    if unsafe { libc::close(fd.into_raw_fd()) } == 0 { Ok(()) } else { Err(crate::last_errno()) }
}

/// Keeps programs that are started from now on from inheriting descriptor `first` and all above it
/// (`close_range(2)` with `CLOSE_RANGE_CLOEXEC`, Linux 5.11): for a command that starts a daemon and does not know what
/// its own caller left open.
pub fn bequeath_none_from(first: u32) -> Result<()> {
    const CLOEXEC: libc::c_uint = 1 << 2;
    // SAFETY: the call closes nothing now: every descriptor of this process stays valid.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, CLOEXEC) };
    if done == 0 { Ok(()) } else { Err(crate::last_errno()) }
}

/// Truncates or extends a file by its path (`truncate(2)`): needs no open for writing.
pub fn truncate(path: &CStr, length: u64) -> Result<()> {
    let length = i64::try_from(length).map_err(|_| rustix::io::Errno::FBIG)?;
    // SAFETY: the path is NUL-terminated and outlives the call.
    if unsafe { libc::truncate64(path.as_ptr(), length) } == 0 { Ok(()) } else { Err(crate::last_errno()) }
}

#[cfg(test)]
mod tests {
    use std::io::pipe;
    use std::os::fd::AsRawFd;
    use std::process::Command;

    #[test]
    fn a_descriptor_that_would_be_inherited_is_not() {
        let (reader, writer) = pipe().unwrap();
        // A duplicate without close-on-exec, as a shell leaves it.
        let kept = rustix::io::dup(&writer).unwrap();
        let number = kept.as_raw_fd();
        let listed = || {
            let output = Command::new("ls").arg("/proc/self/fd").output().unwrap();
            String::from_utf8(output.stdout).unwrap().lines().any(|line| line == number.to_string())
        };
        assert!(listed());
        super::bequeath_none_from(number.unsigned_abs()).unwrap();
        assert!(!listed());
        drop(reader);
    }
}
