//! Many threads at once: nothing panics, nothing is mistaken for something else, nothing is left over.

use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ground::{List, name, on_each, whole};
use hither_vfs::{Call, Errno, FileSystem, Node, OFlags, RenameFlags, SetAttr, WriteAt};

/// Errors that others' work may bring.
fn excused(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOENT
            | Errno::EXIST
            | Errno::STALE
            | Errno::ISDIR
            | Errno::NOTDIR
            | Errno::NOTEMPTY
            | Errno::INVAL
            | Errno::LOOP
    )
}

/// A small generator, so that a run can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

#[test]
fn threads_race_over_a_few_names() {
    const THREADS: usize = 4;
    const STEPS: usize = 1500;
    on_each(|ground| {
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let done = &done;
                scope.spawn(move || {
                    let mut dice = Dice(thread as u64 + 1);
                    let mut held: Vec<Arc<dyn Node>> = Vec::new();
                    for _ in 0..STEPS {
                        match step(&ground.dir.root(), &mut dice, &mut held) {
                            Ok(()) => _ = done.fetch_add(1, Ordering::Relaxed),
                            Err(error) => assert!(excused(error.errno()), "{error}"),
                        }
                    }
                });
            }
        });
        assert!(done.into_inner() > THREADS * STEPS / 10);
        // What is there now is what the host says, and each node is reached.
        let call = Call::own();
        let mut list = List::default();
        ground.dir.root().opendir(&call).unwrap().read(&call, 0, true, &mut list).unwrap();
        let on_host: Vec<OsString> =
            std::fs::read_dir(ground.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(list.entries.len(), on_host.len() + 2);
        for entry in list.entries.iter().filter_map(|entry| entry.found.as_ref()) {
            assert_eq!(entry.node.getattr(&call).unwrap().ino, entry.attr.ino);
        }
    });
}

fn step(root: &Arc<dyn Node>, dice: &mut Dice, held: &mut Vec<Arc<dyn Node>>) -> hither_vfs::Result<()> {
    let call = Call::own();
    let names = ["a", "b", "c", "d", "e", "f"];
    let (at, other) = (name(names[dice.roll(6)]), name(names[dice.roll(6)]));
    let sub = match root.lookup(&call, name(["dir1", "dir2"][dice.roll(2)])) {
        Ok(entry) => entry.node,
        Err(_) => root.mkdir(&call, name("dir1"), 0o755)?.node,
    };
    let dir = if dice.roll(3) == 0 { root } else { &sub };
    match dice.roll(14) {
        0..3 => {
            let made = dir.create(&call, at, OFlags::RDWR, 0o644)?;
            made.handle.write(&call, b"bytes", WriteAt::End)?;
            held.push(made.entry.node);
        }
        3 => dir.unlink(&call, at)?,
        4 => root.rename(&call, at, &*sub, other, RenameFlags::empty())?,
        5 => sub.rename(&call, at, &**root, other, RenameFlags::NOREPLACE)?,
        6 => root.rename(&call, at, &*sub, other, RenameFlags::EXCHANGE)?,
        7 => held.push(dir.lookup(&call, at)?.node),
        8 => {
            let node = dir.lookup(&call, at)?.node;
            root.link(&call, other, &*node)?;
        }
        9 => root.rename(&call, name("dir1"), &**root, name("dir2"), RenameFlags::empty())?,
        10 => {
            let (n, set) =
                (dice.roll(7777), SetAttr { size: Some(dice.roll(99) as u64), ..SetAttr::default() });
            let Some(node) = held.get(n % held.len().max(1)) else { return Ok(()) };
            node.setattr(&call, &set, None)?;
        }
        11 => {
            let n = dice.roll(7777);
            let Some(node) = held.get(n % held.len().max(1)) else { return Ok(()) };
            let before = node.identity();
            assert!(whole(&*node.open(&call, OFlags::RDONLY, 0)?).len() < 1 << 20);
            assert_eq!(node.identity(), before);
        }
        12 => dir.opendir(&call)?.read(&call, 0, true, &mut List::default())?,
        _ => held.truncate(dice.roll(20)),
    }
    Ok(())
}

#[test]
fn all_who_look_a_name_up_at_once_get_one_node() {
    on_each(|ground| {
        let root = ground.dir.root();
        for n in 0..200 {
            let at = n.to_string();
            std::fs::write(ground.path(&at), b"").unwrap();
            let nodes: Vec<Arc<dyn Node>> = std::thread::scope(|scope| {
                let look_up = || root.lookup(&Call::own(), name(&at)).unwrap().node;
                let threads: Vec<_> = (0..3).map(|_| scope.spawn(look_up)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(nodes.iter().all(|node| Arc::ptr_eq(node, &nodes[0])));
        }
    });
}

#[test]
fn of_those_who_create_at_once_one_creates() {
    on_each(|ground| {
        let root = ground.dir.root();
        for n in 0..200 {
            let at = n.to_string();
            let exclusive = AtomicUsize::new(0);
            let create = |thread: usize| {
                let flags = OFlags::RDWR | if thread == 0 { OFlags::EXCL } else { OFlags::empty() };
                match root.create(&Call::own(), name(&at), flags, 0o644) {
                    Ok(created) => Some(created.entry.node),
                    Err(error) => {
                        assert_eq!((thread, error.errno()), (0, Errno::EXIST));
                        exclusive.fetch_add(1, Ordering::Relaxed);
                        None
                    }
                }
            };
            let create = &create;
            let nodes: Vec<Arc<dyn Node>> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..3).map(|thread| scope.spawn(move || create(thread))).collect();
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
            });
            assert!(nodes.iter().all(|node| Arc::ptr_eq(node, &nodes[0])));
            assert_eq!(nodes.len() + exclusive.into_inner(), 3);
        }
    });
}

#[test]
fn threads_that_make_and_remove_their_own_files_never_meet() {
    on_each(|ground| {
        let root = ground.dir.root();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let root = &root;
                scope.spawn(move || {
                    let call = Call::own();
                    let mut kept: HashMap<usize, Arc<dyn Node>> = HashMap::new();
                    for n in 0..400 {
                        let at = format!("{thread}-{}", n % 7);
                        if let Some(node) = kept.remove(&(n % 7)) {
                            let found = root.lookup(&call, name(&at)).unwrap();
                            assert!(Arc::ptr_eq(&found.node, &node));
                            let bytes = whole(&*node.open(&call, OFlags::RDONLY, 0).unwrap());
                            assert_eq!(bytes, at.as_bytes());
                            root.unlink(&call, name(&at)).unwrap();
                            assert_eq!(node.getattr(&call).unwrap().nlink, 0);
                        } else {
                            let made = root.create(&call, name(&at), OFlags::RDWR, 0o600).unwrap();
                            made.handle.write(&call, at.as_bytes(), WriteAt::Offset(0)).unwrap();
                            kept.insert(n % 7, made.entry.node);
                        }
                    }
                });
            }
        });
    });
}
