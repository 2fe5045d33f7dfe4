//! Extended attributes and ACLs.

use std::ffi::OsString;

use crate::ground::{failed, name, on_each};
use hither_vfs::{Call, Errno, FileSystem, OFlags, XattrFlags};

const NONE: XattrFlags = XattrFlags::empty();

#[test]
fn values_are_set_told_listed_and_removed() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        let file = root.create(&call, name("a"), OFlags::RDWR, 0o600).unwrap().entry.node;
        for node in [&root, &file] {
            assert_eq!(failed(node.getxattr(&call, name("user.a"))), Errno::NODATA);
            node.setxattr(&call, name("user.a"), b"one", XattrFlags::CREATE).unwrap();
            assert_eq!(
                failed(node.setxattr(&call, name("user.a"), b"two", XattrFlags::CREATE)),
                Errno::EXIST
            );
            node.setxattr(&call, name("user.a"), b"two\0\xff", XattrFlags::REPLACE).unwrap();
            assert_eq!(failed(node.setxattr(&call, name("user.b"), b"", XattrFlags::REPLACE)), Errno::NODATA);
            node.setxattr(&call, name("user.b"), b"", NONE).unwrap();
            assert_eq!(node.getxattr(&call, name("user.a")).unwrap(), b"two\0\xff");
            assert_eq!(node.getxattr(&call, name("user.b")).unwrap(), b"");
            let mut names: Vec<OsString> = node.listxattr(&call).unwrap();
            names.retain(|name| name.to_string_lossy().starts_with("user."));
            names.sort();
            assert_eq!(names, ["user.a", "user.b"]);
            node.removexattr(&call, name("user.a")).unwrap();
            assert_eq!(failed(node.removexattr(&call, name("user.a"))), Errno::NODATA);
            assert_eq!(failed(node.getxattr(&call, name("user.a"))), Errno::NODATA);
        }
        assert_eq!(failed(file.setxattr(&call, name("nowhere.a"), b"", NONE)), Errno::OPNOTSUPP);
        let long = OsString::from(format!("user.{}", "x".repeat(251)));
        assert_eq!(failed(file.setxattr(&call, &long, b"", NONE)), Errno::RANGE);
    });
}

#[test]
fn values_are_as_long_as_the_host_lets_them() {
    on_each(|ground| {
        let call = Call::own();
        let file = ground.dir.root().create(&call, name("a"), OFlags::RDWR, 0o600).unwrap().entry.node;
        for length in [1023, 1024, 1025, 3000, 64 * 1024] {
            let value: Vec<u8> = (0..length).map(|n| (n % 253) as u8).collect();
            match file.setxattr(&call, name("user.a"), &value, NONE) {
                Ok(()) => assert_eq!(file.getxattr(&call, name("user.a")).unwrap(), value),
                // What fits in an inode differs.
                Err(error) => assert!(length > 1000 && error == Errno::NOSPC, "{length}: {error}"),
            }
        }
        let too_long = vec![0; 64 * 1024 + 1];
        assert_eq!(failed(file.setxattr(&call, name("user.a"), &too_long, NONE)), Errno::TOOBIG);
        let set = |n: &usize| {
            file.setxattr(&call, name(&format!("user.{n}-{}", "y".repeat(40))), b"", NONE).is_ok()
        };
        let before = file.listxattr(&call).unwrap().len();
        let added = (0..50).filter(set).count();
        assert!(added > 10);
        assert_eq!(file.listxattr(&call).unwrap().len(), before + added);
    });
}

#[test]
fn a_symbolic_link_has_attributes_of_its_own() {
    on_each(|ground| {
        let call = Call::own();
        let root = ground.dir.root();
        let file = root.create(&call, name("target"), OFlags::RDWR, 0o600).unwrap().entry.node;
        file.setxattr(&call, name("user.a"), b"target's", NONE).unwrap();
        let link = root.symlink(&call, name("link"), name("target")).unwrap().node;
        assert_eq!(failed(link.setxattr(&call, name("user.a"), b"", NONE)), Errno::PERM);
        let none = link.getxattr(&call, name("user.a"));
        assert!(matches!(failed(none), Errno::NODATA | Errno::PERM));
        if rustix::process::geteuid().is_root() {
            link.setxattr(&call, name("trusted.a"), b"link's", NONE).unwrap();
            assert_eq!(link.getxattr(&call, name("trusted.a")).unwrap(), b"link's");
            assert_eq!(link.listxattr(&call).unwrap(), ["trusted.a"]);
            assert_eq!(failed(file.getxattr(&call, name("trusted.a"))), Errno::NODATA);
        }
    });
}

#[test]
fn an_acl_changes_the_mode() {
    on_each(|ground| {
        let call = Call::own();
        let file = ground.dir.root().create(&call, name("a"), OFlags::RDWR, 0o600).unwrap().entry.node;
        let acl = crate::ground::acl(&[
            (0x01, 7, u32::MAX),
            (0x02, 4, 1234),
            (0x04, 0, u32::MAX),
            (0x10, 5, u32::MAX),
            (0x20, 0, u32::MAX),
        ]);
        file.setxattr(&call, name("system.posix_acl_access"), &acl, NONE).unwrap();
        assert_eq!(file.getattr(&call).unwrap().permissions(), 0o750);
        assert_eq!(file.getxattr(&call, name("system.posix_acl_access")).unwrap(), acl);
        let bad = &acl[..acl.len() - 1];
        assert_eq!(failed(file.setxattr(&call, name("system.posix_acl_access"), bad, NONE)), Errno::INVAL);
        file.removexattr(&call, name("system.posix_acl_access")).unwrap();
    });
}
