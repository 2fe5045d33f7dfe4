//! Answers: what the trait says of nodes, in the kernel's structures.

use std::time::Duration;

use hither_vfs::{Attr, FileKind, StatFs, Timestamp};

use super::abi::{AttrOut, Dirent, EntryOut, GetattrOut, StatfsOut, StatxOut, SxTime, statx};
use super::wire::{Pad, Wire};

/// Splits a timeout as the kernel wants it.
fn split(timeout: Duration) -> (u64, u32) {
    (timeout.as_secs(), timeout.subsec_nanos())
}

/// A device number as the kernel's protocol carries it in 32 bits (`new_encode_dev`).
pub(crate) fn pack_dev(dev: u64) -> u32 {
    let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// The reverse of [`pack_dev`].
pub(crate) fn unpack_dev(packed: u32) -> u64 {
    let major = (packed & 0x000f_ff00) >> 8;
    let minor = (packed & 0xff) | ((packed >> 12) & 0x000f_ff00);
    rustix::fs::makedev(major, minor)
}

/// `struct fuse_attr`.
pub(crate) fn attr(attr: &Attr) -> AttrOut {
    AttrOut {
        ino: attr.ino,
        size: attr.size,
        blocks: attr.blocks,
        atime: attr.atime.sec,
        mtime: attr.mtime.sec,
        ctime: attr.ctime.sec,
        atimensec: attr.atime.nsec,
        mtimensec: attr.mtime.nsec,
        ctimensec: attr.ctime.nsec,
        mode: attr.mode,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        rdev: pack_dev(attr.rdev),
        blksize: attr.blksize,
        flags: 0,
    }
}

/// `struct fuse_entry_out`. Node ids are never used again, so the generation is always 0.
pub(crate) fn entry(
    nodeid: u64,
    attributes: &Attr,
    entry_timeout: Duration,
    attr_timeout: Duration,
) -> EntryOut {
    let (entry_valid, entry_valid_nsec) = split(entry_timeout);
    let (attr_valid, attr_valid_nsec) = split(attr_timeout);
    let attr = attr(attributes);
    EntryOut { nodeid, generation: 0, entry_valid, attr_valid, entry_valid_nsec, attr_valid_nsec, attr }
}

/// The answer that there is no such name, to be kept for a while.
pub(crate) fn no_entry(entry_timeout: Duration) -> EntryOut {
    let (entry_valid, entry_valid_nsec) = split(entry_timeout);
    EntryOut { entry_valid, entry_valid_nsec, ..EntryOut::default() }
}

/// `struct fuse_attr_out`.
pub(crate) fn getattr(attributes: &Attr, timeout: Duration) -> GetattrOut {
    let (attr_valid, attr_valid_nsec) = split(timeout);
    GetattrOut { attr_valid, attr_valid_nsec, dummy: Pad, attr: attr(attributes) }
}

/// `struct fuse_statx_out`.
pub(crate) fn statx(attr: &Attr, timeout: Duration) -> StatxOut {
    let (attr_valid, attr_valid_nsec) = split(timeout);
    let time = |at: Timestamp| SxTime { sec: at.sec, nsec: at.nsec, reserved: Pad };
    StatxOut {
        attr_valid,
        attr_valid_nsec,
        mask: statx::BASIC_STATS | if attr.btime.is_some() { statx::BTIME } else { 0 },
        blksize: attr.blksize,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        mode: attr.mode as u16,
        ino: attr.ino,
        size: attr.size,
        blocks: attr.blocks,
        atime: time(attr.atime),
        btime: time(attr.btime.unwrap_or_default()),
        ctime: time(attr.ctime),
        mtime: time(attr.mtime),
        rdev_major: rustix::fs::major(attr.rdev),
        rdev_minor: rustix::fs::minor(attr.rdev),
        ..StatxOut::default()
    }
}

/// `struct fuse_statfs_out`.
pub(crate) fn statfs(space: &StatFs) -> StatfsOut {
    let block_size = u32::try_from(space.block_size).unwrap_or(u32::MAX);
    StatfsOut {
        blocks: space.blocks,
        bfree: space.blocks_free,
        bavail: space.blocks_available,
        files: space.files,
        ffree: space.files_free,
        bsize: block_size,
        namelen: space.name_max,
        frsize: block_size,
        padding: Pad,
    }
}

/// Bytes that a directory entry with a name of that length takes, padded.
pub(crate) fn dirent_size(name_len: usize, plus: bool) -> usize {
    let entry = if plus { EntryOut::SIZE } else { 0 };
    (entry + Dirent::SIZE + name_len).next_multiple_of(8)
}

/// Appends `struct fuse_dirent`, with `struct fuse_entry_out` before it in a READDIRPLUS answer.
pub(crate) fn dirent(
    out: &mut Vec<u8>,
    entry: Option<&EntryOut>,
    ino: u64,
    next: u64,
    kind: FileKind,
    name: &[u8],
) {
    let begin = out.len();
    if let Some(entry) = entry {
        entry.put(out);
    }
    let kind = kind.mode_bits() >> 12;
    Dirent { ino, off: next, namelen: name.len() as u32, kind }.put(out);
    out.extend_from_slice(name);
    out.resize(begin + (out.len() - begin).next_multiple_of(8), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_survive_the_trip() {
        for (major, minor) in [(0, 0), (1, 3), (8, 17), (259, 4095), (4095, 0xf_ffff)] {
            let dev = rustix::fs::makedev(major, minor);
            assert_eq!(unpack_dev(pack_dev(dev)), dev, "{major}:{minor}");
        }
    }

    #[test]
    fn entries_are_padded_to_eight_bytes() {
        for length in 1..=17 {
            for plus in [false, true] {
                let mut out = Vec::new();
                let entry = EntryOut::default();
                dirent(&mut out, plus.then_some(&entry), 5, 6, FileKind::Regular, &vec![b'x'; length]);
                assert_eq!(out.len(), dirent_size(length, plus));
                assert_eq!(out.len() % 8, 0);
            }
        }
    }
}
