//! One node for one inode, whatever happens to names, descriptors and inode numbers.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use crate::ground::{failed, name, on_each, whole};
use hither_dir::{Dir, Options};
use hither_vfs::{Call, Errno, FileSystem, Node, OFlags, RenameFlags, SetAttr};

#[test]
fn thousands_of_nodes_need_few_descriptors() {
    const NODES: usize = 3000;
    const KEPT: usize = 50;
    crate::ground::on_each_with(Options::default(), |ground| {
        let empty = ground.descriptors();
        let options = Options { descriptors: KEPT, ..ground.options.clone() };
        let dir = Dir::open(ground.root(), options).unwrap();
        let call = Call::own();
        let root = dir.root();
        let before = ground.descriptors();
        let mut nodes = Vec::new();
        for n in 0..NODES / 100 {
            let sub = root.mkdir(&call, name(&format!("dir-{n}")), 0o755).unwrap().node;
            for m in 0..100 {
                let made = sub.create(&call, name(&m.to_string()), OFlags::RDWR, 0o600).unwrap();
                made.handle.write(&call, format!("{n}-{m}").as_bytes(), hither_vfs::WriteAt::End).unwrap();
                nodes.push((n, m, made.entry.node, made.entry.attr.ino));
            }
        }
        // A descriptor that was opened by handle may have no path to be counted by; so far all were opened by name.
        assert!(ground.descriptors() >= before + KEPT / 2, "{} descriptors", ground.descriptors());
        assert!(ground.descriptors() <= before + KEPT + 1, "{} descriptors", ground.descriptors());
        for (n, m, node, ino) in &nodes {
            assert_eq!(node.getattr(&call).unwrap().ino, *ino);
            assert_eq!(whole(&*node.open(&call, OFlags::RDONLY, 0).unwrap()), format!("{n}-{m}").as_bytes());
        }
        for n in 0..NODES / 100 {
            let sub = root.lookup(&call, name(&format!("dir-{n}"))).unwrap().node;
            for m in 0..100 {
                let found = sub.lookup(&call, name(&m.to_string())).unwrap();
                assert!(Arc::ptr_eq(&found.node, &nodes[n * 100 + m].2));
            }
        }
        assert!(ground.descriptors() <= before + KEPT + 1, "{} descriptors", ground.descriptors());
        // Open files keep theirs, beyond the bound; closed again, it holds again.
        let open: Vec<_> = nodes
            .iter()
            .take(3 * KEPT)
            .map(|(.., node, _)| node.open(&call, OFlags::RDONLY, 0).unwrap())
            .collect();
        assert_eq!(open.len(), 3 * KEPT);
        drop(open);
        for (.., node, _) in &nodes {
            node.getattr(&call).unwrap();
        }
        assert!(ground.descriptors() <= before + KEPT + 1, "{} descriptors", ground.descriptors());
        drop(nodes);
        for n in 0..200 {
            root.create(&call, name(&format!("x{n}")), OFlags::RDWR, 0o600).unwrap();
        }
        drop((root, dir));
        assert_eq!(ground.descriptors(), empty);
    });
}

#[test]
fn changes_behind_our_back_are_seen() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        root.mkdir(&call, name("dir"), 0o755).unwrap();
        let file = root.create(&call, name("a"), OFlags::RDWR, 0o600).unwrap().entry.node;
        root.create(&call, name("other"), OFlags::RDWR, 0o600).unwrap();
        fs::rename(ground.path("a"), ground.path("dir/b")).unwrap();
        assert_eq!(failed(root.lookup(&call, name("a"))), Errno::NOENT);
        // By handle it is found; by name it is not until it is looked up again: stale, never another file.
        fs::write(ground.path("a"), b"another").unwrap();
        match file.getattr(&call) {
            Ok(attr) => assert_eq!(attr.size, 0),
            Err(error) => assert_eq!(error, Errno::STALE),
        }
        let dir = root.lookup(&call, name("dir")).unwrap().node;
        assert!(Arc::ptr_eq(&dir.lookup(&call, name("b")).unwrap().node, &file));
        assert_eq!(file.getattr(&call).unwrap().size, 0);
        let another = root.lookup(&call, name("a")).unwrap();
        assert!(!Arc::ptr_eq(&another.node, &file));
        assert_eq!(another.attr.size, 7);
        fs::write(ground.path("a"), b"longer than before").unwrap();
        assert_eq!(another.node.getattr(&call).unwrap().size, 18);
        fs::remove_dir_all(ground.path("dir")).unwrap();
        assert_eq!(failed(root.lookup(&call, name("dir"))), Errno::NOENT);
    });
}

#[test]
fn a_number_that_is_used_again_is_another_node() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        let (mut held, mut numbers, mut reused) = (Vec::new(), HashSet::new(), 0);
        let mut identities = HashSet::new();
        for n in 0..150 {
            let at = name("a");
            // Made and removed by us and behind our back, in turns.
            let node = if n % 10 == 0 {
                // Unseen by us, two births within one tick of the clock cannot be told apart.
                std::thread::sleep(Duration::from_millis(12));
                fs::write(ground.path("a"), b"").unwrap();
                root.lookup(&call, at).unwrap().node
            } else {
                root.create(&call, at, OFlags::RDWR, 0o600).unwrap().entry.node
            };
            assert!(
                held.iter().all(|other| !Arc::ptr_eq(other, &node)),
                "round {n}: an old node for a new file"
            );
            assert!(identities.insert(node.identity()), "round {n}: an identity twice");
            reused += u32::from(!numbers.insert(node.identity().ino));
            node.getattr(&call).unwrap();
            // Others, so that descriptors are let go and the number is free again.
            root.create(&call, name("b"), OFlags::RDWR, 0o600).unwrap();
            if n % 2 == 0 {
                root.unlink(&call, at).unwrap();
            } else {
                fs::remove_file(ground.path("a")).unwrap();
            }
            // A node that nothing leads to: held for a while, as a front end does until it forgets.
            held.push(node);
            if held.len() > 3 {
                held.remove(0);
            }
        }
        eprintln!("  {reused} numbers were used again");
    });
}

#[test]
fn a_persistent_id_outlives_the_daemon() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        let id = |node: &Arc<dyn Node>| node.persistent_id(&call).unwrap().unwrap();
        let mut ids = HashSet::new();
        for n in 0..50 {
            let node = root.create(&call, name(&n.to_string()), OFlags::RDWR, 0o600).unwrap().entry.node;
            assert!(id(&node).0.len() <= hither_vfs::PersistentId::MAX_LEN);
            assert!(ids.insert(id(&node)));
        }
        let old = root.lookup(&call, name("7")).unwrap().node;
        root.rename(&call, name("7"), &*root, name("renamed"), RenameFlags::empty()).unwrap();
        root.link(&call, name("linked"), &*old).unwrap();
        let again = Dir::open(ground.root(), ground.options.clone()).unwrap();
        for at in ["renamed", "linked"] {
            let node = again.root().lookup(&call, name(at)).unwrap().node;
            assert_eq!(id(&node), id(&old));
            assert_eq!(node.identity(), old.identity());
        }
        // A new file with the number of an old one is not the old one.
        let mut reused = false;
        for _ in 0..50 {
            let node = root.create(&call, name("next"), OFlags::RDWR, 0o600).unwrap().entry.node;
            let (ino, before) = (node.getattr(&call).unwrap().ino, id(&node));
            drop(node);
            root.unlink(&call, name("next")).unwrap();
            root.create(&call, name("fill"), OFlags::RDWR, 0o600).unwrap();
            // Later than the tick of the clock that times of birth are taken from.
            std::thread::sleep(Duration::from_millis(12));
            let node = root.create(&call, name("next"), OFlags::RDWR, 0o600).unwrap().entry.node;
            reused |= node.getattr(&call).unwrap().ino == ino;
            assert_ne!(id(&node), before);
            root.unlink(&call, name("next")).unwrap();
            if reused {
                break;
            }
        }
    });
}

#[test]
fn inode_numbers_are_those_of_the_host() {
    on_each(|ground| {
        let call = Call::own();
        let made = ground.dir.root().create(&call, name("a"), OFlags::RDWR, 0o600).unwrap();
        assert_eq!(made.entry.attr.ino, fs::metadata(ground.path("a")).unwrap().ino());
        assert_eq!(ground.dir.root().getattr(&call).unwrap().ino, fs::metadata(ground.root()).unwrap().ino());
        assert!(Arc::ptr_eq(&ground.dir.root(), &ground.dir.root()));
        let set = SetAttr { size: Some(9), ..SetAttr::default() };
        assert_eq!(made.entry.node.setattr(&call, &set, None).unwrap().ino, made.entry.attr.ino);
    });
}

#[test]
fn out_of_descriptors_the_kept_ones_are_given_up() {
    const FEW: &str = "HITHER_TEST_FEW_DESCRIPTORS";
    // The limit is the process's, so this runs in one of its own.
    if std::env::var_os(FEW).is_none() {
        let status = std::process::Command::new("prlimit")
            .args(["--nofile=300:300"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "identity::out_of_descriptors_the_kept_ones_are_given_up"])
            .env(FEW, "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let call = Call::own();
    let ground = crate::ground::Ground::on(std::path::Path::new("/dev/shm"), Options::default());
    let root = ground.dir.root();
    // The limit of kept ones is 150 now; 200 open files, each with the node's descriptor, are too many.
    let mut open = Vec::new();
    for n in 0..200 {
        match root.create(&call, name(&n.to_string()), OFlags::RDWR, 0o600) {
            Ok(made) => open.push(made),
            Err(error) => {
                assert_eq!(error, Errno::MFILE);
                break;
            }
        }
    }
    assert!(open.len() > 100, "{}", open.len());
    drop(open);
    // Held after their end, without being open: hundreds of them are too many, too, and the oldest are given up.
    let mut held = Vec::new();
    for n in 0..1000 {
        let at = format!("gone-{n}");
        held.push(root.create(&call, name(&at), OFlags::RDWR, 0o600).unwrap().entry.node);
        root.unlink(&call, name(&at)).unwrap();
    }
    let open = root.create(&call, name("open"), OFlags::RDWR, 0o600).unwrap();
    root.unlink(&call, name("open")).unwrap();
    for n in 0..500 {
        let at = format!("more-{n}");
        held.push(root.create(&call, name(&at), OFlags::RDWR, 0o600).unwrap().entry.node);
        root.unlink(&call, name(&at)).unwrap();
    }
    // One that is open is never among them.
    assert_eq!(open.entry.node.getattr(&call).unwrap().nlink, 0);
    assert_eq!(failed(held[0].getattr(&call)), Errno::STALE);
    assert_eq!(held.last().unwrap().getattr(&call).unwrap().nlink, 0);
}
