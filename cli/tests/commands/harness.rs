//! Directories of a test's own, the program, and mounts that do not outlive their test.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The program under test.
pub const HITHER: &str = env!("CARGO_BIN_EXE_hither");

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// What a run of the program came to.
#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Self {
        let output = loop {
            match command.stdin(Stdio::null()).output() {
                // A test that starts a program at this moment has inherited the copy's descriptor for an instant.
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    sleep(Duration::from_millis(10));
                }
                output => break output.unwrap(),
            }
        };
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap_or_else(|| panic!("{command:?}: {}", output.status));
        Outcome { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The standard output of a run that must have succeeded without a complaint.
    pub fn ok(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}", self.stdout);
        self.stdout
    }

    /// The complaint of a run that must have failed so.
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        assert_eq!(self.stdout, "");
        assert!(self.stderr.starts_with("hither: ") || self.stderr.starts_with("error: "), "{}", self.stderr);
        assert!(!self.stderr.contains("panicked") && !self.stderr.contains("backtrace"), "{}", self.stderr);
        self.stderr
    }
}

/// Runs the program.
pub fn hither<I: AsRef<OsStr>>(arguments: impl IntoIterator<Item = I>) -> Outcome {
    Outcome::of(Command::new(HITHER).args(arguments))
}

static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// Counts a test that cannot be done here.
pub fn skip(why: &str) {
    let count = SKIPPED.fetch_add(1, Ordering::SeqCst) + 1;
    eprintln!("SKIPPED ({count} so far in this binary): {why}");
}

/// An origin with a few files, places for a store and a mount point; all mounts are taken away at the end.
pub struct Sandbox {
    dir: tempfile::TempDir,
}

impl Sandbox {
    /// A sandbox without a need to mount.
    pub fn new() -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let sandbox = Sandbox { dir };
        for directory in ["origin", "origin/sub", "mnt"] {
            fs::create_dir(sandbox.path(directory)).unwrap();
        }
        for (name, size) in [("origin/a", 10_000), ("origin/sub/b", 3_000_000), ("origin/sub/c", 1)] {
            fs::write(sandbox.path(name), content(name, size)).unwrap();
        }
        sandbox
    }

    /// A sandbox whose test mounts; `None`, counted, where that cannot be done.
    pub fn to_mount() -> Option<Self> {
        if rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists() {
            return Some(Sandbox::new());
        }
        skip("needs root and /dev/fuse");
        None
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().unwrap()
    }

    /// `hither mount cache` of the origin, with any age of files good enough.
    pub fn mount_cache(&self, more: &[&str]) -> Outcome {
        let (origin, store, mnt) = (self.text("origin"), self.text("store"), self.text("mnt"));
        let log = self.text("log");
        let mut line = vec![
            "mount", "cache", "--origin", &origin, "--store", &store, "--settle", "0", "--log", &log, &mnt,
        ];
        line.extend(more);
        hither(line)
    }

    /// The status of the mount at `mnt`.
    pub fn status(&self) -> Value {
        serde_json::from_str(&hither(["status", "--json", &self.text("mnt")]).ok()).unwrap()
    }

    /// The process that serves `mnt`.
    pub fn pid(&self) -> u32 {
        self.status()["pid"].as_u64().unwrap().try_into().unwrap()
    }

    /// Whether anything is mounted at `mnt`.
    pub fn is_mounted(&self) -> bool {
        is_mounted(&self.path("mnt"))
    }

    /// What the cache says of a file.
    pub fn state_of(&self, name: &str) -> String {
        let states = hither(["cache", "state", "--json", &self.text(name)]).ok();
        let states: Value = serde_json::from_str(&states).unwrap();
        states[0]["state"].as_str().unwrap().to_owned()
    }

    /// Waits until the cache says of a file what it should.
    pub fn wait_for_state(&self, name: &str, expected: &str) {
        wait_until(&format!("{name} is {expected}"), || self.state_of(name) == expected);
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let mnt = self.path("mnt");
        while is_mounted(&mnt) {
            let pid = hither(["status", "--json", &self.text("mnt")]);
            let pid =
                serde_json::from_str::<Value>(&pid.stdout).ok().and_then(|status| status["pid"].as_i64());
            if rustix::mount::unmount(&mnt, rustix::mount::UnmountFlags::DETACH).is_err() {
                break;
            }
            if let Some(pid) = pid {
                let ended = Instant::now() + LONG;
                while is_alive(u32::try_from(pid).unwrap()) && Instant::now() < ended {
                    sleep(Duration::from_millis(10));
                }
            }
        }
    }
}

/// The bytes of a file of a test: different for each name and place.
pub fn content(name: &str, size: usize) -> Vec<u8> {
    let seed = name.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..size).map(|_| next()).collect()
}

pub fn is_mounted(mountpoint: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.lines().any(|line| line.split(' ').nth(4) == mountpoint.to_str())
}

/// Whether a process is there and not only waiting to be reaped.
pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain until {what}");
        sleep(Duration::from_millis(20));
    }
}

pub fn kill(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A user who is neither root nor owns anything.
pub const NOBODY: u32 = 65_534;

/// The program, to be run by `nobody`; a copy, since the way to the original may be closed to others.
pub fn hither_as_nobody(sandbox: &Sandbox) -> Command {
    let copy = sandbox.path("hither-copy");
    if !copy.exists() {
        fs::copy(HITHER, &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(copy);
    command.uid(NOBODY).gid(NOBODY).env_remove("XDG_RUNTIME_DIR").current_dir("/");
    command
}
