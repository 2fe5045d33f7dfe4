//! Everybody at once: readers, writers here and elsewhere, evictions, renames. At the end every copy is right.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hither_cache::Options;
use hither_rt::random;
use hither_vfs::{Errno, Error, OFlags, RenameFlags, SetAttr, WriteAt};

use crate::kit::{CHUNK, Kit, options, pattern};

const FILES: usize = 6;

fn some_file() -> String {
    format!("f{}", random::below(FILES))
}

/// What may happen to a name that others rename and remove.
fn expected(error: &Error) -> bool {
    matches!(error.errno(), Errno::NOENT | Errno::STALE | Errno::EXIST | Errno::AGAIN | Errno::BUSY)
}

fn check<T>(what: &str, result: Result<T, Error>) {
    if let Err(error) = result {
        assert!(expected(&error), "{what}: {error}");
    }
}

fn one_step(kit: &Kit, role: usize) {
    let (name, call) = (some_file(), kit.program.call());
    match role {
        0..=2 => check("read", kit.program.read(&name)),
        3 => {
            let write = || {
                let handle = kit.program.open(&name, OFlags::RDWR)?;
                let at = random::below(2 * CHUNK) as u64;
                handle.write(call, &pattern(1000, random::u64() as u8), WriteAt::Offset(at))
            };
            check("write", write());
        }
        4 => check(
            "replace",
            kit.program.write(&name, &pattern(random::below(3 * CHUNK), random::u64() as u8)),
        ),
        5 => check(
            "elsewhere",
            kit.elsewhere.write(&name, &pattern(random::below(3 * CHUNK), random::u64() as u8)),
        ),
        6 => {
            let root = kit.program.root();
            let other = some_file();
            check("rename", root.rename(call, name.as_ref(), &**root, other.as_ref(), RenameFlags::empty()));
            let set = SetAttr { mode: Some(0o600 | random::below(8) as u32), ..SetAttr::default() };
            check("chmod", kit.program.node(&other).and_then(|node| node.setattr(call, &set, None)));
        }
        _ => {
            check("detach", kit.cache.detach(call, name.as_ref(), random::below(2) == 0));
            check("evict", kit.cache.evict((random::below(FILES) * CHUNK) as u64));
            check(
                "attach",
                kit.cache.attach(call, some_file().as_ref(), true).map(|_| ()).or_else(|error| {
                    // An empty file, or one that somebody writes.
                    if error == Errno::CANCELED || error == Errno::NOSPC { Ok(()) } else { Err(error) }
                }),
            );
        }
    }
}

#[test]
fn every_copy_is_right_in_the_end() {
    let kit = Kit::new(Options { capacity: Some(8 << 20), ..options() });
    for file in 0..FILES {
        kit.elsewhere.write(format!("f{file}"), &pattern(CHUNK + file, file as u8)).unwrap();
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for role in 0..8 {
            let (kit, stop) = (&kit, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    one_step(kit, role);
                }
            });
        }
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::Relaxed);
    });
    for file in 0..FILES {
        let name = format!("f{file}");
        for _ in 0..3 {
            let (seen, right) = (kit.program.read(&name), kit.elsewhere.read(&name));
            assert!(seen.as_ref().ok() == right.as_ref().ok(), "{name} differs; {:?}", kit.cache.stats());
        }
    }
    let verified = kit.cache.verify(&mut |_| true).unwrap();
    assert!(verified.damaged.is_empty(), "{:?}", verified.damaged);
    let stats = kit.cache.stats();
    assert!(stats.fills > 0 && stats.hits > 0 && stats.evicted > 0, "nothing happened: {stats:?}");
    assert_eq!((stats.store_errors, stats.origin_errors), (0, 0), "{stats:?}");
    // What was promised to fills that ended was given back.
    kit.cache.evict(0).unwrap();
    kit.until(|| kit.cache.evict(0).is_ok() && kit.cache.stats().used_bytes == 0);
}
