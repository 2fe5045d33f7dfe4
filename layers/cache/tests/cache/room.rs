//! Room: limits, water marks, pins, quotas, a store that is full.

use std::collections::BTreeMap;

use hither_cache::{FileState, Options};
use hither_vfs::Errno;

use crate::kit::{CHUNK, Kit, options, pattern};

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
    let held = kit.program.open("f", hither_vfs::OFlags::RDONLY).unwrap();
    let evicted = kit.cache.evict(0).unwrap();
    assert_eq!((evicted.files, evicted.bytes), (1, COPY));
    let mut buf = vec![0; CHUNK];
    assert_eq!(held.read(kit.program.call(), &mut buf, 0).unwrap(), CHUNK);
    assert!(buf == pattern(CHUNK, 1));
    assert_eq!(kit.state("f"), FileState::None);
    assert!(kit.program.read("f").unwrap() == pattern(CHUNK, 1));
}
