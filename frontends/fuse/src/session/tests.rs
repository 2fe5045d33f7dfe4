//! Real mounts. They need root and /dev/fuse; where those are missing each test says so and is counted as skipped.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hither_dir::Dir;
use hither_mem::Mem;
use hither_vfs::{Errno, Event, FileSystem, Identity, Patience};
use tempfile::TempDir;

use super::*;
use crate::clear_stale;
use crate::scripted::{Scripted, backing};

mod basics;
mod daemon;
mod epochs;
mod programs;

/// Longest that anything is waited for.
const SOON: Duration = Duration::from_secs(20);

static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// Whether mounts can be made here; counts and says it if not.
fn can_mount() -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if !can {
        skip("needs root and /dev/fuse");
    }
    can
}

fn skip(why: &str) {
    let count = SKIPPED.fetch_add(1, Ordering::SeqCst) + 1;
    eprintln!("SKIPPED ({count} so far in this binary): {why}");
}

/// A mount for one test.
struct Mounted {
    session: Session,
    dir: TempDir,
}

impl Mounted {
    fn new(fs: Arc<dyn FileSystem>) -> Self {
        Mounted::with(fs, &Options::default())
    }

    fn with(fs: Arc<dyn FileSystem>, options: &Options) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let mut options = options.clone();
        // The tests are run once more with it, where the kernel has rings.
        if std::env::var_os("HITHER_TRANSPORT").is_some_and(|word| word == "dev") {
            options.transport = options::Transport::Dev;
        }
        let session = mount(fs, dir.path(), &options).unwrap();
        Mounted { session, dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.session.unmount(Unmount::Lazily).unwrap();
    }
}

/// An empty directory of the host as a file system, with or without backings.
fn host_dir(backings: bool) -> (TempDir, Arc<dyn FileSystem>) {
    let source = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::set_permissions(source.path(), Permissions::from_mode(0o755)).unwrap();
    let options = hither_dir::Options { backings, ..hither_dir::Options::default() };
    let fs = Dir::open(source.path(), options).unwrap();
    (source, fs)
}

/// Another process that runs one test of this binary, told by a variable what to do.
fn child(test: &str, variable: &str, value: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(variable, value);
    command.stdin(Stdio::null());
    command
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < SOON, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
