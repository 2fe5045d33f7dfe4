//! What a restart keeps, and what a power loss does.

use std::time::Duration;

use hither_cache::{Cache, FileState, Options};
use hither_testkit::faults::{Kind, When};
use hither_vfs::{Errno, OFlags, WriteAt};

use crate::kit::{CHUNK, Kit, options, pattern};

#[test]
fn a_restart_keeps_every_copy_without_reading_it() {
    let kit = Kit::new(options());
    for n in 0..50 {
        kit.elsewhere.write(format!("f{n}"), &pattern(1000, n)).unwrap();
        kit.cached(&format!("f{n}"));
    }
    let kit = kit.restarted(options());
    kit.until(|| !kit.cache.stats().scanning);
    assert_eq!(kit.store.count(Kind::Getattr), 0);
    for n in 0..50 {
        assert!(kit.program.read(format!("f{n}")).unwrap() == pattern(1000, n));
    }
    let stats = kit.cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.copies, kit.origin.bytes_read()), (50, 0, 50, 0));
}

#[test]
fn a_hit_does_not_wait_for_the_scan() {
    let kit = Kit::new(options());
    kit.elsewhere.write("f", b"bytes").unwrap();
    kit.cached("f");
    let kit = kit.restarted(options());
    let listing = kit.store.hang(Kind::Readdir);
    assert_eq!(kit.program.read("f").unwrap(), b"bytes");
    assert_eq!(kit.cache.stats().hits, 1);
    kit.store.remove(listing);
    kit.store.release();
}

#[test]
fn after_a_power_loss_only_what_was_synced_counts() {
    let kit = Kit::new(Options { sync_every: Duration::from_millis(10), ..options() });
    kit.elsewhere.write("synced", b"synced").unwrap();
    kit.cached("synced");
    kit.until(|| kit.cache.stats().durable_copies == 1);
    kit.store.fail(Kind::Sync, When::Always, Errno::IO);
    kit.elsewhere.write("late", b"late").unwrap();
    kit.program.read("late").unwrap();
    kit.until(|| kit.cache.stats().fills == 2);
    // Another life of the page cache: the power was lost.
    let kit = kit.restarted(Options { instance: [2; 16], ..options() });
    kit.until(|| !kit.cache.stats().scanning);
    assert_eq!(kit.cache.stats().copies, 1);
    assert_eq!(kit.program.read("late").unwrap(), b"late");
    assert_eq!(kit.program.read("synced").unwrap(), b"synced");
    assert_eq!(kit.cache.stats().hits, 1, "of the synced one");
}

#[test]
fn a_failed_sync_ends_trust_in_what_was_not_safe() {
    let kit = Kit::new(Options { sync_every: Duration::from_millis(10), ..options() });
    kit.store.fail(Kind::Sync, When::Always, Errno::IO);
    kit.elsewhere.write("f", b"bytes").unwrap();
    assert_eq!(kit.program.read("f").unwrap(), b"bytes");
    kit.until(|| kit.cache.stats().fills >= 1 && kit.cache.stats().copies == 0);
    assert_eq!(kit.program.read("f").unwrap(), b"bytes");
}

#[test]
fn a_fill_that_a_failed_sync_met_is_no_copy() {
    let kit = Kit::new(Options { sync_every: Duration::from_millis(10), whole_file: 0, ..options() });
    kit.elsewhere.write("big", &pattern(40 * CHUNK, 1)).unwrap();
    kit.elsewhere.write("small", &pattern(10, 1)).unwrap();
    let handle = kit.program.open("big", OFlags::RDONLY).unwrap();
    let mut buf = [0; 100];
    handle.read(kit.program.call(), &mut buf, 0).unwrap();
    let fault = kit.store.fail(Kind::Sync, When::Always, Errno::IO);
    // A copy, so that there is something to sync.
    kit.program.read("small").unwrap();
    kit.until(|| kit.cache.stats().store_errors > 0);
    kit.store.remove(fault);
    let attach = || kit.cache.attach(kit.program.call(), "big".as_ref(), true);
    assert_eq!(attach().unwrap_err().errno(), Errno::AGAIN, "what was fetched before may be lost");
    assert_eq!(attach().unwrap().state, FileState::Cached);
    assert!(kit.program.read("big").unwrap() == pattern(40 * CHUNK, 1));
}

#[test]
fn what_of_a_store_cannot_be_listed_is_kept_and_found() {
    let kit = Kit::new(options());
    for n in 0..8 {
        kit.elsewhere.write(format!("f{n}"), &pattern(1000, n)).unwrap();
        kit.cached(&format!("f{n}"));
    }
    // The first two reads are of the store's own files.
    let kit = kit.restarted_failing(options(), |store| {
        store.fail(Kind::Read, When::Nth(4), Errno::IO);
    });
    let verified = kit.cache.verify(&mut |_| true).unwrap();
    assert_eq!(
        (verified.copies, verified.damaged.len()),
        (7, 0),
        "one could not be read, which ends nothing"
    );
    for n in 0..8 {
        assert!(kit.program.read(format!("f{n}")).unwrap() == pattern(1000, n));
    }
    let stats = kit.cache.stats();
    assert_eq!((stats.hits, stats.misses), (8, 0));
}

#[test]
fn rubbish_is_removed_and_damage_is_no_copy() {
    let kit = Kit::new(options());
    for name in ["torn", "gone", "fine"] {
        kit.elsewhere.write(name, name.as_bytes()).unwrap();
        kit.cached(name);
    }
    let store = hither_testkit::Client::new(&*kit.store_fs);
    let copy = |name: &str| kit.cache.state(kit.program.call(), name.as_ref()).unwrap().copy.unwrap();
    let record = |name: &str| {
        let data = copy(name);
        let key = data.file_name().unwrap().to_str().unwrap().split('-').next().unwrap().to_owned();
        data.with_file_name(format!("{key}.rec"))
    };
    let (torn, gone) = (record("torn"), copy("gone"));
    let bytes = store.read(&torn).unwrap();
    store.write(&torn, &bytes[..bytes.len() / 2]).unwrap();
    store.unlink(&gone).unwrap();
    store.write(torn.with_extension("rec.new"), b"half").unwrap();
    let kit = kit.restarted(options());
    kit.until(|| !kit.cache.stats().scanning);
    for name in ["torn", "gone", "fine"] {
        assert_eq!(kit.program.read(name).unwrap(), name.as_bytes());
        kit.settle_copy(name);
    }
    assert_eq!(kit.cache.stats().hits, 1, "of `fine`");
    let left = crate::kit::names(&store, torn.parent().unwrap()).unwrap();
    assert!(!left.iter().any(|name| name.to_str().unwrap().ends_with(".new")), "{left:?}");
}

#[test]
fn a_flipped_bit_is_found_and_fetched_again() {
    let kit = Kit::new(options());
    let bytes = pattern(2 * CHUNK, 1);
    for name in ["f", "sound"] {
        kit.elsewhere.write(name, &bytes).unwrap();
        kit.cached(name);
    }
    let copy = kit.cache.state(kit.program.call(), "f".as_ref()).unwrap().copy.unwrap();
    let store = hither_testkit::Client::new(&*kit.store_fs);
    let data = store.open(&copy, OFlags::RDWR).unwrap();
    data.write(store.call(), &[bytes[CHUNK + 5] ^ 4], WriteAt::Offset(CHUNK as u64 + 5)).unwrap();
    let verified = kit.cache.verify(&mut |_| true).unwrap();
    assert_eq!((verified.copies, verified.refetched), (2, 1));
    assert_eq!(verified.damaged, [std::path::PathBuf::from("f")]);
    assert_eq!(kit.state("f"), FileState::Cached);
    assert!(kit.program.read("f").unwrap() == bytes);
    assert!(kit.cache.verify(&mut |_| true).unwrap().damaged.is_empty());
}

#[test]
fn a_store_serves_one_origin() {
    let kit = Kit::new(options());
    let other = Options { origin_name: "other".to_owned(), ..options() };
    let refused = Cache::open(kit.origin_fs.clone(), kit.store_fs.clone(), other).err().unwrap();
    assert!(refused.to_string().contains("holds copies of `origin`"), "{refused}");
}
