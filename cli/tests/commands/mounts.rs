//! Mounts from their beginning to their end, good and bad.

use std::fs::{self, File};
use std::io::{IsTerminal, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::harness::{HITHER, Sandbox, content, hither, is_alive, kill, wait_until};

#[test]
fn a_plain_directory_is_mounted_used_and_unmounted() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    let (origin, mnt) = (sandbox.text("origin"), sandbox.text("mnt"));
    let log = sandbox.text("log");
    assert_eq!(hither(["mount", "dir", "--log", &log, &origin, &mnt]).ok(), "", "quiet when all is well");
    assert_eq!(fs::read(sandbox.path("mnt/sub/b")).unwrap(), content("origin/sub/b", 3_000_000));
    fs::write(sandbox.path("mnt/new"), "written").unwrap();
    assert_eq!(fs::read(sandbox.path("origin/new")).unwrap(), b"written");
    let status = sandbox.status();
    assert_eq!((&status["kind"], &status["source"]), (&"dir".into(), &origin.as_str().into()));
    assert!(["passthrough", "page-cache"].contains(&status["data_path"].as_str().unwrap()));
    assert_eq!(status["log"], log.as_str());
    assert!(status["front_end"]["requests"].as_u64().unwrap() > 5);
    assert!(status["caches"].as_array().unwrap().is_empty());
    let told = hither(["status", &mnt]).ok();
    assert!(told.contains(&origin) && told.contains("data path"), "{told}");
    assert!(hither(["status"]).stdout.contains(&mnt));
    assert!(hither(["cache", "state", &sandbox.text("mnt/a")]).failed(2).contains("without a cache"));
    let pid = sandbox.pid();
    hither(["umount", &mnt]).ok();
    assert!(!sandbox.is_mounted());
    assert!(!is_alive(pid), "umount waits until the daemon has ended");
    for left in ["json", "socket"] {
        assert!(!Path::new(&format!("/run/hither/{pid}.{left}")).exists());
    }
    assert!(fs::read_to_string(log).unwrap().contains("ended"));
}

#[test]
fn copies_outlive_the_mount() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&[]).ok();
    for file in ["mnt/a", "mnt/sub/b"] {
        fs::read(sandbox.path(file)).unwrap();
        sandbox.wait_for_state(file, "cached");
    }
    let cache = &sandbox.status()["caches"][0];
    assert_eq!(cache["fetched_bytes"], 3_010_000);
    hither(["umount", &sandbox.text("mnt")]).ok();
    sandbox.mount_cache(&[]).ok();
    assert_eq!(fs::read(sandbox.path("mnt/sub/b")).unwrap(), content("origin/sub/b", 3_000_000));
    let cache = &sandbox.status()["caches"][0];
    assert_eq!((&cache["hits"], &cache["fetched_bytes"]), (&1.into(), &0.into()), "{cache:#}");
    hither(["umount", &sandbox.text("mnt")]).ok();
}

#[test]
fn what_lies_in_the_mount_point_is_hidden_with_a_word_and_never_by_an_empty_origin() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    let mnt = sandbox.text("mnt");
    for name in ["mnt/mine", "mnt/too"] {
        fs::write(sandbox.path(name), "precious").unwrap();
    }
    fs::create_dir(sandbox.path("empty")).unwrap();
    let (empty, store, log) = (sandbox.text("empty"), sandbox.text("store"), sandbox.text("log"));
    for line in [
        &["mount", "cache", "--origin", &empty, "--store", &store, "--log", &log, &mnt][..],
        &["mount", "dir", "--log", &log, &empty, &mnt],
    ] {
        let said = hither(line).failed(2);
        assert!(said.contains("did you swap the origin and the mount point?"), "{said}");
        assert!(!sandbox.is_mounted() && !sandbox.path("store").exists());
    }
    let mounted = sandbox.mount_cache(&[]);
    assert_eq!((mounted.code, mounted.stdout.as_str()), (0, ""));
    assert_eq!(
        mounted.stderr,
        format!(
            "hither: warning: {mnt} is not empty: its 2 entries are hidden until `hither umount {mnt}`\n"
        )
    );
    assert!(fs::read_to_string(sandbox.path("log")).unwrap().contains("hides"));
    assert!(!sandbox.path("mnt/mine").exists());
    hither(["umount", &mnt]).ok();
    assert_eq!(fs::read(sandbox.path("mnt/mine")).unwrap(), b"precious");
}

#[test]
fn a_store_of_another_origin_is_refused_once_with_the_command_that_helps() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&[]).ok();
    hither(["umount", &sandbox.text("mnt")]).ok();
    fs::create_dir(sandbox.path("other")).unwrap();
    let (other, store) = (sandbox.text("other"), sandbox.text("store"));
    let (mnt, log) = (sandbox.text("mnt"), sandbox.text("log"));
    let mount = || hither(["mount", "cache", "--origin", &other, "--store", &store, "--log", &log, &mnt]);
    let said = mount().failed(2);
    assert_eq!(said.matches("holds copies of").count(), 1, "{said}");
    assert!(!said.contains("busy"), "{said}");
    let command = said.split("rm -r ").nth(1).unwrap().trim_end().trim_end_matches(')');
    assert_eq!(command, store);
    fs::remove_dir_all(command).unwrap();
    mount().ok();
    hither(["umount", &mnt]).ok();
}

#[test]
fn timeouts_are_seen_and_answers_that_are_no_failures_are_none() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&["--origin-timeout", "5s"]).ok();
    let file = File::open(sandbox.path("mnt/a")).unwrap();
    assert!(!file.is_terminal());
    assert!(fs::read(sandbox.path("mnt/no")).is_err());
    let status = sandbox.status();
    let operations = status["front_end"]["operations"].as_array().unwrap();
    assert!(operations.iter().any(|one| one["operation"] == "ioctl" && one["errors"] == 0), "{operations:?}");
    assert_eq!((&status["front_end"]["errors"], &status["origin_timeout_ms"]), (&0.into(), &5000.into()));
    let told = hither(["status", &sandbox.text("mnt")]).ok();
    assert!(told.contains("0 failed, 0 of them for want of an answer within 5s"), "{told}");
}

#[test]
fn a_store_of_a_mount_that_lingers_is_no_riddle() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&[]).ok();
    let pid = sandbox.pid();
    let open = File::open(sandbox.path("mnt/a")).unwrap();
    hither(["umount", "--lazy", &sandbox.text("mnt")]).ok();
    let said = sandbox.mount_cache(&[]).failed(1);
    assert!(said.contains(&format!("still in use by process {pid}, whose mount at")), "{said}");
    drop(open);
    wait_until("the daemon has ended", || !is_alive(pid));
    sandbox.mount_cache(&[]).ok();
    hither(["umount", &sandbox.text("mnt")]).ok();
}

#[test]
fn a_store_on_a_mount_of_hither_is_refused_and_not_made() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    let (origin, mnt, log) = (sandbox.text("origin"), sandbox.text("mnt"), sandbox.text("log"));
    hither(["mount", "dir", "--log", &log, &origin, &mnt]).ok();
    for name in ["origin2", "mnt2"] {
        fs::create_dir(sandbox.path(name)).unwrap();
    }
    let (origin2, mnt2, store) = (sandbox.text("origin2"), sandbox.text("mnt2"), sandbox.text("mnt/store"));
    let log2 = sandbox.text("log2");
    let line = ["mount", "cache", "--origin", &origin2, "--store", &store, "--log", &log2, &mnt2];
    let said = hither(line).failed(2);
    assert!(said.contains("lies on a mount of hither") && said.contains(&mnt), "{said}");
    assert!(!sandbox.path("origin/store").exists());
    assert!(!sandbox.path("log2").exists(), "a mount that never was leaves no empty log");
    hither(["umount", &mnt]).ok();
}

#[test]
fn several_are_unmounted_at_once_and_one_that_cannot_be_does_not_stop_it() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    let (origin, mnt) = (sandbox.text("origin"), sandbox.text("mnt"));
    fs::create_dir(sandbox.path("mnt2")).unwrap();
    let mnt2 = sandbox.text("mnt2");
    for (mountpoint, log) in [(&mnt, "log"), (&mnt2, "log2")] {
        hither(["mount", "dir", "--log", &sandbox.text(log), &origin, mountpoint]).ok();
    }
    let said = hither(["umount", &mnt, "/proc", &mnt2]).failed(2);
    assert!(said.contains("/proc is not a mount point of hither"), "{said}");
    assert!(!sandbox.is_mounted() && !crate::harness::is_mounted(Path::new(&mnt2)));
}

#[test]
fn a_second_mount_on_a_store_is_refused_with_the_owner_s_pid() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&[]).ok();
    let pid = sandbox.pid();
    fs::create_dir(sandbox.path("mnt2")).unwrap();
    let (origin, store) = (sandbox.text("origin"), sandbox.text("store"));
    let second = sandbox.text("mnt2");
    let log = sandbox.text("log2");
    for more in [&["--foreground"][..], &[]] {
        let mut line = vec!["mount", "cache", "--origin", &origin, "--store", &store, "--log", &log, &second];
        line.extend(more);
        let said = hither(line).failed(1);
        assert!(said.contains(&format!("process {pid}, mounted at {}", sandbox.text("mnt"))), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    assert!(!crate::harness::is_mounted(Path::new(&second)));
    hither(["umount", &sandbox.text("mnt")]).ok();
}

#[test]
fn the_mount_of_a_killed_daemon_is_cleared_by_umount_and_by_mount() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    let mnt = sandbox.text("mnt");
    for clear_by_mounting in [false, true] {
        sandbox.mount_cache(&[]).ok();
        let pid = sandbox.pid();
        kill(pid, Signal::KILL);
        wait_until("the daemon is dead", || !is_alive(pid));
        assert!(sandbox.is_mounted());
        // Its threads end one by one, that which listens among them.
        wait_until("its end is seen", || {
            hither(["status", &mnt]).failed(1).contains("is gone: `hither umount")
        });
        assert!(hither(["status"]).stdout.contains("hither umount"));
        assert!(hither(["cache", "state", &sandbox.text("mnt/a")]).code > 0);
        if clear_by_mounting {
            sandbox.mount_cache(&[]).ok();
            assert!(fs::read_to_string(sandbox.path("log")).unwrap().contains("cleared the mount"));
            assert_eq!(fs::read(sandbox.path("mnt/a")).unwrap(), content("origin/a", 10_000));
        }
        hither(["umount", &mnt]).ok();
        assert!(!sandbox.is_mounted());
        for left in ["json", "socket"] {
            assert!(!Path::new(&format!("/run/hither/{pid}.{left}")).exists());
        }
    }
}

#[test]
fn a_mount_in_use_is_not_taken_away_unless_asked() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&[]).ok();
    let (mnt, pid) = (sandbox.text("mnt"), sandbox.pid());
    let mut open = File::open(sandbox.path("mnt/sub/b")).unwrap();
    let said = hither(["umount", &mnt]).failed(1);
    assert!(said.contains(&format!("`hither umount --lazy {mnt}`")) && sandbox.is_mounted(), "{said}");
    hither(["umount", "--lazy", &mnt]).ok();
    assert!(!sandbox.is_mounted() && is_alive(pid));
    let mut bytes = Vec::new();
    open.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, content("origin/sub/b", 3_000_000), "what was open stays readable");
    drop(open);
    wait_until("the daemon ends with the last open file", || !is_alive(pid));
}

#[test]
fn sigterm_unmounts_and_sighup_reopens_the_log() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&[]).ok();
    let pid = sandbox.pid();
    fs::rename(sandbox.path("log"), sandbox.path("log.1")).unwrap();
    kill(pid, Signal::HUP);
    wait_until("there is a new log", || sandbox.path("log").exists());
    kill(pid, Signal::TERM);
    wait_until("the daemon has ended", || !is_alive(pid));
    assert!(!sandbox.is_mounted());
    assert!(fs::read_to_string(sandbox.path("log")).unwrap().contains("ended"));
}

#[test]
fn sigterm_ends_a_mount_in_use_with_its_last_file_and_a_second_one_at_once() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&[]).ok();
    let pid = sandbox.pid();
    let open = File::open(sandbox.path("mnt/a")).unwrap();
    kill(pid, Signal::TERM);
    wait_until("the mount is away", || !sandbox.is_mounted());
    assert!(is_alive(pid));
    kill(pid, Signal::TERM);
    wait_until("the daemon has ended", || !is_alive(pid));
    drop(open);
}

#[test]
fn in_the_foreground_it_stays_and_ctrl_c_ends_it() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    let mut child = Command::new(HITHER)
        .args(["mount", "dir", "--foreground", &sandbox.text("origin"), &sandbox.text("mnt")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("it is mounted", || sandbox.path("mnt/a").exists());
    wait_until("it can be asked", || hither(["status", &sandbox.text("mnt")]).code == 0);
    assert_eq!(sandbox.pid(), child.id());
    kill(child.id(), Signal::INT);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(log.contains("mounted") && log.contains("ended"), "{log}");
    assert!(!sandbox.is_mounted());
}

#[test]
fn metrics_are_served_on_this_machine() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    sandbox.mount_cache(&["--metrics", "0"]).ok();
    fs::read(sandbox.path("mnt/a")).unwrap();
    let url = sandbox.status()["metrics"].as_str().unwrap().to_owned();
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let mut connection = TcpStream::connect(address).unwrap();
    connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let labels = format!("{{mountpoint=\"{}\",store=\"{}\"}}", sandbox.text("mnt"), sandbox.text("store"));
    assert!(answer.contains(&format!("hither_cache_misses_total{labels} 1\n")), "{answer}");
    assert!(answer.contains("# TYPE hither_requests counter"), "{answer}");
    hither(["umount", &sandbox.text("mnt")]).ok();
}

#[test]
fn what_goes_wrong_in_the_daemon_is_said_by_the_command() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = sandbox.mount_cache(&["--metrics", &port]).failed(1);
    assert!(said.contains("cannot serve metrics"), "{said}");
    assert!(!sandbox.is_mounted());
    let (origin, store) = (sandbox.text("origin"), sandbox.text("store"));
    let mount = |log: &str, mnt: &str| {
        hither(["mount", "cache", "--origin", &origin, "--store", &store, "--log", log, mnt])
    };
    assert!(mount("/nowhere/log", &sandbox.text("mnt")).failed(1).contains("/nowhere/log"));
    assert!(mount(&sandbox.text("log"), &sandbox.text("origin/a")).failed(2).contains("mount point"));
    // Nothing of it was left that would be in the way.
    sandbox.mount_cache(&[]).ok();
    hither(["umount", &sandbox.text("mnt")]).ok();
}

#[test]
fn the_daemon_keeps_nothing_of_its_caller() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    let script = "exec 9>\"$0/held\"; flock 9; cd \"$0/sub\"; \"$1\" mount dir --log \"$0/log\" \"$0/origin\" \"$0/mnt\"";
    fs::create_dir(sandbox.path("sub")).unwrap();
    let root = sandbox.text("").trim_end_matches('/').to_owned();
    // Its output is a pipe to us: if the daemon kept it, this would not return.
    let started = Command::new("sh").args(["-c", script, &root, HITHER]).output().unwrap();
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    let process = Path::new("/proc").join(sandbox.pid().to_string());
    let open: Vec<_> =
        fs::read_dir(process.join("fd")).unwrap().flatten().map(|fd| fs::read_link(fd.path())).collect();
    assert!(!open.iter().flatten().any(|path| path.ends_with("held")), "{open:?}");
    assert!(
        open.iter().flatten().filter(|path| path.as_path() == Path::new("/dev/null")).count() >= 3,
        "{open:?}"
    );
    assert_eq!(fs::read_link(process.join("cwd")).unwrap(), Path::new("/"));
    let limits = fs::read_to_string(process.join("limits")).unwrap();
    let files: Vec<&str> =
        limits.lines().find(|line| line.starts_with("Max open files")).unwrap().split_whitespace().collect();
    assert_eq!(files[3], files[4], "as many descriptors as it may have");
    let status = fs::read_to_string(process.join("status")).unwrap();
    assert!(status.lines().any(|line| line == "Umask:\t0000"), "{status}");
    let session = fs::read_to_string(process.join("stat")).unwrap();
    let session = session.rsplit(") ").next().unwrap().split(' ').nth(3).unwrap().to_owned();
    assert_eq!(session, sandbox.pid().to_string(), "a session of its own");
    hither(["umount", &sandbox.text("mnt")]).ok();
}

#[test]
fn relative_paths_count_from_where_the_command_was_given() {
    let Some(sandbox) = Sandbox::to_mount() else { return };
    let here = |line: &[&str]| {
        crate::harness::Outcome::of(Command::new(HITHER).args(line).current_dir(sandbox.path("")))
    };
    here(&[
        "mount", "cache", "--origin", "origin", "--store", "store", "--settle", "0", "--log", "log", "mnt",
    ])
    .ok();
    assert_eq!(here(&["cache", "state", "mnt/a"]).ok(), "mnt/a: none, 9.8K\n");
    assert!(here(&["status", "mnt/"]).ok().contains("cache"));
    here(&["umount", "./mnt"]).ok();
    assert!(sandbox.path("log").exists() && sandbox.path("store").exists());
}
