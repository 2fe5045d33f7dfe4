//! Calls have the rights of their callers. As root only, since others cannot act as somebody else; what an ordinary user
//! can have is in the other tests, which run as any user.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::ground::{Ground, acl, failed, image, name};
use hither_dir::{Identity, Options};
use hither_vfs::{
    Call, Caller, Errno, FileSystem, OFlags, Patience, RenameFlags, SetAttr, SetTime, WriteAt, XattrFlags,
};

const NONE: SetAttr = SetAttr { mode: None, uid: None, gid: None, size: None, atime: None, mtime: None };

/// Runs a test on grounds that everybody may write to.
fn as_root(test: impl Fn(&Ground)) {
    as_root_with(Options::default(), test);
}

fn as_root_with(options: Options, test: impl Fn(&Ground)) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: not root");
        return;
    }
    for below in [Some(PathBuf::from("/dev/shm")), image("ext4")].into_iter().flatten() {
        for descriptors in [4096, 1] {
            let ground = Ground::on(&below, Options { descriptors, ..options.clone() });
            fs::set_permissions(ground.root(), fs::Permissions::from_mode(0o777)).unwrap();
            test(&ground);
        }
    }
}

fn call_of(uid: u32, gid: u32, groups: &[u32]) -> Call {
    let caller = Caller::new(uid, gid, 0, 0o022).with_groups(groups.to_vec());
    Call::new(caller, Patience::forever())
}

fn owner(ground: &Ground, at: &str) -> (u32, u32, u32) {
    let meta = fs::symlink_metadata(ground.path(at)).unwrap();
    (meta.uid(), meta.gid(), meta.mode() & 0o7777)
}

/// A file of somebody's, with a mode.
fn file(ground: &Ground, at: &str, uid: u32, gid: u32, mode: u32) {
    fs::write(ground.path(at), b"bytes").unwrap();
    std::os::unix::fs::chown(ground.path(at), Some(uid), Some(gid)).unwrap();
    fs::set_permissions(ground.path(at), fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_is_made_belongs_to_the_caller() {
    as_root(|ground| {
        let (user, other) = (call_of(1234, 1235, &[]), call_of(77, 78, &[]));
        let root = ground.dir.root();
        root.create(&user, name("file"), OFlags::RDWR, 0o666).unwrap();
        root.mkdir(&other, name("dir"), 0o777).unwrap();
        root.symlink(&user, name("link"), name("x")).unwrap();
        root.mknod(&other, name("fifo"), 0o010_666, 0).unwrap();
        root.tmpfile(&user, OFlags::RDWR, 0o600).unwrap();
        root.create(&call_of(0, 5, &[]), name("root's"), OFlags::RDWR, 0o666).unwrap();
        assert_eq!(owner(ground, "file"), (1234, 1235, 0o644));
        assert_eq!(owner(ground, "dir"), (77, 78, 0o755));
        assert_eq!(owner(ground, "link"), (1234, 1235, 0o777));
        assert_eq!(owner(ground, "fifo"), (77, 78, 0o644));
        assert_eq!(owner(ground, "root's"), (0, 5, 0o644));
        assert_eq!(failed(root.mknod(&user, name("device"), 0o020_666, 0x103)), Errno::PERM);
        root.mknod(&call_of(0, 0, &[]), name("device"), 0o020_666, 0x103).unwrap();
    });
}

#[test]
fn permissions_are_the_caller_s() {
    as_root(|ground| {
        let (owner, other) = (call_of(1234, 1235, &[]), call_of(77, 78, &[]));
        let root = ground.dir.root();
        file(ground, "private", 1234, 1235, 0o600);
        let node = root.lookup(&other, name("private")).unwrap().node;
        assert_eq!(failed(node.open(&other, OFlags::RDONLY, 0)), Errno::ACCESS);
        assert_eq!(failed(node.open(&other, OFlags::WRONLY | OFlags::TRUNC, 0)), Errno::ACCESS);
        assert_eq!(failed(root.create(&other, name("private"), OFlags::RDWR, 0o666)), Errno::ACCESS);
        node.open(&owner, OFlags::RDWR, 0).unwrap();
        assert_eq!(failed(node.access(&other, 4)), Errno::ACCESS);
        node.access(&owner, 6).unwrap();
        assert_eq!(failed(node.access(&owner, 1)), Errno::ACCESS);
        let mode = SetAttr { mode: Some(0o666), ..NONE };
        assert_eq!(failed(node.setattr(&other, &mode, None)), Errno::PERM);
        assert_eq!(failed(node.setattr(&other, &SetAttr { size: Some(0), ..NONE }, None)), Errno::ACCESS);
        let now = SetAttr { mtime: Some(SetTime::Now), ..NONE };
        assert!(matches!(failed(node.setattr(&other, &now, None)), Errno::ACCESS | Errno::PERM));
        assert_eq!(failed(node.setattr(&owner, &SetAttr { uid: Some(77), ..NONE }, None)), Errno::PERM);
        assert_eq!(failed(node.open(&other, OFlags::RDONLY | OFlags::NOATIME, 0)), Errno::ACCESS);
        node.open(&owner, OFlags::RDONLY | OFlags::NOATIME, 0).unwrap();
        node.setattr(&owner, &SetAttr { mode: Some(0o644), ..NONE }, None).unwrap();
        assert_eq!(failed(node.open(&other, OFlags::RDONLY | OFlags::NOATIME, 0)), Errno::PERM);
        assert_eq!(fs::read(ground.path("private")).unwrap(), b"bytes");
        // A directory that is closed to others.
        let dir = root.mkdir(&owner, name("dir"), 0o700).unwrap().node;
        dir.create(&owner, name("in"), OFlags::RDWR, 0o666).unwrap();
        assert_eq!(failed(dir.lookup(&other, name("in"))), Errno::ACCESS);
        assert_eq!(failed(dir.opendir(&other)), Errno::ACCESS);
        assert_eq!(failed(dir.create(&other, name("x"), OFlags::RDWR, 0o666)), Errno::ACCESS);
        assert_eq!(failed(dir.unlink(&other, name("in"))), Errno::ACCESS);
        assert_eq!(failed(root.rmdir(&owner, name("dir"))), Errno::NOTEMPTY);
        // In a sticky directory only the owner removes and moves.
        fs::set_permissions(ground.root(), fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(failed(root.unlink(&other, name("private"))), Errno::PERM);
        let away = root.rename(&other, name("private"), &*root, name("mine"), RenameFlags::empty());
        assert_eq!(failed(away), Errno::PERM);
        root.unlink(&owner, name("private")).unwrap();
    });
}

#[test]
fn given_groups_count() {
    as_root(|ground| {
        let root = ground.dir.root();
        file(ground, "group's", 0, 5000, 0o640);
        file(ground, "not group's", 0, 5000, 0o604);
        let (member, stranger) = (call_of(1234, 1235, &[4999, 5000]), call_of(1234, 1235, &[4999]));
        let node = root.lookup(&member, name("group's")).unwrap().node;
        node.open(&member, OFlags::RDONLY, 0).unwrap();
        assert_eq!(failed(node.open(&stranger, OFlags::RDONLY, 0)), Errno::ACCESS);
        node.open(&member, OFlags::RDONLY, 0).unwrap();
        let node = root.lookup(&member, name("not group's")).unwrap().node;
        assert_eq!(failed(node.open(&member, OFlags::RDONLY, 0)), Errno::ACCESS);
        assert_eq!(failed(node.access(&member, 4)), Errno::ACCESS);
        node.open(&stranger, OFlags::RDONLY, 0).unwrap();
        // A file may be given to a group that one is in.
        file(ground, "mine", 1234, 1235, 0o644);
        let node = root.lookup(&member, name("mine")).unwrap().node;
        assert_eq!(failed(node.setattr(&stranger, &SetAttr { gid: Some(5000), ..NONE }, None)), Errno::PERM);
        assert_eq!(node.setattr(&member, &SetAttr { gid: Some(5000), ..NONE }, None).unwrap().gid, 5000);
        // The daemon's own groups are not the caller's: root's group is no help.
        file(ground, "root group's", 0, 0, 0o640);
        let node = root.lookup(&member, name("root group's")).unwrap().node;
        assert_eq!(failed(node.open(&member, OFlags::RDONLY, 0)), Errno::ACCESS);
    });
}

/// A process with uid 1234, gid 1235 and the given groups.
struct Process(Child);

impl Process {
    fn with_groups(groups: &str) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "1234", "--regid", "1235", "--groups", groups, "sleep", "1000"]);
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        // It is what it will be when it sleeps.
        let comm = format!("/proc/{}/comm", child.id());
        while fs::read_to_string(&comm).unwrap().trim() != "sleep" {
            std::thread::yield_now();
        }
        Process(child)
    }

    fn call(&self) -> Call {
        Call::new(Caller::new(1234, 1235, self.0.id(), 0o022), Patience::forever())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn groups_are_read_from_the_process_where_they_matter() {
    as_root(|ground| {
        let root = ground.dir.root();
        let process = Process::with_groups("4999,5000");
        file(ground, "group's", 0, 5000, 0o640);
        file(ground, "not group's", 0, 5000, 0o604);
        let node = root.lookup(&process.call(), name("group's")).unwrap().node;
        node.open(&process.call(), OFlags::RDONLY, 0).unwrap();
        let node = root.lookup(&process.call(), name("not group's")).unwrap().node;
        assert_eq!(failed(node.access(&process.call(), 4)), Errno::ACCESS);
        // Where nobody is told if the group is missing: the set-group-id bit would be gone.
        file(ground, "mine", 1234, 5000, 0o755);
        let node = root.lookup(&process.call(), name("mine")).unwrap().node;
        let set = node.setattr(&process.call(), &SetAttr { mode: Some(0o2755), ..NONE }, None);
        assert_eq!(set.unwrap().permissions(), 0o2755);
        file(ground, "other's", 1234, 5001, 0o755);
        let node = root.lookup(&process.call(), name("other's")).unwrap().node;
        let set = node.setattr(&process.call(), &SetAttr { mode: Some(0o2755), ..NONE }, None);
        assert_eq!(set.unwrap().permissions(), 0o755);
        let dir = root.mkdir(&call_of(0, 0, &[]), name("dir"), 0o777).unwrap().node;
        let open = SetAttr { mode: Some(0o2777), gid: Some(5000), ..NONE };
        dir.setattr(&call_of(0, 0, &[]), &open, None).unwrap();
        let made = dir.create(&process.call(), name("set-group-id"), OFlags::RDWR, 0o2755).unwrap();
        assert_eq!((made.entry.attr.gid, made.entry.attr.permissions()), (5000, 0o2755));
        let made = dir.create(&call_of(1234, 1235, &[]), name("dropped"), OFlags::RDWR, 0o2755).unwrap();
        assert_eq!((made.entry.attr.gid, made.entry.attr.permissions()), (5000, 0o755));
        let made = dir.mkdir(&process.call(), name("sub"), 0o755).unwrap();
        assert_eq!((made.attr.gid, made.attr.permissions()), (5000, 0o2755));
        // An ACL that leaves the bit to members.
        let acl = acl(&[(0x01, 7, u32::MAX), (0x04, 5, u32::MAX), (0x20, 5, u32::MAX)]);
        let node = root.lookup(&process.call(), name("mine")).unwrap().node;
        node.setxattr(&process.call(), name("system.posix_acl_access"), &acl, XattrFlags::empty()).unwrap();
        assert_eq!(owner(ground, "mine").2, 0o2755);
    });
}

#[test]
fn the_mask_is_the_caller_s_unless_an_acl_says_otherwise() {
    as_root(|ground| {
        let root = ground.dir.root();
        let masked = |umask| Call::new(Caller::new(1234, 1235, 0, umask), Patience::forever());
        for (at, umask, mode) in [("a", 0o077, 0o600), ("b", 0, 0o666), ("c", 0o027, 0o640)] {
            assert_eq!(
                root.create(&masked(umask), name(at), OFlags::RDWR, 0o666).unwrap().entry.attr.permissions(),
                mode
            );
        }
        assert_eq!(root.mkdir(&masked(0o027), name("dir"), 0o777).unwrap().attr.permissions(), 0o750);
        assert_eq!(root.mknod(&masked(0o077), name("fifo"), 0o010_666, 0).unwrap().attr.permissions(), 0o600);
        let nameless = root.tmpfile(&masked(0o077), OFlags::RDWR, 0o666).unwrap();
        assert_eq!(nameless.entry.attr.permissions(), 0o600);
        let dir = root.lookup(&masked(0), name("dir")).unwrap().node;
        let default = acl(&[
            (0x01, 7, u32::MAX),
            (0x02, 6, 4321),
            (0x04, 5, u32::MAX),
            (0x10, 7, u32::MAX),
            (0x20, 0, u32::MAX),
        ]);
        let at = name("system.posix_acl_default");
        dir.setxattr(&masked(0), at, &default, XattrFlags::empty()).unwrap();
        let made = dir.create(&masked(0o077), name("a"), OFlags::RDWR, 0o666).unwrap();
        assert_eq!(made.entry.attr.permissions(), 0o660, "the mask does not apply");
        assert!(made.entry.node.getxattr(&masked(0), name("system.posix_acl_access")).is_ok());
        let sub = dir.mkdir(&masked(0o077), name("sub"), 0o777).unwrap();
        assert_eq!(sub.attr.permissions(), 0o770);
        assert_eq!(sub.node.getxattr(&masked(0), at).unwrap(), default);
        made.entry.node.open(&call_of(4321, 4321, &[]), OFlags::RDWR, 0).unwrap();
        assert_eq!(failed(made.entry.node.open(&call_of(4322, 4322, &[]), OFlags::RDWR, 0)), Errno::ACCESS);
    });
}

#[test]
fn changes_by_others_than_root_take_set_id_bits_away() {
    as_root(|ground| {
        let root = ground.dir.root();
        let (user, daemon) = (call_of(1234, 1235, &[]), call_of(0, 0, &[]));
        type Change<'a> = &'a dyn Fn(&Call, &str);
        let open = |call: &Call, at: &str| {
            let node = root.lookup(call, name(at)).unwrap().node;
            node.open(call, OFlags::RDWR, 0).unwrap()
        };
        let truncate = |call: &Call, at: &str| {
            let node = root.lookup(call, name(at)).unwrap().node;
            node.setattr(call, &SetAttr { size: Some(1), ..NONE }, None).unwrap();
        };
        let write = |call: &Call, at: &str| {
            open(call, at).write(call, b"x", WriteAt::Offset(0)).unwrap();
        };
        let append = |call: &Call, at: &str| {
            open(call, at).write(call, b"x", WriteAt::End).unwrap();
        };
        let allocate = |call: &Call, at: &str| {
            open(call, at).fallocate(call, hither_vfs::FallocateFlags::empty(), 0, 100).unwrap();
        };
        let changes: [Change<'_>; 4] = [&truncate, &write, &append, &allocate];
        for change in changes {
            file(ground, "a", 0, 0, 0o6777);
            change(&user, "a");
            assert_eq!(owner(ground, "a").2, 0o777);
            file(ground, "a", 0, 0, 0o6777);
            change(&daemon, "a");
            assert_eq!(owner(ground, "a").2, 0o6777);
        }
        file(ground, "b", 1234, 1235, 0o6755);
        let node = root.lookup(&user, name("b")).unwrap().node;
        node.setattr(&user, &SetAttr { gid: Some(1235), ..NONE }, None).unwrap();
        assert_eq!(owner(ground, "b").2, 0o755);
        // With a mode in the same call, that mode is the one in the end.
        let both = SetAttr { gid: Some(1235), mode: Some(0o4755), ..NONE };
        assert_eq!(node.setattr(&user, &both, None).unwrap().permissions(), 0o4755);
    });
}

#[test]
fn attributes_of_root_are_kept_from_others() {
    as_root(|ground| {
        let root = ground.dir.root();
        let (user, daemon) = (call_of(1234, 1235, &[]), call_of(0, 0, &[]));
        let node = root.create(&user, name("a"), OFlags::RDWR, 0o666).unwrap().entry.node;
        node.setxattr(&daemon, name("trusted.a"), b"1", XattrFlags::empty()).unwrap();
        node.setxattr(&user, name("user.a"), b"1", XattrFlags::empty()).unwrap();
        assert_eq!(failed(node.getxattr(&user, name("trusted.a"))), Errno::NODATA);
        assert_eq!(failed(node.setxattr(&user, name("trusted.b"), b"", XattrFlags::empty())), Errno::PERM);
        assert_eq!(failed(node.setxattr(&user, name("security.a"), b"", XattrFlags::empty())), Errno::PERM);
        assert_eq!(failed(node.removexattr(&user, name("trusted.a"))), Errno::PERM);
        assert_eq!(node.listxattr(&user).unwrap(), ["user.a"]);
        assert_eq!(node.getxattr(&daemon, name("trusted.a")).unwrap(), b"1");
    });
}

#[test]
fn a_store_is_the_daemon_s_whoever_calls() {
    as_root_with(Options { identity: Identity::Daemon, ..Options::default() }, |ground| {
        let root = ground.dir.root();
        let user = call_of(1234, 1235, &[5000]);
        root.create(&user, name("a"), OFlags::RDWR, 0o600).unwrap();
        assert_eq!(owner(ground, "a"), (0, 0, 0o600));
        file(ground, "private", 77, 77, 0o000);
        root.lookup(&user, name("private")).unwrap().node.open(&user, OFlags::RDWR, 0).unwrap();
        // Another file system's calls on the same thread leave nothing behind.
        let other = Ground::on(std::path::Path::new("/dev/shm"), Options::default());
        fs::set_permissions(other.root(), fs::Permissions::from_mode(0o777)).unwrap();
        other.dir.root().create(&user, name("b"), OFlags::RDWR, 0o600).unwrap();
        assert_eq!(owner(&other, "b"), (1234, 1235, 0o600));
        root.mkdir(&user, name("c"), 0o700).unwrap();
        assert_eq!(owner(ground, "c"), (0, 0, 0o700));
        assert_eq!(
            failed(other.dir.root().create(&call_of(77, 77, &[]), name("b"), OFlags::RDWR, 0)),
            Errno::ACCESS
        );
        root.create(&user, name("d"), OFlags::RDWR, 0o600).unwrap();
        assert_eq!(owner(ground, "d"), (0, 0, 0o600));
    });
}

#[test]
fn an_identity_that_is_kept_stays_on_its_thread() {
    as_root_with(Options { keep_identity: true, ..Options::default() }, |ground| {
        let (user, other) = (call_of(1234, 1235, &[5]), call_of(77, 78, &[]));
        let root = ground.dir.root();
        for (call, at) in [(&user, "a"), (&user, "b"), (&other, "c"), (&user, "d")] {
            root.create(call, name(at), OFlags::RDWR, 0o600).unwrap();
            assert_eq!(owner(ground, at).0, call.caller.uid);
        }
        let at = ground.path("by a thread");
        hither_rt::thread::spawn("test", move || fs::write(at, b"").unwrap()).unwrap().join().unwrap();
        assert_eq!(owner(ground, "by a thread").0, 0);
        // With too few descriptors the daemon had to find the node again, as itself.
        if ground.options.descriptors > 1 {
            fs::write(ground.path("by this thread"), b"").unwrap();
            assert_eq!(owner(ground, "by this thread").0, 1234);
        }
        drop(hither_sys::creds::own());
        fs::write(ground.path("by the daemon"), b"").unwrap();
        assert_eq!(owner(ground, "by the daemon").0, 0);
    });
}

#[test]
fn an_unprivileged_caller_reaches_nodes_below_closed_directories() {
    // A program may hold a file below a directory that it may not search (any more), by handle as by name.
    for handles in [hither_dir::Handles::Auto, hither_dir::Handles::Never] {
        as_root_with(Options { handles, ..Options::default() }, |ground| {
            let root = ground.dir.root();
            let user = call_of(1234, 1235, &[]);
            let dir = root.mkdir(&user, name("dir"), 0o777).unwrap().node;
            let node = dir.create(&user, name("a"), OFlags::RDWR, 0o666).unwrap().entry.node;
            fs::set_permissions(ground.path("dir"), fs::Permissions::from_mode(0o000)).unwrap();
            for n in 0..10 {
                root.create(&user, name(&n.to_string()), OFlags::RDWR, 0o600).unwrap();
            }
            assert_eq!(node.getattr(&user).unwrap().uid, 1234);
            node.open(&user, OFlags::RDWR, 0).unwrap();
            assert_eq!(failed(dir.lookup(&user, name("a"))), Errno::ACCESS);
        });
    }
}
