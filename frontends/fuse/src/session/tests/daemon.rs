//! The daemon's own life: mounting, failing to, unmounting, being killed, being an ordinary user's.

use super::*;

#[test]
fn mount_points_that_are_none_are_named() {
    if !can_mount() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    let refused = |path: &Path, options: &Options| match mount(Arc::new(Mem::new()), path, options) {
        Ok(_) => panic!("{path:?} was mounted on"),
        Err(error) => error.to_string(),
    };
    let options = Options::default();
    assert!(refused(&dir.path().join("no"), &options).contains("mkdir -p"));
    assert!(refused(&file, &options).contains("is not a directory"));
    let options = Options { mount_options: vec!["nosiud".to_owned()], ..options };
    let message = refused(dir.path(), &options);
    assert!(message.contains("nosiud") && message.contains("nosuid"), "{message}");
}

#[test]
fn what_mount_shows() {
    if !can_mount() {
        return;
    }
    let options = Options {
        fs_name: "a source, with \\ and space".to_owned(),
        mount_options: ["nosuid", "nodev", "noatime"].map(str::to_owned).to_vec(),
        read_ahead_kib: Some(1024),
        ..Options::default()
    };
    let mounted = Mounted::with(Arc::new(Mem::new()), &options);
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let line = mounts.lines().find(|line| line.contains(mounted.dir.path().to_str().unwrap())).unwrap();
    assert!(line.contains(" fuse.hither rw,nosuid,nodev,noatime,"), "{line}");
    assert!(line.contains("default_permissions"), "{line}");
    assert!(line.starts_with("a\\040source,\\040with\\040\\134\\040and\\040space "), "{line}");
    let device = fs::metadata(mounted.dir.path()).unwrap().dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let ahead = fs::read_to_string(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb")).unwrap();
    assert_eq!(ahead.trim(), "1024");
}

#[test]
fn a_mount_in_use_is_busy_and_can_be_detached() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new(Arc::new(Mem::new()));
    let mut file = File::create(mounted.path("file")).unwrap();
    let refused = mounted.session.unmount(Unmount::IfUnused).unwrap_err();
    assert!(matches!(refused, Error::Busy { .. }), "{refused}");
    mounted.session.remote().unmount(Unmount::Lazily).unwrap();
    assert!(!mounted.path("file").exists());
    file.write_all(b"still open").unwrap();
    assert!(mounted.session.stats().threads > 0);
    drop(file);
    mounted.session.join();
    assert_eq!(mounted.session.stats().threads, 0);
}

#[test]
fn nothing_of_a_session_is_left_when_it_ends() {
    if !can_mount() {
        return;
    }
    let fs = Arc::new(Mem::new());
    let mounted = Mounted::new(fs.clone());
    fs::write(mounted.path("file"), b"bytes").unwrap();
    mounted.session.unmount(Unmount::IfUnused).unwrap();
    mounted.session.join();
    drop(mounted);
    until("the dispatcher lets go of the file system", || Arc::strong_count(&fs) == 1);
    // The file system lives on, and can be mounted again.
    let again = Mounted::new(fs);
    assert_eq!(fs::read(again.path("file")).unwrap(), b"bytes");
}

#[test]
fn what_is_mounted_there_later_is_not_ours_to_unmount() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new(Arc::new(Mem::new()));
    rustix::mount::unmount(mounted.dir.path(), rustix::mount::UnmountFlags::empty()).unwrap();
    mounted.session.join();
    let later = mount(Arc::new(Mem::new()), mounted.dir.path(), &Options::default()).unwrap();
    fs::write(mounted.path("later"), b"").unwrap();
    mounted.session.unmount(Unmount::Lazily).unwrap();
    assert!(mounted.path("later").exists());
    later.unmount(Unmount::IfUnused).unwrap();
}

/// Started by the tests below: a daemon that serves until it is killed.
#[test]
fn child_daemon() {
    let Some(path) = std::env::var_os("HITHER_FUSE_DAEMON") else { return };
    let fs = Scripted::new();
    fs.add("file", b"old bytes").advance(b"old bytes", Some(backing(b"new bytes")));
    mount(fs, Path::new(&path), &Options::default()).unwrap().join();
}

/// A directory that mounts may have been left on.
struct Left(TempDir);

impl Drop for Left {
    fn drop(&mut self) {
        while rustix::mount::unmount(self.0.path(), rustix::mount::UnmountFlags::DETACH).is_ok() {}
    }
}

impl Left {
    fn new() -> Self {
        Left(tempfile::tempdir_in("/dev/shm").unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

fn daemon(path: &Path) -> Child {
    let mut daemon = child("session::tests::daemon::child_daemon", "HITHER_FUSE_DAEMON", path);
    let daemon = daemon.stdout(Stdio::null()).spawn().unwrap();
    until("the daemon has mounted", || path.join("file").exists());
    daemon
}

#[test]
fn the_mount_point_of_a_killed_daemon_is_cleared_and_no_living_one() {
    if !can_mount() {
        return;
    }
    let dir = Left::new();
    let mut first = daemon(dir.path());
    assert!(!clear_stale(dir.path()).unwrap(), "it lives");
    let reader = File::open(dir.path().join("file")).unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    // With rings, a moment after the process is gone.
    until("the mount is dead", || rustix::fs::statfs(dir.path()).err() == Some(Errno::NOTCONN));
    let refused = mount(Arc::new(Mem::new()), dir.path(), &Options::default()).err().unwrap();
    assert!(matches!(refused, Error::Stale { .. }), "{refused}");
    // A program that has a backing outlives the daemon.
    let mut bytes = [0; 9];
    reader.read_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"new bytes");
    assert!(clear_stale(dir.path()).unwrap());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    assert!(!clear_stale(dir.path()).unwrap());
    let mut second = daemon(dir.path());
    second.kill().unwrap();
    second.wait().unwrap();
    assert!(clear_stale(dir.path()).unwrap());
}

/// Started by the test below, as an ordinary user.
#[test]
fn child_of_an_ordinary_user() {
    let Some(path) = std::env::var_os("HITHER_FUSE_USER") else { return };
    let path = Path::new(&path);
    let source = tempfile::tempdir().unwrap();
    let fs = Dir::open(source.path(), hither_dir::Options::default()).unwrap();
    let session = mount(fs, path, &Options::default()).unwrap();
    assert!(matches!(session.stats().data_path, DataPath::PageCache { .. }), "passthrough without root");
    fs::write(path.join("file"), b"mine").unwrap();
    assert_eq!(fs::read(path.join("file")).unwrap(), b"mine");
    assert_eq!(fs::metadata(path.join("file")).unwrap().uid(), 65_534);
    session.unmount(Unmount::IfUnused).unwrap();
    session.join();
    let fs = Scripted::new();
    fs.add("file", b"").advance(b"", Some(backing(b"")));
    let session = mount(fs, path, &Options::default()).unwrap();
    File::open(path.join("file")).unwrap();
    println!("data path: {}", session.stats().data_path);
    assert_eq!(session.stats().opens_passthrough, 0);
    session.unmount(Unmount::Lazily).unwrap();
    session.join();
    match mount(Arc::new(Mem::new()), path, &Options { allow_other: true, ..Options::default() }) {
        Ok(session) => drop(session),
        Err(error) => assert!(error.to_string().contains("/etc/fuse.conf"), "{error}"),
    }
    println!("an ordinary user was served");
}

#[test]
fn an_ordinary_user_mounts_through_the_helper() {
    if !can_mount() {
        return;
    }
    let has_helper = Command::new("fusermount3").arg("-V").output().is_ok();
    let dir = Left::new();
    std::os::unix::fs::chown(dir.path(), Some(65_534), Some(65_534)).unwrap();
    // Without udev the device is root's alone: the child gets a view of /dev in which it is everybody's.
    // (Mounts are made private one by one: below chroot(1) the root need not be one, and then unshare(1) cannot.)
    let script = r#"cut -d' ' -f5 /proc/self/mountinfo |
        while read -r at; do mount --make-private "$at" 2>/dev/null || :; done
        mount -t tmpfs -o dev,mode=755 none /mnt && mknod -m 666 /mnt/fuse c 10 229 &&
        mount --bind /mnt/fuse /dev/fuse && exec setpriv --reuid 65534 --regid 65534 --clear-groups \
        "$0" --exact session::tests::daemon::child_of_an_ordinary_user --nocapture"#;
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "unchanged", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap());
    let output = command.env("HITHER_FUSE_USER", dir.path()).current_dir("/").stdin(Stdio::null()).output();
    let Ok(output) = output else { return skip("needs unshare(1)") };
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if !has_helper {
        assert!(said.contains("NoHelper"), "{said}");
        return skip("needs fusermount3");
    }
    assert!(output.status.success() && said.contains("an ordinary user was served"), "{said}");
    assert!(said.contains("data path: page cache: needs CAP_SYS_ADMIN"), "{said}");
}
