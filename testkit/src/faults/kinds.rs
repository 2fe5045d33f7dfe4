//! The kinds of calls that a file system gets, and sets of them.

use std::ops::BitOr;

/// A kind of call: one method of the trait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are those of the trait's methods")]
#[repr(u8)]
pub enum Kind {
    Statfs,
    Sync,
    PersistentId,
    Getattr,
    Setattr,
    Access,
    Readlink,
    Open,
    Opendir,
    Lookup,
    Create,
    Tmpfile,
    Mkdir,
    Mknod,
    Symlink,
    Link,
    Unlink,
    Rmdir,
    Rename,
    Getxattr,
    Setxattr,
    Listxattr,
    Removexattr,
    ProjectId,
    Read,
    Write,
    Flush,
    Fsync,
    Fallocate,
    Seek,
    CopyRange,
    Readdir,
    FsyncDir,
}

impl Kind {
    /// How many kinds there are.
    pub const COUNT: usize = Kind::FsyncDir as usize + 1;
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u64);

impl Kinds {
    /// Every call.
    pub const ALL: Kinds = Kinds(u64::MAX);

    /// Those that change something.
    pub const CHANGES: Kinds = Kinds::of(&[
        Kind::Setattr,
        Kind::Create,
        Kind::Tmpfile,
        Kind::Mkdir,
        Kind::Mknod,
        Kind::Symlink,
        Kind::Link,
        Kind::Unlink,
        Kind::Rmdir,
        Kind::Rename,
        Kind::Setxattr,
        Kind::Removexattr,
        Kind::Write,
        Kind::Fallocate,
        Kind::CopyRange,
    ]);

    /// Those that move bytes of files.
    pub const DATA: Kinds = Kinds::of(&[Kind::Read, Kind::Write, Kind::CopyRange]);

    /// Those that make something durable.
    pub const SYNCS: Kinds = Kinds::of(&[Kind::Sync, Kind::Fsync, Kind::FsyncDir]);

    /// These kinds.
    pub const fn of(kinds: &[Kind]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < kinds.len() {
            bits |= 1 << kinds[at] as u8;
            at += 1;
        }
        Kinds(bits)
    }

    /// These, but for some.
    pub fn without(self, kinds: &[Kind]) -> Self {
        Kinds(self.0 & !Kinds::of(kinds).0)
    }

    /// Whether the kind is among them.
    pub fn contains(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

impl From<Kind> for Kinds {
    fn from(kind: Kind) -> Self {
        Kinds::of(&[kind])
    }
}

impl BitOr for Kinds {
    type Output = Kinds;

    fn bitor(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}
