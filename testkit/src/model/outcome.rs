//! What an operation answers, and what a tree is, in terms that can be compared.

use std::collections::BTreeMap;
use std::fmt;

use hither_vfs::{Attr, Errno, FileKind, Timestamp};

/// The umask of whoever makes the calls.
pub(crate) const UMASK: u32 = 0o022;

/// The answer to an operation.
#[derive(Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was refused.
    Refused(Errno),
    /// So many bytes were moved.
    Moved(u64),
    /// These were read.
    Bytes(Vec<u8>),
    /// Attributes.
    Stat(Stat),
    /// Attributes with the time of access, which only the setting of times can tell for sure.
    Times(Stat, Time),
    /// Names, sorted, with their types if they are of entries.
    Names(Vec<(Vec<u8>, Option<FileKind>)>),
    /// Not asked of a file system: the kernel opens special files by itself; an empty slot.
    NotAsked,
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Done => f.write_str("done"),
            Outcome::Refused(errno) => write!(f, "refused: {errno}"),
            Outcome::Moved(bytes) => write!(f, "{bytes} bytes moved"),
            Outcome::Bytes(bytes) => write!(f, "read {}", Runs(bytes)),
            Outcome::Stat(stat) => stat.fmt(f),
            Outcome::Times(stat, atime) => write!(f, "{stat:?} atime {atime:?}"),
            Outcome::Names(names) => {
                let names = names.iter().map(|(name, kind)| (String::from_utf8_lossy(name), kind));
                f.debug_list().entries(names).finish()
            }
            Outcome::NotAsked => f.write_str("not asked"),
        }
    }
}

/// A time: one that was set is told exactly, one of a clock is only told to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Seconds and nanoseconds.
    Set(i64, u32),
    /// Some time at which the test ran.
    Clock,
}

impl From<Timestamp> for Time {
    fn from(time: Timestamp) -> Self {
        // Times that are set are of the first day of 1970.
        if time.sec <= i64::from(u16::MAX) { Time::Set(time.sec, time.nsec) } else { Time::Clock }
    }
}

/// Attributes that can be compared: sizes of directories are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of stat(2)")]
pub struct Stat {
    pub kind: FileKind,
    pub permissions: u32,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    pub mtime: Time,
}

impl From<&Attr> for Stat {
    fn from(attr: &Attr) -> Self {
        let kind = attr.kind();
        Stat {
            kind,
            permissions: attr.permissions(),
            nlink: attr.nlink,
            uid: attr.uid,
            gid: attr.gid,
            size: if kind == FileKind::Directory { 0 } else { attr.size },
            mtime: attr.mtime.into(),
        }
    }
}

/// A tree: what is at each path.
#[derive(Debug, Default)]
pub struct State(pub BTreeMap<String, Item>);

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
pub struct Item {
    /// Attributes.
    pub stat: Stat,
    /// The bytes of a file, the target of a link.
    pub bytes: Vec<u8>,
    /// Extended attributes.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The first path of the same inode.
    pub first: String,
}

impl State {
    /// A tree that cannot be walked is one that differs from all others.
    pub(crate) fn cannot_be_walked(&mut self, error: &dyn fmt::Display) {
        let (kind, mtime) = (FileKind::Directory, Time::Clock);
        let stat = Stat { kind, permissions: 0, nlink: 0, uid: 0, gid: 0, size: 0, mtime };
        let item = Item { stat, bytes: Vec::new(), xattrs: BTreeMap::new(), first: String::new() };
        self.0.insert(format!("(the walk failed: {error})"), item);
    }

    /// What differs, a line a difference.
    pub(crate) fn differences(&self, other: &State, names: (&str, &str)) -> Vec<String> {
        let mut lines = Vec::new();
        let only_other = other.0.iter().filter(|(path, _)| !self.0.contains_key(*path));
        for (path, item) in &self.0 {
            match other.0.get(path) {
                None => lines.push(format!("  {path}: only {} has it: {:?}", names.0, item.stat)),
                Some(there) if there != item => {
                    lines.push(format!("  {path}\n    {}: {item}\n    {}: {there}", names.0, names.1));
                }
                Some(_) => {}
            }
        }
        lines.extend(
            only_other.map(|(path, item)| format!("  {path}: only {} has it: {:?}", names.1, item.stat)),
        );
        lines
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {} {} xattrs {:?}", self.stat, self.first, Runs(&self.bytes), self.xattrs)
    }
}

/// Bytes as runs of equal ones.
struct Runs<'a>(&'a [u8]);

impl fmt::Display for Runs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 12;
        write!(f, "{} bytes", self.0.len())?;
        for run in self.0.chunk_by(|one, other| one == other).take(SHOWN) {
            write!(f, " {}x{}", run.len(), run[0])?;
        }
        Ok(())
    }
}
