//! Fetching: every state of a fill gives the right bytes, each chunk is fetched once.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use hither_cache::FileState;
use hither_testkit::faults::{Action, Kind, Rule, When};
use hither_vfs::{Errno, OFlags, Patience};

use crate::kit::{CHUNK, Kit, options, pattern};

#[test]
fn a_file_is_fetched_once_and_read_from_the_store_after() {
    let kit = Kit::new(options());
    for (name, length) in [("one", 1), ("chunk", CHUNK), ("more", 3 * CHUNK + 17)] {
        let bytes = pattern(length, 7);
        kit.elsewhere.write(name, &bytes).unwrap();
        assert_eq!(kit.cached(name), bytes, "{name} while it is fetched");
        let fetched = kit.origin.bytes_read();
        assert_eq!(kit.program.read(name).unwrap(), bytes, "{name} from the store");
        assert_eq!(kit.origin.bytes_read(), fetched, "{name} was read at the origin again");
    }
    let stats = kit.cache.stats();
    assert_eq!((stats.misses, stats.hits, stats.fills, stats.copies), (3, 3, 3, 3));
    assert_eq!(stats.fetched_bytes, (1 + CHUNK + 3 * CHUNK + 17) as u64);
}

#[test]
fn holes_and_empty_files_are_right() {
    let kit = Kit::new(options());
    kit.elsewhere.write("empty", b"").unwrap();
    assert_eq!(kit.program.read("empty").unwrap(), b"");
    assert_eq!(kit.state("empty"), FileState::None);
    let mut bytes = vec![0; 4 * CHUNK];
    bytes[2 * CHUNK] = 1;
    kit.elsewhere.write("sparse", &bytes).unwrap();
    assert_eq!(kit.cached("sparse"), bytes);
    assert_eq!(kit.program.read("sparse").unwrap(), bytes);
}

#[test]
fn many_readers_of_one_file_fetch_each_chunk_once() {
    let kit = Kit::new(options());
    let bytes = pattern(8 * CHUNK + 5, 3);
    kit.elsewhere.write("f", &bytes).unwrap();
    kit.origin.delay(Kind::Read, Duration::from_millis(2));
    let start = Arc::new(Barrier::new(16));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                start.wait();
                assert!(kit.program.read("f").unwrap() == bytes);
            });
        }
    });
    assert_eq!(kit.origin.bytes_read(), bytes.len() as u64, "some chunk was fetched twice");
}

#[test]
fn the_first_byte_does_not_wait_for_the_last() {
    let kit = Kit::new(options());
    let bytes = pattern(64 * CHUNK, 9);
    kit.elsewhere.write("huge", &bytes).unwrap();
    let (file, handle) = {
        let entry = kit.program.lookup("huge").unwrap();
        let handle = entry.node.open(kit.program.call(), OFlags::RDONLY, entry.epoch).unwrap();
        (entry, handle)
    };
    // All but a few reads of the origin hang: the one of the first chunk, and what is fetched ahead of it.
    kit.origin.add(Rule::new(Kind::Read, When::After(8), Action::Hang));
    let mut buf = [0; 4096];
    let quick = kit.program.with_patience(Patience::at_most(Duration::from_secs(10)));
    assert_eq!(handle.read(quick.call(), &mut buf, 0).unwrap(), buf.len());
    assert_eq!(buf[..], bytes[..4096]);
    kit.origin.release();
    drop(file);
}

#[test]
fn an_open_that_is_held_during_the_fill_does_not_keep_the_next_from_its_backing() {
    let kit = Kit::new(options());
    let bytes = pattern(CHUNK + 1, 1);
    kit.elsewhere.write("f", &bytes).unwrap();
    let held = kit.program.open("f", OFlags::RDONLY).unwrap();
    kit.cached("f");
    let entry = kit.program.lookup("f").unwrap();
    assert_ne!(entry.epoch, 0, "a complete copy has an epoch of its own");
    let hits = kit.cache.stats().hits;
    entry.node.open(kit.program.call(), OFlags::RDONLY, entry.epoch).unwrap();
    assert_eq!(kit.cache.stats().hits, hits + 1);
    // Both kinds of open read the same.
    let mut buf = vec![0; bytes.len()];
    assert_eq!(held.read(kit.program.call(), &mut buf, 0).unwrap(), bytes.len());
    assert_eq!(buf, bytes);
    // An open at epoch 0 is never refused.
    entry.node.open(kit.program.call(), OFlags::RDONLY, 0).unwrap();
}

#[test]
fn a_call_that_may_not_wait_touches_no_origin() {
    let kit = Kit::new(hither_cache::Options { revalidate: Duration::from_secs(3600), ..options() });
    kit.elsewhere.write("f", &pattern(CHUNK, 1)).unwrap();
    kit.cached("f");
    let entry = kit.program.lookup("f").unwrap();
    let calls = kit.origin.count_all();
    let hasty = kit.program.with_patience(Patience::Never);
    let handle = entry.node.open(hasty.call(), OFlags::RDONLY, entry.epoch).unwrap();
    let mut buf = [0; 100];
    assert_eq!(handle.read(hasty.call(), &mut buf, 5).unwrap(), 100);
    entry.node.getattr(hasty.call()).unwrap();
    assert_eq!(kit.origin.count_all(), calls, "a hit needs no origin");
    for refused in [
        entry.node.open(hasty.call(), OFlags::RDWR, 0).err(),
        hasty.lookup("unknown").err(),
        hasty.write("new", b"x").err(),
        hasty.unlink("f").err(),
    ] {
        assert!(refused.as_ref().is_some_and(|error| error.is_would_block()), "{refused:?}");
    }
    assert_eq!(kit.origin.count_all(), calls);
    assert_eq!(kit.program.lookup("new").err().map(|error| error.errno()), Some(Errno::NOENT));
}

#[test]
fn random_reads_during_and_after_the_fill_are_right() {
    let kit = Kit::new(options());
    let bytes = pattern(6 * CHUNK + 123, 5);
    kit.elsewhere.write("f", &bytes).unwrap();
    let handle = kit.program.open("f", OFlags::RDONLY).unwrap();
    let mut place = 12345usize;
    for _ in 0..400 {
        place = place.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let offset = (place >> 20) % (bytes.len() + 10);
        let length = (place >> 7) % 300_000;
        let mut buf = vec![0; length];
        let read = handle.read(kit.program.call(), &mut buf, offset as u64).unwrap();
        let expected = &bytes[offset.min(bytes.len())..(offset + length).min(bytes.len())];
        assert!(buf[..read] == *expected, "at {offset}, {length} bytes");
    }
}

#[test]
fn a_file_that_is_opened_is_fetched_even_if_the_kernel_never_asks() {
    let kit = Kit::new(options());
    kit.elsewhere.write("f", &pattern(3 * CHUNK, 1)).unwrap();
    drop(kit.program.open("f", OFlags::RDONLY).unwrap());
    kit.until(|| kit.cache.stats().copies == 1);
}
