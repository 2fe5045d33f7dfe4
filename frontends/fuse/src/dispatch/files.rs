//! Open files: bytes in and out, durability, space, holes.

use hither_vfs::locks::LockClass;
use hither_vfs::{Call, Errno, FallocateFlags, OFlags, Result, SeekTo, WriteAt};

use super::{Dispatcher, Flow};
use crate::protocol::abi::{
    CopyFileRangeIn, CopyFileRangeOut, FSYNC_FDATASYNC, FallocateIn, FlushIn, FsyncIn, LseekIn, LseekOut,
    ReadIn, WRITE_CACHE, WRITE_KILL_SUIDGID, WriteIn, WriteOut,
};
use crate::protocol::wire::Pad;
use crate::reply::Reply;

const SEEK_DATA: u32 = 3;
const SEEK_HOLE: u32 = 4;
/// The kernel never asks for more: the first exchange allowed it so many pages.
const READ_MAX: usize = 1 << 20;
/// What the short answer to COPY_FILE_RANGE can count, in whole pages.
const COPY_MAX: u64 = 0xffff_f000;

impl Dispatcher {
    pub(super) fn read(&self, call: &Call, args: &ReadIn, reply: &mut Reply) -> Result<Flow> {
        let file = self.file(args.fh)?;
        let buffer = reply.data_mut((args.size as usize).min(READ_MAX));
        let count = file.handle.read(call, buffer, args.offset)?.min(buffer.len());
        reply.set_data_len(count);
        self.counters.bytes_read.add(count as u64);
        Ok(Flow::Answer)
    }

    pub(super) fn write(&self, call: &Call, args: &WriteIn, data: &[u8], reply: &mut Reply) -> Result<Flow> {
        let file = self.file(args.fh)?;
        if args.write_flags & WRITE_KILL_SUIDGID != 0 {
            self.kill_set_ids(call, &file.known)?;
        }
        // What comes from a mapping has its place; only a write(2) goes to the end.
        let is_append = OFlags::from_bits_retain(args.flags).contains(OFlags::APPEND);
        let at = if is_append && args.write_flags & WRITE_CACHE == 0 {
            WriteAt::End
        } else {
            WriteAt::Offset(args.offset)
        };
        let count = file.handle.write(call, data, at)?;
        self.counters.bytes_written.add(count as u64);
        self.notifier.changed_through(&file.known, true);
        reply.put(&WriteOut { size: count.min(data.len()) as u32, padding: Pad });
        Ok(Flow::Answer)
    }

    pub(super) fn flush(&self, call: &Call, args: &FlushIn) -> Result<Flow> {
        let file = self.file(args.fh)?;
        let result = file.handle.flush(call);
        if !result.as_ref().is_err_and(hither_vfs::Error::is_would_block) {
            // Whatever the flush says, the descriptor is closed, and with it go the locks of its process.
            file.known.node.locks().release(LockClass::Posix, args.lock_owner);
            file.remove_locker(args.lock_owner);
        }
        result.map(|()| Flow::Answer)
    }

    pub(super) fn fsync(&self, call: &Call, args: &FsyncIn) -> Result<Flow> {
        let file = self.file(args.fh)?;
        file.handle.fsync(call, args.fsync_flags & FSYNC_FDATASYNC != 0)?;
        Ok(Flow::Answer)
    }

    pub(super) fn fallocate(&self, call: &Call, args: &FallocateIn) -> Result<Flow> {
        let file = self.file(args.fh)?;
        let flags = FallocateFlags::from_bits(args.mode).ok_or(Errno::OPNOTSUPP)?;
        file.handle.fallocate(call, flags, args.offset, args.length)?;
        self.notifier.changed_through(&file.known, true);
        Ok(Flow::Answer)
    }

    pub(super) fn lseek(&self, call: &Call, args: &LseekIn, reply: &mut Reply) -> Result<Flow> {
        let file = self.file(args.fh)?;
        let to = match args.whence {
            SEEK_DATA => SeekTo::Data,
            SEEK_HOLE => SeekTo::Hole,
            _ => return Err(Errno::INVAL.into()),
        };
        let offset = file.handle.seek(call, args.offset, to)?;
        reply.put(&LseekOut { offset });
        Ok(Flow::Answer)
    }

    pub(super) fn copy_file_range(
        &self,
        call: &Call,
        args: &CopyFileRangeIn,
        wide: bool,
        reply: &mut Reply,
    ) -> Result<Flow> {
        let from = self.file(args.fh_in)?;
        let to = self.file(args.fh_out)?;
        // No flags are defined.
        if args.flags != 0 {
            return Err(Errno::INVAL.into());
        }
        let length = if wide { args.len } else { args.len.min(COPY_MAX) };
        let copied = from.handle.copy_range(call, args.off_in, &*to.handle, args.off_out, length)?;
        self.notifier.changed_through(&to.known, true);
        if wide {
            reply.put(&CopyFileRangeOut { bytes_copied: copied });
        } else {
            reply.put(&WriteOut { size: copied.min(length) as u32, padding: Pad });
        }
        Ok(Flow::Answer)
    }
}
