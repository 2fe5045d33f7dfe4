//! What needs no mount: help, exit codes, generated files, the doctor.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{HITHER, Outcome, Sandbox, hither, skip};

#[test]
fn help_is_for_a_person_with_a_deadline() {
    let help = hither(["--help"]).ok();
    let first: Vec<&str> = help.lines().take(5).collect();
    assert!(first[0].contains("slow"), "{help}");
    assert!(first[2..5].iter().all(|line| line.starts_with("  hither ")), "{help}");
    assert!(help.contains("Exit codes: 0 done, 1 failed, 2 wrong usage"), "{help}");
    for command in ["mount", "umount", "status", "cache", "doctor"] {
        hither([command, "--help"]).ok();
    }
    assert_eq!(hither(["--version"]).ok(), format!("hither {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_is_2() {
    for line in [
        &["dance"][..],
        &["mount"],
        &["mount", "cache", "/mnt"],
        &["mount", "dir", "/a"],
        &["mount", "cache", "--origin", "/a", "--store", "/b", "--revalidate", "1s", "--immutable", "/m"],
        &["umount"],
        &["cache", "state"],
        &["cache", "warm"],
        &["status", "/m", "--jsn"],
        &["completions", "csh"],
    ] {
        let outcome = hither(line);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{line:?}: {}", outcome.stderr);
    }
    assert_eq!(hither::<&str>([]).code, 2);
}

#[test]
fn values_of_a_wrong_form_are_explained() {
    let mount = |flag: &str, value: &str| {
        hither(["mount", "cache", "--origin", "/o", "--store", "/s", flag, value, "/m"]).failed(2)
    };
    assert!(mount("--capacity", "5X").contains("`5X` is not a size: write 512, 64K"));
    assert!(mount("--revalidate", "soon").contains("`soon` is not a time: write 500ms, 1s"));
    assert!(mount("--min-free", "120%").contains("`120%` is not a share"));
    assert!(mount("--quota", "100=5G").contains("write `projid 100`"));
    assert!(mount("--metrics", "here").contains("write 9101 or 127.0.0.1:9101"));
    let rule = mount("--rule", "projid={100");
    assert!(
        rule.contains("  projid={100\n") && rule.contains("             ^"),
        "a caret under the place: {rule}"
    );
}

#[test]
fn paths_that_are_not_there_are_2() {
    assert!(hither(["status", "/nowhere"]).failed(2).contains("/nowhere"));
    assert!(hither(["umount", "/proc"]).failed(2).contains("not a mount point of hither"));
    assert!(hither(["cache", "state", "/etc/passwd"]).failed(2).contains("does not lie on a mount"));
    assert!(hither(["cache", "warm", "/no/such"]).failed(2).contains("/no/such"));
    let mount =
        |origin, store, mnt| hither(["mount", "cache", "--origin", origin, "--store", store, mnt]).failed(2);
    assert!(mount("/nowhere", "/dev/shm/hither-test-store", "/mnt").contains("origin /nowhere"));
    assert!(mount("/etc", "/nowhere/store", "/mnt").contains("store /nowhere"));
    assert!(mount("/etc", "/dev/shm/hither-test-store", "/nowhere").contains("mount point /nowhere"));
    assert!(mount("/etc", "/etc/store", "/mnt").contains("they must be apart"));
    assert!(mount("/etc", "/mnt/store", "/mnt").contains("they must be apart"));
}

/// The first mistakes that anybody makes: each is said once, on one line, with the exit code of wrong usage.
#[test]
fn first_mistakes_are_explained_once() {
    let sandbox = Sandbox::new();
    let (origin, store, mnt) = (sandbox.text("origin"), sandbox.text("store"), sandbox.text("mnt"));
    let log = sandbox.text("log");
    let mount = |origin: &str, store: &str, more: &[&str]| {
        let mut line = vec!["mount", "cache", "--origin", origin, "--store", store, "--log", &log, &mnt];
        line.extend(more);
        let said = hither(line).failed(2);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.matches("os error").count() <= 1, "{said}");
        said
    };
    let said = mount("/nope", &store, &[]);
    assert_eq!(said, "hither: the origin /nope cannot be used: No such file or directory (os error 2)\n");
    let said = mount(&sandbox.text("origin/a"), &store, &[]);
    assert!(said.ends_with("origin/a cannot be used: not a directory\n"), "{said}");
    let said = mount(&origin, "/nope/a/b", &[]);
    assert!(said.contains("the store /nope/a/b") && said.contains("/nope/a does not exist"), "{said}");
    for (flag, value, bounds) in [
        ("--threads", "100000", "from 1 to 256"),
        ("--threads", "0", "from 1 to 256"),
        ("--fetches", "1000000", "from 1 to 1024"),
        ("--fetches", "0", "from 1 to 1024"),
        ("--capacity", "0", "nothing would be cached"),
        ("--max-file", "0", "nothing would be cached"),
        ("--min-free", "100%", "nothing would be cached"),
        ("--high-water", "0", "above `high-water`"),
        ("--read-ahead", "5T", "at most 1G"),
        ("--sync-every", "0", "at least 10ms"),
        ("--origin-timeout", "0", "in time"),
    ] {
        let said = mount(&origin, &store, &[flag, value]);
        assert!(said.contains(bounds), "{flag} {value}: {said}");
        assert!(said.contains(flag.trim_start_matches("--")), "{said}");
    }
    assert!(!sandbox.path("store").exists() && !sandbox.is_mounted());
}

#[test]
fn a_mount_of_nothing_is_asked_what_it_is_to_mount() {
    for line in [
        &["mount"][..],
        &["mount", "/lustre/proj", "/mnt"],
        &["mount", "cach", "--origin", "/lustre/proj", "--store", "/nvme", "/mnt"],
        &["mount", "--origin", "/lustre/proj", "--store", "/nvme", "/mnt"],
        &["mount", "proj"],
    ] {
        let said = hither(line).failed(2);
        assert!(
            said.contains("mount what?") && said.contains("hither mount cache --origin"),
            "{line:?}: {said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    assert!(hither(["mount", "--help"]).ok().contains("--config"));
    assert!(hither(["mount", "cache"]).failed(2).contains("--origin"));
}

#[test]
fn completions_are_scripts() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = hither(["completions", shell]).ok();
        assert!(script.contains("revalidate"), "{shell}");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("hither.bash");
    fs::write(&file, hither(["completions", "bash"]).ok()).unwrap();
    let checked = Outcome::of(Command::new("bash").arg("-n").arg(&file));
    assert_eq!((checked.code, checked.stderr.as_str()), (0, ""));
}

#[test]
fn manual_pages_are_made_of_every_command() {
    assert!(hither(["man"]).ok().contains(".TH HITHER 1"));
    let dir = tempfile::tempdir().unwrap();
    hither(["man".as_ref(), dir.path().as_os_str()]).ok();
    let page = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert!(page("hither.1").contains("hither\\-mount(1)"));
    assert!(page("hither-mount-cache.1").contains("\\-\\-revalidate"));
    assert!(page("hither-cache-rules-add.1").contains("RULE"));
    assert!(!page("hither-mount-cache.1").contains("detached"), "what is hidden stays so");
    let new = dir.path().join("share/man/man1");
    hither(["man".as_ref(), new.as_os_str()]).ok();
    assert!(new.join("hither-umount.1").is_file());
    let file = dir.path().join("hither.1");
    let said = hither(["man".as_ref(), file.as_os_str()]).failed(2);
    assert!(said.contains("is not a directory"), "{said}");
    let checked = Command::new("groff").args(["-man", "-Tutf8", "-ww"]).arg(new.join("hither.1")).output();
    if let Ok(checked) = checked {
        let (shown, warned) = (String::from_utf8(checked.stdout), String::from_utf8(checked.stderr));
        assert_eq!(warned.unwrap(), "");
        assert!(shown.unwrap().contains("hither mount cache --origin /lustre/proj --store"));
    } else {
        skip("needs groff to read a manual page as people see it");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    for line in [&["completions", "bash"][..], &["man"], &["--help"], &["doctor"], &["status"]] {
        let mut child =
            Command::new(HITHER).args(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{line:?}");
    }
}

#[test]
fn the_doctor_says_what_to_do_about_each_no() {
    let outcome = hither(["doctor", "--json", "/dev/shm", "/proc"]);
    let findings: Vec<Value> = serde_json::from_str(&outcome.stdout).unwrap();
    let find = |name: &str, directory: Option<&str>| {
        let found = findings.iter().find(|finding| {
            finding["name"] == name && finding.get("directory").and_then(Value::as_str) == directory
        });
        found.unwrap_or_else(|| panic!("no {name} in {findings:#?}"))
    };
    for finding in &findings {
        assert!(
            finding["ok"] == true || finding["advice"].as_str().is_some_and(|text| text.len() > 10),
            "{finding}"
        );
    }
    let hopeless = findings.iter().any(|finding| finding["needed"] == true && finding["ok"] == false);
    assert_eq!(outcome.code, i32::from(hopeless));
    let told = hither(["doctor"]).stdout;
    assert_eq!(told.contains("hither works here"), !hopeless, "{told}");
    for name in ["kernel", "FUSE over io_uring", "fusermount3", "user_allow_other", "mounting", "/dev/fuse"] {
        find(name, None);
    }
    assert_eq!(find("file handles", Some("/dev/shm"))["ok"], true);
    assert_eq!(find("leases", Some("/dev/shm"))["ok"], true);
    assert_eq!(find("file handles", Some("/proc"))["ok"], false);
    let left = fs::read_dir("/dev/shm").unwrap().flatten().map(|entry| entry.file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with(".hither-doctor")));
    assert_eq!(hither(["doctor", "/nowhere"]).code, 1);
}
