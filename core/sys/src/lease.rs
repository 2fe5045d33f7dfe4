//! Read leases: whether anybody has a file open for writing, or mapped for it (`fcntl(2)`, `F_SETLEASE`).
//!
//! The kernel grants a read lease only while there is no writer and no writable shared mapping, in this process or any
//! other. That is how a file that was handed out as a backing is known to be quiet again, even after the process that
//! handed it out was killed.

#![expect(unsafe_code, reason = "fcntl(2)")]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::{Errno, Result};

/// Of `asm-generic/fcntl.h`; the libc crate does not have it.
const F_SETSIG: libc::c_int = 10;

/// A read lease on an open file: while it is held nobody has begun to write. A writer's `open` waits until it is dropped
/// (for `/proc/sys/fs/lease-break-time` at most, then the kernel takes it).
#[derive(Debug)]
pub struct ReadLease<F: AsFd> {
    file: F,
}

impl<F: AsFd> ReadLease<F> {
    /// Takes the lease; `None` if the file has a writer or a writable mapping now. `file` must be open for reading
    /// only, and the process own the inode or have `CAP_LEASE`.
    pub fn take(file: F) -> Result<Option<Self>> {
        // A writer that comes makes the kernel send a signal to us. The default, SIGIO, would end the process;
        // SIGURG is ignored unless somebody handles it.
        set(file.as_fd(), F_SETSIG, libc::SIGURG)?;
        match set(file.as_fd(), libc::F_SETLEASE, libc::F_RDLCK) {
            Ok(_) => Ok(Some(ReadLease { file })),
            Err(Errno::AGAIN) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Whether no writer has come since (one that came waits for the lease to be dropped).
    pub fn is_unbroken(&self) -> bool {
        set(self.file.as_fd(), libc::F_GETLEASE, 0) == Ok(libc::F_RDLCK)
    }
}

impl<F: AsFd> Drop for ReadLease<F> {
    fn drop(&mut self) {
        // The only failure is that the kernel has taken it already.
        let _ = set(self.file.as_fd(), libc::F_SETLEASE, libc::F_UNLCK);
    }
}

/// Whether a file has a writer or a writable shared mapping at this moment. `file` as in [`ReadLease::take`].
pub fn has_writer(file: BorrowedFd<'_>) -> Result<bool> {
    Ok(ReadLease::take(file)?.is_none())
}

fn set(file: BorrowedFd<'_>, command: libc::c_int, argument: libc::c_int) -> Result<libc::c_int> {
    // SAFETY: the commands used here take an integer and touch no memory.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
    if answer < 0 { Err(crate::last_errno()) } else { Ok(answer) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, OpenOptions};

    #[test]
    fn writers_and_writable_mappings_are_found() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, [0; 4096]).unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(has_writer(file.as_fd()), Ok(false));
        let writer = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        assert_eq!(has_writer(file.as_fd()), Ok(true));
        // SAFETY: a fresh shared mapping that no Rust value refers to.
        let mapping = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                4096,
                rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE,
                rustix::mm::MapFlags::SHARED,
                &writer,
                0,
            )
        }
        .unwrap();
        drop(writer);
        assert_eq!(has_writer(file.as_fd()), Ok(true), "the mapping outlives the descriptor");
        // SAFETY: the mapping made above, whole.
        unsafe { rustix::mm::munmap(mapping, 4096) }.unwrap();
        assert_eq!(has_writer(file.as_fd()), Ok(false));
    }

    #[test]
    fn a_writer_breaks_the_lease_and_waits_for_it() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, b"1").unwrap();
        let lease = ReadLease::take(File::open(&path).unwrap()).unwrap().unwrap();
        assert!(lease.is_unbroken());
        let writer = std::thread::spawn(move || OpenOptions::new().write(true).open(path).unwrap());
        while lease.is_unbroken() {
            std::thread::yield_now();
        }
        assert!(!writer.is_finished());
        drop(lease);
        writer.join().unwrap();
    }
}
