//! Hard links, symbolic links, special files, nameless files.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;

use hither_vfs::{Errno, FileKind, OFlags};

use super::{Subject, Test, tests};
use crate::check::{Outcome, equal, holds, refused};

pub(super) const TESTS: &[Test] = tests![
    hard_links_are_one_file [HardLinks],
    a_link_is_not_made_over_something [HardLinks],
    directories_have_no_hard_links [HardLinks],
    an_unlinked_file_gets_no_new_name [HardLinks],
    symlinks_and_special_files_have_hard_links [HardLinks, Symlinks, SpecialFiles],
    a_symlink_keeps_any_target [Symlinks],
    targets_too_long_or_empty_are_refused [Symlinks],
    only_symlinks_have_targets [Symlinks],
    a_symlink_is_not_made_over_something [Symlinks],
    a_symlink_is_not_opened_or_followed [Symlinks],
    fifos_and_sockets_are_made [SpecialFiles],
    devices_keep_their_numbers [SpecialFiles, Root],
    a_nameless_file_has_no_name [Tmpfile],
    a_nameless_file_gets_a_name [Tmpfile, HardLinks],
    an_exclusive_nameless_file_gets_none [Tmpfile, HardLinks],
];

fn hard_links_are_one_file(s: &Subject) -> Outcome {
    s.client.write("f", b"bytes")?;
    s.client.mkdir("d", 0o755)?;
    let first = s.client.lookup("f")?;
    let linked = s.client.link("f", "d/g")?;
    holds(Arc::ptr_eq(&first.node, &linked.node), "both names lead to the same node")?;
    equal((linked.attr.nlink, linked.attr.ino), (2, first.attr.ino))?;
    let second = s.client.lookup("d/g")?;
    holds(Arc::ptr_eq(&first.node, &second.node), "a lookup of the new name gives the same node")?;
    equal(s.client.attr("f")?.nlink, 2)?;
    s.client.write("d/g", b"other")?;
    equal(s.client.read("f")?, b"other")?;
    s.client.unlink("f")?;
    equal(s.client.attr("d/g")?.nlink, 1)?;
    equal(s.client.read("d/g")?, b"other")?;
    holds(Arc::ptr_eq(&first.node, &s.client.node("d/g")?), "the node outlives one of its names")
}

fn a_link_is_not_made_over_something(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    s.client.write("g", b"")?;
    s.client.mkdir("d", 0o755)?;
    for name in ["f", "g", "d"] {
        refused(s.client.link("f", name), Errno::EXIST)?;
    }
    equal(s.client.attr("f")?.nlink, 1)
}

fn directories_have_no_hard_links(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    refused(s.client.link("d", "e"), Errno::PERM)?;
    refused(s.client.lookup("e"), Errno::NOENT)
}

fn an_unlinked_file_gets_no_new_name(s: &Subject) -> Outcome {
    let created = s.client.create("f", OFlags::RDWR, 0o600)?;
    s.client.unlink("f")?;
    let linked = s.client.root().link(s.client.call(), OsStr::new("g"), &*created.entry.node);
    refused(linked, Errno::NOENT)?;
    refused(s.client.lookup("g"), Errno::NOENT)
}

fn symlinks_and_special_files_have_hard_links(s: &Subject) -> Outcome {
    s.client.symlink("target", "l")?;
    s.client.root().mknod(s.client.call(), OsStr::new("p"), 0o010_600, 0)?;
    equal(s.client.link("l", "l2")?.attr.nlink, 2)?;
    equal(s.client.link("p", "p2")?.attr.nlink, 2)?;
    equal(s.client.node("l2")?.readlink(s.client.call())?, "target")?;
    equal(s.client.attr("p2")?.kind(), FileKind::Fifo)
}

fn a_symlink_keeps_any_target(s: &Subject) -> Outcome {
    let all_bytes: Vec<u8> = (1..=255).collect();
    let targets = [
        b"a".to_vec(),
        b"../some/../where".to_vec(),
        b"/absolute//path/".to_vec(),
        b".".to_vec(),
        all_bytes,
        vec![b'x'; 59],
        vec![b'x'; 60],
        vec![b'y'; 1000],
        vec![0xf0; 4095],
    ];
    for (index, target) in targets.into_iter().enumerate() {
        let (name, target) = (format!("l{index}"), OsString::from_vec(target));
        let entry = s.client.symlink(&target, &name)?;
        equal(entry.attr.kind(), FileKind::Symlink)?;
        equal(entry.attr.size, target.len() as u64)?;
        equal(s.client.node(&name)?.readlink(s.client.call())?, target)?;
    }
    Ok(())
}

fn targets_too_long_or_empty_are_refused(s: &Subject) -> Outcome {
    refused(s.client.symlink("x".repeat(4096), "l"), Errno::NAMETOOLONG)?;
    refused(s.client.symlink("", "l"), Errno::NOENT)?;
    refused(s.client.lookup("l"), Errno::NOENT)
}

fn only_symlinks_have_targets(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    s.client.mkdir("d", 0o755)?;
    for path in ["f", "d"] {
        refused(s.client.node(path)?.readlink(s.client.call()), Errno::INVAL)?;
    }
    Ok(())
}

fn a_symlink_is_not_made_over_something(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    s.client.symlink("nowhere", "l")?;
    refused(s.client.symlink("t", "f"), Errno::EXIST)?;
    refused(s.client.symlink("t", "l"), Errno::EXIST)?;
    refused(s.client.mkdir("l", 0o755), Errno::EXIST)?;
    equal(s.client.node("l")?.readlink(s.client.call())?, "nowhere")
}

fn a_symlink_is_not_opened_or_followed(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    s.client.write("d/f", b"")?;
    s.client.symlink("d", "l")?;
    refused(s.client.open("l", OFlags::RDONLY), Errno::LOOP)?;
    refused(s.client.create("l", OFlags::WRONLY, 0o600), Errno::LOOP)?;
    refused(s.client.create("l", OFlags::WRONLY | OFlags::EXCL, 0o600), Errno::EXIST)?;
    refused(s.client.lookup("l/f"), Errno::NOTDIR)?;
    refused(s.client.node("l")?.opendir(s.client.call()), Errno::NOTDIR)?;
    refused(s.client.rmdir("l"), Errno::NOTDIR)?;
    Ok(s.client.unlink("l")?)
}

fn fifos_and_sockets_are_made(s: &Subject) -> Outcome {
    for (name, mode, kind) in [("p", 0o010_640, FileKind::Fifo), ("s", 0o140_600, FileKind::Socket)] {
        let entry = s.client.root().mknod(s.client.call(), OsStr::new(name), mode, 0)?;
        equal((entry.attr.kind(), entry.attr.mode, entry.attr.rdev), (kind, mode, 0))?;
        equal(s.client.attr(name)?.mode, mode)?;
        s.client.rename(name, format!("{name}2"), hither_vfs::RenameFlags::empty())?;
        s.client.unlink(format!("{name}2"))?;
    }
    Ok(())
}

fn devices_keep_their_numbers(s: &Subject) -> Outcome {
    // 1:3 is the null device; 259:65537 needs more than 16 bits.
    for (index, (major, minor)) in [(1, 3), (259, 65_537)].into_iter().enumerate() {
        let rdev = rustix::fs::makedev(major, minor);
        for (what, kind) in [(0o020_000, FileKind::CharDevice), (0o060_000, FileKind::BlockDevice)] {
            let name = format!("{kind:?}{index}");
            let entry = s.client.root().mknod(s.client.call(), OsStr::new(&name), what | 0o600, rdev)?;
            equal((entry.attr.kind(), entry.attr.rdev), (kind, rdev))?;
            equal(s.client.attr(&name)?.rdev, rdev)?;
        }
    }
    Ok(())
}

fn a_nameless_file_has_no_name(s: &Subject) -> Outcome {
    let call = s.client.call();
    let created = s.client.root().tmpfile(call, OFlags::RDWR, 0o640)?;
    equal((created.entry.attr.mode, created.entry.attr.nlink), (0o100_640, 0))?;
    s.client.write_at(&*created.handle, b"bytes", 0)?;
    equal(s.client.read_open(&*created.handle)?, b"bytes")?;
    equal(s.client.list("")?.len(), 0)?;
    refused(s.client.root().tmpfile(call, OFlags::RDONLY, 0o600), Errno::INVAL)?;
    s.client.write("f", b"")?;
    refused(s.client.node("f")?.tmpfile(call, OFlags::RDWR, 0o600), Errno::NOTDIR)
}

fn a_nameless_file_gets_a_name(s: &Subject) -> Outcome {
    let call = s.client.call();
    let created = s.client.root().tmpfile(call, OFlags::RDWR, 0o600)?;
    s.client.write_at(&*created.handle, b"bytes", 0)?;
    let name = OsStr::from_bytes(b"named");
    let entry = s.client.root().link(call, name, &*created.entry.node)?;
    equal(entry.attr.nlink, 1)?;
    holds(Arc::ptr_eq(&entry.node, &created.entry.node), "it is the same node")?;
    equal(s.client.read("named")?, b"bytes")?;
    equal(s.client.link("named", "again")?.attr.nlink, 2)?;
    // Once it has had names, it is a file like any other: without one it is gone.
    s.client.unlink("named")?;
    s.client.unlink("again")?;
    refused(s.client.root().link(call, name, &*created.entry.node), Errno::NOENT)
}

fn an_exclusive_nameless_file_gets_none(s: &Subject) -> Outcome {
    let created = s.client.root().tmpfile(s.client.call(), OFlags::RDWR | OFlags::EXCL, 0o600)?;
    let linked = s.client.root().link(s.client.call(), OsStr::new("f"), &*created.entry.node);
    refused(linked, Errno::NOENT)?;
    equal(s.client.list("")?.len(), 0)
}
