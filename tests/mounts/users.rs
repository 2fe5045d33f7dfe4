//! An ordinary user mounts, through fusermount3 and without passthrough, and works.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hither_tests::mount::{Mount, User};
use hither_tests::needs_mounts;
use hither_tests::place::Place;
use hither_tests::program::{hither, output};

/// `nobody`, whom every Linux has.
const NOBODY: u32 = 65534;

/// In a mount namespace of its own, a /dev/fuse as udev makes it; then a test of this program. (Mounts are made private one
/// by one: below chroot(1) the root need not be one, and then unshare(1) cannot.)
const WITH_FUSE: &str = "\
cut -d' ' -f5 /proc/self/mountinfo | while read -r at; do mount --make-private \"$at\" 2>/dev/null || :; done
mount -t tmpfs -o mode=755 none \"$HITHER_TESTS_DEV\"
mknod -m 666 \"$HITHER_TESTS_DEV/fuse\" c 10 229
mount --bind \"$HITHER_TESTS_DEV/fuse\" /dev/fuse
exec \"$0\" --exact \"$1\" --nocapture";

/// Whether this process is to go on with the test. Where users have no access to /dev/fuse (no udev), the test runs
/// in another process that has one of its own, and must pass there.
fn has_fuse_for_users(test: &str) -> bool {
    let mode = fs::metadata("/dev/fuse").unwrap().permissions().mode();
    if mode & 0o006 == 0o006 {
        return true;
    }
    let place = Place::new().unwrap();
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "unchanged", "/bin/sh", "-euc", WITH_FUSE]);
    unshare.arg(std::env::current_exe().unwrap()).arg(format!("users::{test}"));
    let said = output(unshare.env("HITHER_TESTS_DEV", place.folder("dev").unwrap())).unwrap();
    assert!(said.contains("1 passed"), "{said}");
    false
}

struct Home {
    place: Place,
    user: User,
}

impl Home {
    fn new() -> Self {
        let place = Place::new().unwrap();
        let program = place.path().join("hither");
        fs::copy(hither().unwrap(), &program).unwrap();
        for folder in ["tree", "store", "mnt"] {
            let path = place.folder(folder).unwrap();
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        chown(place.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        Home { user: User { uid: NOBODY, hither: program }, place }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn mount(&self, cache: bool) -> Mount {
        let (tree, mnt) = (self.path("tree"), self.path("mnt"));
        let mount = if cache {
            let options = ["--settle", "100ms"];
            Mount::cache_by(self.user.clone(), &tree, &self.path("store"), &mnt, &options)
        } else {
            Mount::dir_by(self.user.clone(), &tree, &mnt, &[])
        };
        mount.unwrap()
    }

    /// A script as the user, in a folder.
    fn script(&self, folder: &Path, script: &str) -> String {
        let uid = NOBODY.to_string();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &uid, "--regid", &uid, "--clear-groups"]);
        // The user goes there themselves: root may not.
        command.args(["sh", "-euc", &format!("cd \"$1\"; {script}"), "sh"]).arg(folder);
        output(command.env("HOME", self.place.path())).unwrap()
    }
}

/// Things that programs do, printing what they see.
const WORK: &str = "
    mkdir -p a/b; seq 1 100000 > a/numbers; ln a/numbers a/b/hard; ln -s numbers a/soft; chmod 640 a/numbers
    sort -rn a/soft | head -3; stat -c '%a %u %g %h %s' a/numbers
    cp a/numbers a/copy; cmp a/numbers a/copy; mv a/copy a/b/moved; echo more >> a/b/moved; tail -1 a/b/moved
    tar -cf t.tar a; mkdir out; tar -C out -xf t.tar; diff -r a out/a; rm -r out t.tar
    find . | sort; cat a/numbers a/numbers | md5sum; rm -r a; ls -a";

#[test]
fn an_ordinary_user_works_in_a_mount_of_their_own() {
    needs_mounts!("fusermount3", "setpriv", "unshare");
    if !has_fuse_for_users("an_ordinary_user_works_in_a_mount_of_their_own") {
        return;
    }
    let home = Home::new();
    let expected = home.script(&home.path("tree"), WORK);
    for cache in [false, true] {
        let mut mount = home.mount(cache);
        let status = mount.status().unwrap();
        assert_eq!(status["uid"], NOBODY);
        assert_ne!(status["data_path"], "passthrough", "only root may hand files to the kernel: {status:#}");
        assert_ne!(status["data_path_reason"], "", "why not is said: {status:#}");
        assert_eq!(home.script(mount.path(), WORK), expected);
        // Not even root looks into an ordinary user's mount that does not say --allow-other.
        let refused = fs::read_dir(mount.path()).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
        mount.unmount().unwrap();
    }
}

#[test]
fn an_ordinary_users_cache_hits_survives_a_kill_and_cannot_do_more_than_they_can() {
    needs_mounts!("fusermount3", "setpriv", "unshare");
    let test = "an_ordinary_users_cache_hits_survives_a_kill_and_cannot_do_more_than_they_can";
    if !has_fuse_for_users(test) {
        return;
    }
    let home = Home::new();
    let tree = home.path("tree");
    fs::write(tree.join("f"), vec![b'x'; 3 << 20]).unwrap();
    fs::write(tree.join("roots"), "secret").unwrap();
    fs::set_permissions(tree.join("roots"), fs::Permissions::from_mode(0o600)).unwrap();
    std::thread::sleep(Duration::from_millis(150));
    let mut mount = home.mount(true);
    let sum = home.script(mount.path(), "md5sum < f");
    mount.wait_until("/caches/0/fills", |fills| fills == 1).unwrap();
    assert_eq!(home.script(mount.path(), "md5sum < f"), sum);
    assert_eq!(mount.count("/caches/0/hits").unwrap(), 1);
    assert_eq!(home.script(mount.path(), "cat roots 2>&1 || true"), "cat: roots: Permission denied\n");

    mount.kill().unwrap();
    mount.again().unwrap();
    assert_eq!(home.script(mount.path(), "md5sum < f"), sum);
    assert_eq!(mount.count("/caches/0/hits").unwrap(), 1, "the copy survived");
    mount.unmount().unwrap();
}
