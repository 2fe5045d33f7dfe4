//! The POSIX surface, on every ground.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::sync::Arc;

use crate::ground::{Ground, failed, name, on_each, whole};
use hither_vfs::{
    Call, Errno, FallocateFlags, FileKind, FileSystem, Node, OFlags, RenameFlags, SeekTo, SetAttr, SetTime,
    Timestamp, WriteAt, open_current,
};

fn same(one: &Arc<dyn Node>, other: &Arc<dyn Node>) -> bool {
    Arc::ptr_eq(one, other)
}

#[test]
fn a_file_is_created_written_read_and_removed() {
    on_each(|ground: &Ground| {
        let call = Call::own();
        let root = ground.dir.root();
        assert_eq!(failed(root.lookup(&call, name("a"))), Errno::NOENT);
        let made = root.create(&call, name("a"), OFlags::RDWR, 0o640).unwrap();
        assert_eq!(made.entry.attr.kind(), FileKind::Regular);
        assert_eq!(made.entry.attr.permissions(), 0o640);
        assert_eq!(made.handle.write(&call, b"hello", WriteAt::Offset(0)).unwrap(), 5);
        assert_eq!(made.handle.write(&call, b" there", WriteAt::End).unwrap(), 6);
        assert_eq!(whole(&*made.handle), b"hello there");
        let mut buf = [0; 8];
        assert_eq!(made.handle.read(&call, &mut buf, 6).unwrap(), 5);
        assert_eq!(made.handle.read(&call, &mut buf, 100).unwrap(), 0);
        assert_eq!(std::fs::read(ground.path("a")).unwrap(), b"hello there");
        let found = root.lookup(&call, name("a")).unwrap();
        assert!(same(&found.node, &made.entry.node));
        assert_eq!(found.attr.size, 11);
        let on_host = std::fs::metadata(ground.path("a")).unwrap();
        assert_eq!((found.attr.ino, found.attr.nlink), (on_host.ino(), 1));
        assert_eq!(
            found.attr.mtime.as_nanos(),
            i128::from(on_host.mtime()) * 1_000_000_000 + i128::from(on_host.mtime_nsec())
        );
        root.unlink(&call, name("a")).unwrap();
        assert_eq!(failed(root.lookup(&call, name("a"))), Errno::NOENT);
        assert_eq!(found.node.getattr(&call).unwrap().nlink, 0);
    });
}

#[test]
fn create_opens_what_is_there_unless_told_not_to() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        std::fs::write(ground.path("a"), b"12345").unwrap();
        std::fs::create_dir(ground.path("dir")).unwrap();
        symlink("a", ground.path("link")).unwrap();
        let known = root.lookup(&call, name("a")).unwrap();
        let opened = root.create(&call, name("a"), OFlags::RDWR, 0o600).unwrap();
        assert!(same(&known.node, &opened.entry.node));
        assert_eq!((opened.entry.attr.size, opened.entry.attr.permissions()), (5, known.attr.permissions()));
        let cut = root.create(&call, name("a"), OFlags::WRONLY | OFlags::TRUNC, 0o600).unwrap();
        assert_eq!(cut.entry.attr.size, 0);
        assert_eq!(failed(root.create(&call, name("a"), OFlags::RDWR | OFlags::EXCL, 0o600)), Errno::EXIST);
        assert_eq!(failed(root.create(&call, name("dir"), OFlags::RDONLY, 0o600)), Errno::ISDIR);
        assert_eq!(failed(root.create(&call, name("link"), OFlags::RDONLY, 0o600)), Errno::LOOP);
        root.mknod(&call, name("fifo"), 0o010_600, 0).unwrap();
        assert_eq!(failed(root.create(&call, name("fifo"), OFlags::WRONLY, 0o600)), Errno::NXIO);
    });
}

#[test]
fn opens_are_what_they_say() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        std::fs::write(ground.path("a"), b"12345").unwrap();
        std::fs::create_dir(ground.path("dir")).unwrap();
        symlink("a", ground.path("link")).unwrap();
        let look_up = |at: &str| root.lookup(&call, name(at)).unwrap();
        let file = look_up("a");
        assert_eq!(failed(file.node.open(&call, OFlags::RDONLY, file.epoch + 1)), Errno::STALE);
        let reader = file.node.open(&call, OFlags::RDONLY, file.epoch).unwrap();
        assert_eq!(failed(reader.write(&call, b"x", WriteAt::Offset(0))), Errno::BADF);
        let appender = file.node.open(&call, OFlags::WRONLY | OFlags::APPEND, file.epoch).unwrap();
        assert_eq!(failed(appender.read(&call, &mut [0], 0)), Errno::BADF);
        // Where a write goes is said by each write, whatever the open's flags.
        assert_eq!(appender.write(&call, b"A", WriteAt::Offset(0)).unwrap(), 1);
        assert_eq!(appender.write(&call, b"Z", WriteAt::End).unwrap(), 1);
        assert_eq!(whole(&*reader), b"A2345Z");
        file.node.open(&call, OFlags::WRONLY | OFlags::TRUNC, file.epoch).unwrap();
        assert_eq!(whole(&*reader), b"");
        // Unaligned buffers are as good with O_DIRECT as without.
        let direct = file.node.open(&call, OFlags::RDWR | OFlags::DIRECT, file.epoch).unwrap();
        assert_eq!(direct.write(&call, b"odd", WriteAt::Offset(1)).unwrap(), 3);
        assert_eq!(whole(&*direct), b"\0odd");
        assert_eq!(failed(look_up("dir").node.open(&call, OFlags::RDONLY, 0)), Errno::ISDIR);
        assert_eq!(failed(look_up("link").node.open(&call, OFlags::RDONLY, 0)), Errno::LOOP);
        assert_eq!(failed(file.node.opendir(&call)), Errno::NOTDIR);
        assert_eq!(failed(file.node.lookup(&call, name("x"))), Errno::NOTDIR);
        let (entry, handle) = open_current(&call, &*root, name("a"), OFlags::RDONLY).unwrap();
        assert_eq!((entry.attr.size, whole(&*handle).len()), (4, 4));
        handle.flush(&call).unwrap();
        direct.fsync(&call, true).unwrap();
        direct.fsync(&call, false).unwrap();
    });
}

#[test]
fn names_are_any_bytes_and_never_lead_elsewhere() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        let bytes: Vec<u8> = (1..=255).filter(|byte| *byte != b'/').collect();
        let odd = OsString::from_vec(bytes);
        root.create(&call, &odd, OFlags::RDWR, 0o600).unwrap();
        let longest = OsString::from("x".repeat(255));
        root.mkdir(&call, &longest, 0o700).unwrap();
        for (at, kind) in [(&odd, FileKind::Regular), (&longest, FileKind::Directory)] {
            assert_eq!(root.lookup(&call, at).unwrap().attr.kind(), kind);
        }
        let listed = ground.names(&root);
        assert!(listed.contains(&odd) && listed.contains(&longest));
        let too_long = OsString::from("x".repeat(256));
        assert_eq!(failed(root.lookup(&call, &too_long)), Errno::NAMETOOLONG);
        assert_eq!(failed(root.mkdir(&call, &too_long, 0o700)), Errno::NAMETOOLONG);
        for evil in ["", ".", "..", "/", "a/b", "../a", "/etc/passwd", "a\0b"] {
            let evil = name(evil);
            assert!(root.lookup(&call, evil).is_err());
            assert!(root.create(&call, evil, OFlags::RDWR, 0o600).is_err());
            assert!(root.mkdir(&call, evil, 0o700).is_err());
            assert!(root.mknod(&call, evil, 0o100_600, 0).is_err());
            assert!(root.symlink(&call, evil, name("x")).is_err());
            assert!(root.unlink(&call, evil).is_err());
            assert!(root.rmdir(&call, evil).is_err());
            assert!(root.rename(&call, &odd, &*root, evil, RenameFlags::empty()).is_err());
            assert!(root.rename(&call, evil, &*root, name("x"), RenameFlags::empty()).is_err());
        }
        assert_eq!(ground.names(&root).len(), 4);
    });
}

#[test]
fn links_are_the_same_node() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        let dir = root.mkdir(&call, name("dir"), 0o700).unwrap().node;
        let file = root.create(&call, name("a"), OFlags::RDWR, 0o600).unwrap();
        let linked = dir.link(&call, name("b"), &*file.entry.node).unwrap();
        assert!(same(&linked.node, &file.entry.node));
        assert_eq!((linked.attr.nlink, linked.attr.ino), (2, file.entry.attr.ino));
        assert_eq!(failed(dir.link(&call, name("b"), &*file.entry.node)), Errno::EXIST);
        assert_eq!(failed(root.link(&call, name("dir2"), &*dir)), Errno::PERM);
        // One name goes, the other stays: also when the one remembered is the one that goes.
        drop(file.handle);
        dir.unlink(&call, name("b")).unwrap();
        let other = root.lookup(&call, name("a")).unwrap();
        assert!(same(&other.node, &linked.node));
        assert_eq!(linked.node.getattr(&call).unwrap().nlink, 1);
        std::fs::hard_link(ground.path("a"), ground.path("dir/c")).unwrap();
        assert!(same(&dir.lookup(&call, name("c")).unwrap().node, &other.node));
        // A link to a symbolic link is one to the link itself.
        let link = root.symlink(&call, name("s"), name("nowhere")).unwrap();
        let again = dir.link(&call, name("t"), &*link.node).unwrap();
        assert_eq!((again.attr.kind(), again.attr.nlink), (FileKind::Symlink, 2));
        let foreign = Ground::on(std::path::Path::new("/dev/shm"), Default::default());
        let root = foreign.dir.root();
        assert_eq!(failed(root.link(&call, name("x"), &*link.node)), Errno::XDEV);
    });
}

#[test]
fn a_rename_moves_the_node_with_the_name() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        let none = RenameFlags::empty();
        let one = root.mkdir(&call, name("one"), 0o700).unwrap().node;
        let two = root.mkdir(&call, name("two"), 0o700).unwrap().node;
        let file = one.create(&call, name("a"), OFlags::RDWR, 0o600).unwrap();
        file.handle.write(&call, b"a", WriteAt::Offset(0)).unwrap();
        let (node, identity) = (file.entry.node, file.entry.attr.ino);
        drop(file.handle);
        one.rename(&call, name("a"), &*two, name("b"), none).unwrap();
        assert_eq!(failed(one.lookup(&call, name("a"))), Errno::NOENT);
        assert!(same(&two.lookup(&call, name("b")).unwrap().node, &node));
        assert_eq!(node.getattr(&call).unwrap().ino, identity);
        // The directory above moves: what is below is still found.
        root.rename(&call, name("two"), &*one, name("deep"), none).unwrap();
        assert_eq!(node.getattr(&call).unwrap().size, 1);
        assert_eq!(whole(&*node.open(&call, OFlags::RDONLY, 0).unwrap()), b"a");
        assert_eq!(failed(one.rename(&call, name("x"), &*two, name("b"), none)), Errno::NOENT);
        assert_eq!(failed(root.rename(&call, name("one"), &*two, name("in"), none)), Errno::INVAL);
        // What is renamed over goes on for those who hold it.
        let over = two.create(&call, name("over"), OFlags::RDWR, 0o600).unwrap();
        let kept = over.entry.node.clone();
        drop(over.handle);
        two.rename(&call, name("b"), &*two, name("over"), none).unwrap();
        assert!(same(&two.lookup(&call, name("over")).unwrap().node, &node));
        assert_eq!(kept.getattr(&call).unwrap().nlink, 0);
        let foreign = Ground::on(std::path::Path::new("/dev/shm"), Default::default());
        let elsewhere = foreign.dir.root();
        assert_eq!(failed(two.rename(&call, name("over"), &*elsewhere, name("x"), none)), Errno::XDEV);
    });
}

#[test]
fn rename_flags_are_kept() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        let dir = root.mkdir(&call, name("dir"), 0o700).unwrap().node;
        let a = root.create(&call, name("a"), OFlags::RDWR, 0o600).unwrap().entry.node;
        let b = dir.mkdir(&call, name("b"), 0o700).unwrap().node;
        let refused = root.rename(&call, name("a"), &*dir, name("b"), RenameFlags::NOREPLACE);
        assert_eq!(failed(refused), Errno::EXIST);
        root.rename(&call, name("a"), &*dir, name("b"), RenameFlags::EXCHANGE).unwrap();
        assert!(same(&root.lookup(&call, name("a")).unwrap().node, &b));
        assert!(same(&dir.lookup(&call, name("b")).unwrap().node, &a));
        assert_eq!(a.getattr(&call).unwrap().kind(), FileKind::Regular);
        assert_eq!(b.getattr(&call).unwrap().kind(), FileKind::Directory);
        root.rename(&call, name("a"), &*root, name("c"), RenameFlags::NOREPLACE).unwrap();
        assert!(ground.path("c").is_dir());
        if rustix::process::geteuid().is_root() {
            dir.rename(&call, name("b"), &*root, name("d"), RenameFlags::WHITEOUT).unwrap();
            let white = dir.lookup(&call, name("b")).unwrap();
            assert_eq!((white.attr.kind(), white.attr.rdev), (FileKind::CharDevice, 0));
        }
    });
}

#[test]
fn an_unlinked_file_goes_on_for_those_who_hold_it() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        let file = root.create(&call, name("a"), OFlags::RDWR, 0o600).unwrap();
        file.handle.write(&call, b"still here", WriteAt::Offset(0)).unwrap();
        let known = file.entry.node.clone();
        drop(file.handle);
        root.unlink(&call, name("a")).unwrap();
        // Others come and go, so that descriptors are given up; one of them may get the same number.
        let others: Vec<_> = (0..100)
            .map(|n| root.create(&call, name(&n.to_string()), OFlags::RDWR, 0o600).unwrap().entry.node)
            .collect();
        assert!(others.iter().all(|other| !same(other, &known) && other.identity() != known.identity()));
        assert_eq!(known.getattr(&call).unwrap().size, 10);
        let mode = SetAttr { mode: Some(0o640), ..SetAttr::default() };
        assert_eq!(known.setattr(&call, &mode, None).unwrap().permissions(), 0o640);
        assert_eq!(known.setattr(&call, &SetAttr { size: Some(5), ..mode }, None).unwrap().size, 5);
        assert_eq!(whole(&*known.open(&call, OFlags::RDONLY, 0).unwrap()), b"still");
        assert_eq!(failed(known.getxattr(&call, name("user.none"))), Errno::NODATA);
        let dir = root.mkdir(&call, name("dir"), 0o700).unwrap().node;
        root.rmdir(&call, name("dir")).unwrap();
        for other in &others {
            other.getattr(&call).unwrap();
        }
        assert_eq!(dir.getattr(&call).unwrap().kind(), FileKind::Directory);
        assert_eq!(failed(dir.create(&call, name("x"), OFlags::RDWR, 0o600)), Errno::NOENT);
        assert_eq!(failed(root.rmdir(&call, name("1"))), Errno::NOTDIR);
        let full = root.mkdir(&call, name("full"), 0o700).unwrap().node;
        full.mkdir(&call, name("x"), 0o700).unwrap();
        assert_eq!(failed(root.rmdir(&call, name("full"))), Errno::NOTEMPTY);
        assert_eq!(failed(root.unlink(&call, name("full"))), Errno::ISDIR);
    });
}

#[test]
fn attributes_are_set_and_told() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        let file = root.create(&call, name("a"), OFlags::RDWR, 0o600).unwrap();
        let node = &file.entry.node;
        let set = |set: SetAttr| node.setattr(&call, &set, None);
        assert_eq!(set(SetAttr { mode: Some(0o4755), ..Default::default() }).unwrap().permissions(), 0o4755);
        assert_eq!(set(SetAttr { size: Some(1 << 33), ..Default::default() }).unwrap().size, 1 << 33);
        let through = SetAttr { size: Some(3), ..Default::default() };
        assert_eq!(node.setattr(&call, &through, Some(&*file.handle)).unwrap().size, 3);
        let old = Timestamp { sec: -100, nsec: 999_999_999 };
        let times = SetAttr { atime: Some(SetTime::At(old)), ..Default::default() };
        let (before, after) = (node.getattr(&call).unwrap(), set(times).unwrap());
        assert_eq!((after.atime, after.mtime), (old, before.mtime));
        assert!(after.ctime >= before.ctime);
        let new = Timestamp { sec: 2_000_000_000, nsec: 1 };
        let times =
            SetAttr { atime: Some(SetTime::Now), mtime: Some(SetTime::At(new)), ..Default::default() };
        let after = set(times).unwrap();
        assert_eq!(after.mtime, new);
        assert!(after.atime.sec > 1_600_000_000);
        // All at once: the mode that is asked for is the one in the end.
        let (uid, gid) = (call.caller.uid, call.caller.gid);
        let all = SetAttr { mode: Some(0o4711), uid: Some(uid), gid: Some(gid), size: Some(1), ..times };
        let after = set(all).unwrap();
        assert_eq!((after.permissions(), after.size, after.mtime), (0o4711, 1, new));
        assert_eq!(set(SetAttr { uid: Some(u32::MAX), ..Default::default() }).unwrap_err(), Errno::INVAL);
        let size = SetAttr { size: Some(0), ..Default::default() };
        assert_eq!(root.setattr(&call, &size, None).unwrap_err(), Errno::ISDIR);
        node.access(&call, 0).unwrap();
        node.access(&call, 6).unwrap();
        assert_eq!(node.access(&call, 8).unwrap_err(), Errno::INVAL);
        let on_host = std::fs::metadata(ground.path("a")).unwrap();
        assert_eq!((on_host.mode() & 0o7777, on_host.len()), (0o4711, 1));
        assert!(node.getattr(&call).unwrap().btime.is_some());
    });
}

#[test]
fn a_symbolic_link_is_itself() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        std::fs::write(ground.path("target"), b"1").unwrap();
        let long = OsString::from("x/".repeat(500));
        for target in [OsStr::new("target"), OsStr::new("/etc/passwd"), OsStr::from_bytes(b"\xff\xfe"), &long]
        {
            let link = root.symlink(&call, name("link"), target).unwrap();
            assert_eq!(link.attr.kind(), FileKind::Symlink);
            assert_eq!(link.node.readlink(&call).unwrap(), target);
            root.unlink(&call, name("link")).unwrap();
            assert_eq!(link.node.readlink(&call).unwrap(), target);
        }
        let link = root.symlink(&call, name("link"), name("target")).unwrap().node;
        let old = Timestamp { sec: 5, nsec: 0 };
        let times = SetAttr { mtime: Some(SetTime::At(old)), ..Default::default() };
        assert_eq!(link.setattr(&call, &times, None).unwrap().mtime, old);
        assert_ne!(std::fs::metadata(ground.path("target")).unwrap().mtime(), 5);
        let mode = SetAttr { mode: Some(0o600), ..Default::default() };
        assert_eq!(link.setattr(&call, &mode, None).unwrap_err(), Errno::OPNOTSUPP);
        let size = SetAttr { size: Some(0), ..Default::default() };
        assert_eq!(link.setattr(&call, &size, None).unwrap_err(), Errno::INVAL);
        if rustix::process::geteuid().is_root() {
            let owner = SetAttr { uid: Some(77), gid: Some(78), ..Default::default() };
            link.setattr(&call, &owner, None).unwrap();
            assert_eq!(std::fs::symlink_metadata(ground.path("link")).unwrap().uid(), 77);
            assert_ne!(std::fs::metadata(ground.path("target")).unwrap().uid(), 77);
        }
        assert_eq!(failed(root.readlink(&call)), Errno::INVAL);
        assert_eq!(failed(link.lookup(&call, name("x"))), Errno::NOTDIR);
    });
}

#[test]
fn special_files_are_made_and_not_opened() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        let fifo = root.mknod(&call, name("fifo"), 0o010_640, 0).unwrap();
        assert_eq!((fifo.attr.kind(), fifo.attr.permissions()), (FileKind::Fifo, 0o640));
        assert_eq!(failed(fifo.node.open(&call, OFlags::RDONLY, 0)), Errno::NXIO);
        assert_eq!(root.mknod(&call, name("socket"), 0o140_600, 0).unwrap().attr.kind(), FileKind::Socket);
        assert_eq!(root.mknod(&call, name("file"), 0o100_600, 0).unwrap().attr.kind(), FileKind::Regular);
        assert_eq!(failed(root.mknod(&call, name("file"), 0o100_600, 0)), Errno::EXIST);
        assert_eq!(failed(root.mknod(&call, name("dir"), 0o040_600, 0)), Errno::PERM);
        assert!(std::fs::metadata(ground.path("socket")).unwrap().file_type().is_socket());
        if rustix::process::geteuid().is_root() {
            let rdev = rustix::fs::makedev(300, 70_000);
            let device = root.mknod(&call, name("device"), 0o060_600, rdev).unwrap();
            assert_eq!((device.attr.kind(), device.attr.rdev), (FileKind::BlockDevice, rdev));
            assert_eq!(std::fs::metadata(ground.path("device")).unwrap().rdev(), rdev);
        }
        assert_eq!(fifo.node.project_id(&call).unwrap(), 0);
    });
}

#[test]
fn holes_are_known_and_made() {
    on_each(|ground| {
        let call = Call::own();
        let file = ground.dir.root().create(&call, name("a"), OFlags::RDWR, 0o600).unwrap().handle;
        let far = 5 << 30;
        file.write(&call, b"far", WriteAt::Offset(far)).unwrap();
        assert_eq!(file.seek(&call, 0, SeekTo::Data).unwrap(), far);
        assert_eq!(file.seek(&call, 0, SeekTo::Hole).unwrap(), 0);
        assert_eq!(file.seek(&call, far, SeekTo::Hole).unwrap(), far + 3);
        assert_eq!(failed(file.seek(&call, far + 3, SeekTo::Data)), Errno::NXIO);
        assert_eq!(std::fs::metadata(ground.path("a")).unwrap().len(), far + 3);
        file.fallocate(&call, FallocateFlags::empty(), 0, 1 << 20).unwrap();
        assert_eq!(file.write(&call, &vec![7; 1 << 20], WriteAt::Offset(0)).unwrap(), 1 << 20);
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        file.fallocate(&call, punch, 0, 1 << 19).unwrap();
        assert_eq!(file.seek(&call, 0, SeekTo::Data).unwrap(), 1 << 19);
        let mut buf = [1; 4096];
        assert_eq!(file.read(&call, &mut buf, (1 << 19) - 2048).unwrap(), 4096);
        assert!(buf[..2048].iter().all(|byte| *byte == 0) && buf[2048..].iter().all(|byte| *byte == 7));
        let end = file.fallocate(&call, FallocateFlags::empty(), far, 4096);
        end.unwrap();
        assert_eq!(std::fs::metadata(ground.path("a")).unwrap().len(), far + 4096);
    });
}

#[test]
fn ranges_are_copied_between_files() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        std::fs::write(ground.path("from"), &bytes).unwrap();
        let (_, from) = open_current(&call, &*root, name("from"), OFlags::RDONLY).unwrap();
        let to = root.create(&call, name("to"), OFlags::RDWR, 0o600).unwrap().handle;
        assert_eq!(from.copy_range(&call, 1, &*to, 10, 2_000_000).unwrap(), 2_000_000);
        assert_eq!(from.copy_range(&call, 2_999_990, &*to, 0, 1 << 40).unwrap(), 10);
        let copied = whole(&*to);
        assert_eq!(copied.len(), 2_000_010);
        assert!(copied[..10] == bytes[2_999_990..] && copied[10..] == bytes[1..2_000_001]);
        // Within one file: what the copy appends is not copied again.
        let one = root.create(&call, name("one"), OFlags::RDWR, 0o600).unwrap().handle;
        one.write(&call, b"abc", WriteAt::Offset(0)).unwrap();
        assert_eq!(one.copy_range(&call, 0, &*one, 3, 100).unwrap(), 3);
        assert_eq!(whole(&*one), b"abcabc");
        let foreign = Ground::on(std::path::Path::new("/dev/shm"), Default::default());
        let other = foreign.dir.root().create(&call, name("x"), OFlags::RDWR, 0o600).unwrap().handle;
        assert_eq!(failed(from.copy_range(&call, 0, &*other, 0, 1)), Errno::XDEV);
    });
}

#[test]
fn a_writer_elsewhere_is_told() {
    on_each(|ground| {
        let call = Call::own();
        std::fs::write(ground.path("a"), b"1").unwrap();
        let (entry, reader) = open_current(&call, &*ground.dir.root(), name("a"), OFlags::RDONLY).unwrap();
        assert_eq!(reader.has_writer(&call).unwrap(), Some(false));
        let elsewhere = std::fs::File::options().append(true).open(ground.path("a")).unwrap();
        assert_eq!(reader.has_writer(&call).unwrap(), Some(true));
        drop(elsewhere);
        let writer = entry.node.open(&call, OFlags::RDWR, 0).unwrap();
        assert_eq!(reader.has_writer(&call).unwrap(), Some(true));
        assert_eq!(writer.has_writer(&call).unwrap(), None);
        drop(writer);
        assert_eq!(reader.has_writer(&call).unwrap(), Some(false));
    });
}

#[test]
fn a_nameless_file_can_be_given_a_name() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        assert!(ground.dir.capabilities().tmpfile);
        let file = root.tmpfile(&call, OFlags::RDWR, 0o640).unwrap();
        assert_eq!((file.entry.attr.nlink, file.entry.attr.permissions()), (0, 0o640));
        file.handle.write(&call, b"1", WriteAt::Offset(0)).unwrap();
        let other = root.tmpfile(&call, OFlags::RDWR, 0o640).unwrap();
        assert!(!same(&other.entry.node, &file.entry.node));
        assert_eq!(ground.names(&root).len(), 2);
        let named = root.link(&call, name("a"), &*file.entry.node).unwrap();
        assert!(same(&named.node, &file.entry.node));
        assert_eq!((named.attr.nlink, named.attr.size), (1, 1));
        drop(file.handle);
        root.create(&call, name("b"), OFlags::RDWR, 0o600).unwrap();
        assert!(same(&root.lookup(&call, name("a")).unwrap().node, &named.node));
        let sealed = root.tmpfile(&call, OFlags::RDWR | OFlags::EXCL, 0o600).unwrap();
        assert_eq!(failed(root.link(&call, name("c"), &*sealed.entry.node)), Errno::NOENT);
    });
}

#[test]
fn appends_of_two_opens_do_not_overwrite_each_other() {
    on_each(|ground| {
        let call = Call::own();
        let made = ground.dir.root().create(&call, name("a"), OFlags::WRONLY, 0o600).unwrap();
        let flags = OFlags::WRONLY | OFlags::APPEND;
        let handles: Vec<_> = (0..4).map(|_| made.entry.node.open(&call, flags, 0).unwrap()).collect();
        std::thread::scope(|scope| {
            for (n, handle) in handles.iter().enumerate() {
                scope.spawn(move || {
                    let call = Call::own();
                    for _ in 0..100 {
                        assert_eq!(handle.write(&call, &[n as u8; 100], WriteAt::End).unwrap(), 100);
                    }
                });
            }
        });
        let bytes = std::fs::read(ground.path("a")).unwrap();
        assert_eq!(bytes.len(), 4 * 100 * 100);
        assert!(bytes.chunks(100).all(|chunk| chunk.iter().all(|byte| *byte == chunk[0])));
    });
}

#[test]
fn space_is_told_and_everything_is_synced() {
    on_each(|ground| {
        let call = Call::own();
        let told = ground.dir.statfs(&call).unwrap();
        let host = rustix::fs::statvfs(ground.root()).unwrap();
        assert_eq!((told.block_size, told.blocks, told.files), (host.f_frsize, host.f_blocks, host.f_files));
        assert_eq!(told.name_max, 255);
        assert!(told.blocks_free >= told.blocks_available);
        ground.dir.sync(&call).unwrap();
        let listing = ground.dir.root().opendir(&call).unwrap();
        listing.fsync(&call, false).unwrap();
        listing.fsync(&call, true).unwrap();
        let can = ground.dir.capabilities();
        assert!(can.hard_links && can.symlinks && can.special_files && can.rename_exchange);
        assert!(can.fallocate && can.sparse && can.xattrs && can.acls && can.persistent_ids && can.backings);
    });
}

#[test]
fn a_deep_tree_is_walked_down_and_let_go() {
    on_each(|ground| {
        const DEPTH: usize = 3000;
        let call = Call::own();
        let mut at = ground.dir.root();
        for _ in 0..DEPTH {
            at = at.mkdir(&call, name("d"), 0o755).unwrap().node;
        }
        at.create(&call, name("bottom"), OFlags::RDWR, 0o600).unwrap();
        assert_eq!(ground.names(&at).len(), 3);
        drop(at);
        let mut again = ground.dir.root();
        for _ in 0..DEPTH {
            again = again.lookup(&call, name("d")).unwrap().node;
        }
        assert_eq!(again.lookup(&call, name("bottom")).unwrap().attr.size, 0);
        // Its permissions are its own.
        std::fs::set_permissions(ground.path("d"), std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(ground.dir.root().lookup(&call, name("d")).unwrap().attr.permissions(), 0o700);
    });
}
