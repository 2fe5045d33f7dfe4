//! Tests of identities, as root; an ordinary user can only be shown to be refused.

use super::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn groups(of: &[u32]) -> Arc<[u32]> {
    Arc::from(of)
}

/// What the kernel says of this thread: file system uid, gid, groups, effective capabilities.
fn told() -> (u32, u32, Vec<u32>, u64) {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let id = |name| field(name)[3].parse().unwrap();
    let groups = field("Groups:").iter().map(|group| group.parse().unwrap()).collect();
    (id("Uid:"), id("Gid:"), groups, u64::from_str_radix(&field("CapEff:")[0], 16).unwrap())
}

#[test]
fn an_ordinary_user_is_refused() {
    if may_assume() {
        assert!(rustix::process::geteuid().is_root());
    } else {
        assert_eq!(assume(1234, 1234, &groups(&[])).err(), Some(Errno::PERM));
        let _own = own();
    }
}

#[test]
fn an_identity_lasts_as_long_as_its_guard_or_is_kept() {
    if !may_assume() {
        return;
    }
    let acting = assume(1234, 1235, &groups(&[5, 6])).unwrap();
    assert_eq!(told().0, 1234);
    drop(acting);
    assert_eq!((told().0, told().1), (0, rustix::process::getegid().as_raw()));
    assume(1234, 1235, &groups(&[5, 6])).unwrap().keep();
    let (uid, gid, now, caps) = told();
    assert_eq!((uid, gid, now), (1234, 1235, vec![5, 6]));
    let caps = CapabilitySet::from_bits_retain(caps);
    assert!(
        !caps.intersects(CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER | CapabilitySet::SYS_RESOURCE)
    );
    drop(own());
    let (uid, gid, _, caps) = told();
    assert_eq!((uid, gid), (0, rustix::process::getegid().as_raw()));
    assert!(CapabilitySet::from_bits_retain(caps).contains(CapabilitySet::DAC_OVERRIDE));
    let before = rustix::thread::capabilities(None).unwrap().permitted;
    assume(0, 7, &groups(&[])).unwrap().keep();
    let (uid, gid, now, caps) = told();
    assert_eq!((uid, gid, now), (0, 7, vec![]));
    let has = CapabilitySet::from_bits_retain(caps).contains(CapabilitySet::SYS_RESOURCE);
    assert_eq!(has, before.contains(CapabilitySet::SYS_RESOURCE));
}

#[test]
fn an_inner_identity_gives_way_to_the_outer_one() {
    if !may_assume() {
        return;
    }
    let outer = assume(1234, 1235, &groups(&[5])).unwrap();
    let before = told();
    {
        let _own = own();
        assert_eq!(told().0, 0);
        let third = assume(99, 98, &groups(&[])).unwrap();
        assert_eq!((told().0, told().1, told().2), (99, 98, vec![]));
        third.keep();
        assert_eq!(told().0, 0);
    }
    assert_eq!(told(), before);
    drop(outer);
    assert_eq!(told().0, 0);
}

#[test]
fn threads_keep_apart_and_a_new_thread_finds_its_way_back() {
    if !may_assume() {
        return;
    }
    std::thread::spawn(|| {
        assume(1234, 1234, &groups(&[])).unwrap().keep();
        let inherited = std::thread::spawn(|| {
            let before = told().0;
            drop(own());
            (before, told().0)
        });
        assert_eq!(inherited.join().unwrap(), (1234, 0));
        assert_eq!(told().0, 1234);
    })
    .join()
    .unwrap();
    assert_eq!(told().0, 0);
}

#[test]
fn files_belong_to_whom_the_thread_acts_as() {
    if !may_assume() {
        return;
    }
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(dir.path().join("secret"), b"1").unwrap();
    fs::set_permissions(dir.path().join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    let acting = assume(1234, 1235, &groups(&[])).unwrap();
    fs::write(dir.path().join("mine"), b"1").unwrap();
    assert!(fs::read(dir.path().join("secret")).is_err());
    drop(acting);
    let made = fs::metadata(dir.path().join("mine")).unwrap();
    assert_eq!((made.uid(), made.gid()), (1234, 1235));
    assert_eq!(fs::read(dir.path().join("secret")).unwrap(), b"1");
}

#[test]
fn a_panic_leaves_no_identity_behind() {
    if !may_assume() {
        return;
    }
    let result = std::panic::catch_unwind(|| {
        let _acting = assume(1234, 1235, &groups(&[])).unwrap();
        panic!("on purpose");
    });
    assert!(result.is_err());
    assert_eq!(told().0, 0);
}

#[test]
fn limits_are_respected_as_asked_and_no_identity_changes() {
    if !may_assume() {
        respect_limits(true).unwrap();
        return;
    }
    let resource = |caps| CapabilitySet::from_bits_retain(caps).contains(CapabilitySet::SYS_RESOURCE);
    let before = told();
    respect_limits(true).unwrap();
    assert!(!resource(told().3));
    respect_limits(false).unwrap();
    assert_eq!(told(), before);
}
