//! The operations, and how they are drawn.

use std::fmt;
use std::path::PathBuf;

use hither_vfs::Capabilities;
use proptest::prelude::*;
use proptest::strategy::Union;

/// The names there are: few, so that operations meet.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Targets of symbolic links: they lead nowhere, since nothing here follows them.
pub(crate) const TARGETS: [&str; 3] = ["nowhere", "/no/such/place", "x"];

/// Names of extended attributes.
pub(crate) const KEYS: [&str; 3] = ["user.k", "user.other", "user.\u{e9}"];

/// How many files can be held open at a time.
pub(crate) const SLOTS: usize = 3;

/// A path of one to three names.
#[derive(Clone, PartialEq, Eq)]
pub struct Place(pub Vec<u8>);

impl Place {
    /// The names.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &'static str> {
        self.0.iter().map(|index| NAMES[usize::from(*index) % NAMES.len()])
    }

    /// As a path.
    pub fn path(&self) -> PathBuf {
        self.names().collect()
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // So that a printed operation can be pasted into a test.
        write!(f, "Place(vec!{:?})", self.0)
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

fn place() -> impl Strategy<Value = Place> {
    let name = || 0..NAMES.len() as u8;
    let path = |length| prop::collection::vec(name(), length).prop_map(Place);
    prop_oneof![6 => path(1), 4 => path(2), 1 => path(3)]
}

/// Offsets on both sides of the borders of pages of 4 and 64 KiB.
fn offset() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 0..200u32,
        3 => (0..5u32, 0..4u32).prop_map(|(page, near)| (page * 4096 + near).saturating_sub(2)),
        2 => (0..3u32, 0..4u32).prop_map(|(page, near)| (page * 65_536 + near).saturating_sub(2)),
        1 => 0..200_000u32,
    ]
}

fn length() -> impl Strategy<Value = u16> {
    prop_oneof![3 => 1..50u16, 2 => 4000..4200u16, 1 => 1..20_000u16]
}

fn mode() -> impl Strategy<Value = u16> {
    prop_oneof![3 => Just(0o755), 2 => Just(0o640), 1 => 0..0o10_000u16]
}

fn time() -> impl Strategy<Value = Time> {
    let at = (any::<u16>(), 0..1_000_000_000u32).prop_map(|(sec, nsec)| Time::At(sec, nsec));
    prop_oneof![1 => Just(Time::Omit), 1 => Just(Time::Now), 4 => at]
}

fn slot() -> impl Strategy<Value = u8> {
    0..SLOTS as u8
}

/// Any operation that the file system can do and this process may.
pub fn strategy(can: &Capabilities) -> impl Strategy<Value = Op> + use<> {
    let mut ops = names(can);
    ops.extend(contents(can));
    ops.extend(attributes(can));
    ops.extend(held(can));
    Union::new_weighted(ops)
}

type Weighted = Vec<(u32, BoxedStrategy<Op>)>;

fn names(can: &Capabilities) -> Weighted {
    let creating = prop_oneof![
        3 => Just(Creating::Open),
        1 => Just(Creating::Exclusive),
        1 => Just(Creating::Truncate),
    ];
    let mut renaming = vec![(5, Just(Renaming::Replace)), (1, Just(Renaming::NoReplace))];
    renaming.extend(can.rename_exchange.then_some((2, Just(Renaming::Exchange))));
    let renaming = Union::new_weighted(renaming);
    let mut ops: Weighted = vec![
        (8, (place(), mode(), creating).prop_map(|(at, mode, how)| Op::Create { at, mode, how }).boxed()),
        (8, (place(), mode()).prop_map(|(at, mode)| Op::Mkdir { at, mode }).boxed()),
        (5, place().prop_map(|at| Op::Unlink { at }).boxed()),
        (3, place().prop_map(|at| Op::Rmdir { at }).boxed()),
        (9, (place(), place(), renaming).prop_map(|(from, to, how)| Op::Rename { from, to, how }).boxed()),
        (2, place().prop_map(|at| Op::List { at }).boxed()),
    ];
    if can.symlinks {
        let target = 0..TARGETS.len() as u8;
        ops.push((2, (place(), target).prop_map(|(at, target)| Op::Symlink { at, target }).boxed()));
        ops.push((1, place().prop_map(|at| Op::Readlink { at }).boxed()));
    }
    if can.hard_links {
        ops.push((6, (place(), place()).prop_map(|(from, to)| Op::Link { from, to }).boxed()));
    }
    let mut kinds = vec![Just(NodeKind::Regular)];
    if can.special_files {
        kinds.extend([Just(NodeKind::Fifo), Just(NodeKind::Socket)]);
    }
    let mknod = (place(), mode(), Union::new(kinds));
    ops.push((2, mknod.prop_map(|(at, mode, kind)| Op::Mknod { at, mode, kind }).boxed()));
    ops
}

fn contents(can: &Capabilities) -> Weighted {
    let write = (place(), offset(), length(), 1..255u8);
    let copy = (place(), offset(), place(), offset(), length());
    let mut ops: Weighted = vec![
        (8, write.prop_map(|(at, offset, length, fill)| Op::Write { at, offset, length, fill }).boxed()),
        (
            2,
            (place(), length(), 1..255u8)
                .prop_map(|(at, length, fill)| Op::Append { at, length, fill })
                .boxed(),
        ),
        (
            4,
            (place(), offset(), length())
                .prop_map(|(at, offset, length)| Op::Read { at, offset, length })
                .boxed(),
        ),
        (1, place().prop_map(|at| Op::OpenTruncate { at }).boxed()),
        (4, (place(), offset()).prop_map(|(at, size)| Op::Resize { at, size }).boxed()),
        (
            2,
            copy.prop_map(|(from, offset, to, to_offset, length)| Op::Copy {
                from,
                offset,
                to,
                to_offset,
                length,
            })
            .boxed(),
        ),
    ];
    if can.fallocate {
        let allocate = (place(), offset(), length(), any::<bool>());
        let punch = (place(), offset(), 1..150_000u32);
        ops.push((
            1,
            allocate
                .prop_map(|(at, offset, length, keep_size)| Op::Allocate { at, offset, length, keep_size })
                .boxed(),
        ));
        ops.push((2, punch.prop_map(|(at, offset, length)| Op::Punch { at, offset, length }).boxed()));
    }
    ops
}

fn attributes(can: &Capabilities) -> Weighted {
    let times = (place(), time(), time());
    let mut ops: Weighted = vec![
        (3, (place(), mode()).prop_map(|(at, mode)| Op::Chmod { at, mode }).boxed()),
        (2, times.prop_map(|(at, atime, mtime)| Op::SetTimes { at, atime, mtime }).boxed()),
        (4, place().prop_map(|at| Op::Stat { at }).boxed()),
    ];
    if rustix::process::geteuid().is_root() {
        let chown = (place(), 0..3u16, 0..3u16);
        ops.push((2, chown.prop_map(|(at, uid, gid)| Op::Chown { at, uid, gid }).boxed()));
    }
    if can.xattrs {
        let key = || 0..KEYS.len() as u8;
        let how =
            prop_oneof![3 => Just(Setting::Any), 1 => Just(Setting::Create), 1 => Just(Setting::Replace)];
        let set = (place(), key(), any::<u16>(), how);
        ops.push((3, set.prop_map(|(at, key, value, how)| Op::SetXattr { at, key, value, how }).boxed()));
        ops.push((1, (place(), key()).prop_map(|(at, key)| Op::GetXattr { at, key }).boxed()));
        ops.push((1, place().prop_map(|at| Op::ListXattrs { at }).boxed()));
        ops.push((1, (place(), key()).prop_map(|(at, key)| Op::RemoveXattr { at, key }).boxed()));
    }
    ops
}

fn held(can: &Capabilities) -> Weighted {
    let read = (slot(), offset(), length());
    let write = (slot(), offset(), length(), 1..255u8);
    let append = (slot(), length(), 1..255u8);
    let mut ops: Weighted = vec![
        (4, (slot(), place()).prop_map(|(slot, at)| Op::Hold { slot, at }).boxed()),
        (2, read.prop_map(|(slot, offset, length)| Op::ReadHeld { slot, offset, length }).boxed()),
        (
            3,
            write
                .prop_map(|(slot, offset, length, fill)| Op::WriteHeld { slot, offset, length, fill })
                .boxed(),
        ),
        (1, append.prop_map(|(slot, length, fill)| Op::AppendHeld { slot, length, fill }).boxed()),
        (1, (slot(), offset()).prop_map(|(slot, size)| Op::ResizeHeld { slot, size }).boxed()),
        (2, slot().prop_map(|slot| Op::StatHeld { slot }).boxed()),
        (1, slot().prop_map(|slot| Op::Release { slot }).boxed()),
    ];
    if can.hard_links {
        ops.push((2, (slot(), place()).prop_map(|(slot, to)| Op::NameHeld { slot, to }).boxed()));
    }
    if can.tmpfile {
        let nameless = (slot(), place(), mode(), any::<bool>());
        let make = |(slot, within, mode, exclusive)| Op::HoldNameless { slot, within, mode, exclusive };
        ops.push((1, nameless.prop_map(make).boxed()));
    }
    ops
}
