//! Several processes work in one tree at random: create, write, rename, link, unlink, truncate, attributes, listings.
//!
//! No call may fail in a way that the same call on a local disk could not; each worker's own files must hold what it
//! wrote last; and at the end mount and directory must show the same tree.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use rustix::fs::{RenameFlags, XattrFlags, setxattr};
use rustix::io::Errno;

use super::{Extent, timed};
use crate::report::Outcome;
use crate::scene::{Scene, View};
use crate::tree;

/// Processes at once.
const WORKERS: u64 = 4;

/// Names of which all workers choose, so that they get in each other's way.
const SHARED_NAMES: u32 = 24;

/// What a call on a shared name may fail with, since another process may have been faster.
const EXPECTED: &[Errno] = &[
    Errno::NOENT,
    Errno::EXIST,
    Errno::NOTEMPTY,
    Errno::ISDIR,
    Errno::NOTDIR,
    Errno::INVAL,
    Errno::LOOP,
    Errno::NODATA,
    // link(2) on a directory; opening a link that leads to itself is LOOP.
    Errno::PERM,
];

/// Runs it on `dir` and `cache`, and on ext4 to know that the workers themselves are right.
pub fn run(extent: Extent, seed: u64) -> Vec<Outcome> {
    View::ALL.into_iter().map(|view| run_on(view, extent, seed)).collect()
}

/// Runs it on one view.
pub fn run_on(view: View, extent: Extent, seed: u64) -> Outcome {
    timed("stress", view, |outcome| exercise(view, extent.of(1_200, 60_000), seed, outcome))
}

fn exercise(view: View, operations: u64, seed: u64, outcome: &mut Outcome) -> Result<()> {
    let options: &[&str] = if view == View::Cache { &["--settle", "100ms"] } else { &[] };
    let mut scene = Scene::new(view, options)?;
    outcome.add("seed", seed);
    let mut workers = Vec::new();
    for id in 0..WORKERS {
        let mut command = Command::new(crate::program::actor()?);
        command.arg("stress").args(["--root".into(), scene.root()]);
        command.args(["--seed", &(seed + id).to_string(), "--id", &id.to_string()]);
        command.args(["--operations", &operations.to_string()]);
        workers.push(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?);
    }
    for worker in workers {
        let output = worker.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "a worker: {}\n{said}", output.status);
        let found: Found = serde_json::from_slice(&output.stdout).context("a worker's counts")?;
        for (name, count) in found.counts {
            outcome.add(&name, count);
        }
        found.failures.into_iter().for_each(|failure| outcome.fail(failure));
    }
    let through = tree::look(&scene.root())?;
    let beneath = tree::look(&scene.origin())?;
    outcome.add("names at the end", beneath.len() as u64);
    tree::differences(&through, &beneath).into_iter().for_each(|line| outcome.fail(line));
    if view == View::Cache {
        let errors = scene.mount()?.count("/caches/0/store_errors")?;
        ensure!(errors == 0, "{errors} errors of the store");
        outcome.add("fills", scene.mount()?.count("/caches/0/fills")?);
    }
    scene.unmount()
}

/// What a worker reports.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
struct Found {
    counts: BTreeMap<String, u64>,
    failures: Vec<String>,
}

/// One of the processes.
#[derive(Debug, clap::Args)]
pub struct Worker {
    #[arg(long)]
    root: PathBuf,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    id: u64,
    #[arg(long)]
    operations: u64,
}

impl Worker {
    /// Works, then prints what it found.
    ///
    /// # Errors
    /// Nobody takes what it prints.
    pub fn run(&self) -> Result<()> {
        let mut work = Work {
            root: &self.root,
            id: self.id,
            random: StdRng::seed_from_u64(self.seed),
            own: BTreeMap::new(),
            found: Found::default(),
        };
        for _ in 0..self.operations {
            work.step();
        }
        println!("{}", serde_json::to_string(&work.found)?);
        Ok(())
    }
}

struct Work<'a> {
    root: &'a Path,
    id: u64,
    random: StdRng,
    /// Files that only this worker touches, and what they must hold.
    own: BTreeMap<PathBuf, Vec<u8>>,
    found: Found,
}

impl Work<'_> {
    fn step(&mut self) {
        let (name, result) = match self.random.random_range(0..20) {
            0..4 => ("own write", self.own_write()),
            4..7 => ("own read", self.own_read()),
            7 => ("own rename", self.own_rename()),
            8 => ("own unlink", self.own_unlink()),
            9..11 => ("create", self.create()),
            11 => ("mkdir", fs::create_dir(self.shared())),
            12 => ("rename", self.rename()),
            13 => ("link", fs::hard_link(self.shared(), self.shared())),
            14 => ("symlink", symlink(self.shared(), self.shared())),
            15 => ("unlink", self.unlink()),
            16 => ("truncate", self.truncate()),
            17 => ("attributes", self.attributes()),
            18 => ("list", self.list()),
            _ => ("read", self.read()),
        };
        *self.found.counts.entry(name.to_owned()).or_default() += 1;
        if let Err(error) = result {
            let errno = Errno::from_io_error(&error);
            let own = name.starts_with("own");
            if own || !errno.is_some_and(|errno| EXPECTED.contains(&errno)) {
                self.found.failures.push(format!("worker {}: {name}: {error}", self.id));
            }
        }
    }

    /// A name that others use, too: in the root or in one of a few folders that come and go.
    fn shared(&mut self) -> PathBuf {
        let name = format!("s{}", self.random.random_range(0..SHARED_NAMES));
        let mut path = self.root.to_owned();
        if self.random.random_bool(0.5) {
            path.push(format!("s{}", self.random.random_range(0..SHARED_NAMES)));
        }
        path.push(name);
        path
    }

    fn own_name(&mut self) -> PathBuf {
        self.root.join(format!("w{}-{}", self.id, self.random.random_range(0..16)))
    }

    fn an_own_file(&mut self) -> Option<PathBuf> {
        let count = self.own.len();
        (count > 0)
            .then(|| self.random.random_range(0..count))
            .and_then(|at| self.own.keys().nth(at).cloned())
    }

    fn bytes(&mut self) -> Vec<u8> {
        let longest = [100, 5_000, 70_000, 1_500_000][self.random.random_range(0..4)];
        let mut bytes = vec![0; self.random.random_range(0..longest)];
        self.random.fill(&mut bytes[..]);
        bytes
    }

    fn own_write(&mut self) -> io::Result<()> {
        let path = self.own_name();
        let bytes = self.bytes();
        let held = self.own.entry(path.clone()).or_default();
        if self.random.random_bool(0.5) {
            fs::write(&path, &bytes)?;
            *held = bytes;
        } else {
            let at = self.random.random_range(0..=held.len());
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
            file.write_all_at(&bytes, at as u64)?;
            held.resize(held.len().max(at + bytes.len()), 0);
            held[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(())
    }

    fn own_read(&mut self) -> io::Result<()> {
        let Some(path) = self.an_own_file() else { return Ok(()) };
        let seen = fs::read(&path)?;
        let held = &self.own[&path];
        if seen != *held {
            let at = seen.iter().zip(held).position(|(one, other)| one != other);
            let (seen, held) = (seen.len(), held.len());
            let what = format!("{}: {seen} bytes, not {held}, first other at {at:?}", path.display());
            self.found.failures.push(format!("worker {}: {what}", self.id));
        }
        Ok(())
    }

    fn own_rename(&mut self) -> io::Result<()> {
        let Some(path) = self.an_own_file() else { return Ok(()) };
        let to = self.own_name();
        fs::rename(&path, &to)?;
        if let Some(bytes) = self.own.remove(&path) {
            self.own.insert(to, bytes);
        }
        Ok(())
    }

    fn own_unlink(&mut self) -> io::Result<()> {
        let Some(path) = self.an_own_file() else { return Ok(()) };
        // Held open: what was unlinked must still be readable.
        let file = File::open(&path)?;
        fs::remove_file(&path)?;
        let held = self.own.remove(&path).unwrap_or_default();
        let mut seen = vec![0; held.len()];
        file.read_exact_at(&mut seen, 0)?;
        if seen != held {
            self.found.failures.push(format!("worker {}: unlinked {}: other bytes", self.id, path.display()));
        }
        Ok(())
    }

    fn create(&mut self) -> io::Result<()> {
        let bytes = self.bytes();
        fs::write(self.shared(), bytes)
    }

    fn rename(&mut self) -> io::Result<()> {
        let (from, to) = (self.shared(), self.shared());
        let flags = [RenameFlags::empty(), RenameFlags::NOREPLACE, RenameFlags::EXCHANGE];
        let flags = flags[self.random.random_range(0..flags.len())];
        Ok(rustix::fs::renameat_with(rustix::fs::CWD, from, rustix::fs::CWD, to, flags)?)
    }

    fn unlink(&mut self) -> io::Result<()> {
        let path = self.shared();
        if self.random.random_bool(0.3) { fs::remove_dir(path) } else { fs::remove_file(path) }
    }

    fn truncate(&mut self) -> io::Result<()> {
        let path = self.shared();
        let length = self.random.random_range(0..200_000);
        OpenOptions::new().write(true).open(path)?.set_len(length)
    }

    fn attributes(&mut self) -> io::Result<()> {
        let path = self.shared();
        let random = self.random.random::<u16>();
        match random % 3 {
            0 => {
                fs::set_permissions(path, fs::Permissions::from_mode(0o600 | u32::from(random >> 4) & 0o177))
            }
            1 => Ok(setxattr(path, "user.stress", &random.to_le_bytes(), XattrFlags::empty())?),
            _ => {
                let time = std::time::UNIX_EPOCH + std::time::Duration::from_micros(u64::from(random) << 24);
                File::open(path)?.set_modified(time)
            }
        }
    }

    /// Every own file must be listed once, whatever the others do meanwhile.
    fn list(&mut self) -> io::Result<()> {
        let mut listed = Vec::new();
        for entry in fs::read_dir(self.root)? {
            listed.push(entry?.path());
        }
        for path in self.own.keys() {
            let times = listed.iter().filter(|other| *other == path).count();
            if times != 1 {
                let what = format!("{} is listed {times} times", path.display());
                self.found.failures.push(format!("worker {}: {what}", self.id));
            }
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<()> {
        let path = self.shared();
        fs::metadata(&path)?;
        fs::read(path).map(drop)
    }
}
