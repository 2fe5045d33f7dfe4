//! Node ids of an epoch, and the one backing that all opens of an id share.

use super::*;
use crate::protocol::abi::fopen;
use crate::scripted::backing;
use hither_vfs::{Event, Identity};

const FILE: Identity = Identity { dev: 1, ino: 100, generation: 0 };

#[test]
fn an_old_epoch_is_stale_and_the_next_lookup_gives_another_id() {
    let fs = Scripted::new();
    let file = fs.add("a", b"old");
    let play = Play::new(fs);
    let old = play.lookup("a");
    let held = play.open(old.nodeid, 0).unwrap();
    file.advance(b"newer", None);
    assert_eq!(play.open(old.nodeid, 0).unwrap_err(), Errno::STALE.raw_os_error());
    let new = play.lookup("a");
    assert_ne!(new.nodeid, old.nodeid);
    assert_eq!(new.attr.ino, old.attr.ino);
    let fresh = play.open(new.nodeid, 0).unwrap();
    assert_eq!(play.read(held.fh).1, b"old");
    assert_eq!(play.read(fresh.fh).1, b"newer");
    assert_eq!(play.dispatcher.counters.opens_stale.get(), 1);
    assert_eq!(play.dispatcher.nodes.len(), 3);
}

#[test]
fn an_epoch_that_comes_back_has_its_id_again() {
    let fs = Scripted::new();
    let file = fs.add("a", b"");
    let play = Play::new(fs);
    let first = play.lookup("a");
    file.advance(b"", None);
    let second = play.lookup("a");
    file.version.lock().epoch = 1;
    let third = play.lookup("a");
    assert_eq!((third.nodeid, third.attr_valid), (first.nodeid, 86_400));
    let (_, body) = play.ask(opcode::GETATTR, second.nodeid, |out| Pad::<16>.put(out));
    assert_eq!(body[..8], [0; 8], "the other is not the present one now");
    for (nodeid, lookups) in [(first.nodeid, 2_u64), (second.nodeid, 1)] {
        assert!(play.dispatcher.nodes.has_siblings() || nodeid == second.nodeid);
        play.send(opcode::FORGET, nodeid, |out| lookups.put(out));
        play.until(|dispatcher| dispatcher.nodes.get(nodeid).is_none());
    }
    assert!(!play.dispatcher.nodes.has_siblings());
}

#[test]
fn all_opens_of_an_id_share_one_backing_id() {
    let fs = Scripted::new();
    let file = fs.add("a", b"");
    file.advance(b"", Some(backing(b"backed")));
    let play = Play::new(fs);
    let nodeid = play.lookup("a").nodeid;
    let first = play.open(nodeid, 0).unwrap();
    let second = play.open(nodeid, 2).unwrap();
    assert_eq!((first.open_flags, first.backing_id), (fopen::PASSTHROUGH, 1));
    assert_eq!((second.open_flags, second.backing_id), (fopen::PASSTHROUGH, 1));
    play.release(first.fh);
    play.release(second.fh);
    assert_eq!(*play.ids.living.lock(), [1], "kept for the next open");
    assert_eq!(play.open(nodeid, 0).unwrap().backing_id, 1);
    play.send(opcode::FORGET, nodeid, |out| 1_u64.put(out));
    play.until(|dispatcher| dispatcher.nodes.len() == 1);
    assert_eq!(*play.ids.living.lock(), [1], "an id in use is never closed");
}

#[test]
fn an_id_goes_with_its_node_or_with_its_copy() {
    let fs = Scripted::new();
    let file = fs.add("a", b"");
    file.advance(b"", Some(backing(b"backed")));
    let play = Play::new(fs.clone());
    let nodeid = play.lookup("a").nodeid;
    let open = play.open(nodeid, 0).unwrap();
    fs.tell(&Event::Evicted(FILE));
    assert_eq!(*play.ids.living.lock(), [1]);
    play.release(open.fh);
    play.wait_for(|_| play.ids.living.lock().is_empty().then_some(()));
    let open = play.open(nodeid, 0).unwrap();
    assert_eq!(open.backing_id, 2);
    play.release(open.fh);
    play.send(opcode::FORGET, nodeid, |out| 1_u64.put(out));
    play.wait_for(|_| play.ids.living.lock().is_empty().then_some(()));
}

#[test]
fn what_the_kernel_refuses_to_back_goes_through_the_page_cache_while_it_is_open() {
    let fs = Scripted::new();
    let file = fs.add("a", b"");
    file.advance(b"", Some(backing(b"backed")));
    let play = Play::new(fs);
    let nodeid = play.lookup("a").nodeid;
    play.ids.refuse.store(true, Ordering::SeqCst);
    let first = play.open(nodeid, 0).unwrap();
    assert_eq!((first.open_flags, first.backing_id), (fopen::KEEP_CACHE, 0));
    assert!(play.dispatcher.backings.why_not().contains("stacked"));
    play.ids.refuse.store(false, Ordering::SeqCst);
    assert_eq!(play.open(nodeid, 0).unwrap().backing_id, 0, "not beside an open through the page cache");
    assert_eq!(play.dispatcher.backings.counts(), (0, 2));
    for fh in [1, 2] {
        play.release(fh);
    }
    assert_eq!(play.open(nodeid, 0).unwrap().backing_id, 1, "but when that one is gone");
}

#[test]
fn opens_that_do_not_fit_beside_each_other_get_ids_of_their_own() {
    let fs = Scripted::new();
    let file = fs.add("a", b"bytes");
    file.advance(b"bytes", Some(backing(b"bytes")));
    let play = Play::new(fs);
    let first = play.lookup("a");
    assert_eq!(play.open(first.nodeid, 0).unwrap().backing_id, 1);
    // A layer that breaks its promise: the epoch stays and the backing goes.
    file.version.lock().backing = None;
    assert_eq!(play.open(first.nodeid, 0).unwrap_err(), Errno::STALE.raw_os_error());
    let second = play.lookup("a");
    assert_ne!(first.nodeid, second.nodeid);
    let open = play.open(second.nodeid, 0).unwrap();
    assert_eq!(open.open_flags & fopen::PASSTHROUGH, 0);
    // The same for one that is created while it is open the other way.
    file.version.lock().backing = Some(backing(b"bytes"));
    let (errno, body) = play.ask(opcode::CREATE, 1, |out| {
        CreateIn { flags: 2, mode: 0o600, umask: 0, open_flags: 0 }.put(out);
        put_name(out, "a");
    });
    assert_eq!(errno, 0);
    let mut rest = &body[..];
    let entry = EntryOut::take(&mut rest).unwrap();
    let open = OpenOut::take(&mut rest).unwrap();
    assert_eq!(
        (entry.nodeid, open.backing_id),
        (second.nodeid, 0),
        "beside an open without, it goes without"
    );
}

#[test]
fn direct_opens_are_direct_only_without_a_backing() {
    let fs = Scripted::new();
    let plain = fs.add("plain", b"");
    let backed = fs.add("backed", b"");
    backed.advance(b"", Some(backing(b"")));
    let play = Play::new(fs);
    let o_direct = 0o40_000;
    let open = play.open(play.lookup("plain").nodeid, o_direct).unwrap();
    assert_eq!(open.open_flags, fopen::DIRECT_IO | fopen::PARALLEL_DIRECT_WRITES | fopen::KEEP_CACHE);
    let open = play.open(play.lookup("backed").nodeid, o_direct).unwrap();
    assert_eq!(open.open_flags, fopen::PASSTHROUGH);
    drop(plain);
}

#[test]
fn a_change_through_one_id_reaches_the_others() {
    let fs = Scripted::new();
    let file = fs.add("a", b"old");
    let play = Play::new(fs);
    let old = play.lookup("a");
    let held = play.open(old.nodeid, 1).unwrap();
    assert!(play.kernel.notices.lock().is_empty());
    file.advance(b"new", None);
    let new = play.lookup("a");
    play.ask(opcode::WRITE, 0, |out| {
        WriteIn { fh: held.fh, size: 1, ..WriteIn::default() }.put(out);
        out.push(b'x');
    });
    let attr = [new.nodeid.to_ne_bytes(), (-1_i64).to_ne_bytes(), [0; 8]].concat();
    let pages = [new.nodeid.to_ne_bytes(), [0; 8], [0; 8]].concat();
    play.wait_for(|kernel| {
        let notices = kernel.notices.lock();
        (notices.contains(&(2, attr.clone())) && notices.contains(&(2, pages.clone()))).then_some(())
    });
    // The kernel lowers the link count of the id that it knows the name by; the other ids are told.
    play.kernel.notices.lock().clear();
    assert_eq!(play.ask(opcode::UNLINK, 1, |out| put_name(out, "a")).0, 0);
    let old_attr = [old.nodeid.to_ne_bytes(), (-1_i64).to_ne_bytes(), [0; 8]].concat();
    assert!(play.kernel.notices.lock().contains(&(2, old_attr)));
}

#[test]
fn attributes_hold_long_unless_somebody_may_write_past_us_or_the_epoch_moved() {
    let fs = Scripted::new();
    let file = fs.add("a", b"");
    file.advance(b"", Some(backing(b"")));
    let play = Play::new(fs);
    let entry = play.lookup("a");
    assert_eq!(entry.attr_valid, 86_400);
    play.open(entry.nodeid, 0).unwrap();
    assert_eq!(play.lookup("a").attr_valid, 86_400, "readers change nothing");
    play.open(entry.nodeid, 2).unwrap();
    assert_eq!(play.lookup("a").attr_valid, 1);
    file.advance(b"", None);
    play.open(entry.nodeid, 0).unwrap_err();
    let (_, body) = play.ask(opcode::GETATTR, entry.nodeid, |out| Pad::<16>.put(out));
    assert_eq!(body[..8], [0; 8]);
}
