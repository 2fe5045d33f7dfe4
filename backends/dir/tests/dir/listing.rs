//! Directories are listed whole, in pieces, from anywhere, and while they change.

use std::collections::HashSet;
use std::ffi::OsString;
use std::sync::Arc;

use crate::ground::{List, name, on_each};
use hither_vfs::{Call, FileKind, FileSystem, OFlags};

const MANY: usize = 3000;

fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("file-with-a-name-of-some-length-{n}")).collect()
}

#[test]
fn entries_come_with_their_types_and_with_their_nodes_if_asked() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        let dir = root.mkdir(&call, name("dir"), 0o755).unwrap();
        let file = root.create(&call, name("file"), OFlags::RDWR, 0o644).unwrap().entry;
        root.symlink(&call, name("link"), name("x")).unwrap();
        root.mknod(&call, name("fifo"), 0o010_644, 0).unwrap();
        for plus in [false, true] {
            let mut list = List::default();
            root.opendir(&call).unwrap().read(&call, 0, plus, &mut list).unwrap();
            let kind = |at: &str| list.get(at).kind;
            assert_eq!(kind("dir"), FileKind::Directory);
            assert_eq!(kind("file"), FileKind::Regular);
            assert_eq!(kind("link"), FileKind::Symlink);
            assert_eq!(kind("fifo"), FileKind::Fifo);
            assert_eq!(kind("."), FileKind::Directory);
            assert_eq!(kind(".."), FileKind::Directory);
            assert_eq!(list.entries.len(), 6);
            let own = root.getattr(&call).unwrap().ino;
            assert_eq!((list.get(".").ino, list.get("..").ino), (own, own), "nothing above the root is told");
            assert_eq!(list.get("dir").ino, dir.attr.ino);
            for entry in &list.entries {
                let is_dot = entry.name == "." || entry.name == "..";
                assert_eq!(entry.found.is_some(), plus && !is_dot, "{:?}", entry.name);
            }
            if plus {
                let found = list.get("file").found.clone().unwrap();
                assert!(Arc::ptr_eq(&found.node, &file.node));
                assert_eq!(found.attr, file.node.getattr(&call).unwrap());
            }
        }
        let mut list = List::default();
        dir.node.opendir(&call).unwrap().read(&call, 0, false, &mut list).unwrap();
        assert_eq!(list.get("..").ino, root.getattr(&call).unwrap().ino);
    });
}

#[test]
fn pieces_of_any_size_make_the_whole() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        for name in names(MANY) {
            std::fs::write(ground.path(&name), b"").unwrap();
        }
        let expected: HashSet<OsString> =
            names(MANY).into_iter().map(OsString::from).chain([".".into(), "..".into()]).collect();
        for (piece, plus) in [(1, false), (7, true), (100_000, false)] {
            let listing = root.opendir(&call).unwrap();
            let mut seen = List::default();
            loop {
                let before = seen.entries.len();
                seen.room = before + piece;
                let from = seen.entries.last().map_or(0, |entry| entry.next);
                listing.read(&call, from, plus, &mut seen).unwrap();
                if seen.entries.len() == before {
                    break;
                }
            }
            assert_eq!(seen.entries.len(), expected.len());
            assert_eq!(seen.entries.iter().map(|entry| entry.name.clone()).collect::<HashSet<_>>(), expected);
        }
    });
}

#[test]
fn any_position_leads_back_to_what_followed_it() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        for name in names(1000) {
            std::fs::write(ground.path(&name), b"").unwrap();
        }
        let listing = root.opendir(&call).unwrap();
        let mut all = List::default();
        listing.read(&call, 0, false, &mut all).unwrap();
        for at in (0..all.entries.len()).rev().step_by(97).chain([0, 500, 3]) {
            let mut rest = List { room: 5, ..List::default() };
            listing.read(&call, all.entries[at].next, false, &mut rest).unwrap();
            let expected = &all.entries[at + 1..(at + 6).min(all.entries.len())];
            let names = |entries: &[crate::ground::Listed]| -> Vec<OsString> {
                entries.iter().map(|entry| entry.name.clone()).collect()
            };
            assert_eq!(names(&rest.entries), names(expected));
        }
    });
}

#[test]
fn what_stays_is_given_exactly_once_while_the_rest_changes() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        let all = names(MANY);
        for name in &all {
            std::fs::write(ground.path(name), b"").unwrap();
        }
        let listing = root.opendir(&call).unwrap();
        let mut seen = List::default();
        let mut step = 0;
        loop {
            let before = seen.entries.len();
            seen.room = before + 50;
            let from = seen.entries.last().map_or(0, |entry| entry.next);
            listing.read(&call, from, step % 2 == 0, &mut seen).unwrap();
            if seen.entries.len() == before {
                break;
            }
            // Odd ones go, others come.
            for n in (step * 40..(step * 40 + 40).min(MANY)).filter(|n| n % 2 == 1) {
                let _ = std::fs::remove_file(ground.path(&all[n]));
                std::fs::write(ground.path(&format!("new-{n}")), b"").unwrap();
            }
            step += 1;
        }
        let mut given = HashSet::new();
        for entry in &seen.entries {
            assert!(given.insert(entry.name.clone()), "{:?} twice", entry.name);
        }
        for name in all.iter().step_by(2) {
            assert!(given.contains(&OsString::from(name)), "{name} missing");
        }
        // From the start again: as it is now.
        let mut now = List::default();
        listing.read(&call, 0, false, &mut now).unwrap();
        let on_host: HashSet<OsString> =
            std::fs::read_dir(ground.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(now.entries.len(), on_host.len() + 2);
        assert!(
            now.entries
                .iter()
                .all(|entry| { entry.name == "." || entry.name == ".." || on_host.contains(&entry.name) })
        );
    });
}

#[test]
fn readers_of_one_listing_do_not_disturb_each_other() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        for name in names(1000) {
            std::fs::write(ground.path(&name), b"").unwrap();
        }
        let listing = root.opendir(&call).unwrap();
        let mut all = List::default();
        listing.read(&call, 0, false, &mut all).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (listing, all) = (&listing, &all);
                scope.spawn(move || {
                    let call = Call::own();
                    let mut at = thread * 100;
                    while at + 1 < all.entries.len() {
                        let mut some = List { room: 10, ..List::default() };
                        listing.read(&call, all.entries[at].next, false, &mut some).unwrap();
                        for (one, other) in some.entries.iter().zip(&all.entries[at + 1..]) {
                            assert_eq!(one.name, other.name);
                        }
                        at += some.entries.len();
                    }
                });
            }
        });
    });
}
