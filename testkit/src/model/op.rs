//! The operations.

use std::fmt;
use std::path::PathBuf;

use super::tree::Tree;

/// The names there are: few, so that operations meet.
pub(crate) const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Targets of symbolic links: they lead nowhere, since nothing here follows them.
pub(crate) const TARGETS: [&str; 3] = ["nowhere", "/no/such/place", "x"];

/// Names of extended attributes.
pub(crate) const KEYS: [&str; 2] = ["user.k", "user.\u{e9}"];

/// How many files can be held open at a time.
pub(crate) const SLOTS: usize = 3;

/// Directories below which nothing is made by choice.
const DEPTH_MAX: usize = 4;

/// A path: given, or to be chosen among those that there are when the operation's turn comes. A path drawn blindly
/// would nearly always lead nowhere.
#[derive(Clone, PartialEq, Eq)]
pub enum Place {
    /// These names, from the root on.
    At(Vec<u8>),
    /// Something that is there.
    Some(Wanted, u16),
    /// A name in some directory.
    Within(u16, u8),
}

/// What an operation would like to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Anything.
    Any,
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Something with extended attributes.
    Xattrs,
}

impl Place {
    /// A given path.
    pub fn at(names: &[u8]) -> Self {
        Place::At(names.to_vec())
    }

    /// The names of a given path; none of one that is still to be chosen.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &'static str> {
        let indices = match self {
            Place::At(indices) => indices.as_slice(),
            Place::Some(..) | Place::Within(..) => &[],
        };
        indices.iter().map(|index| NAMES[usize::from(*index) % NAMES.len()])
    }

    /// As a path.
    pub fn path(&self) -> PathBuf {
        self.names().collect()
    }

    /// Chooses a path among those of the tree.
    fn choose(&mut self, tree: &Tree) {
        let pick = |among: Vec<Vec<u8>>, which: u16| match among.len() {
            0 => vec![0],
            count => among[usize::from(which) % count].clone(),
        };
        match *self {
            Place::At(_) => {}
            Place::Some(wanted, which) => *self = Place::At(pick(tree.paths(wanted), which)),
            Place::Within(which, name) => {
                let mut directories = tree.paths(Wanted::Directory);
                directories.retain(|path| path.len() < DEPTH_MAX);
                directories.push(Vec::new());
                let mut path = pick(directories, which);
                path.push(name);
                *self = Place::At(path);
            }
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // So that a printed operation can be pasted into a test.
        match self {
            Place::At(names) => write!(f, "Place::at(&{names:?})"),
            Place::Some(wanted, which) => write!(f, "Place::Some(Wanted::{wanted:?}, {which})"),
            Place::Within(which, name) => write!(f, "Place::Within({which}, {name})"),
        }
    }
}

/// How `create` treats what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of open(2)")]
pub enum Creating {
    Open,
    Exclusive,
    Truncate,
}

/// The types that `mknod` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of inode(7)")]
pub enum NodeKind {
    Regular,
    Fifo,
    Socket,
}

/// How `rename` treats what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of renameat2(2)")]
pub enum Renaming {
    Replace,
    NoReplace,
    Exchange,
}

/// How `setxattr` treats what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of setxattr(2)")]
pub enum Setting {
    Any,
    Create,
    Replace,
}

/// A time to set: early ones are told exactly, and never confused with those that a clock gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Leave it.
    Omit,
    /// The clock's.
    Now,
    /// Seconds and nanoseconds since 1970.
    At(u16, u32),
}

/// One operation. Offsets and lengths are bytes; `fill` is what is written.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "fields are the arguments of the call of that name")]
pub enum Op {
    Create {
        at: Place,
        mode: u16,
        how: Creating,
    },
    Mkdir {
        at: Place,
        mode: u16,
    },
    Mknod {
        at: Place,
        mode: u16,
        kind: NodeKind,
    },
    Symlink {
        at: Place,
        target: u8,
    },
    Link {
        from: Place,
        to: Place,
    },
    Unlink {
        at: Place,
    },
    Rmdir {
        at: Place,
    },
    Rename {
        from: Place,
        to: Place,
        how: Renaming,
    },
    Write {
        at: Place,
        offset: u32,
        length: u16,
        fill: u8,
    },
    Append {
        at: Place,
        length: u16,
        fill: u8,
    },
    Read {
        at: Place,
        offset: u32,
        length: u16,
    },
    OpenTruncate {
        at: Place,
    },
    Resize {
        at: Place,
        size: u32,
    },
    Allocate {
        at: Place,
        offset: u32,
        length: u16,
        keep_size: bool,
    },
    Punch {
        at: Place,
        offset: u32,
        length: u32,
    },
    Copy {
        from: Place,
        offset: u32,
        to: Place,
        to_offset: u32,
        length: u16,
    },
    Chmod {
        at: Place,
        mode: u16,
    },
    Chown {
        at: Place,
        uid: u16,
        gid: u16,
    },
    SetTimes {
        at: Place,
        atime: Time,
        mtime: Time,
    },
    Stat {
        at: Place,
    },
    Readlink {
        at: Place,
    },
    List {
        at: Place,
    },
    SetXattr {
        at: Place,
        key: u8,
        value: u16,
        how: Setting,
    },
    GetXattr {
        at: Place,
        key: u8,
    },
    ListXattrs {
        at: Place,
    },
    RemoveXattr {
        at: Place,
        key: u8,
    },
    /// Opens a file and keeps it open in a slot.
    Hold {
        slot: u8,
        at: Place,
    },
    /// The same with a nameless file.
    HoldNameless {
        slot: u8,
        within: Place,
        mode: u16,
        exclusive: bool,
    },
    ReadHeld {
        slot: u8,
        offset: u32,
        length: u16,
    },
    WriteHeld {
        slot: u8,
        offset: u32,
        length: u16,
        fill: u8,
    },
    AppendHeld {
        slot: u8,
        length: u16,
        fill: u8,
    },
    ResizeHeld {
        slot: u8,
        size: u32,
    },
    StatHeld {
        slot: u8,
    },
    /// Links the file of a slot.
    NameHeld {
        slot: u8,
        to: Place,
    },
    Release {
        slot: u8,
    },
}

impl Op {
    /// The same operation with its paths and slots chosen among those of the tree.
    pub(crate) fn chosen(&self, tree: &Tree) -> Op {
        let mut op = self.clone();
        for place in op.places() {
            place.choose(tree);
        }
        if let Some(slot) = op.occupied_slot() {
            let occupied = tree.occupied();
            if !occupied.is_empty() {
                *slot = occupied[usize::from(*slot) % occupied.len()];
            }
        }
        op
    }

    fn places(&mut self) -> Vec<&mut Place> {
        match self {
            Op::Create { at, .. } | Op::Mkdir { at, .. } | Op::Mknod { at, .. } => vec![at],
            Op::Symlink { at, .. } | Op::Unlink { at } | Op::Rmdir { at } => vec![at],
            Op::Stat { at } | Op::Readlink { at } | Op::List { at } => vec![at],
            Op::Write { at, .. } | Op::Append { at, .. } | Op::Read { at, .. } => vec![at],
            Op::OpenTruncate { at } | Op::Resize { at, .. } => vec![at],
            Op::Allocate { at, .. } | Op::Punch { at, .. } => vec![at],
            Op::Chmod { at, .. } | Op::Chown { at, .. } | Op::SetTimes { at, .. } => vec![at],
            Op::SetXattr { at, .. } | Op::GetXattr { at, .. } | Op::RemoveXattr { at, .. } => vec![at],
            Op::ListXattrs { at } | Op::Hold { at, .. } => vec![at],
            Op::HoldNameless { within, .. } => vec![within],
            Op::NameHeld { to, .. } => vec![to],
            Op::Link { from, to } | Op::Rename { from, to, .. } | Op::Copy { from, to, .. } => vec![from, to],
            Op::ReadHeld { .. } | Op::WriteHeld { .. } | Op::AppendHeld { .. } => Vec::new(),
            Op::ResizeHeld { .. } | Op::StatHeld { .. } | Op::Release { .. } => Vec::new(),
        }
    }

    /// The slot of an operation that needs a file in it.
    fn occupied_slot(&mut self) -> Option<&mut u8> {
        match self {
            Op::ReadHeld { slot, .. } | Op::WriteHeld { slot, .. } | Op::AppendHeld { slot, .. } => {
                Some(slot)
            }
            Op::ResizeHeld { slot, .. } | Op::StatHeld { slot } | Op::NameHeld { slot, .. } => Some(slot),
            Op::Release { slot } => Some(slot),
            _ => None,
        }
    }
}
