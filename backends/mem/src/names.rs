//! What may be a name.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use hither_vfs::{Errno, Result};

use crate::space::NAME_MAX;

/// Longest target of a symbolic link, in bytes (`PATH_MAX` without its NUL).
pub(crate) const TARGET_MAX: usize = 4095;

/// Refuses what is no name of a directory's entry.
pub(crate) fn check_name(name: &OsStr) -> Result<()> {
    let bytes = name.as_bytes();
    match bytes {
        b"" => Err(Errno::NOENT.into()),
        b"." | b".." => Err(Errno::INVAL.into()),
        _ if bytes.len() > NAME_MAX => Err(Errno::NAMETOOLONG.into()),
        _ if bytes.iter().any(|byte| matches!(byte, b'/' | 0)) => Err(Errno::INVAL.into()),
        _ => Ok(()),
    }
}

/// Refuses what no symbolic link can lead to.
pub(crate) fn check_target(target: &OsStr) -> Result<()> {
    match target.as_bytes() {
        b"" => Err(Errno::NOENT.into()),
        bytes if bytes.len() > TARGET_MAX => Err(Errno::NAMETOOLONG.into()),
        bytes if bytes.contains(&0) => Err(Errno::INVAL.into()),
        _ => Ok(()),
    }
}
