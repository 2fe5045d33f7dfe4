//! What is measured: mounts of programs that were built or installed before, each ended when dropped.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::disk::run;
use crate::machine::field;

/// Nanoseconds that daemons of `hither` had used when they were ended: they are no children of ours.
static ENDED_DAEMONS_NS: AtomicU64 = AtomicU64::new(0);

/// Processor time of the daemons of `hither` that have been ended.
pub fn cpu_of_ended_daemons() -> Duration {
    Duration::from_nanos(ENDED_DAEMONS_NS.load(Ordering::Relaxed))
}

/// A program of the same build as this one.
pub fn program(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("where is this program?")?;
    let path = own.with_file_name(name);
    anyhow::ensure!(path.is_file(), "{} is not built: run `cargo xtask bench`", path.display());
    Ok(path)
}

/// A mount of the `hither` command.
#[derive(Debug)]
pub struct Hither {
    /// Where.
    pub mountpoint: PathBuf,
    /// Its daemon.
    pub pid: u32,
}

impl Hither {
    /// `hither mount ARGS MNT`.
    pub fn mount<S: AsRef<OsStr>>(args: &[S], mountpoint: &Path) -> anyhow::Result<Hither> {
        let mut command = Command::new(program("hither")?);
        command.arg("mount").args(args).arg("--log").arg(mountpoint.with_extension("log")).arg(mountpoint);
        run(&mut command)?;
        let mut mount = Hither { mountpoint: mountpoint.to_owned(), pid: 0 };
        let pid = mount.status()?["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        mount.pid = pid.context("the status has no pid")?;
        Ok(mount)
    }

    /// A cached view of `origin`.
    pub fn cache(origin: &Path, store: &Path, mountpoint: &Path, more: &[&str]) -> anyhow::Result<Hither> {
        let mut args: Vec<&OsStr> = vec!["cache".as_ref(), "--origin".as_ref(), origin.as_ref()];
        args.extend(["--store".as_ref(), store.as_os_str()]);
        args.extend(more.iter().map(OsStr::new));
        Hither::mount(&args, mountpoint)
    }

    /// `hither status --json`.
    pub fn status(&self) -> anyhow::Result<serde_json::Value> {
        let out = run(Command::new(program("hither")?).args(["status", "--json"]).arg(&self.mountpoint))?;
        serde_json::from_slice(&out).context("the status is no JSON")
    }

    /// A number of its first cache.
    pub fn cache_count(&self, name: &str) -> anyhow::Result<u64> {
        self.status()?["caches"][0][name].as_u64().with_context(|| format!("the status has no {name}"))
    }

    /// Fetches a file or a tree, and makes sure that all of it is cached.
    pub fn warm(&self, path: &Path) -> anyhow::Result<()> {
        run(Command::new(program("hither")?).args(["cache", "warm"]).arg(path)).map(drop)
    }

    /// An error unless these files would be hits.
    pub fn ensure_cached(&self, paths: &[PathBuf]) -> anyhow::Result<()> {
        let copies = paths.iter().map(|path| self.copy_of(path));
        copies.collect::<anyhow::Result<Vec<_>>>().map(drop)
    }

    /// The copy of a file, below the store; an error if the file is not cached.
    pub fn copy_of(&self, path: &Path) -> anyhow::Result<PathBuf> {
        let out = run(Command::new(program("hither")?).args(["cache", "state", "--json"]).arg(path))?;
        let states: serde_json::Value = serde_json::from_slice(&out).context("the state is no JSON")?;
        let state = &states[0];
        let copy = state["copy"].as_str().filter(|_| state["state"] == "cached");
        copy.map(PathBuf::from).with_context(|| format!("not cached: {state}"))
    }

    /// Resident memory of the daemon, in bytes.
    pub fn resident(&self) -> anyhow::Result<u64> {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.pid)).context("the daemon is gone")?;
        let kib = field(&status, "VmRSS").and_then(|value| value.split(' ').next()?.parse::<u64>().ok());
        Ok(kib.context("the daemon has no VmRSS")? << 10)
    }
}

impl Drop for Hither {
    fn drop(&mut self) {
        if let Ok(used) = hither_sys::cpu_time::of_process(self.pid) {
            ENDED_DAEMONS_NS.fetch_add(used.as_nanos() as u64, Ordering::Relaxed);
        }
        let ended = program("hither")
            .and_then(|hither| run(Command::new(hither).arg("umount").arg(&self.mountpoint)));
        if let Err(error) = ended {
            eprintln!("bench: {error:#}");
        }
    }
}

/// A program of ours that mounts, says `ready`, and ends with its standard input.
#[derive(Debug)]
struct Served {
    child: Child,
    // Its end is the end of the mount.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Served {
    fn start(mut command: Command) -> anyhow::Result<Served> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let cannot = format!("cannot start {}", command.get_program().display());
        let mut child = command.spawn().with_context(|| cannot.clone())?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().context("no pipe")?);
        let mut served = Served { child, stdin, stdout };
        anyhow::ensure!(served.line()? == "ready", cannot);
        Ok(served)
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).context("a mount's program has ended")?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

/// A directory made slow (`slow-origin`).
#[derive(Debug)]
pub struct SlowOrigin {
    /// Where.
    pub mountpoint: PathBuf,
    served: Served,
}

impl SlowOrigin {
    /// Shows `source` with a round trip.
    pub fn mount(source: &Path, mountpoint: &Path, round_trip: Duration) -> anyhow::Result<SlowOrigin> {
        let mut command = Command::new(program("slow-origin")?);
        command.arg("--rtt-us").arg(round_trip.as_micros().to_string()).arg(source).arg(mountpoint);
        Ok(SlowOrigin { mountpoint: mountpoint.to_owned(), served: Served::start(command)? })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.served.child.id()
    }

    /// Requests so far, by operation.
    pub fn requests(&mut self) -> anyhow::Result<BTreeMap<String, u64>> {
        let stdin = self.served.stdin.as_mut().context("the slow origin has ended")?;
        stdin.write_all(b"requests\n").context("the slow origin has ended")?;
        serde_json::from_str(&self.served.line()?).context("the slow origin answers no JSON")
    }
}

/// A file system in memory behind a transport (`mem-mount`).
#[derive(Debug)]
pub struct MemMount {
    /// Where.
    pub mountpoint: PathBuf,
    served: Served,
}

impl MemMount {
    /// An empty one; `transport` is `dev` or `uring`.
    pub fn new(transport: &str, mountpoint: &Path) -> anyhow::Result<MemMount> {
        let mut command = Command::new(program("mem-mount")?);
        command.args(["--transport", transport]).arg(mountpoint);
        Ok(MemMount { mountpoint: mountpoint.to_owned(), served: Served::start(command)? })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.served.child.id()
    }
}

/// A mount of rclone, which caches whole files as we do.
#[derive(Debug)]
pub struct Rclone {
    /// Where.
    pub mountpoint: PathBuf,
    child: Child,
}

impl Rclone {
    /// Shows `origin`; `None` where rclone is not installed.
    pub fn mount(origin: &Path, cache: &Path, mountpoint: &Path) -> anyhow::Result<Option<Rclone>> {
        let mut command = Command::new("rclone");
        command.args([
            "mount",
            "--vfs-cache-mode",
            "full",
            "--vfs-fast-fingerprint",
            "--config",
            "/dev/null",
        ]);
        command.arg("--cache-dir").arg(cache).arg(origin).arg(mountpoint);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context("cannot start rclone"),
        };
        let mut rclone = Rclone { mountpoint: mountpoint.to_owned(), child };
        let outside = rustix::fs::stat(mountpoint).context("no mount point")?.st_dev;
        let start = Instant::now();
        while rustix::fs::stat(mountpoint).context("no mount point")?.st_dev == outside {
            let ended = rclone.child.try_wait().context("cannot wait for rclone")?;
            anyhow::ensure!(
                ended.is_none() && start.elapsed() < Duration::from_secs(20),
                "rclone does not mount"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(rclone))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Rclone {
    fn drop(&mut self) {
        if let Err(error) = run(Command::new("fusermount3").arg("-uz").arg(&self.mountpoint)) {
            eprintln!("bench: {error:#}");
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
