//! `hither mount --config`.

use std::fs;

use crate::harness::{Sandbox, hither};

fn write(sandbox: &Sandbox, text: &str) -> String {
    let text = text.replace("SANDBOX", sandbox.text("").trim_end_matches('/'));
    fs::write(sandbox.path("hither.toml"), text).unwrap();
    sandbox.text("hither.toml")
}

const TWO: &str = r#"
[mount.one]
mountpoint = "SANDBOX/mnt"
type = "cache"
origin = { type = "dir", source = "SANDBOX/origin" }
store = "SANDBOX/store"
settle = 0
rules = ["bypass fname={c}", "all"]
read-only = true
log = "SANDBOX/log"

[mount.two]
mountpoint = "SANDBOX/mnt"
type = "dir"
source = "SANDBOX/origin"
"#;

#[test]
fn mistakes_have_a_line_and_a_column() {
    let sandbox = Sandbox::new();
    let file = write(&sandbox, &TWO.replace("settle = 0", "  setle = 0"));
    let said = hither(["mount", "--config", &file, "one"]).failed(2);
    assert!(
        said.contains(&format!("{file}:7:3: unknown key `setle` in [mount.one]: did you mean `settle`?")),
        "{said}"
    );
    assert!(said.contains("7 |   setle = 0\n"), "{said}");
    let file = write(&sandbox, &TWO.replace("[\"bypass fname={c}\"", "[\"bypass fname={c\""));
    let said = hither(["mount", "--config", &file]).failed(2);
    assert!(said.contains(":8:") && said.contains("expected"), "{said}");
    let file = write(&sandbox, "[mount.one\n");
    assert!(hither(["mount", "--config", &file]).failed(2).contains(":1:11:"));
}

#[test]
fn the_mount_is_chosen_by_name() {
    let sandbox = Sandbox::new();
    let file = write(&sandbox, TWO);
    assert!(hither(["mount", "--config", &file]).failed(2).contains("name one of one, two"));
    assert!(hither(["mount", "--config", &file, "three"]).failed(2).contains("it has one, two"));
    assert!(hither(["mount", "--config", "/nowhere.toml"]).failed(2).contains("/nowhere.toml"));
    assert_eq!(hither(["mount", "three"]).code, 2);
    assert_eq!(
        hither(["mount", "--config", &file, "one", "--read-only"]).code,
        2,
        "flags are for the other way"
    );
}

#[test]
fn a_mount_from_a_file_is_like_one_from_flags() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    let file = write(&sandbox, TWO);
    hither(["mount", "--config", &file, "one"]).ok();
    let status = sandbox.status();
    assert_eq!((&status["kind"], &status["read_only"]), (&"cache".into(), &true.into()));
    assert_eq!(status["source"], sandbox.text("origin"));
    assert!(fs::write(sandbox.path("mnt/new"), "").is_err(), "it is read-only");
    fs::read(sandbox.path("mnt/a")).unwrap();
    sandbox.wait_for_state("mnt/a", "cached");
    fs::read(sandbox.path("mnt/sub/c")).unwrap();
    assert_eq!(sandbox.state_of("mnt/sub/c"), "none");
    hither(["umount", &sandbox.text("mnt")]).ok();
    hither(["mount", "--config", &file, "two"]).ok();
    assert_eq!(sandbox.status()["kind"], "dir");
    hither(["umount", &sandbox.text("mnt")]).ok();
}
