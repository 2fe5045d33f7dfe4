//! Listing directories, also while they change.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hither_vfs::{DirHandle, FileKind, OFlags, RenameFlags};

use super::{Subject, Test, tests};
use crate::Client;
use crate::check::{Failure, Outcome, equal, holds};
use crate::client::{Collect, Listed};

pub(super) const TESTS: &[Test] = tests![
    all_entries_are_listed_with_number_and_type,
    dot_and_dot_dot_are_listed,
    a_listing_goes_on_from_any_position,
    a_listing_begins_anew_at_the_start,
    large_directories_are_listed_whole,
    lasting_entries_are_listed_once_under_change,
    a_directory_can_be_emptied_while_it_is_listed,
    a_listing_with_nodes_is_what_lookups_say,
    two_listings_do_not_disturb_each_other,
];

/// Entries of an open directory from a position, at most so many, without `.` and `..`.
fn some(client: &Client, open: &dyn DirHandle, from: u64, most: usize) -> Result<Vec<Listed>, Failure> {
    let mut sink = Collect { listed: Vec::new(), most };
    open.read(client.call(), from, false, &mut sink)?;
    Ok(sink.listed)
}

fn is_dot(listed: &Listed) -> bool {
    listed.name == "." || listed.name == ".."
}

fn files(s: &Subject, directory: &str, count: usize) -> Outcome {
    for index in 0..count {
        s.client.create(format!("{directory}/{index}"), OFlags::WRONLY, 0o600)?;
    }
    Ok(())
}

fn all_entries_are_listed_with_number_and_type(s: &Subject) -> Outcome {
    let can = s.fs.capabilities();
    s.client.write("file", b"")?;
    s.client.mkdir("directory", 0o755)?;
    let mut kinds = BTreeMap::from([("file", FileKind::Regular), ("directory", FileKind::Directory)]);
    if can.symlinks {
        s.client.symlink("target", "link")?;
        kinds.insert("link", FileKind::Symlink);
    }
    if can.special_files {
        s.client.root().mknod(s.client.call(), "fifo".as_ref(), 0o010_600, 0)?;
        kinds.insert("fifo", FileKind::Fifo);
    }
    let listed = s.client.list("")?;
    equal(listed.len(), kinds.len())?;
    for listed in listed {
        let name = listed.name.to_string_lossy().into_owned();
        equal(Some(&listed.kind), kinds.get(&*name))?;
        equal(listed.ino, s.client.attr(&name)?.ino)?;
        holds(listed.next != 0, "no position is that of the start")?;
    }
    Ok(())
}

fn dot_and_dot_dot_are_listed(s: &Subject) -> Outcome {
    s.client.mkdir("a", 0o755)?;
    s.client.mkdir("b", 0o755)?;
    s.client.mkdir("a/d", 0o755)?;
    let parents = |path: &str| -> Result<(u64, u64), Failure> {
        let listed = s.client.list_node(&*s.client.node(path)?, true)?;
        let ino = |name| listed.iter().find(|listed| listed.name == name).map(|listed| listed.ino);
        holds(
            listed.iter().filter(|l| is_dot(l)).all(|l| l.kind == FileKind::Directory),
            "they are directories",
        )?;
        Ok((ino(".").ok_or(Failure::new("no ."))?, ino("..").ok_or(Failure::new("no .."))?))
    };
    let ino = |path: &str| s.client.attr(path).map(|attr| attr.ino);
    equal(parents("a/d")?, (ino("a/d")?, ino("a")?))?;
    s.client.rename("a/d", "b/d", RenameFlags::empty())?;
    equal(parents("b/d")?, (ino("b/d")?, ino("b")?))
}

fn a_listing_goes_on_from_any_position(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    files(s, "d", 100)?;
    let open = s.client.node("d")?.opendir(s.client.call())?;
    let all = some(&s.client, &*open, 0, usize::MAX)?;
    equal(all.len(), 102)?;
    for step in [1, 2, 7, 50] {
        let (mut at, mut names) = (0, Vec::new());
        loop {
            let part = some(&s.client, &*open, at, step)?;
            let Some(last) = part.last() else { break };
            at = last.next;
            names.extend(part.into_iter().map(|listed| listed.name));
        }
        equal(names.iter().collect::<Vec<_>>(), all.iter().map(|listed| &listed.name).collect::<Vec<_>>())?;
    }
    for (index, listed) in all.iter().enumerate() {
        let rest = some(&s.client, &*open, listed.next, usize::MAX)?;
        equal(rest.len(), all.len() - index - 1)?;
    }
    Ok(())
}

fn a_listing_begins_anew_at_the_start(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    let open = s.client.node("d")?.opendir(s.client.call())?;
    equal(some(&s.client, &*open, 0, usize::MAX)?.len(), 2)?;
    files(s, "d", 3)?;
    equal(some(&s.client, &*open, 0, usize::MAX)?.len(), 5)?;
    s.client.unlink("d/1")?;
    equal(some(&s.client, &*open, 0, usize::MAX)?.len(), 4)
}

fn large_directories_are_listed_whole(s: &Subject) -> Outcome {
    const COUNT: usize = 3000;
    s.client.mkdir("d", 0o755)?;
    files(s, "d", COUNT)?;
    let mut listed: Vec<OsString> = s.client.list("d")?.into_iter().map(|listed| listed.name).collect();
    listed.sort();
    listed.dedup();
    equal(listed.len(), COUNT)
}

/// Makes, renames and removes names that begin with `x` until told to stop.
fn churn(s: &Subject, thread: usize, stop: &AtomicBool) -> Outcome {
    let name = |what: &str, index: usize| format!("d/x{thread}.{what}.{index}");
    while !stop.load(Ordering::Relaxed) {
        for index in 0..20 {
            s.client.create(name("new", index), OFlags::WRONLY, 0o600)?;
        }
        for index in 0..20 {
            s.client.rename(name("new", index), name("old", index), RenameFlags::empty())?;
        }
        for index in 0..20 {
            s.client.unlink(name("old", index))?;
        }
    }
    Ok(())
}

fn lasting_entries_are_listed_once_under_change(s: &Subject) -> Outcome {
    const LASTING: usize = 200;
    const ROUNDS: usize = 30;
    s.client.mkdir("d", 0o755)?;
    files(s, "d", LASTING)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let churners = [0, 1].map(|thread| {
            scope.spawn({
                let stop = &stop;
                move || churn(s, thread, stop)
            })
        });
        let result = (0..ROUNDS).try_for_each(|round| list_under_change(s, LASTING, 1 + round % 11));
        stop.store(true, Ordering::Relaxed);
        for churner in churners {
            churner.join().unwrap_or_else(|panic| Err(Failure::from_panic(&*panic)))?;
        }
        result
    })
}

/// Lists a few at a time, beginning where the last few ended, and expects each lasting name once.
fn list_under_change(s: &Subject, lasting: usize, step: usize) -> Outcome {
    let open = s.client.node("d")?.opendir(s.client.call())?;
    let mut seen = vec![0; lasting];
    let mut at = 0;
    loop {
        let part = some(&s.client, &*open, at, step)?;
        let Some(last) = part.last() else { break };
        at = last.next;
        for listed in part {
            if let Some(index) = listed.name.to_str().and_then(|name| name.parse::<usize>().ok()) {
                seen[index] += 1;
            }
        }
    }
    match seen.iter().position(|count| *count != 1) {
        None => Ok(()),
        Some(index) => Err(Failure::new(format!("{index} was listed {} times (step {step})", seen[index]))),
    }
}

fn a_directory_can_be_emptied_while_it_is_listed(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    files(s, "d", 500)?;
    let open = s.client.node("d")?.opendir(s.client.call())?;
    let (mut at, mut removed) = (0, 0);
    loop {
        let part = some(&s.client, &*open, at, 10)?;
        let Some(last) = part.last() else { break };
        at = last.next;
        for listed in part.iter().filter(|listed| !is_dot(listed)) {
            s.client.within("d")?.unlink(&listed.name)?;
            removed += 1;
        }
    }
    equal(removed, 500)?;
    Ok(s.client.rmdir("d")?)
}

fn a_listing_with_nodes_is_what_lookups_say(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    files(s, "d", 50)?;
    s.client.mkdir("d/sub", 0o711)?;
    s.client.write("d/0", b"some bytes")?;
    let directory = s.client.node("d")?;
    let listed = s.client.list_node(&*directory, true)?;
    equal(listed.len(), 53)?;
    for listed in listed {
        let Some(found) = &listed.found else {
            // Nodes come along where they can be had: never for these two, always for others on a quiet directory.
            holds(is_dot(&listed), "an entry comes with its node")?;
            continue;
        };
        let entry = directory.lookup(s.client.call(), &listed.name)?;
        holds(Arc::ptr_eq(&entry.node, &found.node), "the node is the one that a lookup gives")?;
        equal(entry.attr, found.attr)?;
        equal((listed.ino, listed.kind), (entry.attr.ino, entry.attr.kind()))?;
    }
    Ok(())
}

fn two_listings_do_not_disturb_each_other(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    files(s, "d", 20)?;
    let directory = s.client.node("d")?;
    let opens = [directory.opendir(s.client.call())?, directory.opendir(s.client.call())?];
    let mut at = [0; 2];
    let mut names = [Vec::new(), Vec::new()];
    for _ in 0..22 {
        for side in [0, 1] {
            for listed in some(&s.client, &*opens[side], at[side], 1)? {
                at[side] = listed.next;
                names[side].push(listed.name);
            }
        }
    }
    equal(names[0].len(), 22)?;
    equal(&names[0], &names[1])
}
