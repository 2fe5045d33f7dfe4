//! An open file.

use std::any::Any;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use hither_sys::{creds, files, lease};
use hither_vfs::{Backing, Call, Errno, FallocateFlags, Handle, OFlags, Result, SeekTo, WriteAt};
use rustix::fs::SeekFrom;
use rustix::io::ReadWriteFlags;

use crate::node::DirNode;

/// An open file. Reads and writes are the host's; the open's own permission was checked when it was made.
pub(crate) struct FileHandle {
    node: Arc<DirNode>,
    file: OwnedFd,
    /// The node's descriptor: held, so that the node keeps it, too, and all opens have the same.
    path: Arc<OwnedFd>,
}

impl FileHandle {
    pub fn new(node: Arc<DirNode>, file: OwnedFd, path: Arc<OwnedFd>) -> Self {
        FileHandle { node, file, path }
    }

    /// The descriptor of the open.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn admit(&self, call: &Call) -> Result<()> {
        self.node.shared().admit(call)
    }

    /// Runs what changes bytes. The open has been allowed; but a change by a user takes set-id bits away, one by the
    /// daemon would not, and it counts against his quota, not past it.
    fn changing<T>(&self, call: &Call, change: impl Fn() -> rustix::io::Result<T>) -> Result<T> {
        self.admit(call)?;
        let shared = self.node.shared();
        match self.node.set_id_bits() {
            0 => shared.as_opened(call, change),
            bits if bits & 0o2000 != 0 => shared.as_caller_exactly(call, change),
            _ => shared.as_caller(call, change),
        }
    }

    fn write_some(&self, data: &[u8], at: WriteAt, done: usize) -> rustix::io::Result<usize> {
        match at {
            WriteAt::Offset(offset) => rustix::io::pwrite(&self.file, data, offset + done as u64),
            // The descriptor itself is not an appending one, on which the host would append every write.
            WriteAt::End => {
                rustix::io::pwritev2(&self.file, &[IoSlice::new(data)], 0, ReadWriteFlags::APPEND)
            }
        }
    }
}

impl Handle for FileHandle {
    fn read(&self, call: &Call, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.admit(call)?;
        let mut done = 0;
        while done < buf.len() {
            match rustix::io::pread(&self.file, &mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(errno) if done == 0 => return Err(errno.into()),
                // The next read meets the error again, at its own place.
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn write(&self, call: &Call, data: &[u8], at: WriteAt) -> Result<usize> {
        if data.is_empty() {
            return Ok(0);
        }
        let mut done = 0;
        while done < data.len() {
            match self.changing(call, || self.write_some(&data[done..], at, done)) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn flush(&self, call: &Call) -> Result<()> {
        if !self.node.mount().fs.flushes() {
            return Ok(());
        }
        self.admit(call)?;
        // A descriptor of the same open is closed, as the program's was: network file systems write back then.
        files::close(rustix::io::fcntl_dupfd_cloexec(&self.file, 0)?)?;
        Ok(())
    }

    fn fsync(&self, call: &Call, datasync: bool) -> Result<()> {
        self.admit(call)?;
        if datasync {
            rustix::fs::fdatasync(&self.file)?
        } else {
            rustix::fs::fsync(&self.file)?
        }
        Ok(())
    }

    fn fallocate(&self, call: &Call, flags: FallocateFlags, offset: u64, length: u64) -> Result<()> {
        self.changing(call, || rustix::fs::fallocate(&self.file, flags, offset, length))
    }

    fn seek(&self, call: &Call, offset: u64, to: SeekTo) -> Result<u64> {
        self.admit(call)?;
        // This moves the descriptor's own position, which nothing else here uses.
        let to = match to {
            SeekTo::Data => SeekFrom::Data(offset),
            SeekTo::Hole => SeekFrom::Hole(offset),
        };
        Ok(rustix::fs::seek(&self.file, to)?)
    }

    fn copy_range(
        &self,
        call: &Call,
        offset: u64,
        to: &dyn Handle,
        to_offset: u64,
        length: u64,
    ) -> Result<u64> {
        let to = to.as_any().downcast_ref::<FileHandle>().ok_or(Errno::XDEV)?;
        if !Arc::ptr_eq(self.node.shared(), to.node.shared()) {
            return Err(Errno::XDEV.into());
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        // Once: a second call for what is missing would go on with bytes that the first has appended, if both are one
        // file.
        let copied = to.changing(call, || {
            let (mut from, mut into) = (offset, to_offset);
            rustix::fs::copy_file_range(&self.file, Some(&mut from), &to.file, Some(&mut into), length)
        })?;
        Ok(copied as u64)
    }

    fn backing(&self) -> Option<Backing> {
        // An O_PATH descriptor is enough: the kernel opens what it leads to itself, for each open with its own flags.
        self.node.shared().options.backings.then(|| Backing(self.path.clone()))
    }

    fn keep_cache(&self) -> bool {
        self.node.is_as_last_opened(&self.file).unwrap_or(false)
    }

    fn has_writer(&self, call: &Call) -> Result<Option<bool>> {
        self.admit(call)?;
        let mode = rustix::fs::fcntl_getfl(&self.file)? & OFlags::RWMODE;
        // A writer among others is not told from this one; and on network file systems a refused lease says nothing.
        if mode != OFlags::RDONLY || !self.node.mount().fs.tells_writers() {
            return Ok(None);
        }
        let _own = creds::own();
        match lease::has_writer(self.file.as_fd()) {
            Ok(has) => Ok(Some(has)),
            // Not ours to ask, or not known there.
            Err(Errno::ACCESS | Errno::INVAL | Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
