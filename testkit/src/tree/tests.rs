//! The same seed makes the same tree, and no difference escapes the comparison.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags};

use super::*;

fn two_trees() -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
    let ground = tempfile::tempdir_in("/dev/shm").unwrap();
    let (one, other) = (ground.path().join("one"), ground.path().join("other"));
    (ground, one, other)
}

#[test]
fn a_seed_makes_one_tree() {
    let (_ground, one, other) = two_trees();
    let made = make(&one, 7, &Shape::default()).unwrap();
    assert_eq!(make(&other, 7, &Shape::default()).unwrap(), made);
    assert_eq!(differences(&one, &other).unwrap(), Vec::<String>::new());
    assert_eq!(made.entries, 330);
    assert!(made.bytes > 1 << 20);
    let listed = std::process::Command::new("find").arg(&one).arg("-printf").arg("%y").output().unwrap();
    for kind in b"dflp" {
        assert!(listed.stdout.contains(kind), "no {}", char::from(*kind));
    }
    assert!(make(&one, 7, &Shape::default()).is_err(), "a tree is not made into another");
}

#[test]
fn another_seed_makes_another_tree() {
    let (_ground, one, other) = two_trees();
    make(&one, 1, &Shape::default()).unwrap();
    make(&other, 2, &Shape::default()).unwrap();
    assert!(differences(&one, &other).unwrap().len() > 20, "names at the top differ");
}

/// Makes the tree twice, changes one copy, and expects just that difference.
fn found(what: &str, change: impl FnOnce(&std::path::Path)) {
    let (_ground, one, other) = two_trees();
    for tree in [&one, &other] {
        fs::create_dir_all(tree.join("d")).unwrap();
        fs::write(tree.join("d/f"), vec![1; 600_000]).unwrap();
        fs::write(tree.join("g"), b"other").unwrap();
        symlink("g", tree.join("l")).unwrap();
        fs::hard_link(tree.join("d/f"), tree.join("h")).unwrap();
        for path in ["d/f", "g", "l", "d", ""] {
            let time = Timespec { tv_sec: 1000, tv_nsec: 1 };
            let times = Timestamps { last_access: time, last_modification: time };
            rustix::fs::utimensat(CWD, tree.join(path), &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        }
    }
    assert_eq!(differences(&one, &other).unwrap(), Vec::<String>::new());
    let before = fs::metadata(other.join("d/f")).unwrap();
    change(&other);
    let time = Timespec { tv_sec: before.mtime(), tv_nsec: before.mtime_nsec() };
    let times = Timestamps { last_access: time, last_modification: time };
    if what != "mtime" {
        for path in ["d/f", "g", "l", "d", ""] {
            let _ = rustix::fs::utimensat(CWD, other.join(path), &times, AtFlags::SYMLINK_NOFOLLOW);
        }
    }
    let lines = differences(&one, &other).unwrap();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(what)), "{what}: {lines:?}");
}

#[test]
fn every_difference_is_found() {
    found("bytes differ from 599999", |tree| {
        let file = fs::File::options().write(true).open(tree.join("d/f")).unwrap();
        file.write_all_at(b"x", 599_999).unwrap();
    });
    found("600000 and 600001 bytes", |tree| {
        fs::File::options().write(true).open(tree.join("d/f")).unwrap().set_len(600_001).unwrap();
    });
    found("mode 100644 and 100640", |tree| {
        fs::set_permissions(tree.join("g"), fs::Permissions::from_mode(0o640)).unwrap();
    });
    found("mtime", |tree| {
        fs::File::open(tree.join("g")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap()
    });
    found("only in", |tree| fs::write(tree.join("d/new"), b"").unwrap());
    found("only in", |tree| fs::remove_file(tree.join("g")).unwrap());
    found("leads to", |tree| {
        fs::remove_file(tree.join("l")).unwrap();
        symlink("h", tree.join("l")).unwrap();
    });
    found("a symbolic link and a directory", |tree| {
        fs::remove_file(tree.join("l")).unwrap();
        fs::create_dir(tree.join("l")).unwrap();
    });
    found("xattrs", |tree| {
        rustix::fs::lsetxattr(tree.join("d"), "user.k", b"v", XattrFlags::empty()).unwrap();
    });
    found("links", |tree| {
        fs::remove_file(tree.join("h")).unwrap();
        fs::copy(tree.join("d/f"), tree.join("h")).unwrap();
        let time = Timespec { tv_sec: 1000, tv_nsec: 1 };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, tree.join("h"), &times, AtFlags::empty()).unwrap();
    });
    if rustix::process::geteuid().is_root() {
        found("owner 0:0 and 0:5", |tree| std::os::unix::fs::chown(tree.join("g"), None, Some(5)).unwrap());
    }
}

#[test]
fn only_the_aspects_asked_for_are_compared() {
    let (_ground, one, other) = two_trees();
    make(&one, 3, &Shape::default()).unwrap();
    std::process::Command::new("cp").arg("-r").arg(&one).arg(&other).status().unwrap();
    let none = Aspects {
        modes: false,
        owners: false,
        times: false,
        directory_times: false,
        xattrs: false,
        hard_links: false,
    };
    assert_eq!(differences_in(&one, &other, none).unwrap(), Vec::<String>::new());
    assert!(!differences_in(&one, &other, Aspects { times: true, ..none }).unwrap().is_empty());
}
