//! Which state of a file's bytes a copy holds.

use std::time::Duration;

use hither_vfs::{Attr, Timestamp};

/// What the origin tells of a file that changes whenever its bytes do: two equal versions that were settled hold equal
/// bytes. (A change inside one tick of the origin's clock goes unseen, hence [`Version::is_settled`].)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Version {
    /// Bytes.
    pub size: u64,
    /// Last change of the bytes; programs can set it.
    pub mtime: Timestamp,
    /// Last change of bytes or attributes; programs cannot set it.
    pub ctime: Timestamp,
}

impl Version {
    /// The version that these attributes belong to.
    pub fn of(attr: &Attr) -> Self {
        Version { size: attr.size, mtime: attr.mtime, ctime: attr.ctime }
    }

    /// Whether the last change was more than `settle` before `now`, so that a further one cannot carry the same ctime.
    pub fn is_settled(&self, now: Timestamp, settle: Duration) -> bool {
        now.as_nanos() - self.ctime.as_nanos() > settle.as_nanos() as i128
    }

    /// Whether only ctime differs: attributes or names changed, the bytes very likely not. Not enough to trust a copy
    /// unless the change is known to be our own.
    pub fn differs_in_ctime_only(&self, other: &Version) -> bool {
        self.size == other.size && self.mtime == other.mtime && self.ctime != other.ctime
    }
}
