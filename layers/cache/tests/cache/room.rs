//! Room: limits, water marks, pins, quotas, a store that is full.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use hither_cache::{FileState, Options};
use hither_testkit::Client;
use hither_testkit::faults::{Kind, When};
use hither_vfs::{Errno, OFlags};

use crate::kit::{CHUNK, Kit, names, options, pattern};

/// What a copy of one chunk takes: the data and a block for its record.
const COPY: u64 = CHUNK as u64 + 4096;

#[test]
fn the_longest_unused_goes_and_pinned_ones_stay() {
    let kit = Kit::new(Options { capacity: Some(4 * COPY), ..options() });
    for n in 0..4 {
        let name = format!("f{n}");
        kit.elsewhere.write(&name, &pattern(CHUNK, n)).unwrap();
        kit.cached(&name);
    }
    kit.cache.pin(kit.program.call(), "f0".as_ref(), true, &mut |_| true).unwrap();
    for n in 10..14 {
        let name = format!("f{n}");
        kit.elsewhere.write(&name, &pattern(CHUNK, n)).unwrap();
        assert!(kit.cached(&name) == pattern(CHUNK, n));
    }
    let stats = kit.cache.stats();
    assert!(stats.used_bytes <= 4 * COPY, "{stats:?}");
    assert_eq!(kit.state("f0"), FileState::Cached, "pinned");
    assert_eq!(stats.pinned_bytes, COPY);
    for n in (0..4).chain(10..14) {
        assert!(kit.program.read(format!("f{n}")).unwrap() == pattern(CHUNK, n));
    }
}

#[test]
fn a_full_store_is_never_an_error_to_the_program() {
    let kit = Kit::with_store_of(options(), 40 * CHUNK as u64);
    kit.store.set_space(Some(3 * CHUNK as u64));
    for n in 0..8 {
        let name = format!("f{n}");
        kit.elsewhere.write(&name, &pattern(CHUNK + 1, n)).unwrap();
        assert!(kit.program.read(&name).unwrap() == pattern(CHUNK + 1, n), "{name}");
        kit.settle_copy(&name);
        assert!(kit.program.read(&name).unwrap() == pattern(CHUNK + 1, n), "{name} again");
    }
    assert!(kit.cache.stats().store_errors > 0);
    assert!(kit.cache.stats().fills_abandoned > 0);
}

#[test]
fn files_that_do_not_fit_are_bypassed_and_counted() {
    let kit = Kit::new(Options { capacity: Some(COPY), ..options() });
    kit.elsewhere.write("big", &pattern(2 * CHUNK, 1)).unwrap();
    assert!(kit.program.read("big").unwrap() == pattern(2 * CHUNK, 1));
    assert_eq!(kit.cache.stats().bypassed_full, 1);
    let refused = kit.cache.attach(kit.program.call(), "big".as_ref(), true).unwrap_err();
    assert_eq!(refused.errno(), Errno::NOSPC);
}

#[test]
fn a_project_over_its_quota_evicts_its_own() {
    let kit = Kit::new(Options { quotas: BTreeMap::from([(0, 2 * COPY)]), ..options() });
    for n in 0..5 {
        let name = format!("f{n}");
        kit.elsewhere.write(&name, &pattern(CHUNK, n)).unwrap();
        kit.cached(&name);
        assert!(kit.cache.stats().used_bytes <= 2 * COPY);
    }
    assert_eq!(kit.cache.stats().evicted, 3);
    kit.elsewhere.write("big", &pattern(3 * CHUNK, 1)).unwrap();
    let refused = kit.cache.attach(kit.program.call(), "big".as_ref(), true).unwrap_err();
    assert_eq!(refused.errno(), Errno::DQUOT);
    assert!(kit.program.read("big").unwrap() == pattern(3 * CHUNK, 1));
}

#[test]
fn eviction_on_demand_leaves_open_files_readable() {
    let kit = Kit::new(options());
    kit.elsewhere.write("f", &pattern(CHUNK, 1)).unwrap();
    kit.cached("f");
    let held = kit.program.open("f", OFlags::RDONLY).unwrap();
    let evicted = kit.cache.evict(0).unwrap();
    assert_eq!((evicted.files, evicted.bytes), (1, COPY));
    let mut buf = vec![0; CHUNK];
    assert_eq!(held.read(kit.program.call(), &mut buf, 0).unwrap(), CHUNK);
    assert!(buf == pattern(CHUNK, 1));
    assert_eq!(kit.state("f"), FileState::None);
    assert!(kit.program.read("f").unwrap() == pattern(CHUNK, 1));
}

#[test]
fn a_slow_removal_does_not_make_more_copies_go() {
    let kit = Kit::with_store_of(Options { min_free: 0.5, ..options() }, 40 * CHUNK as u64);
    for n in 0..15 {
        let name = format!("f{n}");
        kit.elsewhere.write(&name, &pattern(CHUNK, n)).unwrap();
        kit.cached(&name);
    }
    kit.store.delay(Kind::Unlink, Duration::from_millis(100));
    kit.elsewhere.write("big", &pattern(8 * CHUNK, 1)).unwrap();
    kit.cached("big");
    let evicted = kit.cache.stats().evicted;
    assert!(
        (3..=6).contains(&evicted),
        "{evicted} copies went for one of eight chunks where there was room for five"
    );
}

#[test]
fn nothing_goes_for_a_file_that_could_never_fit() {
    let kit = Kit::new(Options { capacity: Some(4 * COPY), high_water: 1.0, ..options() });
    for n in 0..3 {
        let name = format!("f{n}");
        kit.elsewhere.write(&name, &pattern(CHUNK, n)).unwrap();
        kit.cached(&name);
    }
    kit.elsewhere.write("big", &pattern(5 * CHUNK, 1)).unwrap();
    assert!(kit.program.read("big").unwrap() == pattern(5 * CHUNK, 1));
    let stats = kit.cache.stats();
    assert_eq!((stats.bypassed_full, stats.evicted, stats.copies), (1, 0, 3));
}

#[test]
fn a_store_that_does_not_tell_its_space_keeps_its_copies() {
    let kit = Kit::new(options());
    kit.elsewhere.write("f", &pattern(CHUNK, 1)).unwrap();
    kit.cached("f");
    let before = kit.store.count(Kind::Statfs);
    kit.store.fail(Kind::Statfs, When::Always, Errno::IO);
    kit.until(|| kit.store.count(Kind::Statfs) > before + 1);
    assert_eq!(kit.cache.stats().evicted, 0);
}

#[test]
fn a_fill_that_nobody_ends_gives_its_room_back() {
    let kit = Kit::new(Options { whole_file: 0, ..options() });
    kit.elsewhere.write("f", &pattern(40 * CHUNK, 1)).unwrap();
    let handle = kit.program.open("f", OFlags::RDONLY).unwrap();
    let mut buf = [0; 100];
    handle.read(kit.program.call(), &mut buf, 0).unwrap();
    assert_eq!(kit.state("f"), FileState::Filling);
    assert!(kit.cache.stats().used_bytes >= 40 * CHUNK as u64);
    drop(handle);
    kit.until(|| kit.cache.stats().used_bytes == 0);
    let files = || {
        let store = Client::new(&*kit.store_fs);
        let shelves = names(&store, "copies").unwrap().into_iter();
        shelves.map(|shelf| names(&store, Path::new("copies").join(shelf)).unwrap().len()).sum::<usize>()
    };
    kit.until(|| files() == 0);
}

#[test]
fn parts_of_files_that_nobody_has_open_make_room() {
    let kit = Kit::new(Options { capacity: Some(4 * COPY), whole_file: 0, ..options() });
    for n in 0..8 {
        let name = format!("f{n}");
        kit.elsewhere.write(&name, &pattern(3 * CHUNK, n)).unwrap();
        let held = kit.program.node(&name).unwrap();
        let open = kit.program.open(&name, hither_vfs::OFlags::RDONLY).unwrap();
        assert!(kit.program.read_at(&*open, 0, 10).unwrap() == pattern(3 * CHUNK, n)[..10]);
        drop(open);
        // The kernel remembers the file, so that what was fetched of it stays until somebody needs the room.
        std::mem::forget(held);
    }
    let stats = kit.cache.stats();
    assert_eq!(stats.bypassed_full, 0, "{stats:?}");
    assert!(stats.used_bytes <= 4 * COPY, "{stats:?}");
}
