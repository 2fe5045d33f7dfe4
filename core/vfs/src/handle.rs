//! Open files and open directories.

use std::any::Any;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::FallocateFlags;

use crate::{Attr, Call, Entry, FileKind, Result};

/// A local file that holds all bytes of an open file, current for as long as the open lasts: the front end may hand
/// it to the kernel (FUSE passthrough) or to the program, and is then out of the way.
///
/// All opens of one node in one epoch have the same backing (the same `Arc`), or none has one: the kernel refuses to
/// mix them (`fs/fuse/passthrough.c`).
#[derive(Clone, Debug)]
pub struct Backing(pub Arc<OwnedFd>);

/// Where a write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAt {
    /// At that byte.
    Offset(u64),
    /// Behind the last byte there is at that moment (`O_APPEND`).
    End,
}

/// What `seek` looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeekTo {
    /// `SEEK_DATA`.
    Data,
    /// `SEEK_HOLE`.
    Hole,
}

/// An open file. Dropping it closes it.
///
/// Offsets and lengths are bytes. Reads past the end return 0; a read is short only at the end of the file.
pub trait Handle: Send + Sync + Any {
    /// Fills `buf` from `offset`; returns how many bytes there were.
    fn read(&self, call: &Call, buf: &mut [u8], offset: u64) -> Result<usize>;

    /// Writes `data`; returns how many bytes were taken: fewer only with an error (no space) behind it.
    fn write(&self, call: &Call, data: &[u8], at: WriteAt) -> Result<usize>;

    /// A descriptor of this open was closed: the last chance to report an error to a program.
    fn flush(&self, call: &Call) -> Result<()>;

    /// Makes bytes (and, unless `datasync`, attributes) durable.
    fn fsync(&self, call: &Call, datasync: bool) -> Result<()>;

    /// As `fallocate(2)`.
    fn fallocate(&self, call: &Call, flags: FallocateFlags, offset: u64, length: u64) -> Result<()>;

    /// As `lseek(2)` with `SEEK_DATA` or `SEEK_HOLE`; ENXIO past the last data or the end.
    fn seek(&self, call: &Call, offset: u64, to: SeekTo) -> Result<u64>;

    /// Copies `length` bytes to another handle of the same file system (EXDEV if it is not); returns how many.
    fn copy_range(
        &self,
        call: &Call,
        offset: u64,
        to: &dyn Handle,
        to_offset: u64,
        length: u64,
    ) -> Result<u64>;

    /// The local file behind this open, if there is one. The same answer for the life of the handle.
    fn backing(&self) -> Option<Backing>;

    /// Whether pages that the kernel kept from earlier opens of this node and epoch are still right.
    fn keep_cache(&self) -> bool;

    /// Whether some process of this machine other than through this open can write to the file, by a descriptor or a
    /// writable mapping; `None` where the file system cannot tell. What such a writer does may show in no timestamp
    /// before it is done (and a mapping's later stores in none at all).
    fn has_writer(&self, call: &Call) -> Result<Option<bool>> {
        let _ = call;
        Ok(None)
    }

    /// Attributes of the version that this open shows, where that may not be the node's present one any more; `None`
    /// where the node's are right. Without it a kernel that serves the open from its page cache cuts an old version to
    /// the length of the present one.
    fn getattr(&self, call: &Call) -> Result<Option<Attr>> {
        let _ = call;
        Ok(None)
    }

    /// For the owner of a handle to find its own type again.
    fn as_any(&self) -> &dyn Any;
}

/// One entry of a directory.
#[derive(Clone, Debug)]
pub struct DirEntry<'a> {
    /// The name; `.` and `..` are listed as POSIX asks.
    pub name: &'a OsStr,
    /// Inode number.
    pub ino: u64,
    /// Type.
    pub kind: FileKind,
    /// Where to go on behind this entry: any value but 0 (the start), stable for the life of the handle.
    pub next: u64,
}

/// Takes entries of a directory one by one; `false` ends the listing: that entry was not taken.
pub trait DirSink {
    /// An entry; with its node and attributes where they were asked for and could be had.
    fn entry(&mut self, entry: DirEntry<'_>, found: Option<Entry>) -> bool;
}

/// An open directory.
///
/// A listing survives concurrent change: an entry that is there from `opendir` to the end is given exactly once.
pub trait DirHandle: Send + Sync + Any {
    /// Gives entries from the position `from` (0, or a `next`) until the sink has enough or the end. With `plus`,
    /// nodes and attributes come along (`.` and `..` excepted), as if each name had been looked up.
    fn read(&self, call: &Call, from: u64, plus: bool, sink: &mut dyn DirSink) -> Result<()>;

    /// Makes the directory's entries durable.
    fn fsync(&self, call: &Call, datasync: bool) -> Result<()>;
}
