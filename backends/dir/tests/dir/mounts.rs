//! Other mounts below the root, and what file systems differ in.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::ground::{Ground, failed, image, name};
use hither_dir::{Dir, Handles, Options};
use hither_vfs::{Call, Errno, FileSystem, Node, OFlags, RenameFlags};

/// A tmpfs that is mounted until this is dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn at(path: PathBuf) -> Self {
        std::fs::create_dir_all(&path).unwrap();
        let done =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "hither-test"]).arg(&path).status();
        assert!(done.unwrap().success());
        Mounted(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_mount_below_is_part_of_the_tree() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: not root");
        return;
    }
    for (handles, descriptors) in [(Handles::Auto, 4096), (Handles::Auto, 1), (Handles::Never, 1)] {
        let ground =
            Ground::on(Path::new("/dev/shm"), Options { handles, descriptors, ..Options::default() });
        let mounted = Mounted::at(ground.path("sub/mnt"));
        let call = Call::own();
        let root = ground.dir.root();
        let sub = root.lookup(&call, name("sub")).unwrap().node;
        let mnt = sub.lookup(&call, name("mnt")).unwrap();
        assert_ne!(mnt.node.identity().dev, root.identity().dev);
        assert!(mnt.attr.ino >> 63 == 1 && root.getattr(&call).unwrap().ino >> 63 == 0);
        let inner = mnt.node.create(&call, name("a"), OFlags::RDWR, 0o600).unwrap().entry;
        let outer = root.create(&call, name("a"), OFlags::RDWR, 0o600).unwrap().entry;
        assert_ne!(inner.attr.ino, outer.attr.ino);
        let none = RenameFlags::empty();
        assert_eq!(failed(mnt.node.rename(&call, name("a"), &*root, name("b"), none)), Errno::XDEV);
        assert_eq!(failed(root.link(&call, name("b"), &*inner.node)), Errno::XDEV);
        for n in 0..20 {
            root.create(&call, name(&n.to_string()), OFlags::RDWR, 0o600).unwrap();
        }
        assert_eq!(inner.node.getattr(&call).unwrap(), inner.attr);
        assert!(Arc::ptr_eq(&mnt.node.lookup(&call, name("a")).unwrap().node, &inner.node));
        let id = |node: &Arc<dyn Node>| node.persistent_id(&call).unwrap().unwrap();
        assert_ne!(id(&inner.node), id(&outer.node));
        assert_ne!(id(&mnt.node), id(&root));
        ground.dir.sync(&call).unwrap();
        drop(mounted);
        assert_eq!(
            failed(sub.lookup(&call, name("mnt")).unwrap().node.lookup(&call, name("a"))),
            Errno::NOENT
        );
    }
}

#[test]
fn project_ids_are_told() {
    let Some(xfs) = image("xfs") else { return };
    for descriptors in [4096, 1] {
        let ground = Ground::on(&xfs, Options { descriptors, ..Options::default() });
        let call = Call::own();
        let root = ground.dir.root();
        let file = root.create(&call, name("a"), OFlags::RDWR, 0o000).unwrap().entry.node;
        let dir = root.mkdir(&call, name("dir"), 0o700).unwrap().node;
        let link = root.symlink(&call, name("link"), name("a")).unwrap().node;
        assert_eq!(file.project_id(&call).unwrap(), 0);
        for (at, id) in [("a", 100), ("dir", 4_000_000_000)] {
            let opened = std::fs::File::open(ground.path(at)).unwrap();
            hither_sys::project::set_project_id(std::os::fd::AsFd::as_fd(&opened), id).unwrap();
        }
        assert_eq!(file.project_id(&call).unwrap(), 100);
        assert_eq!(dir.project_id(&call).unwrap(), 4_000_000_000);
        assert_eq!(link.project_id(&call).unwrap(), 0);
    }
    let ground = Ground::on(Path::new("/dev/shm"), Options::default());
    let file = ground.dir.root().create(&Call::own(), name("a"), OFlags::RDWR, 0o600).unwrap().entry.node;
    assert_eq!(file.project_id(&Call::own()).unwrap(), 0);
}

#[test]
fn an_overlay_keeps_a_node_over_its_copy_up() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: not root");
        return;
    }
    let temp = tempfile::tempdir_in("/dev/shm").unwrap();
    let at = |name: &str| temp.path().join(name);
    for dir in ["lower", "upper", "work", "merged"] {
        std::fs::create_dir(at(dir)).unwrap();
    }
    for file in ["lower/a", "lower/b"] {
        std::fs::write(at(file), b"below").unwrap();
    }
    let layers = format!(
        "lowerdir={},upperdir={},workdir={}",
        at("lower").display(),
        at("upper").display(),
        at("work").display()
    );
    let mount =
        Command::new("mount").args(["-t", "overlay", "-o", &layers, "overlay"]).arg(at("merged")).status();
    if !mount.unwrap().success() {
        eprintln!("skipped: no overlayfs");
        return;
    }
    let mounted = Mounted(at("merged"));
    for (file, descriptors) in [("a", 4096), ("b", 1)] {
        let dir = Dir::open(&at("merged"), Options { descriptors, ..Options::default() }).unwrap();
        let call = Call::own();
        let node = dir.root().lookup(&call, name(file)).unwrap().node;
        std::fs::write(at("merged").join(file), b"copied up").unwrap();
        for n in 0..20 {
            dir.root().create(&call, name(&n.to_string()), OFlags::RDWR, 0o600).unwrap();
        }
        assert_eq!(node.getattr(&call).unwrap().size, 9);
        assert!(Arc::ptr_eq(&dir.root().lookup(&call, name(file)).unwrap().node, &node));
    }
    drop(mounted);
}
