//! `hither cache ...` on a real mount.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::harness::{HITHER, Outcome, Sandbox, hither};

fn cache(sandbox: &Sandbox, words: &[&str]) -> Outcome {
    let mut line = vec!["cache".to_owned()];
    line.extend(words.iter().map(|word| match word.strip_prefix('@') {
        Some(name) => sandbox.text(name),
        None => (*word).to_owned(),
    }));
    hither(line)
}

fn fetched(sandbox: &Sandbox) -> u64 {
    sandbox.status()["caches"][0]["fetched_bytes"].as_u64().unwrap()
}

#[test]
fn state_never_brings_a_file_there() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&[]).ok();
    let told = cache(&sandbox, &["state", "@mnt/a", "@mnt/sub/b", "@mnt/sub", "@mnt"]).ok();
    let states: Vec<&str> = told.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
    assert_eq!(states, ["none, 9.8K", "none, 2.9M", "not a file", "not a file"]);
    assert_eq!(fetched(&sandbox), 0);
    let missing = cache(&sandbox, &["state", "@mnt/a", "@mnt/no"]);
    assert_eq!(missing.code, 2);
    assert!(
        missing.stdout.ends_with("mnt/a: none, 9.8K\n") && missing.stderr.contains("mnt/no"),
        "{missing:?}"
    );
}

#[test]
fn files_are_attached_and_detached() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&[]).ok();
    cache(&sandbox, &["attach", "--wait", "@mnt/a", "@mnt/sub/b"]).ok();
    assert_eq!(
        cache(&sandbox, &["state", "@mnt/sub/b"]).ok(),
        format!("{}: cached, 2.9M\n", sandbox.text("mnt/sub/b"))
    );
    assert_eq!(fetched(&sandbox), 3_010_000);
    cache(&sandbox, &["detach", "@mnt/a"]).ok();
    assert_eq!(sandbox.state_of("mnt/a"), "none");
    assert_eq!(sandbox.status()["caches"][0]["copies"], 1);
    cache(&sandbox, &["attach", "@mnt/a"]).ok();
    sandbox.wait_for_state("mnt/a", "cached");
    cache(&sandbox, &["detach", "--keep", "@mnt/a"]).ok();
    // A directory is none, and is named as it was typed.
    let here = |command: &str| {
        let mut hither = Command::new(HITHER);
        Outcome::of(hither.args(["cache", command, "mnt/sub"]).current_dir(sandbox.path(""))).failed(2)
    };
    assert_eq!(
        here("attach"),
        "hither: mnt/sub: only regular files are cached (`hither cache warm` fetches those of a directory)\n"
    );
    let said = here("detach");
    assert!(
        said.starts_with("hither: mnt/sub: only regular files have copies (of a directory: find"),
        "{said}"
    );
    assert_eq!(sandbox.state_of("mnt/sub/b"), "cached", "and nothing was dropped");
}

#[test]
fn trees_are_warmed_pinned_and_evicted() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&[]).ok();
    // What was done is said where nobody watches, too: a batch job's log.
    let told = cache(&sandbox, &["warm", "@mnt"]).ok();
    assert!(told.starts_with(&format!("warm {}: 3 files, 2.9M in ", sandbox.text("mnt"))), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert_eq!(fetched(&sandbox), 3_010_001);
    let told = cache(&sandbox, &["pin", "@mnt/a"]).ok();
    assert!(told.starts_with(&format!("pin {}: 1 file, 9.8K in ", sandbox.text("mnt/a"))), "{told}");
    assert!(cache(&sandbox, &["state", "@mnt/a"]).ok().contains(", pinned"));
    let mnt = sandbox.text("mnt");
    assert!(cache(&sandbox, &["evict", &mnt]).failed(2).contains("--to SIZE"));
    let evicted = cache(&sandbox, &["evict", "--to", "0", &mnt]);
    assert_eq!(evicted.code, 1, "more remains than was to");
    assert!(evicted.stdout.starts_with("evicted 2 copies, "), "{evicted:?}");
    assert!(evicted.stderr.starts_with("hither: not down to 0: "), "{evicted:?}");
    assert!(evicted.stderr.contains("are pinned"), "{evicted:?}");
    assert!(cache(&sandbox, &["evict", "--to", "1G", &mnt]).ok().starts_with("evicted 0 copies"));
    assert_eq!(sandbox.state_of("mnt/a"), "cached", "pinned copies stay");
    assert_eq!(sandbox.state_of("mnt/sub/b"), "none");
    assert!(cache(&sandbox, &["unpin", "@mnt"]).ok().starts_with("unpin "));
    let told = cache(&sandbox, &["evict", "--to", "0", &mnt]).ok();
    assert!(told.starts_with("evicted 1 copy, ") && told.ends_with("; 0 remain\n"), "{told}");
    // What cannot be read fails, and the rest is done.
    let said = cache(&sandbox, &["warm", "@mnt/sub", "@mnt/nothing"]);
    assert_eq!(said.code, 2);
    assert_eq!(sandbox.state_of("mnt/sub/b"), "cached");
}

/// The files below a directory whose names end so.
fn files(directory: PathBuf, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => files(path, end),
            false if path.to_string_lossy().ends_with(end) => vec![path],
            false => Vec::new(),
        })
        .collect()
}

#[test]
fn verify_finds_a_flipped_bit_and_fetches_the_file_again() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&[]).ok();
    let mnt = sandbox.text("mnt");
    cache(&sandbox, &["warm", "@mnt"]).ok();
    let told = cache(&sandbox, &["verify", &mnt]).ok();
    assert!(told.starts_with("3 copies, 2.9M checked in ") && told.ends_with(": none damaged\n"), "{told}");
    let copies = files(sandbox.path("store"), ".data");
    let large = copies.iter().find(|path| fs::metadata(path).unwrap().len() == 3_000_000).unwrap();
    let mut copy = OpenOptions::new().read(true).write(true).open(large).unwrap();
    let mut byte = [0];
    copy.seek(SeekFrom::Start(2_000_000)).unwrap();
    copy.read_exact(&mut byte).unwrap();
    copy.seek(SeekFrom::Start(2_000_000)).unwrap();
    copy.write_all(&[byte[0] ^ 1]).unwrap();
    drop(copy);
    let verified = cache(&sandbox, &["verify", &mnt]);
    assert_eq!((verified.code, verified.stderr.as_str()), (1, ""));
    assert!(verified.stdout.contains(&format!("damaged: {}\n", sandbox.text("mnt/sub/b"))), "{verified:?}");
    assert!(verified.stdout.ends_with(": 1 damaged, 1 fetched again\n"), "{verified:?}");
    assert_eq!(sandbox.status()["caches"][0]["damaged"], 1, "who looks later hears of it too");
    assert!(hither(["status", &mnt]).ok().contains("1 copy found damaged"));
    assert!(hither(["status", &mnt]).ok().contains("are kept free (min-free)"));
    cache(&sandbox, &["verify", &mnt]).ok();
    assert_eq!(fs::read(sandbox.path("mnt/sub/b")).unwrap(), fs::read(sandbox.path("origin/sub/b")).unwrap());
}

#[test]
fn rules_are_listed_added_and_removed() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&["--rule", "all: cache all"]).ok();
    let mnt = sandbox.text("mnt");
    let list = || cache(&sandbox, &["rules", "list", &mnt]).ok();
    assert_eq!(list(), "all: cache all\n");
    cache(&sandbox, &["rules", "add", "small: bypass fname={a}", "--before", "all", "--mount", &mnt]).ok();
    assert_eq!(list(), "small: bypass fname={a}\nall: cache all\n");
    fs::read(sandbox.path("mnt/a")).unwrap();
    fs::read(sandbox.path("mnt/sub/c")).unwrap();
    sandbox.wait_for_state("mnt/sub/c", "cached");
    assert_eq!(sandbox.state_of("mnt/a"), "none");
    assert!(cache(&sandbox, &["state", "@mnt/a"]).ok().contains("no rule says"));
    let said = cache(&sandbox, &["rules", "add", "all: bypass all", "--mount", &mnt]).failed(2);
    assert!(said.contains("all"), "{said}");
    assert!(cache(&sandbox, &["rules", "add", "bypass size>", "--mount", &mnt]).failed(2).contains("^"));
    cache(&sandbox, &["rules", "del", "small", "--mount", &mnt]).ok();
    assert!(cache(&sandbox, &["rules", "del", "small", "--mount", &mnt]).failed(2).contains("small"));
    let json: Value =
        serde_json::from_str(&cache(&sandbox, &["rules", "list", "--json", &mnt]).ok()).unwrap();
    assert_eq!(json, serde_json::json!(["all: cache all"]));
}

#[test]
fn names_of_any_bytes_can_be_asked_about() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    let name = OsStr::from_bytes(b"caf\xe9\n\"x\"");
    fs::write(sandbox.path("origin").join(name), "bytes").unwrap();
    sandbox.mount_cache(&[]).ok();
    let path = sandbox.path("mnt").join(name);
    hither(["cache".as_ref(), "attach".as_ref(), "--wait".as_ref(), path.as_os_str()]).ok();
    let told = hither(["cache".as_ref(), "state".as_ref(), "--json".as_ref(), path.as_os_str()]).ok();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told[0]["state"], "cached");
    assert_eq!(told[0]["path"], serde_json::json!(name.as_bytes()));
}

#[test]
fn a_symbolic_link_stands_for_what_it_leads_to_and_a_bind_mount_for_its_source() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&[]).ok();
    std::os::unix::fs::symlink(sandbox.path("mnt/sub/c"), sandbox.path("link")).unwrap();
    cache(&sandbox, &["attach", "--wait", "@link"]).ok();
    assert_eq!(sandbox.state_of("mnt/sub/c"), "cached");
    fs::create_dir(sandbox.path("bind")).unwrap();
    rustix::mount::mount_bind(sandbox.path("mnt/sub"), sandbox.path("bind")).unwrap();
    let told = cache(&sandbox, &["state", "@bind/c"]);
    rustix::mount::unmount(sandbox.path("bind"), rustix::mount::UnmountFlags::DETACH).unwrap();
    assert!(told.ok().contains("bind/c: cached"));
}

#[test]
fn what_is_said_over_the_socket_by_hand_is_answered_in_lines() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&[]).ok();
    let mut socket = UnixStream::connect(format!("/run/hither/{}.socket", sandbox.pid())).unwrap();
    let mut answers = BufReader::new(socket.try_clone().unwrap()).lines();
    let mut ask = |line: &str| -> Value {
        writeln!(socket, "{line}").unwrap();
        serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap()
    };
    assert!(ask("hello")["error"]["message"].is_string());
    assert_eq!(ask(r#"{"version":1,"operation":"status"}"#)["done"]["status"]["kind"], "cache");
    for path in ["../../etc/passwd", "/etc/passwd", "a/../../x", ".."] {
        let answer = ask(&format!(r#"{{"version":1,"operation":"state","path":"{path}"}}"#));
        assert!(answer["error"]["message"].is_string(), "{path}: {answer}");
    }
    // The daemon is well after all that.
    drop(File::open(sandbox.path("mnt/a")).unwrap());
    hither(["umount", &sandbox.text("mnt")]).ok();
}
