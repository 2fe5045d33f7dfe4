//! Which version a program gets, whoever changes the file.

use std::time::Duration;

use hither_cache::{FileState, Options};
use hither_vfs::{
    DirEntry, DirSink, Entry, Errno, FileSystem, Handle, OFlags, RenameFlags, SetAttr, WriteAt,
};

use crate::kit::{CHUNK, Kit, options, pattern};

#[test]
fn a_change_at_the_origin_is_seen_at_the_next_open() {
    let kit = Kit::new(options());
    let (old, new) = (pattern(CHUNK, 1), pattern(CHUNK, 2));
    kit.elsewhere.write("f", &old).unwrap();
    kit.cached("f");
    let reader = kit.program.open("f", OFlags::RDONLY).unwrap();
    kit.elsewhere.write("f", &new).unwrap();
    assert!(kit.program.read("f").unwrap() == new);
    let mut buf = vec![0; CHUNK];
    reader.read(kit.program.call(), &mut buf, 0).unwrap();
    assert!(buf == old, "an open reader keeps its version");
    assert_eq!(kit.cache.stats().invalidated, 1);
}

#[test]
fn within_the_window_the_origin_is_not_asked() {
    let kit = Kit::new(Options { revalidate: Duration::from_secs(3600), ..options() });
    kit.elsewhere.write("f", b"old").unwrap();
    kit.cached("f");
    kit.elsewhere.write("f", b"new").unwrap();
    let space = kit.cache.statfs(kit.program.call()).unwrap();
    let calls = kit.origin.count_all();
    assert_eq!(kit.program.read("f").unwrap(), b"old");
    assert_eq!(kit.cache.statfs(kit.program.call()).unwrap(), space);
    assert_eq!(kit.origin.count_all(), calls);
}

#[test]
fn a_version_that_is_not_settled_is_not_copied() {
    let kit = Kit::new(Options { settle: Duration::from_secs(3600), ..options() });
    kit.elsewhere.write("f", b"fresh").unwrap();
    assert_eq!(kit.program.read("f").unwrap(), b"fresh");
    assert_eq!(kit.state("f"), FileState::None);
    assert_eq!(kit.cache.stats().bypassed_unsettled, 1);
}

#[test]
fn a_change_during_the_fill_ends_it() {
    let kit = Kit::new(options());
    let (old, new) = (pattern(4 * CHUNK, 1), pattern(4 * CHUNK, 2));
    kit.elsewhere.write("f", &old).unwrap();
    let handle = kit.program.open("f", OFlags::RDONLY).unwrap();
    let mut buf = vec![0; 100];
    handle.read(kit.program.call(), &mut buf, 0).unwrap();
    kit.elsewhere.write("f", &new).unwrap();
    kit.until(|| kit.state("f") != FileState::Filling);
    assert!(kit.program.read("f").unwrap() == new, "no mixture is ever a copy");
    kit.settle_copy("f");
    assert!(kit.program.read("f").unwrap() == new);
}

#[test]
fn writes_here_end_the_copy_at_once() {
    let kit = Kit::new(Options { revalidate: Duration::from_secs(3600), ..options() });
    let bytes = pattern(CHUNK + 10, 1);
    for change in 0..4 {
        let name = format!("f{change}");
        kit.elsewhere.write(&name, &bytes).unwrap();
        kit.cached(&name);
        let call = kit.program.call().clone();
        let mut expected = bytes.clone();
        match change {
            0 => {
                let writer = kit.program.open(&name, OFlags::WRONLY).unwrap();
                assert_eq!(kit.state(&name), FileState::None, "an open for writing ends the backing");
                writer.write(&call, b"new", WriteAt::Offset(5)).unwrap();
                expected[5..8].copy_from_slice(b"new");
            }
            1 => {
                let set = SetAttr { size: Some(7), ..SetAttr::default() };
                kit.program.node(&name).unwrap().setattr(&call, &set, None).unwrap();
                expected.truncate(7);
            }
            2 => {
                drop(kit.program.open(&name, OFlags::WRONLY | OFlags::TRUNC).unwrap());
                expected.clear();
            }
            _ => {
                let writer = kit.program.open(&name, OFlags::RDWR).unwrap();
                writer.write(&call, b"end", WriteAt::End).unwrap();
                expected.extend_from_slice(b"end");
                let source = kit.program.open("f2", OFlags::RDONLY).unwrap();
                assert_eq!(source.copy_range(&call, 0, &*writer, 0, 5).unwrap(), 0, "f2 is empty now");
            }
        }
        assert!(kit.program.read(&name).unwrap() == expected, "change {change}");
        assert!(kit.elsewhere.read(&name).unwrap() == expected, "change {change} at the origin");
        assert_eq!(kit.program.attr(&name).unwrap().size, expected.len() as u64);
    }
}

#[test]
fn a_writer_that_changes_nothing_leaves_the_copy() {
    let kit = Kit::new(options());
    kit.elsewhere.write("f", b"same").unwrap();
    kit.cached("f");
    let fetched = kit.origin.bytes_read();
    drop(kit.program.open("f", OFlags::RDWR).unwrap());
    // For two seconds the file stays unbacked, so that a refused open finds it so.
    kit.until(|| kit.program.lookup("f").unwrap().epoch != 0);
    assert_eq!(kit.program.read("f").unwrap(), b"same");
    assert_eq!(kit.origin.bytes_read(), fetched);
}

#[test]
fn an_open_at_an_old_epoch_is_refused_and_has_done_nothing() {
    let kit = Kit::new(options());
    kit.elsewhere.write("f", b"bytes").unwrap();
    kit.cached("f");
    let entry = kit.program.lookup("f").unwrap();
    let call = kit.program.call();
    let refused = entry.node.open(call, OFlags::WRONLY | OFlags::TRUNC, entry.epoch).err().unwrap();
    assert_eq!(refused.errno(), Errno::STALE);
    assert_eq!(kit.elsewhere.read("f").unwrap(), b"bytes", "a refused open truncated the file");
    assert_eq!(kit.program.lookup("f").unwrap().epoch, 0, "the second try must not be refused");
    // A reader that looked it up before may still have the copy: nothing was changed.
    entry.node.open(call, OFlags::RDONLY, entry.epoch).unwrap();
    drop(kit.program.open("f", OFlags::WRONLY | OFlags::TRUNC).unwrap());
    assert_eq!(entry.node.open(call, OFlags::RDONLY, entry.epoch).err().unwrap().errno(), Errno::STALE);
}

#[test]
fn names_and_attributes_change_without_a_new_fetch() {
    let kit = Kit::new(options());
    kit.elsewhere.write("f", b"bytes").unwrap();
    kit.cached("f");
    let fetched = kit.origin.bytes_read();
    let call = kit.program.call().clone();
    let set = SetAttr { mode: Some(0o600), ..SetAttr::default() };
    kit.program.node("f").unwrap().setattr(&call, &set, None).unwrap();
    let root = kit.program.root().clone();
    root.rename(&call, "f".as_ref(), &*root, "g".as_ref(), RenameFlags::empty()).unwrap();
    root.link(&call, "h".as_ref(), &*kit.program.node("g").unwrap()).unwrap();
    kit.program.unlink("g").unwrap();
    assert_eq!(kit.program.read("h").unwrap(), b"bytes");
    assert_eq!(kit.state("h"), FileState::Cached);
    assert_eq!(kit.origin.bytes_read(), fetched, "the copy was lost on the way");
    let kit = kit.restarted(options());
    assert_eq!(kit.program.read("h").unwrap(), b"bytes");
    assert_eq!(kit.origin.bytes_read(), 0, "the record was not rewritten");
}

#[test]
fn removed_and_replaced_files_leave_no_copy() {
    let kit = Kit::new(options());
    for name in ["a", "b", "c"] {
        kit.elsewhere.write(name, name.as_bytes()).unwrap();
        kit.cached(name);
    }
    let call = kit.program.call().clone();
    let held = kit.program.open("a", OFlags::RDONLY).unwrap();
    kit.program.unlink("a").unwrap();
    let root = kit.program.root().clone();
    root.rename(&call, "b".as_ref(), &*root, "c".as_ref(), RenameFlags::empty()).unwrap();
    assert_eq!(kit.program.read("c").unwrap(), b"b");
    assert_eq!(kit.cache.stats().copies, 1, "of `b` only");
    let mut buf = [0; 1];
    assert_eq!(held.read(&call, &mut buf, 0).unwrap(), 1);
    assert_eq!(&buf, b"a", "an open file outlives its name");
    kit.program.write("a", b"another").unwrap();
    assert_eq!(kit.program.read("a").unwrap(), b"another");
}

#[test]
fn what_one_name_loses_the_other_shows() {
    let kit = Kit::new(Options { revalidate: Duration::from_secs(3600), ..options() });
    let (root, call) = (kit.program.root().clone(), kit.program.call().clone());
    for (kind, mode) in [("fifo", 0o010_644), ("file", 0o100_644)] {
        let first = root.mknod(&call, format!("{kind}1").as_ref(), mode, 0).unwrap();
        for n in 2..5 {
            root.link(&call, format!("{kind}{n}").as_ref(), &*first.node).unwrap();
        }
        let nlink = || kit.program.attr(format!("{kind}1")).unwrap().nlink;
        assert_eq!(nlink(), 4);
        kit.program.unlink(format!("{kind}2")).unwrap();
        assert_eq!(nlink(), 3, "{kind} after unlink");
        root.mknod(&call, format!("{kind}x").as_ref(), mode, 0).unwrap();
        let over = format!("{kind}3");
        root.rename(&call, format!("{kind}x").as_ref(), &*root, over.as_ref(), RenameFlags::empty()).unwrap();
        assert_eq!(nlink(), 2, "{kind} after rename over");
        let ctime = first.node.getattr(&call).unwrap().ctime;
        let (from, to) = (format!("{kind}1"), format!("{kind}y"));
        root.rename(&call, from.as_ref(), &*root, to.as_ref(), RenameFlags::empty()).unwrap();
        assert!(first.node.getattr(&call).unwrap().ctime > ctime, "{kind} after its own rename");
        root.rename(&call, to.as_ref(), &*root, from.as_ref(), RenameFlags::empty()).unwrap();
    }
}

#[test]
fn hard_links_share_one_copy() {
    let kit = Kit::new(options());
    kit.elsewhere.write("f", b"bytes").unwrap();
    let root = kit.elsewhere.root().clone();
    root.link(kit.elsewhere.call(), "g".as_ref(), &*kit.elsewhere.node("f").unwrap()).unwrap();
    kit.cached("f");
    assert_eq!(kit.state("g"), FileState::Cached);
    kit.program.write("g", b"other").unwrap();
    assert_eq!(kit.program.read("f").unwrap(), b"other");
}

#[test]
fn listings_are_remembered_while_they_are_right() {
    let kit = Kit::new(Options { revalidate: Duration::from_secs(3600), ..options() });
    for n in 0..100 {
        kit.elsewhere.write(format!("f{n}"), b"x").unwrap();
    }
    let first = kit.names("").unwrap();
    let calls = kit.origin.count_all();
    assert_eq!(kit.names("").unwrap(), first);
    assert_eq!(kit.origin.count_all(), calls);
    kit.program.write("new", b"x").unwrap();
    kit.program.unlink("f7").unwrap();
    let names = kit.names("").unwrap();
    assert!(names.contains(&"new".into()) && !names.contains(&"f7".into()));
    assert_eq!(names.len(), first.len());
}

#[test]
fn what_a_refusal_promises_outlives_the_node_that_the_kernel_forgets() {
    let kit = Kit::new(options());
    kit.elsewhere.write("f", b"bytes").unwrap();
    kit.program.read("f").unwrap();
    kit.until(|| kit.cache.stats().copies == 1);
    let call = kit.program.call();
    let entry = kit.program.lookup("f").unwrap();
    assert_ne!(entry.epoch, 0);
    assert_eq!(entry.node.open(call, OFlags::WRONLY, entry.epoch).err().unwrap().errno(), Errno::STALE);
    drop(entry);
    assert_eq!(kit.program.lookup("f").unwrap().epoch, 0, "the second open would be refused as well");
}

#[test]
fn attributes_are_asked_once_for_each_version() {
    let kit = Kit::new(Options { revalidate: Duration::from_secs(3600), ..options() });
    kit.elsewhere.write("f", b"bytes").unwrap();
    kit.cached("f");
    let (node, call) = (kit.program.node("f").unwrap(), kit.program.call());
    let get = || node.getxattr(call, "user.a".as_ref());
    for _ in 0..3 {
        assert_eq!(get().unwrap_err().errno(), Errno::NODATA);
    }
    assert_eq!(kit.origin.count(hither_testkit::faults::Kind::Getxattr), 1);
    node.setxattr(call, "user.a".as_ref(), b"value", hither_vfs::XattrFlags::empty()).unwrap();
    for _ in 0..3 {
        assert_eq!(get().unwrap(), b"value");
    }
    node.removexattr(call, "user.a".as_ref()).unwrap();
    assert_eq!(get().unwrap_err().errno(), Errno::NODATA);
    assert_eq!(kit.origin.count(hither_testkit::faults::Kind::Getxattr), 3);
}

#[test]
fn an_open_that_began_before_the_copy_sees_the_file_grow() {
    let kit = Kit::new(options());
    kit.elsewhere.write("f", b"one").unwrap();
    let tail = kit.program.open("f", OFlags::RDONLY).unwrap();
    kit.cached("f");
    let node = kit.program.node("f").unwrap();
    kit.elsewhere.write("f", b"one, two").unwrap();
    assert_eq!(node.getattr(kit.program.call()).unwrap().size, 8, "fstat asks the origin");
    let mut buf = [0; 16];
    assert_eq!(tail.read(kit.program.call(), &mut buf, 0).unwrap(), 8);
    assert_eq!(&buf[..8], b"one, two");
}

#[test]
fn an_open_of_an_old_version_tells_the_size_of_that_version() {
    let kit = Kit::new(options());
    kit.elsewhere.write("f", &pattern(CHUNK, 1)).unwrap();
    kit.cached("f");
    let held = kit.program.open("f", OFlags::RDONLY).unwrap();
    let told = |handle: &dyn Handle| handle.getattr(kit.program.call()).unwrap().map(|attr| attr.size);
    assert_eq!(told(&*held), Some(CHUNK as u64));
    kit.elsewhere.write("f", b"short").unwrap();
    assert_eq!(kit.program.read("f").unwrap(), b"short");
    assert_eq!(told(&*held), Some(CHUNK as u64));
}

#[test]
fn a_remembered_listing_that_is_begun_again_shows_what_is_there() {
    let kit = Kit::new(Options { revalidate: Duration::from_secs(3600), ..options() });
    kit.program.write("a", b"").unwrap();
    kit.names("").unwrap();
    let calls = kit.origin.count_all();
    let dir = kit.cache.root().opendir(kit.program.call()).unwrap();
    let count = || {
        let mut names = Count(0);
        dir.read(kit.program.call(), 0, false, &mut names).unwrap();
        names.0
    };
    assert_eq!((count(), kit.origin.count_all()), (3, calls), "from memory");
    kit.program.write("b", b"").unwrap();
    assert_eq!(count(), 4);
    kit.program.unlink("a").unwrap();
    assert_eq!(count(), 3);
}

struct Count(usize);

impl DirSink for Count {
    fn entry(&mut self, _: DirEntry<'_>, _: Option<Entry>) -> bool {
        self.0 += 1;
        true
    }
}

#[test]
fn who_was_refused_finds_nothing_that_refuses_him_again() {
    let kit = Kit::new(options());
    for name in ["f", "g"] {
        kit.elsewhere.write(name, name.as_bytes()).unwrap();
        kit.cached(name);
    }
    let caller = |pid| kit.program.as_caller(hither_vfs::Caller::new(0, 0, pid, 0));
    let entry = kit.program.lookup("f").unwrap();
    let refused = entry.node.open(caller(77).call(), OFlags::WRONLY, entry.epoch).err().unwrap();
    assert_eq!(refused.errno(), Errno::STALE);
    // Another file has the name by the time of the retry; it is backed by a copy, too.
    let root = kit.program.root().clone();
    root.rename(kit.program.call(), "g".as_ref(), &*root, "f".as_ref(), RenameFlags::empty()).unwrap();
    assert_ne!(kit.program.lookup("f").unwrap().epoch, 0);
    let again = caller(77).lookup("f").unwrap();
    assert_eq!(again.epoch, 0);
    again.node.open(caller(77).call(), OFlags::WRONLY, again.epoch).unwrap();
}
