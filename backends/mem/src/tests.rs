//! What is this file system's own, beyond what every file system is tested for.

use std::ffi::OsStr;

use hither_vfs::{Call, Errno, FallocateFlags, FileSystem, OFlags, RenameFlags, WriteAt};

use super::*;

fn name(name: &str) -> &OsStr {
    OsStr::new(name)
}

#[test]
fn a_full_file_system_refuses_and_gives_back_what_is_removed() {
    let mem = Mem::with_options(&Options { inodes: 3, ..Options::with_capacity(64 * 1024) });
    let (call, root) = (Call::own(), mem.root());
    let empty = mem.statfs(&call).unwrap();
    assert_eq!((empty.blocks, empty.blocks_free, empty.files_free), (16, 16, 2));
    let made = root.create(&call, name("a"), OFlags::RDWR, 0o600).unwrap();
    assert_eq!(made.handle.write(&call, &[1; 100_000], WriteAt::Offset(0)).unwrap(), 65_536);
    assert_eq!(made.handle.write(&call, &[1], WriteAt::End).unwrap_err().errno(), Errno::NOSPC);
    assert_eq!(made.entry.node.getattr(&call).unwrap().size, 65_536);
    root.mkdir(&call, name("b"), 0o700).unwrap();
    let refused = root.symlink(&call, name("c"), name("target"));
    assert_eq!(refused.err().unwrap().errno(), Errno::NOSPC);
    root.unlink(&call, name("a")).unwrap();
    assert_eq!(mem.statfs(&call).unwrap().blocks_free, 0, "an open file keeps its bytes");
    drop(made);
    root.rmdir(&call, name("b")).unwrap();
    assert_eq!(mem.statfs(&call).unwrap(), empty);
}

#[test]
fn an_allocation_larger_than_the_memory_is_refused_at_once() {
    let mem = Mem::new();
    let call = Call::own();
    let made = mem.root().create(&call, name("a"), OFlags::RDWR, 0o600).unwrap();
    let refused = made.handle.fallocate(&call, FallocateFlags::empty(), 0, 1 << 50);
    assert_eq!(refused.unwrap_err().errno(), Errno::NOSPC);
    assert_eq!(made.entry.node.getattr(&call).unwrap().size, 0);
}

#[test]
fn a_tree_deeper_than_the_stack_is_dropped() {
    let mem = Mem::new();
    let call = Call::own();
    let mut directory = mem.root();
    for _ in 0..200_000 {
        directory = directory.mkdir(&call, name("d"), 0o700).unwrap().node;
    }
    drop((directory, mem));
}

#[test]
fn a_lookup_during_renames_finds_the_file_in_one_place_at_least() {
    const ROUNDS: usize = 20_000;
    let mem = Mem::new();
    let call = Call::own();
    let root = mem.root();
    let a = root.mkdir(&call, name("a"), 0o700).unwrap().node;
    let b = root.mkdir(&call, name("b"), 0o700).unwrap().node;
    a.create(&call, name("f"), OFlags::RDWR, 0o600).unwrap();
    b.create(&call, name("f"), OFlags::RDWR, 0o600).unwrap();
    std::thread::scope(|scope| {
        let swaps = scope.spawn(|| {
            for _ in 0..ROUNDS {
                a.rename(&call, name("f"), &*b, name("f"), RenameFlags::EXCHANGE).unwrap();
                b.rename(&call, name("f"), &*a, name("f"), RenameFlags::EXCHANGE).unwrap();
            }
        });
        while !swaps.is_finished() {
            a.lookup(&call, name("f")).unwrap();
            b.lookup(&call, name("f")).unwrap();
        }
    });
}
