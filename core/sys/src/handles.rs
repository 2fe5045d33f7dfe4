//! File handles: names of inodes that need no path and no descriptor (`name_to_handle_at(2)`, `open_by_handle_at(2)`).

#![expect(unsafe_code, reason = "name_to_handle_at(2), open_by_handle_at(2)")]

use std::fmt;
use std::mem::{MaybeUninit, offset_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::fs::OFlags;
use rustix::io::{Errno, Result};

/// The most bytes a handle has (`MAX_HANDLE_SZ`).
pub const MAX_BYTES: usize = 128;

/// A file handle. The same inode has the same one each time, and no other inode ever does.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FileHandle {
    kind: i32,
    bytes: Box<[u8]>,
}

/// `struct file_handle` of `linux/fcntl.h`, with room for the longest.
#[repr(C)]
struct Raw {
    handle_bytes: u32,
    handle_type: i32,
    f_handle: [MaybeUninit<u8>; MAX_BYTES],
}

const _: () = assert!(offset_of!(Raw, f_handle) == 8);

impl FileHandle {
    /// The handle of the inode that `fd` leads to; `fd` may be an `O_PATH` one. EOPNOTSUPP where the file system has
    /// no handles.
    pub fn of(fd: BorrowedFd<'_>) -> Result<Self> {
        let mut raw = Raw {
            handle_bytes: MAX_BYTES as u32,
            handle_type: 0,
            f_handle: [MaybeUninit::uninit(); MAX_BYTES],
        };
        let mut mount_id: libc::c_int = 0;
        // SAFETY: the path is a NUL-terminated constant, `raw` has the room that `handle_bytes` says, and both it and
        // `mount_id` outlive the call.
        let done = unsafe {
            libc::syscall(
                libc::SYS_name_to_handle_at,
                fd.as_raw_fd(),
                c"".as_ptr(),
                &raw mut raw,
                &raw mut mount_id,
                libc::AT_EMPTY_PATH,
            )
        };
        if done != 0 {
            return Err(crate::last_errno());
        }
        let length = (raw.handle_bytes as usize).min(MAX_BYTES);
        // SAFETY: the kernel has written that many bytes.
        let bytes = raw.f_handle[..length].iter().map(|byte| unsafe { byte.assume_init() }).collect();
        Ok(FileHandle { kind: raw.handle_type, bytes })
    }

    /// A handle that was stored: its type and its bytes. EINVAL if there are too many.
    pub fn from_parts(kind: i32, bytes: &[u8]) -> Result<Self> {
        if bytes.len() > MAX_BYTES {
            return Err(Errno::INVAL);
        }
        Ok(FileHandle { kind, bytes: bytes.into() })
    }

    /// The type: how the file system reads the bytes.
    pub fn kind(&self) -> i32 {
        self.kind
    }

    /// The bytes, at most [`MAX_BYTES`].
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Opens the inode. `mount` is any descriptor (not an `O_PATH` one) on the mount it lies on. ESTALE if the inode is
    /// gone; EPERM without `CAP_DAC_READ_SEARCH` in effect.
    pub fn open(&self, mount: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd> {
        let mut raw = Raw {
            handle_bytes: self.bytes.len() as u32,
            handle_type: self.kind,
            f_handle: [MaybeUninit::uninit(); MAX_BYTES],
        };
        for (to, from) in raw.f_handle.iter_mut().zip(&self.bytes) {
            to.write(*from);
        }
        // SAFETY: `raw` has as many bytes written as `handle_bytes` says and outlives the call.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_open_by_handle_at,
                mount.as_raw_fd(),
                &raw mut raw,
                (flags | OFlags::CLOEXEC).bits(),
            )
        };
        if fd < 0 {
            return Err(crate::last_errno());
        }
        // SAFETY: the call has just made this descriptor, and nobody else knows it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    }
}

impl fmt::Debug for FileHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind)?;
        self.bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, openat};
    use std::os::fd::AsFd;

    #[test]
    fn a_handle_finds_its_inode_after_a_rename_and_not_after_its_end() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let mount = openat(CWD, dir.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        std::fs::write(dir.path().join("a"), b"1").unwrap();
        let path = openat(&mount, "a", OFlags::PATH, Mode::empty()).unwrap();
        let handle = FileHandle::of(path.as_fd()).unwrap();
        drop(path);
        assert_eq!(FileHandle::from_parts(handle.kind(), handle.bytes()).unwrap(), handle);
        std::fs::rename(dir.path().join("a"), dir.path().join("b")).unwrap();
        match handle.open(mount.as_fd(), OFlags::PATH) {
            Ok(again) => assert_eq!(FileHandle::of(again.as_fd()).unwrap(), handle),
            Err(errno) => {
                assert!(!rustix::process::geteuid().is_root(), "{errno}");
                assert_eq!(errno, Errno::PERM);
                return;
            }
        }
        std::fs::remove_file(dir.path().join("b")).unwrap();
        assert_eq!(handle.open(mount.as_fd(), OFlags::PATH).unwrap_err(), Errno::STALE);
    }

    #[test]
    fn handles_that_are_too_long_are_refused() {
        assert_eq!(FileHandle::from_parts(1, &[0; MAX_BYTES + 1]).unwrap_err(), Errno::INVAL);
    }
}
