//! The disk that everything lies on: an ext4 image in memory, so that no real disk's noise is measured; or, for those
//! who may not mount one, the memory file system itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use tempfile::TempDir;

/// A folder on a disk in memory, gone when dropped.
#[derive(Debug)]
pub struct Disk {
    folder: TempDir,
    is_ext4: bool,
}

impl Disk {
    /// A disk of at most so many bytes, which are only taken as they are written.
    pub fn new(bytes: u64) -> anyhow::Result<Disk> {
        let folder =
            tempfile::Builder::new().prefix("hither-bench-").tempdir_in("/dev/shm").context("no /dev/shm")?;
        let mut disk = Disk { folder, is_ext4: false };
        std::fs::create_dir(disk.root()).context("cannot make a folder")?;
        if rustix::process::geteuid().is_root() {
            match disk.mount(bytes) {
                Ok(()) => disk.is_ext4 = true,
                Err(error) => eprintln!("bench: {error:#}; using /dev/shm itself"),
            }
        }
        Ok(disk)
    }

    fn mount(&self, bytes: u64) -> anyhow::Result<()> {
        let image = self.folder.path().join("image");
        let file = std::fs::File::create(&image).context("cannot make an image")?;
        file.set_len(bytes).context("cannot make an image")?;
        // No table is to be written in the background while we measure.
        let format = ["-q", "-N", "600000", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"];
        run(Command::new("mkfs.ext4").args(format).arg(&image))?;
        run(Command::new("mount").args(["-o", "loop,discard"]).arg(&image).arg(self.root())).map(drop)
    }

    /// The folder to use.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// A new folder on it.
    pub fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.root().join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }

    /// Removes all that is on it; the memory is given back.
    pub fn clear(&self) -> anyhow::Result<()> {
        for entry in std::fs::read_dir(self.root()).context("cannot list the disk")? {
            let path = entry.context("cannot list the disk")?.path();
            if path.file_name() != Some("lost+found".as_ref()) {
                std::fs::remove_dir_all(&path)
                    .with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
        settle();
        Ok(())
    }

    /// A new folder beside it, to mount something on.
    pub fn mountpoint(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }

    /// What it is, for the report.
    pub fn describe(&self) -> &'static str {
        if self.is_ext4 { "ext4 on a loop device in /dev/shm" } else { "/dev/shm (tmpfs)" }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_ext4
            && let Err(error) = run(Command::new("umount").arg(self.root()))
        {
            eprintln!("bench: {error:#}; it stays mounted");
        }
    }
}

/// Writes back what is dirty, so that nobody does it during a measurement.
pub fn settle() {
    rustix::fs::sync();
}

/// Runs a program in silence; its complaint is the error.
pub fn run(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let name = Path::new(command.get_program()).display().to_string();
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{name}: {}: {}", output.status, complaint.trim());
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::{Disk, run};
    use std::process::Command;

    #[test]
    fn a_disk_is_a_folder_that_goes() {
        let disk = Disk::new(64 << 20).unwrap();
        let folder = disk.folder("a").unwrap();
        std::fs::write(folder.join("f"), b"x").unwrap();
        disk.clear().unwrap();
        assert!(!folder.exists());
        std::fs::create_dir(&folder).unwrap();
        drop(disk);
        assert!(!folder.exists());
    }

    #[test]
    fn a_failure_says_why() {
        let error = run(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("why"), "{error}");
    }
}
