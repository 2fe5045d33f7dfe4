//! Mounts by the real `hither`, and what it says of them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::place;
use crate::program::{hither, output};

/// A mount that is gone when dropped.
#[derive(Debug)]
pub struct Mount {
    mountpoint: PathBuf,
    pid: u32,
    arguments: Vec<OsString>,
    user: Option<User>,
}

/// An ordinary user who mounts, with a copy of `hither` that they can reach.
#[derive(Debug, Clone)]
pub struct User {
    /// Their user and group id; /etc/passwd must have it.
    pub uid: u32,
    /// The program.
    pub hither: PathBuf,
}

/// `hither` as it was asked for.
fn command(user: Option<&User>) -> Result<Command> {
    let Some(user) = user else { return Ok(Command::new(hither()?)) };
    let mut command = Command::new("setpriv");
    let uid = user.uid.to_string();
    command.args(["--reuid", &uid, "--regid", &uid, "--clear-groups", "--inh-caps=-all", "--"]);
    command.arg(&user.hither).env_remove("XDG_RUNTIME_DIR");
    Ok(command)
}

impl Mount {
    /// `hither mount dir SOURCE MOUNTPOINT OPTIONS`.
    ///
    /// # Errors
    /// What `hither` said.
    pub fn dir(source: &Path, mountpoint: &Path, options: &[&str]) -> Result<Self> {
        Mount::new(None, mountpoint, dir_arguments(source, mountpoint, options))
    }

    /// `hither mount cache --origin ORIGIN --store STORE MOUNTPOINT OPTIONS`.
    ///
    /// # Errors
    /// What `hither` said.
    pub fn cache(origin: &Path, store: &Path, mountpoint: &Path, options: &[&str]) -> Result<Self> {
        Mount::new(None, mountpoint, cache_arguments(origin, store, mountpoint, options))
    }

    /// [`Mount::dir`] by an ordinary user.
    ///
    /// # Errors
    /// What `hither` said.
    pub fn dir_by(user: User, source: &Path, mountpoint: &Path, options: &[&str]) -> Result<Self> {
        Mount::new(Some(user), mountpoint, dir_arguments(source, mountpoint, options))
    }

    /// [`Mount::cache`] by an ordinary user.
    ///
    /// # Errors
    /// What `hither` said.
    pub fn cache_by(
        user: User,
        origin: &Path,
        store: &Path,
        mountpoint: &Path,
        options: &[&str],
    ) -> Result<Self> {
        Mount::new(Some(user), mountpoint, cache_arguments(origin, store, mountpoint, options))
    }

    fn new(user: Option<User>, mountpoint: &Path, mut arguments: Vec<OsString>) -> Result<Self> {
        if !arguments.iter().any(|argument| argument == "--log") {
            // Beside the mount point, which the test that reads it cleans up.
            arguments.extend(["--log".into(), mountpoint.with_extension("log").into()]);
        }
        output(command(user.as_ref())?.args(&arguments))?;
        let mut mount = Mount { mountpoint: mountpoint.to_owned(), pid: 0, arguments, user };
        mount.pid = u32::try_from(mount.count("/pid")?)?;
        Ok(mount)
    }

    /// Mounts again as before, after [`kill`](Mount::kill) or [`Mount::unmount`].
    ///
    /// # Errors
    /// What `hither` said.
    pub fn again(&mut self) -> Result<()> {
        output(command(self.user.as_ref())?.args(&self.arguments))?;
        self.pid = u32::try_from(self.count("/pid")?)?;
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.mountpoint
    }

    /// The daemon.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What `hither status --json` says.
    ///
    /// # Errors
    /// What `hither` said.
    pub fn status(&self) -> Result<Value> {
        let printed = output(command(self.user.as_ref())?.args(["status", "--json"]).arg(&self.mountpoint))?;
        Ok(serde_json::from_str(&printed)?)
    }

    /// A number of the status, by its JSON pointer; the cache's begin with `/caches/0/`.
    ///
    /// # Errors
    /// What `hither` said, or there is no such number.
    pub fn count(&self, pointer: &str) -> Result<u64> {
        let status = self.status()?;
        status.pointer(pointer).and_then(Value::as_u64).with_context(|| format!("no {pointer} in {status}"))
    }

    /// Waits until a number of the status is what is asked for, for at most 20 s.
    ///
    /// # Errors
    /// It did not become so.
    pub fn wait_until(&self, pointer: &str, enough: impl Fn(u64) -> bool) -> Result<u64> {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let count = self.count(pointer)?;
            if enough(count) {
                return Ok(count);
            }
            ensure!(Instant::now() < end, "{pointer} stays {count}: {:#}", self.status()?);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the cache has seen its whole store, for at most 20 s.
    ///
    /// # Errors
    /// It did not.
    pub fn wait_until_scanned(&self) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(20);
        while self.status()?.pointer("/caches/0/scanning") != Some(&Value::Bool(false)) {
            ensure!(Instant::now() < end, "the scan of the store does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// `hither cache WORD... ARGUMENT`; what it printed.
    ///
    /// # Errors
    /// What `hither` said.
    pub fn cache_command(words: &[&str], path: impl AsRef<OsStr>) -> Result<String> {
        output(Command::new(hither()?).arg("cache").args(words).arg(path))
    }

    /// What `hither cache state` says of a file: `cached`, `filling`, `none`, ...
    ///
    /// # Errors
    /// What `hither` said.
    pub fn state(&self, path: impl AsRef<Path>) -> Result<String> {
        let printed = Mount::cache_command(&["state", "--json"], self.mountpoint.join(path))?;
        let states: Value = serde_json::from_str(&printed)?;
        let state = states.pointer("/0/state").and_then(Value::as_str);
        Ok(state.with_context(|| format!("no state in {states}"))?.to_owned())
    }

    /// Waits until the state of a file is `wanted`, for at most 20 s.
    ///
    /// # Errors
    /// It did not become so.
    pub fn wait_for_state(&self, path: impl AsRef<Path>, wanted: &str) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let state = self.state(&path)?;
            if state == wanted {
                return Ok(());
            }
            ensure!(Instant::now() < end, "{} stays {state}", path.as_ref().display());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// kill -9 of the daemon; returns when it is gone. The mount point stays behind, dead.
    ///
    /// # Errors
    /// It does not die.
    pub fn kill(&mut self) -> Result<()> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            bail!("no daemon to kill");
        };
        rustix::process::kill_process(pid, Signal::KILL)?;
        // A thread of it may be inside a system call of a busy disk, and the kernel calls the mount dead when the last is gone.
        let end = Instant::now() + Duration::from_secs(90);
        while is_running(self.pid) {
            ensure!(Instant::now() < end, "the daemon survives kill -9");
            std::thread::sleep(Duration::from_millis(1));
        }
        // With rings, the kernel calls the mount dead a moment after the process is.
        while !is_dead(&self.mountpoint) {
            ensure!(Instant::now() < end, "the mount survives its daemon");
            std::thread::sleep(Duration::from_millis(1));
        }
        self.pid = 0;
        Ok(())
    }

    /// `hither umount`.
    ///
    /// # Errors
    /// What `hither` said.
    pub fn unmount(&mut self) -> Result<()> {
        output(command(self.user.as_ref())?.arg("umount").arg(&self.mountpoint))?;
        self.pid = 0;
        Ok(())
    }

    /// The log of its daemon.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.mountpoint.with_extension("log")).unwrap_or_default()
    }
}

fn dir_arguments(source: &Path, mountpoint: &Path, options: &[&str]) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["mount".into(), "dir".into(), source.into(), mountpoint.into()];
    arguments.extend(options.iter().map(OsString::from));
    arguments
}

fn cache_arguments(origin: &Path, store: &Path, mountpoint: &Path, options: &[&str]) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["mount".into(), "cache".into()];
    arguments.extend(["--origin".into(), origin.into(), "--store".into(), store.into()]);
    arguments.push(mountpoint.into());
    arguments.extend(options.iter().map(OsString::from));
    arguments
}

/// Whether there is such a process, and it is more than a zombie that its parent has not yet asked for.
fn is_dead(mountpoint: &Path) -> bool {
    let asked = rustix::fs::stat(mountpoint);
    // ACCES: it is another user's, which is said first.
    matches!(asked, Err(rustix::io::Errno::NOTCONN | rustix::io::Errno::ACCESS))
}

/// Whether any thread of it lives: the first may be gone while another is inside a system call, and holds what is open.
fn is_running(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().any(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        state.is_some_and(|state| state != 'Z' && state != 'X')
    })
}

impl Drop for Mount {
    fn drop(&mut self) {
        if place::mounts_below(&self.mountpoint).is_empty() || self.unmount().is_ok() {
            return;
        }
        let _ = self.kill();
        place::detach(&self.mountpoint);
    }
}
