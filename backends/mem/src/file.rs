//! Open files.

use std::any::Any;
use std::sync::Arc;

use hither_vfs::{
    Backing, Call, Caller, Epoch, Errno, FallocateFlags, FileKind, Handle, OFlags, Result, SeekTo, WriteAt,
};

use crate::attrs::{atime_is_due, drop_set_ids};
use crate::node::{Body, MemNode, State};
use crate::pages::{PAGE_BYTES, Pages};

/// Largest size of a file, in bytes.
pub(crate) const FILE_MAX: u64 = i64::MAX as u64;

/// An open of a file.
pub(crate) struct MemHandle {
    node: Arc<MemNode>,
    flags: OFlags,
}

impl MemNode {
    pub(crate) fn open_file(&self, caller: &Caller, flags: OFlags, at: Epoch) -> Result<Arc<dyn Handle>> {
        match self.kind() {
            FileKind::Regular => {}
            FileKind::Directory => return Err(Errno::ISDIR.into()),
            FileKind::Symlink => return Err(Errno::LOOP.into()),
            // What is behind them is the kernel's; it never asks a file system.
            _ => return Err(Errno::NXIO.into()),
        }
        if at != 0 {
            return Err(Errno::STALE.into());
        }
        let node = self.me().upgrade().ok_or(Errno::STALE)?;
        if flags.contains(OFlags::TRUNC) {
            let mut state = self.state().write();
            self.set_size(&mut state, 0)?;
            drop_set_ids(&mut state, caller);
            state.changed(self.shared().clock.tick());
        }
        Ok(Arc::new(MemHandle { node, flags }))
    }
}

impl MemHandle {
    fn can_read(&self) -> bool {
        !self.flags.contains(OFlags::WRONLY)
    }

    pub(crate) fn can_write(&self) -> bool {
        self.flags.intersects(OFlags::WRONLY | OFlags::RDWR)
    }

    /// Changes the bytes: `act` is handed them and their length.
    fn change<T>(&self, call: &Call, act: impl FnOnce(&mut Pages, &mut u64) -> Result<T>) -> Result<T> {
        if !self.can_write() {
            return Err(Errno::BADF.into());
        }
        let mut state = self.node.state().write();
        let done = act_on_file(&mut state, act)?;
        drop_set_ids(&mut state, &call.caller);
        state.changed(self.node.shared().clock.tick());
        Ok(done)
    }

    /// Copies what lies in pages, a page at a time, and makes holes of holes.
    fn copy_piece(
        &self,
        call: &Call,
        offset: u64,
        to: &MemHandle,
        to_offset: u64,
        length: u64,
    ) -> Result<u64> {
        let in_hole = self.seek_data(offset)? >= offset.saturating_add(length);
        if in_hole {
            let space = &to.node.shared().space;
            to.change(call, |pages, size| {
                pages.punch(to_offset, length, space);
                *size = (*size).max(to_offset + length);
                Ok(())
            })?;
            return Ok(length);
        }
        let mut buf = vec![0; length as usize];
        let got = self.read(call, &mut buf, offset)?;
        Ok(to.write(call, &buf[..got], WriteAt::Offset(to_offset))? as u64)
    }

    /// The next byte that is not in a hole; the end if there is none.
    fn seek_data(&self, offset: u64) -> Result<u64> {
        match &self.node.state().read().body {
            Body::File { pages, size } => Ok(pages.seek(offset, SeekTo::Data, *size).unwrap_or(u64::MAX)),
            _ => Err(Errno::INVAL.into()),
        }
    }
}

fn act_on_file<T>(state: &mut State, act: impl FnOnce(&mut Pages, &mut u64) -> Result<T>) -> Result<T> {
    match &mut state.body {
        Body::File { pages, size } => act(pages, size),
        _ => Err(Errno::INVAL.into()),
    }
}

impl Handle for MemHandle {
    fn read(&self, _: &Call, buf: &mut [u8], offset: u64) -> Result<usize> {
        if !self.can_read() {
            return Err(Errno::BADF.into());
        }
        let state = self.node.state().read();
        let Body::File { pages, size } = &state.body else { return Err(Errno::INVAL.into()) };
        let there = size.saturating_sub(offset).min(buf.len() as u64) as usize;
        pages.read(&mut buf[..there], offset);
        let note = there > 0 && !self.flags.contains(OFlags::NOATIME) && atime_is_due(&state);
        drop(state);
        if note {
            self.node.accessed();
        }
        Ok(there)
    }

    fn write(&self, call: &Call, data: &[u8], at: WriteAt) -> Result<usize> {
        if data.is_empty() {
            return if self.can_write() { Ok(0) } else { Err(Errno::BADF.into()) };
        }
        let space = &self.node.shared().space;
        self.change(call, |pages, size| {
            let offset = match at {
                WriteAt::Offset(offset) => offset,
                WriteAt::End => *size,
            };
            let room = FILE_MAX.saturating_sub(offset).min(data.len() as u64) as usize;
            if room == 0 {
                return Err(Errno::FBIG.into());
            }
            let written = pages.write(&data[..room], offset, space)?;
            *size = (*size).max(offset + written as u64);
            Ok(written)
        })
    }

    fn flush(&self, _: &Call) -> Result<()> {
        Ok(())
    }

    fn fsync(&self, _: &Call, _: bool) -> Result<()> {
        Ok(())
    }

    fn fallocate(&self, call: &Call, flags: FallocateFlags, offset: u64, length: u64) -> Result<()> {
        let keep = FallocateFlags::KEEP_SIZE;
        let (punch, zero) = (FallocateFlags::PUNCH_HOLE | keep, FallocateFlags::ZERO_RANGE);
        if length == 0 {
            return Err(Errno::INVAL.into());
        }
        if flags != punch && flags - keep != zero && flags - keep != FallocateFlags::empty() {
            return Err(Errno::OPNOTSUPP.into());
        }
        let end = offset.checked_add(length).filter(|end| *end <= FILE_MAX).ok_or(Errno::FBIG)?;
        let space = &self.node.shared().space;
        self.change(call, |pages, size| {
            if flags == punch || flags.contains(zero) {
                pages.punch(offset, length, space);
            }
            if flags != punch {
                pages.allocate(offset, length, space)?;
            }
            if !flags.contains(keep) {
                *size = (*size).max(end);
            }
            Ok(())
        })
    }

    fn seek(&self, _: &Call, offset: u64, to: SeekTo) -> Result<u64> {
        match &self.node.state().read().body {
            Body::File { pages, size } => Ok(pages.seek(offset, to, *size).ok_or(Errno::NXIO)?),
            _ => Err(Errno::INVAL.into()),
        }
    }

    fn copy_range(
        &self,
        call: &Call,
        offset: u64,
        to: &dyn Handle,
        to_offset: u64,
        length: u64,
    ) -> Result<u64> {
        let to = to.as_any().downcast_ref::<MemHandle>().ok_or(Errno::XDEV)?;
        if !Arc::ptr_eq(to.node.shared(), self.node.shared()) {
            return Err(Errno::XDEV.into());
        }
        if !self.can_read() || !to.can_write() {
            return Err(Errno::BADF.into());
        }
        if offset.checked_add(length).is_none() || to_offset.checked_add(length).is_none() {
            return Err(Errno::OVERFLOW.into());
        }
        // What counts is what there is to copy: a range behind the end overlaps with nothing.
        let length = length.min(self.node.attr().size.saturating_sub(offset));
        let overlap = to_offset + length > offset && to_offset < offset + length;
        if Arc::ptr_eq(&to.node, &self.node) && overlap {
            return Err(Errno::INVAL.into());
        }
        if to_offset + length > FILE_MAX {
            return Err(Errno::FBIG.into());
        }
        let mut copied = 0;
        while copied < length {
            let at = offset + copied;
            let to_border = PAGE_BYTES - at % PAGE_BYTES;
            let piece = to_border.min(length - copied);
            match self.copy_piece(call, at, to, to_offset + copied, piece) {
                Ok(0) => break,
                Ok(done) => copied += done,
                Err(error) if copied == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(copied)
    }

    fn backing(&self) -> Option<Backing> {
        None
    }

    fn keep_cache(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
