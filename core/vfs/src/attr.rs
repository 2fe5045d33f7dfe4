//! What is known of a node: attributes, and how to change them.

/// Seconds and nanoseconds since 1970; seconds may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Whole seconds, rounded down.
    pub sec: i64,
    /// 0 to 999,999,999.
    pub nsec: u32,
}

impl Timestamp {
    /// The wall clock.
    pub fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        Timestamp { sec: now.tv_sec, nsec: now.tv_nsec as u32 }
    }

    /// Nanoseconds since 1970.
    pub fn as_nanos(self) -> i128 {
        i128::from(self.sec) * 1_000_000_000 + i128::from(self.nsec)
    }
}

/// The type bits of a mode (`S_IFMT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of inode(7)")]
pub enum FileKind {
    Regular,
    Directory,
    Symlink,
    BlockDevice,
    CharDevice,
    Fifo,
    Socket,
}

impl FileKind {
    /// From a mode's type bits; what no POSIX type fits counts as regular.
    pub fn of_mode(mode: u32) -> Self {
        match mode & 0o170_000 {
            0o040_000 => FileKind::Directory,
            0o120_000 => FileKind::Symlink,
            0o060_000 => FileKind::BlockDevice,
            0o020_000 => FileKind::CharDevice,
            0o010_000 => FileKind::Fifo,
            0o140_000 => FileKind::Socket,
            _ => FileKind::Regular,
        }
    }

    /// The type bits of a mode.
    pub fn mode_bits(self) -> u32 {
        match self {
            FileKind::Directory => 0o040_000,
            FileKind::Symlink => 0o120_000,
            FileKind::BlockDevice => 0o060_000,
            FileKind::CharDevice => 0o020_000,
            FileKind::Fifo => 0o010_000,
            FileKind::Socket => 0o140_000,
            FileKind::Regular => 0o100_000,
        }
    }
}

/// The attributes of a node, as `stat(2)` shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// Inode number, unique in this file system (also where it spans several devices).
    pub ino: u64,
    /// Bytes.
    pub size: u64,
    /// Units of 512 bytes.
    pub blocks: u64,
    /// Last read.
    pub atime: Timestamp,
    /// Last change of the bytes.
    pub mtime: Timestamp,
    /// Last change of bytes or attributes.
    pub ctime: Timestamp,
    /// Birth, where it is known.
    pub btime: Option<Timestamp>,
    /// Type and permission bits.
    pub mode: u32,
    /// Names that the inode has.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device that a special file stands for: `major`, `minor` encoded as in `makedev(3)`.
    pub rdev: u64,
    /// Best size of a read or write, in bytes.
    pub blksize: u32,
}

impl Attr {
    /// The node's type.
    pub fn kind(&self) -> FileKind {
        FileKind::of_mode(self.mode)
    }

    /// Permission bits with set-id and sticky bits.
    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }
}

/// A time to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// The time of the file system that sets it.
    Now,
    /// That time.
    At(Timestamp),
}

/// Attributes to change; what is `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttr {
    /// Permission bits, set-id and sticky bits (no type bits).
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Truncate or extend to that many bytes.
    pub size: Option<u64>,
    /// Time of last access.
    pub atime: Option<SetTime>,
    /// Time of last modification.
    pub mtime: Option<SetTime>,
}

/// Space and counts, as `statfs(2)` shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatFs {
    /// Bytes of a block.
    pub block_size: u64,
    /// Blocks in all.
    pub blocks: u64,
    /// Blocks free.
    pub blocks_free: u64,
    /// Blocks free for users other than root.
    pub blocks_available: u64,
    /// Inodes in all.
    pub files: u64,
    /// Inodes free.
    pub files_free: u64,
    /// Longest name, in bytes.
    pub name_max: u32,
}
