//! What users other than root may do.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use crate::harness::{NOBODY, Outcome, Sandbox, hither, hither_as_nobody, skip};

#[test]
fn others_may_fetch_what_they_may_read_and_steer_nothing() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    fs::write(sandbox.path("origin/secret"), "secret").unwrap();
    fs::set_permissions(sandbox.path("origin/secret"), Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(sandbox.path("origin/closed")).unwrap();
    fs::write(sandbox.path("origin/closed/f"), "hidden").unwrap();
    fs::set_permissions(sandbox.path("origin/closed"), Permissions::from_mode(0o700)).unwrap();
    sandbox.mount_cache(&[]).ok();
    let nobody = |words: &[&str]| Outcome::of(hither_as_nobody(&sandbox).args(words));
    let (a, secret, mnt) = (sandbox.text("mnt/a"), sandbox.text("mnt/secret"), sandbox.text("mnt"));
    nobody(&["cache", "attach", "--wait", &a]).ok();
    assert!(nobody(&["cache", "state", &a]).ok().contains("cached"));
    assert!(nobody(&["status", &mnt]).ok().contains("pid"));
    let said = nobody(&["cache", "attach", "--wait", &secret]).failed(1);
    assert!(said.to_lowercase().contains("permission denied"), "{said}");
    assert_eq!(sandbox.state_of("mnt/secret"), "none");
    assert!(nobody(&["cache", "state", &sandbox.text("mnt/closed/f")]).code > 0);
    for words in [
        &["cache", "detach", &a][..],
        &["cache", "pin", &a],
        &["cache", "evict", "--to", "0", &mnt],
        &["cache", "verify", &mnt],
        &["cache", "rules", "list", &mnt],
        &["umount", &mnt],
    ] {
        let said = nobody(words).failed(1);
        assert!(said.contains("permission denied"), "{words:?}: {said}");
    }
    assert!(sandbox.is_mounted());
    // What nobody may not read stays unread by warming, too.
    assert_eq!(nobody(&["cache", "warm", &mnt]).code, 1);
    assert_eq!(sandbox.state_of("mnt/secret"), "none");
    assert_eq!(sandbox.state_of("mnt/sub/b"), "cached");
    hither(["umount", &mnt]).ok();
}

#[test]
fn an_origin_that_the_user_may_not_list_is_refused() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    fs::set_permissions(sandbox.path("origin"), Permissions::from_mode(0o711)).unwrap();
    chown(sandbox.path("mnt"), Some(NOBODY), Some(NOBODY)).unwrap();
    fs::create_dir(sandbox.path("stores")).unwrap();
    chown(sandbox.path("stores"), Some(NOBODY), Some(NOBODY)).unwrap();
    let (origin, store, mnt) = (sandbox.text("origin"), sandbox.text("stores/s"), sandbox.text("mnt"));
    let log = sandbox.text("stores/log");
    let mut command = hither_as_nobody(&sandbox);
    command.args(["mount", "cache", "--origin", &origin, "--store", &store, "--log", &log, &mnt]);
    let said = Outcome::of(&mut command).failed(2);
    let why = "cannot be used: Permission denied (os error 13)\n";
    assert_eq!(said, format!("hither: the origin {origin} {why}"));
    assert!(!sandbox.path("stores/s").exists() && !sandbox.is_mounted());
}

#[test]
fn an_ordinary_user_mounts_for_himself() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    let helper = fs::metadata("/usr/bin/fusermount3").or_else(|_| fs::metadata("/bin/fusermount3"));
    if !helper.is_ok_and(|found| found.permissions().mode() & 0o4000 != 0) {
        skip("needs fusermount3, set-user-id");
        return;
    }
    if fs::metadata("/dev/fuse").unwrap().permissions().mode() & 0o006 != 0o006 {
        skip("needs a /dev/fuse that users may open (chmod 666 /dev/fuse)");
        return;
    }
    for name in ["mnt", "origin", "stores"] {
        let _ = fs::create_dir(sandbox.path(name));
        chown(sandbox.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let nobody = |words: &[&str]| Outcome::of(hither_as_nobody(&sandbox).args(words));
    let (origin, store, mnt) = (sandbox.text("origin"), sandbox.text("stores/s"), sandbox.text("mnt"));
    let log = sandbox.text("stores/log");
    nobody(&["mount", "cache", "--origin", &origin, "--store", &store, "--settle", "0", "--log", &log, &mnt])
        .ok();
    let a = sandbox.text("mnt/a");
    nobody(&["cache", "attach", "--wait", &a]).ok();
    let told = nobody(&["status", &mnt]).ok();
    assert!(told.contains("needs CAP_SYS_ADMIN"), "{told}");
    assert!(nobody(&["status"]).stdout.contains(&mnt));
    assert!(Path::new(&format!("/tmp/hither-{NOBODY}")).is_dir());
    // Root may ask and unmount.
    assert!(hither(["status", &mnt]).ok().contains("cache"));
    nobody(&["umount", &mnt]).ok();
    assert!(!sandbox.is_mounted());
    let _ = fs::remove_dir(format!("/tmp/hither-{NOBODY}"));
}
