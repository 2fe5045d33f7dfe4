//! What goes on while a daemon is killed or the power is cut: reads, rewrites, renames, and a cache that is too small
//! for the tree, so that it fills and evicts all the time; and the check of everything afterwards.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::mount::Mount;
use crate::program::output;
use crate::report::Outcome;
use crate::tree::digest;

/// Files of the tree.
const FILES: u32 = 48;

/// What the cache may hold: about half of the tree.
pub const CAPACITY: &str = "20M";

/// Makes the tree: sizes from nothing to some chunks.
pub fn make_tree(root: &Path, seed: u64) -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed);
    for folder in 0..4 {
        fs::create_dir(root.join(format!("d{folder}")))?;
    }
    for n in 0..FILES {
        fs::write(name(root, &mut random, n), content(&mut random))?;
    }
    Ok(())
}

fn name(root: &Path, random: &mut StdRng, n: u32) -> PathBuf {
    root.join(format!("d{}", random.random_range(0..4))).join(format!("f{n}"))
}

fn content(random: &mut StdRng) -> Vec<u8> {
    let longest = [1, 4_096, 100_000, 1_048_577, 3_500_000][random.random_range(0..5)];
    let mut bytes = vec![0; random.random_range(0..longest)];
    random.fill(&mut bytes[..]);
    bytes
}

/// One thing that a thread does again and again.
type Role = fn(&Path, &mut StdRng) -> io::Result<()>;

/// Threads at work in a mount, until stopped.
pub struct Load {
    threads: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// From here on the mount may be dead, and errors are what is expected.
    dying: AtomicBool,
    operations: AtomicU64,
    failures: std::sync::Mutex<Vec<String>>,
}

impl Load {
    /// Starts three readers, a writer and a renamer.
    pub fn start(root: &Path, seed: u64) -> Self {
        let shared = Arc::new(Shared::default());
        let roles: [Role; 5] = [read, read, read, rewrite, rename];
        let start = |(at, role): (usize, Role)| {
            let (root, shared) = (root.to_owned(), shared.clone());
            let random = StdRng::seed_from_u64(seed ^ (at as u64) << 32);
            std::thread::spawn(move || work(&root, &shared, random, role))
        };
        let threads = roles.into_iter().enumerate().map(start).collect();
        Load { threads, shared }
    }

    /// Errors are no failures any more.
    pub fn expect_errors(&self) {
        self.shared.dying.store(true, Ordering::SeqCst);
    }

    /// Stops it; counts what it did.
    ///
    /// # Errors
    /// A thread hangs: nothing may block for ever.
    pub fn stop(self, outcome: &mut Outcome) -> Result<()> {
        self.shared.stop.store(true, Ordering::SeqCst);
        let end = Instant::now() + Duration::from_secs(60);
        for thread in self.threads {
            while !thread.is_finished() {
                ensure!(Instant::now() < end, "a program hangs in the mount");
                std::thread::sleep(Duration::from_millis(1));
            }
            if thread.join().is_err() {
                bail!("a thread of the load panicked");
            }
        }
        outcome.add("operations", self.shared.operations.load(Ordering::SeqCst));
        let failures = self.shared.failures.lock().map(|failures| failures.clone()).unwrap_or_default();
        failures.into_iter().for_each(|failure| outcome.fail(failure));
        Ok(())
    }
}

fn work(root: &Path, shared: &Shared, mut random: StdRng, role: Role) {
    while !shared.stop.load(Ordering::SeqCst) {
        let result = role(root, &mut random);
        if shared.dying.load(Ordering::SeqCst) {
            // A dead mount answers at once; a program would not ask it a million times.
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        shared.operations.fetch_add(1, Ordering::SeqCst);
        if let Err(error) = result
            && error.kind() != io::ErrorKind::NotFound
            && !shared.dying.load(Ordering::SeqCst)
            && let Ok(mut failures) = shared.failures.lock()
        {
            failures.push(format!("an error of a mount that lives: {error}"));
        }
    }
}

fn any_file(root: &Path, random: &mut StdRng) -> PathBuf {
    let n = random.random_range(0..FILES);
    name(root, random, n)
}

fn read(root: &Path, random: &mut StdRng) -> io::Result<()> {
    let mut file = File::open(any_file(root, random))?;
    let mut some = vec![0; random.random_range(1..200_000)];
    loop {
        // Some read all, some leave in the middle of a fill.
        if file.read(&mut some)? == 0 || random.random_bool(0.03) {
            return Ok(());
        }
    }
}

fn rewrite(root: &Path, random: &mut StdRng) -> io::Result<()> {
    std::thread::sleep(Duration::from_millis(random.random_range(0..20)));
    let path = any_file(root, random);
    if path.exists() { fs::write(path, content(random)) } else { Ok(()) }
}

fn rename(root: &Path, random: &mut StdRng) -> io::Result<()> {
    std::thread::sleep(Duration::from_millis(random.random_range(0..10)));
    let n = random.random_range(0..FILES);
    let from = name(root, random, n);
    let to = name(root, random, n);
    if random.random_bool(0.2) {
        // Over a file of another number, whose number then is free until the tree is mended.
        return fs::rename(from, any_file(root, random));
    }
    fs::rename(from, to)
}

/// Puts files back that were renamed over others, through `root`.
pub fn mend_tree(root: &Path, random: &mut StdRng) -> Result<()> {
    let there: BTreeSet<_> =
        files_of(root)?.iter().filter_map(|path| Some(path.file_name()?.to_owned())).collect();
    for n in 0..FILES {
        if !there.contains(std::ffi::OsStr::new(&format!("f{n}"))) {
            fs::write(name(root, random, n), content(random))?;
        }
    }
    Ok(())
}

/// Compares every file through the mount with the directory, twice, so that the second look meets copies; has the
/// copies verified; and sees that nothing is left in the store that is no copy.
///
/// # Errors
/// Anything differs, or cannot be read.
pub fn check(mount: &Mount, origin: &Path, store: &Path, outcome: &mut Outcome) -> Result<()> {
    for pass in 0..2 {
        let names = files_of(origin)?;
        ensure!(names == files_of(mount.path())?, "other names through the mount");
        for name in names {
            let through = checksum(&mount.path().join(&name));
            let through = through.with_context(|| format!("{} through the mount", name.display()))?;
            if through != checksum(&origin.join(&name))? {
                outcome.fail(format!("look {pass}: {}: not the origin's bytes", name.display()));
            }
            outcome.add("files compared", 1);
        }
    }
    let said = output(
        std::process::Command::new(crate::program::hither()?).args(["cache", "verify"]).arg(mount.path()),
    );
    if let Err(error) = said {
        outcome.fail(format!("verify: {error:#}"));
    }
    outcome.add("hits", mount.count("/caches/0/hits")?);
    nothing_but_copies(mount, store)
}

/// Waits until the store holds one data file and one record a copy, and nothing else.
fn nothing_but_copies(mount: &Mount, store: &Path) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(15);
    loop {
        let copies = mount.count("/caches/0/copies")?;
        let mut found = [0_u64; 3];
        for path in files_of(&store.join("copies"))? {
            let kind = match path.extension().and_then(|extension| extension.to_str()) {
                Some("data") => 0,
                Some("rec") => 1,
                _ => 2,
            };
            found[kind] += 1;
        }
        if found == [copies, copies, 0] {
            return Ok(());
        }
        ensure!(
            Instant::now() < end,
            "{copies} copies, but {} data files, {} records, {} other files in the store",
            found[0],
            found[1],
            found[2]
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn checksum(path: &Path) -> io::Result<u64> {
    digest(&mut File::open(path)?)
}

/// All files below a folder, by path below it, in order.
fn files_of(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
}
