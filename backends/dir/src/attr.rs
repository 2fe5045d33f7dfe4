//! From `statx(2)` to the trait's attributes.

use std::os::fd::BorrowedFd;

use hither_vfs::{Attr, FileKind, Timestamp};
use rustix::fs::{AtFlags, Statx, StatxFlags, StatxTimestamp};

/// `STATX_MNT_ID_UNIQUE` (Linux 6.8): a mount id that no later mount gets again; older kernels answer with the id that
/// `MNT_ID` asks for.
const MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// What is asked of every inode.
const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::MNT_ID).union(MNT_ID_UNIQUE);

/// Attributes of the inode that `fd` leads to, with its time of birth.
pub(crate) fn statx_fd(fd: BorrowedFd<'_>) -> rustix::io::Result<Statx> {
    rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, WANTED | StatxFlags::BTIME)
}

/// How attributes are asked for in one directory tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    wanted: StatxFlags,
    fresh: AtFlags,
}

impl Asking {
    /// Where the time of birth tells nothing it is not asked for: FUSE and network file systems keep the other
    /// attributes that a lookup or a listing brought, but go to their server for this one. With `fresh`, the attributes
    /// of a node are asked of the server whatever the client keeps (a lookup still takes what it brings).
    pub fn new(births: bool, fresh: bool) -> Self {
        let wanted = if births { WANTED | StatxFlags::BTIME } else { WANTED };
        Asking { wanted, fresh: if fresh { AtFlags::STATX_FORCE_SYNC } else { AtFlags::empty() } }
    }

    /// Attributes of the inode that `fd` leads to, which was just looked up or opened.
    pub fn of_fd(self, fd: BorrowedFd<'_>) -> rustix::io::Result<Statx> {
        rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, self.wanted)
    }

    /// Attributes of the inode that `fd` leads to, as they are now.
    pub fn of_fd_now(self, fd: BorrowedFd<'_>) -> rustix::io::Result<Statx> {
        rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH | self.fresh, self.wanted)
    }

    /// Attributes of what `name` leads to; a symbolic link's own.
    pub fn of_name(self, dir: BorrowedFd<'_>, name: &std::ffi::OsStr) -> rustix::io::Result<Statx> {
        rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, self.wanted)
    }
}

/// The device number that an inode lies on.
pub(crate) fn dev_of(stat: &Statx) -> u64 {
    rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor)
}

/// What tells mounts apart: their id, or on kernels without it (before 5.8) the device.
pub(crate) fn mount_of(stat: &Statx) -> u64 {
    if StatxFlags::from_bits_retain(stat.stx_mask).intersects(StatxFlags::MNT_ID.union(MNT_ID_UNIQUE)) {
        stat.stx_mnt_id
    } else {
        dev_of(stat)
    }
}

/// Time of birth, where the file system tells.
pub(crate) fn btime_of(stat: &Statx) -> Option<Timestamp> {
    let known = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    known.then(|| timestamp(&stat.stx_btime))
}

/// The type.
pub(crate) fn kind_of(stat: &Statx) -> FileKind {
    FileKind::of_mode(u32::from(stat.stx_mode))
}

fn timestamp(time: &StatxTimestamp) -> Timestamp {
    Timestamp { sec: time.tv_sec, nsec: time.tv_nsec }
}

/// The attributes, with an inode number that is unique in the tree: those of the root's device as they are, those of
/// other devices moved to the upper half and mixed with the device.
pub(crate) fn attr_of(stat: &Statx, root_dev: u64) -> Attr {
    Attr {
        ino: unique_ino(dev_of(stat), stat.stx_ino, root_dev),
        size: stat.stx_size,
        blocks: stat.stx_blocks,
        atime: timestamp(&stat.stx_atime),
        mtime: timestamp(&stat.stx_mtime),
        ctime: timestamp(&stat.stx_ctime),
        btime: btime_of(stat),
        mode: u32::from(stat.stx_mode),
        nlink: stat.stx_nlink,
        uid: stat.stx_uid,
        gid: stat.stx_gid,
        rdev: rustix::fs::makedev(stat.stx_rdev_major, stat.stx_rdev_minor),
        blksize: stat.stx_blksize,
    }
}

/// An inode number that no other device of the tree has.
pub(crate) fn unique_ino(dev: u64, ino: u64, root_dev: u64) -> u64 {
    if dev == root_dev { ino } else { (1 << 63) | mix(dev, ino) }
}

/// 64 well mixed bits of both (the finalizer of MurmurHash3, twice).
fn mix(dev: u64, ino: u64) -> u64 {
    let mix = |mut bits: u64| {
        bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        bits ^ (bits >> 33)
    };
    mix(mix(dev).wrapping_add(ino))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn inode_numbers_of_several_devices_stay_apart() {
        let mut seen = HashSet::new();
        for dev in [7, 8, 9, 0x10_0003] {
            for ino in 1..10_000 {
                assert!(seen.insert(unique_ino(dev, ino, 8)));
            }
        }
        assert_eq!(unique_ino(8, 4711, 8), 4711);
    }
}
