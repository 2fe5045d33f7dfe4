//! The POSIX surface of a directory, on tmpfs and, as root, on ext4, in every mode of finding nodes again.

use std::ffi::OsStr;

use crate::ground::{Ground, on_each};
use hither_vfs::{
    Call, Errno, FallocateFlags, FileKind, FileSystem, Node, OFlags, RenameFlags, SeekTo, SetAttr, SetTime,
    Timestamp, WriteAt, XattrFlags,
};

#[test]
fn a_file_is_created_written_read_and_removed() {
    on_each(|ground: &Ground| {
        let call = Call::own();
        let root = ground.dir.root();
        assert_eq!(root.lookup(&call, OsStr::new("a")).err().unwrap(), Errno::NOENT);
        let made = root.create(&call, OsStr::new("a"), OFlags::RDWR, 0o640).unwrap();
        assert_eq!(made.entry.attr.kind(), FileKind::Regular);
        assert_eq!(made.entry.attr.permissions(), 0o640);
        assert_eq!(made.handle.write(&call, b"hello", WriteAt::Offset(0)).unwrap(), 5);
        assert_eq!(made.handle.write(&call, b" there", WriteAt::End).unwrap(), 6);
        let mut buf = [0; 64];
        assert_eq!(made.handle.read(&call, &mut buf, 0).unwrap(), 11);
        assert_eq!(&buf[..11], b"hello there");
        assert_eq!(std::fs::read(ground.path("a")).unwrap(), b"hello there");
        let found = root.lookup(&call, OsStr::new("a")).unwrap();
        assert!(std::sync::Arc::ptr_eq(&found.node, &made.entry.node));
        root.unlink(&call, OsStr::new("a")).unwrap();
        assert_eq!(root.lookup(&call, OsStr::new("a")).err().unwrap(), Errno::NOENT);
        assert_eq!(found.node.getattr(&call).unwrap().nlink, 0);
    });
}
