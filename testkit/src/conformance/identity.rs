//! Which inode a node is: now, for ever, in which epoch, with which locks.

use std::collections::HashSet;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use hither_vfs::locks::{LockClass, LockKind, LockRequest, Outcome as Locked};
use hither_vfs::{Errno, FileSystem, OFlags, PersistentId, RenameFlags};

use super::{Subject, Test, tests};
use crate::check::{Failure, Outcome, equal, holds, refused};

pub(super) const TESTS: &[Test] = tests![
    a_node_is_one_object_while_it_is_held,
    different_files_are_different_nodes,
    the_root_is_always_the_same,
    a_persistent_id_stays[PersistentIds],
    persistent_ids_are_distinct[PersistentIds],
    a_persistent_id_is_never_given_again[PersistentIds],
    an_epoch_that_never_was_is_stale,
    locks_are_those_of_the_inode,
    backings_are_one_and_hold_all_bytes,
];

fn a_node_is_one_object_while_it_is_held(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    s.client.mkdir("d", 0o755)?;
    for path in ["f", "d"] {
        let held = s.client.node(path)?;
        let again = s.client.lookup(path)?;
        holds(Arc::ptr_eq(&held, &again.node), "a lookup gives the node that is held")?;
        s.client.rename(path, format!("{path}2"), RenameFlags::empty())?;
        holds(Arc::ptr_eq(&held, &s.client.node(format!("{path}2"))?), "also after a rename")?;
        equal(again.attr.ino, held.getattr(s.client.call())?.ino)?;
    }
    let created = s.client.create("g", OFlags::RDWR, 0o600)?;
    holds(Arc::ptr_eq(&created.entry.node, &s.client.node("g")?), "create gives the same node")?;
    let opened = s.client.create("g", OFlags::RDWR, 0o600)?;
    holds(Arc::ptr_eq(&created.entry.node, &opened.entry.node), "also when the file was there")
}

fn different_files_are_different_nodes(s: &Subject) -> Outcome {
    let mut identities = HashSet::new();
    let mut inos = HashSet::new();
    let mut held = Vec::new();
    for index in 0..100 {
        let created = s.client.create(format!("f{index}"), OFlags::WRONLY, 0o600)?;
        holds(identities.insert(created.entry.node.identity()), "identities differ")?;
        holds(inos.insert(created.entry.attr.ino), "inode numbers differ")?;
        holds(created.entry.attr.ino != 0, "0 is no inode number")?;
        held.push(created.entry.node);
    }
    Ok(())
}

fn the_root_is_always_the_same(s: &Subject) -> Outcome {
    let root = s.fs.root();
    holds(Arc::ptr_eq(&root, &s.fs.root()), "the root is one node")?;
    equal(root.getattr(s.client.call())?.kind(), hither_vfs::FileKind::Directory)
}

fn id(s: &Subject, path: &str) -> Result<PersistentId, Failure> {
    let id = s.client.node(path)?.persistent_id(s.client.call())?;
    let id = id.ok_or(Failure::new("no id, though the file system has them"))?;
    holds(id.0.len() <= PersistentId::MAX_LEN, "an id has its bounds")?;
    Ok(id)
}

fn a_persistent_id_stays(s: &Subject) -> Outcome {
    s.client.write("f", b"bytes")?;
    s.client.mkdir("d", 0o755)?;
    let first = id(s, "f")?;
    s.client.write("f", b"other bytes")?;
    equal(&id(s, "f")?, &first)?;
    s.client.rename("f", "d/g", RenameFlags::empty())?;
    equal(&id(s, "d/g")?, &first)?;
    if s.fs.capabilities().hard_links {
        s.client.link("d/g", "h")?;
        equal(&id(s, "h")?, &first)?;
    }
    Ok(())
}

fn persistent_ids_are_distinct(s: &Subject) -> Outcome {
    let mut ids = HashSet::new();
    for index in 0..50 {
        s.client.write(format!("f{index}"), b"")?;
        s.client.mkdir(format!("d{index}"), 0o755)?;
        holds(ids.insert(id(s, &format!("f{index}"))?), "ids of files differ")?;
        holds(ids.insert(id(s, &format!("d{index}"))?), "ids of directories differ")?;
    }
    Ok(())
}

fn a_persistent_id_is_never_given_again(s: &Subject) -> Outcome {
    let mut ids = HashSet::new();
    for _ in 0..100 {
        s.client.create("f", OFlags::WRONLY | OFlags::EXCL, 0o600)?;
        holds(ids.insert(id(s, "f")?), "a new file has a new id, whatever its number")?;
        s.client.unlink("f")?;
    }
    Ok(())
}

fn an_epoch_that_never_was_is_stale(s: &Subject) -> Outcome {
    s.client.write("f", b"bytes")?;
    let entry = s.client.lookup("f")?;
    let never = entry.epoch ^ (1 << 62);
    refused(entry.node.open(s.client.call(), OFlags::WRONLY | OFlags::TRUNC, never), Errno::STALE)?;
    equal(s.client.read("f")?, b"bytes")
}

fn locks_are_those_of_the_inode(s: &Subject) -> Outcome {
    s.client.write("f", b"bytes")?;
    s.client.write("g", b"bytes")?;
    let held = s.client.node("f")?;
    let (f, g) = (s.client.node("f")?, s.client.node("g")?);
    let lock =
        |owner| LockRequest { class: LockClass::Posix, owner, pid: 1, range: 0..=9, kind: LockKind::Write };
    equal(held.locks().set(lock(1), None)?, Locked::Granted)?;
    refused(f.locks().set(lock(2), None), Errno::AGAIN)?;
    equal(g.locks().set(lock(2), None)?, Locked::Granted)?;
    if s.fs.capabilities().hard_links {
        s.client.link("f", "h")?;
        refused(s.client.node("h")?.locks().set(lock(2), None), Errno::AGAIN)?;
    }
    held.locks().release(LockClass::Posix, 1);
    equal(f.locks().set(lock(2), None)?, Locked::Granted)?;
    f.locks().release(LockClass::Posix, 2);
    g.locks().release(LockClass::Posix, 2);
    holds(held.locks().is_empty(), "nothing is left")
}

fn backings_are_one_and_hold_all_bytes(s: &Subject) -> Outcome {
    let fs: &dyn FileSystem = &*s.fs;
    s.client.write("f", b"all bytes")?;
    let opens = [s.client.open("f", OFlags::RDONLY)?, s.client.open("f", OFlags::RDONLY)?];
    let [first, second] = opens.each_ref().map(|open| open.backing());
    let Some((first, second)) = first.zip(second) else {
        return holds(
            opens.iter().all(|open| open.backing().is_none()),
            "of two opens in one epoch both have a backing or none",
        );
    };
    holds(fs.capabilities().backings, "who gives backings says so")?;
    holds(Arc::ptr_eq(&first.0, &second.0), "both opens have the same backing")?;
    let again = opens[0].backing().ok_or(Failure::new("the backing went away"))?;
    holds(Arc::ptr_eq(&first.0, &again.0), "the answer is the same for the life of the handle")?;
    // It may be a descriptor that only names the file (`O_PATH`).
    let path = format!("/proc/self/fd/{}", first.0.as_raw_fd());
    equal(std::fs::read(path)?, b"all bytes")
}
