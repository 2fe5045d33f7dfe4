//! An origin or a store that fails, hangs or goes away.

use std::time::{Duration, Instant};

use hither_cache::{FileState, Options};
use hither_testkit::faults::{Kind, When};
use hither_vfs::{Errno, OFlags, Patience};

use crate::kit::{CHUNK, Kit, options, pattern};

#[test]
fn an_origin_that_fails_every_seventh_read() {
    let kit = Kit::new(options());
    let bytes = pattern(40 * CHUNK, 1);
    kit.elsewhere.write("f", &bytes).unwrap();
    kit.origin.fail(Kind::Read, When::Every(7), Errno::IO);
    let handle = kit.program.open("f", OFlags::RDONLY).unwrap();
    let mut buf = vec![0; CHUNK];
    for chunk in 0..40 {
        // Who gets an error asks again, as a program or its user would.
        while handle.read(kit.program.call(), &mut buf, (chunk * CHUNK) as u64).is_err() {}
        assert!(buf == bytes[chunk * CHUNK..][..CHUNK], "chunk {chunk}");
    }
    kit.until(|| kit.state("f") == FileState::Cached);
    assert!(kit.program.read("f").unwrap() == bytes);
    assert!(kit.cache.stats().origin_errors > 0);
}

#[test]
fn an_origin_that_goes_away_and_comes_back() {
    let kit = Kit::new(options());
    kit.elsewhere.write("open", b"open").unwrap();
    kit.elsewhere.write("other", b"other").unwrap();
    kit.cached("open");
    let held = kit.program.open("open", OFlags::RDONLY).unwrap();
    let node = kit.program.node("open").unwrap();
    kit.origin.vanish(Errno::IO);
    let mut buf = [0; 4];
    assert_eq!(held.read(kit.program.call(), &mut buf, 0).unwrap(), 4);
    assert_eq!(&buf, b"open", "what is open with a backing stays readable");
    assert_eq!(node.getattr(kit.program.call()).unwrap().size, 4, "and its size is told");
    assert_eq!(kit.program.read("other").unwrap_err().errno(), Errno::IO);
    assert_eq!(kit.program.read("open").unwrap_err().errno(), Errno::IO);
    assert_eq!(kit.names("").unwrap_err().errno(), Errno::IO);
    kit.origin.come_back();
    assert_eq!(kit.program.read("other").unwrap(), b"other");
    assert_eq!(kit.program.read("open").unwrap(), b"open");
}

#[test]
fn a_hung_fetch_costs_its_waiters_their_patience_and_nobody_else_anything() {
    let kit = Kit::new(options());
    kit.elsewhere.write("hung", &pattern(CHUNK, 1)).unwrap();
    kit.elsewhere.write("fine", b"fine").unwrap();
    kit.cached("fine");
    let hang = kit.origin.hang(Kind::Read);
    std::thread::scope(|scope| {
        let stuck = scope.spawn(|| kit.program.read("hung"));
        assert!(kit.origin.wait_until_stuck(1, Duration::from_secs(10)));
        let began = Instant::now();
        let hasty = kit.program.with_patience(Patience::at_most(Duration::from_millis(200)));
        assert_eq!(hasty.read("hung").unwrap_err().errno(), Errno::IO);
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(kit.program.read("fine").unwrap(), b"fine", "hits go on");
        kit.origin.remove(hang);
        kit.origin.release();
        assert!(stuck.join().unwrap().unwrap() == pattern(CHUNK, 1));
    });
    assert!(kit.program.read("hung").unwrap() == pattern(CHUNK, 1));
}

#[test]
fn a_store_that_fails_is_bypassed() {
    for kind in [Kind::Create, Kind::Write, Kind::Setattr, Kind::Rename, Kind::Statfs, Kind::Read] {
        let kit = Kit::new(options());
        kit.elsewhere.write("f", &pattern(CHUNK + 9, 1)).unwrap();
        let fault = kit.store.fail(kind, When::Always, Errno::IO);
        assert!(kit.program.read("f").unwrap() == pattern(CHUNK + 9, 1), "{kind:?}");
        kit.settle_copy("f");
        assert!(kit.program.read("f").unwrap() == pattern(CHUNK + 9, 1), "{kind:?}, second read");
        kit.store.remove(fault);
        kit.until(|| {
            kit.program.read("f").unwrap();
            kit.state("f") == FileState::Cached
        });
        assert!(kit.program.read("f").unwrap() == pattern(CHUNK + 9, 1), "{kind:?}, healed");
    }
}

#[test]
fn a_copy_that_cannot_be_read_is_read_at_the_origin() {
    let kit = Kit::new(options());
    let bytes = pattern(CHUNK + 9, 1);
    kit.elsewhere.write("f", &bytes).unwrap();
    kit.cached("f");
    let held = kit.program.open("f", OFlags::RDONLY).unwrap();
    kit.store.fail(Kind::Read, When::Always, Errno::IO);
    assert!(kit.program.read_open(&*held).unwrap() == bytes);
    assert_eq!(kit.cache.stats().copies, 0, "a copy that cannot be read is kept");
    // Another version at the origin is not what was opened.
    kit.elsewhere.write("f", b"another").unwrap();
    let mut buf = [0; 10];
    assert_eq!(held.read(kit.program.call(), &mut buf, 0).unwrap_err().errno(), Errno::IO);
}

#[test]
fn a_fill_that_was_given_up_is_begun_again_while_the_file_is_known() {
    let kit = Kit::new(options());
    kit.elsewhere.write("f", &pattern(CHUNK + 9, 1)).unwrap();
    let node = kit.program.node("f").unwrap();
    let fault = kit.store.fail(Kind::Write, When::Always, Errno::IO);
    let held = kit.program.open("f", OFlags::RDONLY).unwrap();
    assert!(kit.program.read_open(&*held).unwrap() == pattern(CHUNK + 9, 1));
    kit.until(|| kit.cache.stats().fills_abandoned > 0);
    assert_eq!(kit.state("f"), FileState::None);
    kit.store.remove(fault);
    kit.program.read("f").unwrap();
    kit.until(|| kit.state("f") == FileState::Cached);
    assert!(kit.program.read("f").unwrap() == pattern(CHUNK + 9, 1));
    drop(node);
}

#[test]
fn a_copy_that_cannot_be_opened_is_a_miss() {
    let kit = Kit::new(Options { revalidate: Duration::from_secs(3600), ..options() });
    kit.elsewhere.write("f", b"bytes").unwrap();
    kit.cached("f");
    let kit = kit.restarted(options());
    let fault = kit.store.fail(Kind::Open, When::Always, Errno::IO);
    assert_eq!(kit.program.read("f").unwrap(), b"bytes");
    kit.store.remove(fault);
}
