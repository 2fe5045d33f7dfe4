//! Where tests keep their disks and mount points: a folder in memory for each, named after the process that made it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

const PREFIX: &str = "hither-tests.";

/// A folder that is gone when dropped.
#[derive(Debug)]
pub struct Place {
    folder: TempDir,
}

impl Place {
    /// A new folder. The first of a process also clears what dead test processes left.
    ///
    /// # Errors
    /// None can be made.
    pub fn new() -> Result<Self> {
        static SWEEP: Once = Once::new();
        SWEEP.call_once(|| sweep(&parent()));
        let prefix = format!("{PREFIX}{}.", std::process::id());
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent());
        let folder = folder.context("no folder for a test")?;
        // Ordinary users must get to the mounts below it.
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        Ok(Place { folder })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A new folder inside it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.path().join(name);
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }
}

fn parent() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// Clears what test processes that are no more left: mounts, then folders.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
        let Some(owner) = owner else { continue };
        if Path::new("/proc").join(owner.to_string()).exists() {
            continue;
        }
        for mountpoint in mounts_below(&entry.path()).into_iter().rev() {
            detach(&mountpoint);
        }
        if mounts_below(&entry.path()).is_empty()
            && let Err(error) = fs::remove_dir_all(entry.path())
        {
            eprintln!("left by an earlier run: {}: {error}", entry.path().display());
        }
    }
}

/// Takes a mount away, whoever uses it.
pub fn detach(mountpoint: &Path) {
    let _ = Command::new("umount").arg("--lazy").arg(mountpoint).output();
}

/// The mount points at and below `folder`, in the order in which they were mounted.
pub fn mounts_below(folder: &Path) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from);
    points.filter(|point| point.starts_with(folder)).collect()
}
