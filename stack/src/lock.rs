//! One mount at a time owns a store: a lock file that names the owner.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// More than a pid and the longest path take.
const OWNER_MAX: u64 = 5000;

/// The right to use a store. Dropping it, and also the end of the process, gives it up.
#[derive(Debug)]
pub struct StoreLock {
    _file: File,
}

/// Why a lock was not had.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Another process has it: the first line is its pid, the second its mount point.
    Held(Owner),
    Failed(io::Error),
}

/// Whom a lock belongs to, as its file says.
#[derive(Debug)]
pub(crate) struct Owner {
    pub pid: String,
    pub mountpoint: String,
}

impl StoreLock {
    /// Takes the lock of `store` for a mount at `mountpoint`, without waiting.
    pub(crate) fn take(store: &Path, mountpoint: &Path) -> Result<Self, Refused> {
        let path = store.join("lock");
        let open =
            || OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut file = open().map_err(Refused::Failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(Refused::Held(Owner::read(&mut file))),
            Err(error) => return Err(Refused::Failed(error.into())),
        }
        // One write, so that who is refused meanwhile reads the old owner, the new one, or none.
        let mut text = format!("{}\n", std::process::id()).into_bytes();
        text.extend_from_slice(mountpoint.as_os_str().as_bytes());
        text.push(b'\n');
        file.set_len(0).and_then(|()| file.write_all(&text)).map_err(Refused::Failed)?;
        Ok(StoreLock { _file: file })
    }
}

impl Owner {
    fn read(file: &mut File) -> Self {
        let mut bytes = Vec::new();
        // What cannot be read is left out of the message; that the lock is held is what matters.
        let _ = file.take(OWNER_MAX).read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let (pid, mountpoint) = text.split_once('\n').unwrap_or_default();
        Owner { pid: pid.to_owned(), mountpoint: mountpoint.trim_end_matches('\n').to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_is_told_who_has_it_until_it_is_given_up() {
        let store = tempfile::tempdir().unwrap();
        let held = StoreLock::take(store.path(), Path::new("/mnt/first")).unwrap();
        let Err(Refused::Held(owner)) = StoreLock::take(store.path(), Path::new("/mnt/second")) else {
            panic!("taken twice");
        };
        assert_eq!(owner.pid, std::process::id().to_string());
        assert_eq!(owner.mountpoint, "/mnt/first");
        drop(held);
        StoreLock::take(store.path(), Path::new("/m")).unwrap();
        let written = std::fs::read_to_string(store.path().join("lock")).unwrap();
        assert_eq!(written, format!("{}\n/m\n", std::process::id()));
    }
}
