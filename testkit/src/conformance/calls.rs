//! The call itself: patience; the file system as a whole; many callers at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hither_vfs::{Cancel, Errno, OFlags, Patience, RenameFlags, Result, WriteAt};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{Subject, Test, tests};
use crate::Client;
use crate::check::{Failure, Outcome, equal, holds};

pub(super) const TESTS: &[Test] = tests![
    space_is_told,
    who_must_not_wait_is_served_or_told_so,
    a_refusal_for_want_of_patience_does_nothing,
    a_call_out_of_patience_says_why,
    one_of_many_makers_wins,
    one_of_many_removers_wins,
    one_of_many_renamers_wins,
    a_crowd_leaves_a_sound_directory[HardLinks],
];

fn space_is_told(s: &Subject) -> Outcome {
    let space = s.fs.statfs(s.client.call())?;
    holds(space.block_size.is_power_of_two(), "a block has a size")?;
    holds(space.blocks >= space.blocks_free, "no more is free than there is")?;
    holds(space.blocks_free >= space.blocks_available, "no more is available than is free")?;
    holds(space.files >= space.files_free, "no more inodes are free than there are")?;
    equal(space.name_max, 255)
}

/// Calls of every kind on a small tree, each made by `client`.
fn calls(client: &Client) -> Vec<(&'static str, Result<()>)> {
    let call = client.call();
    let root = client.root();
    let mut results = vec![
        ("getattr", root.getattr(call).map(drop)),
        ("lookup", root.lookup(call, "f".as_ref()).map(drop)),
        ("access", root.access(call, 0)),
        ("opendir", root.opendir(call).map(drop)),
    ];
    if let Ok(entry) = root.lookup(&hither_vfs::Call::own(), "f".as_ref()) {
        let opened = entry.node.open(call, OFlags::RDWR, entry.epoch);
        if let Ok(handle) = &opened {
            results.push(("read", handle.read(call, &mut [0; 10], 0).map(drop)));
            results.push(("write", handle.write(call, b"x", WriteAt::Offset(0)).map(drop)));
            results.push(("fsync", handle.fsync(call, false)));
            results.push(("flush", handle.flush(call)));
        }
        results.push(("open", opened.map(drop)));
    }
    results
}

fn who_must_not_wait_is_served_or_told_so(s: &Subject) -> Outcome {
    s.client.write("f", b"bytes")?;
    for (what, result) in calls(&s.client.with_patience(Patience::Never)) {
        let fine = result.as_ref().map_or_else(hither_vfs::Error::is_would_block, |()| true);
        holds(fine, &format!("{what}: {result:?}"))?;
    }
    Ok(())
}

/// Makes a call that must not wait, and again with patience if it was refused for that.
fn retried(s: &Subject, act: &dyn Fn(&Client) -> Result<()>) -> Outcome {
    match act(&s.client.with_patience(Patience::Never)) {
        Err(error) if error.is_would_block() => Ok(act(&s.client)?),
        other => Ok(other?),
    }
}

fn a_refusal_for_want_of_patience_does_nothing(s: &Subject) -> Outcome {
    let exclusive = OFlags::WRONLY | OFlags::EXCL;
    // Each of these would be refused the second time had the first done its work.
    retried(s, &|client| client.create("f", exclusive, 0o600).map(drop))?;
    retried(s, &|client| client.mkdir("d", 0o755).map(drop))?;
    retried(s, &|client| client.rename("f", "d/f", RenameFlags::NOREPLACE))?;
    let handle = s.client.open("d/f", OFlags::WRONLY | OFlags::APPEND)?;
    for _ in 0..10 {
        retried(s, &|client| handle.write(client.call(), b"once", WriteAt::End).map(drop))?;
    }
    equal(s.client.attr("d/f")?.size, 40)?;
    retried(s, &|client| client.unlink("d/f"))?;
    retried(s, &|client| client.rmdir("d"))?;
    equal(s.client.list("")?.len(), 0)
}

fn a_call_out_of_patience_says_why(s: &Subject) -> Outcome {
    s.client.write("f", b"bytes")?;
    let cancel = Cancel::default();
    cancel.cancel();
    let cancelled = Patience::Until { deadline: None, cancel };
    for (patience, errno) in [(cancelled, Errno::INTR), (Patience::at_most(Duration::ZERO), Errno::IO)] {
        for (what, result) in calls(&s.client.with_patience(patience.clone())) {
            let fine = result.as_ref().map_or_else(|error| *error == errno, |()| true);
            holds(fine, &format!("{what}: {result:?}"))?;
        }
    }
    Ok(())
}

const CROWD: usize = 6;
const ROUNDS: usize = 40;
const STALE_TRIES: usize = 10;

/// How many of a crowd that does the same at once succeed, each time.
fn winners(
    act: &(dyn Fn(usize) -> Result<()> + Sync),
    losers: &[Errno],
) -> std::result::Result<usize, Failure> {
    let won = AtomicUsize::new(0);
    let start = std::sync::Barrier::new(CROWD);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CROWD)
            .map(|member| {
                let (won, start) = (&won, &start);
                scope.spawn(move || {
                    start.wait();
                    match act(member) {
                        Ok(()) => drop(won.fetch_add(1, Ordering::Relaxed)),
                        Err(error) if losers.iter().any(|errno| error == *errno) => {}
                        Err(error) => return Err(Failure::from(error)),
                    }
                    Ok(())
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| Err(Failure::from_panic(&*panic))))
    })?;
    Ok(won.into_inner())
}

fn one_of_many_makers_wins(s: &Subject) -> Outcome {
    let exclusive = OFlags::WRONLY | OFlags::EXCL;
    for round in 0..ROUNDS {
        let create = |_| s.client.create(format!("f{round}"), exclusive, 0o600).map(drop);
        equal(winners(&create, &[Errno::EXIST])?, 1)?;
        let mkdir = |_| s.client.mkdir(format!("d{round}"), 0o755).map(drop);
        equal(winners(&mkdir, &[Errno::EXIST])?, 1)?;
    }
    equal(s.client.list("")?.len(), 2 * ROUNDS)
}

fn one_of_many_removers_wins(s: &Subject) -> Outcome {
    for round in 0..ROUNDS {
        s.client.write(format!("f{round}"), b"")?;
        s.client.mkdir(format!("d{round}"), 0o755)?;
        equal(winners(&|_| s.client.unlink(format!("f{round}")), &[Errno::NOENT])?, 1)?;
        equal(winners(&|_| s.client.rmdir(format!("d{round}")), &[Errno::NOENT])?, 1)?;
    }
    equal(s.client.list("")?.len(), 0)
}

fn one_of_many_renamers_wins(s: &Subject) -> Outcome {
    for round in 0..ROUNDS {
        s.client.write(format!("f{round}"), b"")?;
        let rename =
            |member| s.client.rename(format!("f{round}"), format!("g{round}.{member}"), RenameFlags::empty());
        equal(winners(&rename, &[Errno::NOENT])?, 1)?;
    }
    equal(s.client.list("")?.len(), ROUNDS)
}

/// One random change among few names in two directories.
fn jostle(client: &Client, random: &mut StdRng) -> Outcome {
    let mut path = || format!("{}/{}", ["a", "b"][random.random_range(0..2)], random.random_range(0..4));
    let (one, two) = (path(), path());
    let kind = random.random_range(0..7);
    let act = || match kind {
        0 => client.create(&one, OFlags::WRONLY, 0o600).map(drop),
        1 => client.unlink(&one),
        2 => client.link(&one, &two).map(drop),
        3 => client.rename(&one, &two, RenameFlags::empty()),
        4 => client.mkdir(&one, 0o755).map(drop),
        5 => client.rmdir(&one),
        _ => client.rename(&one, &two, RenameFlags::NOREPLACE),
    };
    // Refusals that the others explain.
    let explained =
        [Errno::NOENT, Errno::EXIST, Errno::ISDIR, Errno::NOTDIR, Errno::PERM, Errno::NOTEMPTY, Errno::INVAL];
    for _ in 0..STALE_TRIES {
        match act() {
            // A node that others moved on: the kernel, too, looks up again then.
            Err(error) if error == Errno::STALE => {}
            Err(error) if !explained.iter().any(|errno| error == *errno) => {
                return Err(Failure::new(format!("{kind} of {one} and {two}: {error}")));
            }
            _ => return Ok(()),
        }
    }
    Err(Failure::new(format!("{kind} of {one} and {two}: stale {STALE_TRIES} times")))
}

fn a_crowd_leaves_a_sound_directory(s: &Subject) -> Outcome {
    s.client.mkdir("a", 0o755)?;
    s.client.mkdir("b", 0o755)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|seed| {
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed);
                    (0..500).try_for_each(|_| jostle(&s.client, &mut random))
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| Err(Failure::from_panic(&*panic))))
    })?;
    let mut nodes = Vec::new();
    for directory in ["a", "b"] {
        let (mut names, mut subdirectories) = (std::collections::HashSet::new(), 0);
        for listed in s.client.list(directory)? {
            holds(names.insert(listed.name.clone()), "no name is there twice")?;
            let entry = s.client.within(directory)?.lookup(&listed.name)?;
            equal((entry.attr.kind(), entry.attr.ino), (listed.kind, listed.ino))?;
            subdirectories += u32::from(listed.kind == hither_vfs::FileKind::Directory);
            nodes.push(entry);
        }
        let nlink = s.client.attr(directory)?.nlink;
        holds(nlink == 1 || nlink == 2 + subdirectories, "subdirectories are counted")?;
    }
    for entry in nodes.iter().filter(|entry| entry.attr.kind() == hither_vfs::FileKind::Regular) {
        let names = nodes.iter().filter(|other| Arc::ptr_eq(&other.node, &entry.node)).count();
        equal(entry.attr.nlink as usize, names)?;
    }
    Ok(())
}
