//! The numbers and structures of `linux/fuse.h` that hither uses, named as there without the prefix.

use super::wire::{Pad, wire_struct};

/// The major version; every other is refused.
pub(crate) const MAJOR: u32 = 7;
/// The newest minor version whose structures are known here.
pub(crate) const MINOR: u32 = 45;
/// The oldest minor version served (Linux 5.2): below it structures have other sizes.
pub(crate) const MINOR_OLDEST: u32 = 31;
/// The root's node id.
pub(crate) const ROOT_ID: u64 = 1;

/// Operation codes.
pub(crate) mod opcode {
    macro_rules! opcodes {
        ($($name:ident = $code:literal),* $(,)?) => {
            $(pub(crate) const $name: u32 = $code;)*

            /// The name of an operation, in lower case, for statistics and logs.
            pub(crate) fn name(code: u32) -> Option<&'static str> {
                match code {
                    $($code => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        };
    }

    opcodes! {
        LOOKUP = 1, FORGET = 2, GETATTR = 3, SETATTR = 4, READLINK = 5, SYMLINK = 6, MKNOD = 8, MKDIR = 9,
        UNLINK = 10, RMDIR = 11, RENAME = 12, LINK = 13, OPEN = 14, READ = 15, WRITE = 16, STATFS = 17,
        RELEASE = 18, FSYNC = 20, SETXATTR = 21, GETXATTR = 22, LISTXATTR = 23, REMOVEXATTR = 24, FLUSH = 25,
        INIT = 26, OPENDIR = 27, READDIR = 28, RELEASEDIR = 29, FSYNCDIR = 30, GETLK = 31, SETLK = 32,
        SETLKW = 33, ACCESS = 34, CREATE = 35, INTERRUPT = 36, BMAP = 37, DESTROY = 38, IOCTL = 39, POLL = 40,
        NOTIFY_REPLY = 41, BATCH_FORGET = 42, FALLOCATE = 43, READDIRPLUS = 44, RENAME2 = 45, LSEEK = 46,
        COPY_FILE_RANGE = 47, SYNCFS = 50, TMPFILE = 51, STATX = 52, COPY_FILE_RANGE_64 = 53,
    }

    /// One more than the highest code that is known.
    pub(crate) const END: usize = 54;
}

/// Flags of the first exchange; bits from 32 on travel in `flags2`.
pub(crate) mod init_flags {
    pub(crate) const ASYNC_READ: u64 = 1 << 0;
    pub(crate) const POSIX_LOCKS: u64 = 1 << 1;
    pub(crate) const ATOMIC_O_TRUNC: u64 = 1 << 3;
    pub(crate) const BIG_WRITES: u64 = 1 << 5;
    pub(crate) const DONT_MASK: u64 = 1 << 6;
    pub(crate) const FLOCK_LOCKS: u64 = 1 << 10;
    pub(crate) const AUTO_INVAL_DATA: u64 = 1 << 12;
    pub(crate) const DO_READDIRPLUS: u64 = 1 << 13;
    pub(crate) const READDIRPLUS_AUTO: u64 = 1 << 14;
    pub(crate) const ASYNC_DIO: u64 = 1 << 15;
    pub(crate) const PARALLEL_DIROPS: u64 = 1 << 18;
    pub(crate) const POSIX_ACL: u64 = 1 << 20;
    pub(crate) const MAX_PAGES: u64 = 1 << 22;
    pub(crate) const CACHE_SYMLINKS: u64 = 1 << 23;
    pub(crate) const HANDLE_KILLPRIV_V2: u64 = 1 << 28;
    pub(crate) const SETXATTR_EXT: u64 = 1 << 29;
    pub(crate) const INIT_EXT: u64 = 1 << 30;
    pub(crate) const CREATE_SUPP_GROUP: u64 = 1 << 34;
    pub(crate) const HAS_EXPIRE_ONLY: u64 = 1 << 35;
    pub(crate) const DIRECT_IO_ALLOW_MMAP: u64 = 1 << 36;
    pub(crate) const PASSTHROUGH: u64 = 1 << 37;
    pub(crate) const NO_EXPORT_SUPPORT: u64 = 1 << 38;
    pub(crate) const OVER_IO_URING: u64 = 1 << 41;
}

/// Which fields of a SETATTR count.
pub(crate) mod fattr {
    pub(crate) const MODE: u32 = 1 << 0;
    pub(crate) const UID: u32 = 1 << 1;
    pub(crate) const GID: u32 = 1 << 2;
    pub(crate) const SIZE: u32 = 1 << 3;
    pub(crate) const ATIME: u32 = 1 << 4;
    pub(crate) const MTIME: u32 = 1 << 5;
    pub(crate) const FH: u32 = 1 << 6;
    pub(crate) const ATIME_NOW: u32 = 1 << 7;
    pub(crate) const MTIME_NOW: u32 = 1 << 8;
    pub(crate) const KILL_SUIDGID: u32 = 1 << 11;
}

/// What an OPEN or CREATE answers about the open.
pub(crate) mod fopen {
    pub(crate) const DIRECT_IO: u32 = 1 << 0;
    pub(crate) const KEEP_CACHE: u32 = 1 << 1;
    pub(crate) const PARALLEL_DIRECT_WRITES: u32 = 1 << 6;
    pub(crate) const PASSTHROUGH: u32 = 1 << 7;
}

/// `getattr_flags`: the file handle counts.
pub(crate) const GETATTR_FH: u32 = 1 << 0;
/// `open_flags` of OPEN and CREATE: clear set-id bits, as the caller may not keep them.
pub(crate) const OPEN_KILL_SUIDGID: u32 = 1 << 0;
/// `write_flags`: written back from the page cache, by whom is a guess.
pub(crate) const WRITE_CACHE: u32 = 1 << 0;
/// `write_flags`: clear set-id bits.
pub(crate) const WRITE_KILL_SUIDGID: u32 = 1 << 2;
/// `release_flags`: give up the flock of this open.
pub(crate) const RELEASE_FLOCK_UNLOCK: u32 = 1 << 1;
/// `lk_flags`: a flock, not a POSIX lock.
pub(crate) const LK_FLOCK: u32 = 1 << 0;
/// `fsync_flags`: bytes only.
pub(crate) const FSYNC_FDATASYNC: u32 = 1 << 0;
/// `setxattr_flags`: clear the set-group-id bit once the ACL is set.
pub(crate) const SETXATTR_ACL_KILL_SGID: u32 = 1 << 0;
/// Flags of NOTIFY_INVAL_ENTRY: let the name's timeout end, nothing more.
pub(crate) const EXPIRE_ONLY: u32 = 1 << 0;
/// Type of the extension with a supplementary group.
pub(crate) const EXT_GROUPS: u32 = 32;

/// Codes of messages that the kernel did not ask for.
pub(crate) mod notify {
    pub(crate) const INVAL_INODE: i32 = 2;
    pub(crate) const INVAL_ENTRY: i32 = 3;
}

/// What STATX answers hold (`stx_mask`).
pub(crate) mod statx {
    pub(crate) const BASIC_STATS: u32 = 0x7ff;
    pub(crate) const BTIME: u32 = 0x800;
}

wire_struct! {
    InHeader { len: u32, opcode: u32, unique: u64, nodeid: u64, uid: u32, gid: u32, pid: u32, total_extlen: u16, padding: Pad<2> }
    OutHeader { len: u32, error: i32, unique: u64 }

    /// The first message. Kernels before 7.36 stop before `flags2`.
    InitInShort { major: u32, minor: u32, max_readahead: u32, flags: u32 }
    InitOut {
        major: u32, minor: u32, max_readahead: u32, flags: u32, max_background: u16, congestion_threshold: u16,
        max_write: u32, time_gran: u32, max_pages: u16, map_alignment: u16, flags2: u32, max_stack_depth: u32,
        request_timeout: u16, unused: Pad<22>,
    }

    AttrOut {
        ino: u64, size: u64, blocks: u64, atime: i64, mtime: i64, ctime: i64, atimensec: u32, mtimensec: u32,
        ctimensec: u32, mode: u32, nlink: u32, uid: u32, gid: u32, rdev: u32, blksize: u32, flags: u32,
    }
    EntryOut {
        nodeid: u64, generation: u64, entry_valid: u64, attr_valid: u64, entry_valid_nsec: u32,
        attr_valid_nsec: u32, attr: AttrOut,
    }
    GetattrOut { attr_valid: u64, attr_valid_nsec: u32, dummy: Pad<4>, attr: AttrOut }
    SxTime { sec: i64, nsec: u32, reserved: Pad<4> }
    StatxOut {
        attr_valid: u64, attr_valid_nsec: u32, flags: u32, spare: Pad<16>,
        mask: u32, blksize: u32, attributes: u64, nlink: u32, uid: u32, gid: u32, mode: u16, spare0: Pad<2>,
        ino: u64, size: u64, blocks: u64, attributes_mask: u64,
        atime: SxTime, btime: SxTime, ctime: SxTime, mtime: SxTime,
        rdev_major: u32, rdev_minor: u32, dev_major: u32, dev_minor: u32, spare2: Pad<112>,
    }
    StatfsOut {
        blocks: u64, bfree: u64, bavail: u64, files: u64, ffree: u64, bsize: u32, namelen: u32, frsize: u32,
        padding: Pad<28>,
    }
    OpenOut { fh: u64, open_flags: u32, backing_id: i32 }
    WriteOut { size: u32, padding: Pad<4> }
    GetxattrOut { size: u32, padding: Pad<4> }
    LseekOut { offset: u64 }
    CopyFileRangeOut { bytes_copied: u64 }
    FileLock { start: u64, end: u64, kind: u32, pid: u32 }
    Dirent { ino: u64, off: u64, namelen: u32, kind: u32 }
    InvalInodeOut { ino: u64, off: i64, len: i64 }
    InvalEntryOut { parent: u64, namelen: u32, flags: u32 }

    ForgetIn { nlookup: u64 }
    ForgetOne { nodeid: u64, nlookup: u64 }
    BatchForgetIn { count: u32, dummy: Pad<4> }
    GetattrIn { getattr_flags: u32, dummy: Pad<4>, fh: u64 }
    StatxIn { getattr_flags: u32, reserved: Pad<4>, fh: u64, sx_flags: u32, sx_mask: u32 }
    SetattrIn {
        valid: u32, padding: Pad<4>, fh: u64, size: u64, lock_owner: u64, atime: i64, mtime: i64, ctime: i64,
        atimensec: u32, mtimensec: u32, ctimensec: u32, mode: u32, unused4: Pad<4>, uid: u32, gid: u32,
        unused5: Pad<4>,
    }
    MknodIn { mode: u32, rdev: u32, umask: u32, padding: Pad<4> }
    MkdirIn { mode: u32, umask: u32 }
    RenameIn { newdir: u64 }
    Rename2In { newdir: u64, flags: u32, padding: Pad<4> }
    LinkIn { oldnodeid: u64 }
    OpenIn { flags: u32, open_flags: u32 }
    CreateIn { flags: u32, mode: u32, umask: u32, open_flags: u32 }
    ReleaseIn { fh: u64, flags: u32, release_flags: u32, lock_owner: u64 }
    FlushIn { fh: u64, unused: Pad<8>, lock_owner: u64 }
    ReadIn { fh: u64, offset: u64, size: u32, read_flags: u32, lock_owner: u64, flags: u32, padding: Pad<4> }
    WriteIn { fh: u64, offset: u64, size: u32, write_flags: u32, lock_owner: u64, flags: u32, padding: Pad<4> }
    FsyncIn { fh: u64, fsync_flags: u32, padding: Pad<4> }
    SetxattrInShort { size: u32, flags: u32 }
    SetxattrIn { size: u32, flags: u32, setxattr_flags: u32, padding: Pad<4> }
    GetxattrIn { size: u32, padding: Pad<4> }
    LkIn { fh: u64, owner: u64, lk: FileLock, lk_flags: u32, padding: Pad<4> }
    AccessIn { mask: u32, padding: Pad<4> }
    InterruptIn { unique: u64 }
    FallocateIn { fh: u64, offset: u64, length: u64, mode: u32, padding: Pad<4> }
    LseekIn { fh: u64, offset: u64, whence: u32, padding: Pad<4> }
    CopyFileRangeIn { fh_in: u64, off_in: u64, nodeid_out: u64, fh_out: u64, off_out: u64, len: u64, flags: u64 }
    IoctlIn { fh: u64, flags: u32, cmd: u32, arg: u64, in_size: u32, out_size: u32 }
    ExtHeader { size: u32, kind: u32 }
}

impl OutHeader {
    /// The same as [`put`](super::wire::Wire::put), without memory.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.len.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.error.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.unique.to_ne_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::Wire;
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_kernels_header() {
        let sizes = [
            (InHeader::SIZE, 40),
            (OutHeader::SIZE, 16),
            (InitOut::SIZE, 64),
            (AttrOut::SIZE, 88),
            (EntryOut::SIZE, 128),
            (GetattrOut::SIZE, 104),
            (StatxOut::SIZE, 288),
            (StatfsOut::SIZE, 80),
            (OpenOut::SIZE, 16),
            (FileLock::SIZE, 24),
            (Dirent::SIZE, 24),
            (SetattrIn::SIZE, 88),
            (WriteIn::SIZE, 40),
            (ReadIn::SIZE, 40),
            (LkIn::SIZE, 48),
            (ReleaseIn::SIZE, 24),
            (FlushIn::SIZE, 24),
            (CopyFileRangeIn::SIZE, 56),
            (IoctlIn::SIZE, 32),
            (StatxIn::SIZE, 24),
            (MknodIn::SIZE, 16),
            (FallocateIn::SIZE, 32),
            (InvalInodeOut::SIZE, 24),
        ];
        for (index, (ours, kernels)) in sizes.into_iter().enumerate() {
            assert_eq!(ours, kernels, "structure number {index}");
        }
    }

    #[test]
    fn what_is_put_is_taken_again() {
        let lock = FileLock { start: 1, end: u64::MAX, kind: 2, pid: 77 };
        let mut bytes = Vec::new();
        lock.put(&mut bytes);
        let header = OutHeader { len: 1, error: -2, unique: 3 };
        let mut plain = Vec::new();
        header.put(&mut plain);
        assert_eq!(plain, header.to_bytes());
        let mut rest = &bytes[..];
        assert_eq!(FileLock::take(&mut rest), Some(lock));
        assert!(rest.is_empty());
        let mut short = &bytes[..23];
        assert_eq!(FileLock::take(&mut short), None);
        assert_eq!(short.len(), 23, "nothing is taken from bytes that are too short");
    }
}
