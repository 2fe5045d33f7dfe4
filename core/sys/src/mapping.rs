//! Shared mappings of files (`mmap(2)`), read and written like a file: what tests need to act as a program that maps.

#![expect(unsafe_code, reason = "mmap(2)")]

use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::io::{Errno, Result};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};

/// A shared mapping from the begin of a file. It may outlive the descriptor. Touching pages past the file's end ends
/// the process (SIGBUS), as everywhere.
#[derive(Debug)]
pub struct Mapping {
    begin: NonNull<u8>,
    length: usize,
    writable: bool,
}

// SAFETY: the memory is the kernel's and is only touched by volatile accesses of single bytes, through `&self` as well
// as by other processes; no reference to it is ever made.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `length` bytes.
    pub fn new(file: impl AsFd, length: usize, writable: bool) -> Result<Self> {
        let mut protection = ProtFlags::READ;
        protection.set(ProtFlags::WRITE, writable);
        // SAFETY: with a null hint and without MAP_FIXED the kernel chooses addresses that nothing else uses.
        let begin = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, file.as_fd(), 0)
        }?;
        let begin = NonNull::new(begin.cast()).ok_or(Errno::NOMEM)?;
        Ok(Mapping { begin, length, writable })
    }

    /// Reads at `offset`.
    ///
    /// # Panics
    /// If that is not within the mapping.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        assert!(offset.checked_add(bytes.len()).is_some_and(|end| end <= self.length));
        for (at, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: within the mapping, which lives as long as `self`.
            *byte = unsafe { self.begin.add(offset + at).read_volatile() };
        }
    }

    /// Writes at `offset`.
    ///
    /// # Panics
    /// If that is not within the mapping, or it is not for writing.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(self.writable && offset.checked_add(bytes.len()).is_some_and(|end| end <= self.length));
        for (at, byte) in bytes.iter().enumerate() {
            // SAFETY: within the mapping, which lives as long as `self` and is mapped for writing.
            unsafe { self.begin.add(offset + at).write_volatile(*byte) };
        }
    }

    /// Hands what was written to the file system (`msync(2)`).
    pub fn sync(&self) -> Result<()> {
        // SAFETY: the range is exactly the mapping.
        unsafe { rustix::mm::msync(self.begin.as_ptr().cast(), self.length, MsyncFlags::SYNC) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the mapping, and nothing refers to it after this.
        let _ = unsafe { rustix::mm::munmap(self.begin.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn file_and_mapping_show_the_same_bytes_also_after_the_close() {
        let memory = rustix::fs::memfd_create("mapping", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let mut file = std::fs::File::from(memory);
        file.write_all(&[1; 4096]).unwrap();
        let mapping = Mapping::new(&file, 4096, true).unwrap();
        mapping.write(10, b"abc");
        mapping.sync().unwrap();
        let mut seen = [0; 4];
        file.read_at(&mut seen, 9).unwrap();
        assert_eq!(seen, [1, b'a', b'b', b'c']);
        drop(file);
        mapping.read(9, &mut seen);
        assert_eq!(seen, [1, b'a', b'b', b'c']);
    }
}
