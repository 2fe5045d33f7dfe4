//! `/proc/self/fd`: how an `O_PATH` descriptor is opened again for I/O, and how calls that know no descriptors reach its
//! inode. The links there lead to the inode itself: a symbolic link behind one is not followed.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use hither_vfs::{Errno, Error, Result};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::path::DecInt;

/// The directory `/proc/self/fd`, kept open: a path from there is one step long.
pub(crate) struct ProcFd(OwnedFd);

impl ProcFd {
    pub fn open() -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, c"/proc/self/fd", flags, Mode::empty()).map_err(|errno| {
            Error::with_cause(errno, format!("cannot open /proc/self/fd ({errno}); is /proc mounted?"))
        })?;
        Ok(ProcFd(fd))
    }

    pub fn dir(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.0)
    }

    /// Opens the inode behind `fd` with other flags.
    pub fn reopen(&self, fd: BorrowedFd<'_>, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        rustix::fs::openat(
            &self.0,
            name(fd).as_c_str(),
            flags | OFlags::CLOEXEC | OFlags::NOCTTY,
            Mode::empty(),
        )
    }
}

/// The link's name in `/proc/self/fd`.
pub(crate) fn name(fd: BorrowedFd<'_>) -> DecInt {
    DecInt::from_fd(fd)
}

/// The absolute path of the link.
pub(crate) struct ProcPath {
    bytes: [u8; Self::ROOM],
}

impl ProcPath {
    const PREFIX: &'static [u8] = b"/proc/self/fd/";
    const ROOM: usize = 32;

    pub fn of(fd: BorrowedFd<'_>) -> Self {
        let mut bytes = [0; Self::ROOM];
        let digits = DecInt::new(fd.as_raw_fd());
        bytes[..Self::PREFIX.len()].copy_from_slice(Self::PREFIX);
        bytes[Self::PREFIX.len()..][..digits.as_bytes().len()].copy_from_slice(digits.as_bytes());
        ProcPath { bytes }
    }

    pub fn as_c_str(&self) -> &CStr {
        // There is a NUL: the longest number has fewer digits than there is room.
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}

/// A name that may be looked up in a directory: not one that leads elsewhere.
pub(crate) fn checked(name: &std::ffi::OsStr) -> Result<&std::ffi::OsStr> {
    let bytes = name.as_encoded_bytes();
    match bytes {
        b"" => Err(Errno::NOENT.into()),
        b"." | b".." => Err(Errno::INVAL.into()),
        _ if bytes.contains(&b'/') || bytes.contains(&0) => Err(Errno::INVAL.into()),
        _ => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_path_leads_to_the_descriptor_s_inode() {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        std::fs::write(file.path(), b"here").unwrap();
        let path = ProcPath::of(file.as_file().as_fd());
        assert_eq!(std::fs::read(path.as_c_str().to_str().unwrap()).unwrap(), b"here");
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", ".", "..", "a/b", "/", "../x", "a\0b"] {
            assert!(checked(name.as_ref()).is_err(), "{name:?}");
        }
        for name in ["...", "a", " ", "\n", "ä"] {
            assert!(checked(name.as_ref()).is_ok(), "{name:?}");
        }
    }
}
