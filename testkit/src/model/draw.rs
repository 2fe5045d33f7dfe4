//! How operations are drawn: which, how often, and on what.

use hither_vfs::Capabilities;
use proptest::prelude::*;
use proptest::strategy::Union;

use super::op::{
    Creating, KEYS, NAMES, NodeKind, Op, Place, Renaming, SLOTS, Setting, TARGETS, Time, Wanted,
};

type Weighted = Vec<(u32, BoxedStrategy<Op>)>;

/// Any operation that the file system can do and this process may.
pub(crate) fn any_op(can: &Capabilities) -> impl Strategy<Value = Op> + use<> {
    let mut ops = names(can);
    ops.extend(contents(can));
    ops.extend(attributes(can));
    ops.extend(held(can));
    Union::new_weighted(ops)
}

fn name() -> impl Strategy<Value = u8> {
    0..NAMES.len() as u8
}

fn blind() -> impl Strategy<Value = Place> {
    let path = |length| prop::collection::vec(name(), length).prop_map(Place::At);
    prop_oneof![4 => path(1), 3 => path(2), 1 => path(3)]
}

/// Something there, most likely of the wanted kind.
fn some(wanted: Wanted) -> impl Strategy<Value = Place> {
    let some = |wanted| any::<u16>().prop_map(move |which| Place::Some(wanted, which));
    prop_oneof![12 => some(wanted), 2 => some(Wanted::Any), 1 => blind()]
}

fn file() -> impl Strategy<Value = Place> {
    some(Wanted::File)
}

fn directory() -> impl Strategy<Value = Place> {
    some(Wanted::Directory)
}

fn anything() -> impl Strategy<Value = Place> {
    some(Wanted::Any)
}

/// A name for something new, which may be taken.
fn new() -> impl Strategy<Value = Place> {
    let within = (any::<u16>(), name()).prop_map(|(which, name)| Place::Within(which, name));
    prop_oneof![10 => within, 2 => anything(), 1 => blind()]
}

/// A name for something that moves: often one that is taken.
fn new_or_taken() -> impl Strategy<Value = Place> {
    prop_oneof![3 => new(), 2 => anything()]
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

/// Permission bits. Who is not root would be refused what he took from himself, and lose set-id bits by every write:
/// he keeps his rights and draws no such bits.
fn mode() -> impl Strategy<Value = u16> {
    let root = rustix::process::geteuid().is_root();
    let mode = prop_oneof![3 => Just(0o755), 2 => Just(0o640), 1 => 0..0o10_000u16];
    mode.prop_map(move |mode| if root { mode } else { mode & 0o777 | 0o700 })
}

fn time() -> impl Strategy<Value = Time> {
    let at = (any::<u16>(), 0..1_000_000_000u32).prop_map(|(sec, nsec)| Time::At(sec, nsec));
    prop_oneof![1 => Just(Time::Omit), 1 => Just(Time::Now), 4 => at]
}

fn slot() -> impl Strategy<Value = u8> {
    0..SLOTS as u8
}

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
        (12, (new(), mode(), creating).prop_map(|(at, mode, how)| Op::Create { at, mode, how }).boxed()),
        (8, (new(), mode()).prop_map(|(at, mode)| Op::Mkdir { at, mode }).boxed()),
        (3, file().prop_map(|at| Op::Unlink { at }).boxed()),
        (2, directory().prop_map(|at| Op::Rmdir { at }).boxed()),
        (
            9,
            (anything(), new_or_taken(), renaming)
                .prop_map(|(from, to, how)| Op::Rename { from, to, how })
                .boxed(),
        ),
        (2, directory().prop_map(|at| Op::List { at }).boxed()),
    ];
    if can.symlinks {
        let target = 0..TARGETS.len() as u8;
        ops.push((2, (new(), target).prop_map(|(at, target)| Op::Symlink { at, target }).boxed()));
        ops.push((1, anything().prop_map(|at| Op::Readlink { at }).boxed()));
    }
    if can.hard_links {
        ops.push((6, (file(), new()).prop_map(|(from, to)| Op::Link { from, to }).boxed()));
    }
    let mut kinds = vec![Just(NodeKind::Regular)];
    if can.special_files {
        kinds.extend([Just(NodeKind::Fifo), Just(NodeKind::Socket)]);
    }
    let mknod = (new(), mode(), Union::new(kinds));
    ops.push((2, mknod.prop_map(|(at, mode, kind)| Op::Mknod { at, mode, kind }).boxed()));
    ops
}

fn contents(can: &Capabilities) -> Weighted {
    let write = (file(), offset(), length(), 1..255u8);
    let copy = (file(), offset(), file(), offset(), length());
    let mut ops: Weighted = vec![
        (8, write.prop_map(|(at, offset, length, fill)| Op::Write { at, offset, length, fill }).boxed()),
        (
            2,
            (file(), length(), 1..255u8)
                .prop_map(|(at, length, fill)| Op::Append { at, length, fill })
                .boxed(),
        ),
        (
            4,
            (file(), offset(), length())
                .prop_map(|(at, offset, length)| Op::Read { at, offset, length })
                .boxed(),
        ),
        (1, file().prop_map(|at| Op::OpenTruncate { at }).boxed()),
        (4, (file(), offset()).prop_map(|(at, size)| Op::Resize { at, size }).boxed()),
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
        let allocate = (file(), offset(), length(), any::<bool>());
        let punch = (file(), offset(), 1..150_000u32);
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
    let times = (anything(), time(), time());
    let mut ops: Weighted = vec![
        (3, (anything(), mode()).prop_map(|(at, mode)| Op::Chmod { at, mode }).boxed()),
        (2, times.prop_map(|(at, atime, mtime)| Op::SetTimes { at, atime, mtime }).boxed()),
        (4, anything().prop_map(|at| Op::Stat { at }).boxed()),
    ];
    if rustix::process::geteuid().is_root() {
        let chown = (anything(), 0..3u16, 0..3u16);
        ops.push((2, chown.prop_map(|(at, uid, gid)| Op::Chown { at, uid, gid }).boxed()));
    }
    if can.xattrs {
        let key = || 0..KEYS.len() as u8;
        let how =
            prop_oneof![3 => Just(Setting::Any), 1 => Just(Setting::Create), 1 => Just(Setting::Replace)];
        let set = (anything(), key(), any::<u16>(), how);
        ops.push((3, set.prop_map(|(at, key, value, how)| Op::SetXattr { at, key, value, how }).boxed()));
        ops.push((1, (some(Wanted::Xattrs), key()).prop_map(|(at, key)| Op::GetXattr { at, key }).boxed()));
        ops.push((1, some(Wanted::Xattrs).prop_map(|at| Op::ListXattrs { at }).boxed()));
        ops.push((
            1,
            (some(Wanted::Xattrs), key()).prop_map(|(at, key)| Op::RemoveXattr { at, key }).boxed(),
        ));
    }
    ops
}

fn held(can: &Capabilities) -> Weighted {
    let read = (slot(), offset(), length());
    let write = (slot(), offset(), length(), 1..255u8);
    let append = (slot(), length(), 1..255u8);
    let mut ops: Weighted = vec![
        (5, (slot(), file()).prop_map(|(slot, at)| Op::Hold { slot, at }).boxed()),
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
        ops.push((2, (slot(), new()).prop_map(|(slot, to)| Op::NameHeld { slot, to }).boxed()));
    }
    if can.tmpfile {
        let nameless = (slot(), directory(), mode(), any::<bool>());
        let make = |(slot, within, mode, exclusive)| Op::HoldNameless { slot, within, mode, exclusive };
        ops.push((1, nameless.prop_map(make).boxed()));
    }
    ops
}
