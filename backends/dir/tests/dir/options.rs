//! What the options change.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::ground::{Ground, List, failed, name};
use hither_dir::{Dir, Options};
use hither_vfs::{Call, Errno, FileSystem, OFlags, Patience, Timeouts, WriteAt};

const SHM: &str = "/dev/shm";

#[test]
fn all_opens_of_a_node_have_one_backing() {
    for descriptors in [4096, 1] {
        let ground = Ground::on(Path::new(SHM), Options { descriptors, ..Options::default() });
        let call = Call::own();
        let root = ground.dir.root();
        let made = root.create(&call, name("a"), OFlags::RDWR, 0o600).unwrap();
        let backing = made.handle.backing().unwrap().0;
        for n in 0..20 {
            root.create(&call, name(&n.to_string()), OFlags::RDWR, 0o600).unwrap();
            let again = made.entry.node.open(&call, OFlags::RDONLY, 0).unwrap();
            assert!(Arc::ptr_eq(&again.backing().unwrap().0, &backing));
        }
        // It leads to the file.
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&*backing));
        made.handle.write(&call, b"bytes", WriteAt::Offset(0)).unwrap();
        assert_eq!(fs::read(path).unwrap(), b"bytes");
    }
    let ground = Ground::on(Path::new(SHM), Options { backings: false, ..Options::default() });
    let made = ground.dir.root().create(&Call::own(), name("a"), OFlags::RDWR, 0o600).unwrap();
    assert!(made.handle.backing().is_none());
    assert!(!ground.dir.capabilities().backings);
}

#[test]
fn cached_pages_are_kept_only_if_nothing_changed_for_sure() {
    let ground = Ground::on(Path::new(SHM), Options { backings: false, ..Options::default() });
    let call = Call::own();
    let root = ground.dir.root();
    fs::write(ground.path("a"), b"one").unwrap();
    let node = root.lookup(&call, name("a")).unwrap().node;
    let keeps = || node.open(&call, OFlags::RDONLY, 0).unwrap().keep_cache();
    assert!(!keeps(), "the first open knows of nothing");
    assert!(!keeps(), "a change within the clock's tick would not be seen");
    std::thread::sleep(Duration::from_millis(2100));
    assert!(!keeps(), "the open before it could not be relied upon");
    assert!(keeps());
    assert!(keeps());
    fs::write(ground.path("a"), b"two").unwrap();
    assert!(!keeps());
    // Not even with the old time put back.
    let file = fs::File::options().write(true).open(ground.path("a")).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert!(!keeps());
}

#[test]
fn a_far_disk_is_not_touched_by_those_who_cannot_wait() {
    let ground = Ground::on(Path::new(SHM), Options::default());
    fs::write(ground.path("a"), b"one").unwrap();
    let options = Options { may_block: true, ..Options::default() };
    let far = Dir::open(ground.root(), options).unwrap();
    let hurried = Call { patience: Patience::Never, ..Call::own() };
    let patient = Call::own();
    let root = far.root();
    let would_block = |error: Option<hither_vfs::Error>| assert!(error.unwrap().is_would_block());
    would_block(root.lookup(&hurried, name("a")).err());
    would_block(root.getattr(&hurried).err());
    would_block(root.opendir(&hurried).err());
    would_block(root.create(&hurried, name("b"), OFlags::RDWR, 0o600).err());
    would_block(root.mkdir(&hurried, name("b"), 0o600).err());
    would_block(root.unlink(&hurried, name("a")).err());
    would_block(root.getxattr(&hurried, name("user.a")).err());
    would_block(far.statfs(&hurried).err());
    would_block(far.sync(&hurried).err());
    let node = root.lookup(&patient, name("a")).unwrap().node;
    would_block(node.open(&hurried, OFlags::RDONLY, 0).err());
    let handle = node.open(&patient, OFlags::RDWR, 0).unwrap();
    would_block(handle.read(&hurried, &mut [0; 8], 0).err());
    would_block(handle.write(&hurried, b"x", WriteAt::End).err());
    would_block(handle.fsync(&hurried, false).err());
    let listing = root.opendir(&patient).unwrap();
    would_block(listing.read(&hurried, 0, false, &mut List::default()).err());
    assert_eq!(fs::read(ground.path("a")).unwrap(), b"one");
    let late = Call { patience: Patience::at_most(Duration::ZERO), ..Call::own() };
    assert_eq!(failed(root.getattr(&late)), Errno::IO);
    // A near disk serves them all the same.
    ground.dir.root().lookup(&hurried, name("a")).unwrap();
}

#[test]
fn timeouts_are_passed_on_and_bad_roots_are_told() {
    let timeouts = Timeouts { entry: Duration::from_secs(7), attr: Duration::from_millis(1) };
    let ground = Ground::on(Path::new(SHM), Options { timeouts, ..Options::default() });
    assert_eq!(ground.dir.capabilities().timeouts, timeouts);
    fs::write(ground.path("file"), b"").unwrap();
    for (at, errno) in [("none", Errno::NOENT), ("file", Errno::NOTDIR)] {
        let error = Dir::open(&ground.path(at), Options::default()).err().unwrap();
        assert_eq!(error, errno);
        assert!(error.to_string().contains(at), "{error}");
    }
}
