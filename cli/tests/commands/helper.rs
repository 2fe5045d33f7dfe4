//! `mount.hither`, as mount(8) calls it.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::harness::{HITHER, Outcome, Sandbox, hither};

fn mount_hither(sandbox: &Sandbox, arguments: &[&str]) -> Outcome {
    let helper = sandbox.path("mount.hither");
    if !helper.exists() {
        symlink(HITHER, &helper).unwrap();
    }
    Outcome::of(Command::new(helper).args(arguments))
}

#[test]
fn wrong_options_are_named() {
    let sandbox = Sandbox::new();
    let (origin, mnt) = (sandbox.text("origin"), sandbox.text("mnt"));
    let said = mount_hither(&sandbox, &[&origin, &mnt, "-o", "store=/s,capasity=5G"]).failed(2);
    assert!(said.contains("unknown mount option `capasity=5G`"), "{said}");
    assert_eq!(mount_hither(&sandbox, &[&origin]).code, 2);
    let said = mount_hither(&sandbox, &[&origin, &mnt, "-o", "store=/s,capacity=much"]).failed(2);
    assert!(said.contains("`much` is not a size"), "{said}");
    let said = mount_hither(&sandbox, &[&origin, &mnt]).failed(2);
    assert!(said.contains("store=DIR") && said.contains("kind=dir"), "{said}");
    mount_hither(&sandbox, &[&origin, &mnt, "-f", "-o", "store=/s"]).ok();
    assert!(!sandbox.path("store").exists());
}

#[test]
fn a_line_of_fstab_mounts_a_cache() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    let (origin, store, mnt) = (sandbox.text("origin"), sandbox.text("store"), sandbox.text("mnt"));
    let options = format!(
        "rw,kind=cache,store={store},settle=0,capacity=1G,log={},nosuid,nodev,_netdev,nofail,x-systemd.automount",
        sandbox.text("log")
    );
    mount_hither(&sandbox, &[&format!("hither#{origin}"), &mnt, "-o", &options]).ok();
    let status = sandbox.status();
    assert_eq!(status["caches"][0]["capacity_bytes"], 1_u64 << 30);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mounts.lines().find(|line| line.contains(&mnt)).unwrap();
    assert!(line.contains("nosuid") && line.contains("nodev"), "{line}");
    assert!(line.contains(&format!("fuse.hither {origin} ")), "{line}");
    hither(["umount", &mnt]).ok();
}

#[test]
fn a_mount_of_a_file_must_be_where_fstab_says() {
    let sandbox = Sandbox::new();
    let config = sandbox.text("hither.toml");
    let origin = sandbox.text("origin");
    let text = format!("[mount.one]\nmountpoint = \"/elsewhere\"\ntype = \"dir\"\nsource = \"{origin}\"\n");
    std::fs::write(&config, text).unwrap();
    let options = format!("config={config},name=one");
    let said = mount_hither(&sandbox, &["one", &sandbox.text("mnt"), "-o", &options]).failed(2);
    assert!(said.contains("fstab says"), "{said}");
}
