//! Power cuts: a disk whose state at any moment can be taken and mounted anew, as after a power failure.
//!
//! ```no_run
//! use hither_testkit::power_cut::Disk;
//! let disk = Disk::new(256 << 20)?;       // an ext4 mounted at disk.path(), where the work under test runs
//! let cut = disk.cut()?;                  // its state now, journal replayed, mounted at cut.path()
//! # Ok::<(), hither_testkit::power_cut::Cannot>(())
//! ```
//!
//! The disk is a file behind a loop device. Copying a file that is being written would mix moments, which no power cut
//! does and no journal survives; so the file lies on an XFS, which can clone it in one step, between two writes
//! (`FICLONE`). That XFS is in memory, in a file in `/dev/shm`.
//!
//! What survives a cut is what had been written to the device. Pages that only the kernel's cache had are lost; a
//! device's own volatile cache is not modelled, so a missing flush of it is not found here.
//!
//! It needs root, loop devices, and the programs of `xfsprogs` and `e2fsprogs`. Where something is lacking, the error
//! says what: a test that cannot run says so and is not counted as passed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;

/// The smallest file system that `mkfs.xfs` makes.
const HOLDER_MIN_BYTES: u64 = 512 << 20;

/// Room for clones whose original changes: times the size of the disk. The file is sparse.
const HOLDER_FACTOR: u64 = 8;

/// Why there is no disk, or no cut of it.
#[derive(Debug, thiserror::Error)]
#[error("cannot cut the power: {0}")]
pub struct Cannot(String);

/// A mounted disk.
pub struct Disk {
    // Dropped in this order: the disk is unmounted before what it lies on.
    mount: Mount,
    image: PathBuf,
    holder: Mount,
    cuts: AtomicU64,
    _ground: TempDir,
}

/// The state of a disk at some moment, mounted for itself.
pub struct Cut<'a> {
    mount: Mount,
    image: PathBuf,
    /// The image lies beside the disk's.
    _disk: &'a Disk,
}

impl Disk {
    /// An empty ext4 of that size, mounted.
    pub fn new(size_bytes: u64) -> Result<Self, Cannot> {
        if !rustix::process::geteuid().is_root() {
            return Err(Cannot("this process is not root".to_owned()));
        }
        let ground = tempfile::Builder::new().prefix("power-cut").tempdir_in("/dev/shm").map_err(cannot)?;
        let holder_image = ground.path().join("holder.img");
        let holder_bytes = (HOLDER_FACTOR * size_bytes).max(HOLDER_MIN_BYTES);
        sparse(&holder_image, holder_bytes)?;
        run(Command::new("mkfs.xfs").args(["-q", "-m", "reflink=1"]).arg(&holder_image), "xfsprogs")?;
        let holder = Mount::new(&holder_image, ground.path().join("holder"), "xfs")?;
        let image = holder.at.join("disk.img");
        sparse(&image, size_bytes)?;
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image), "e2fsprogs")?;
        let mount = Mount::new(&image, ground.path().join("disk"), "ext4")?;
        Ok(Disk { mount, image, holder, cuts: AtomicU64::new(0), _ground: ground })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.mount.at
    }

    /// Takes the state of the disk now and mounts it anew: its journal is replayed. The disk itself goes on.
    pub fn cut(&self) -> Result<Cut<'_>, Cannot> {
        let name = format!("cut{}", self.cuts.fetch_add(1, Ordering::Relaxed));
        let image = self.holder.at.join(format!("{name}.img"));
        let clone = File::create_new(&image).map_err(cannot)?;
        let original = File::open(&self.image).map_err(cannot)?;
        rustix::fs::ioctl_ficlone(&clone, &original).map_err(cannot)?;
        let at = self.holder.at.with_file_name(name);
        match Mount::new(&image, at, "ext4") {
            Ok(mount) => Ok(Cut { mount, image, _disk: self }),
            Err(error) => {
                let _ = std::fs::remove_file(&image);
                Err(error)
            }
        }
    }
}

impl Cut<'_> {
    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.mount.at
    }
}

impl Drop for Cut<'_> {
    fn drop(&mut self) {
        self.mount.end();
        let _ = std::fs::remove_file(&self.image);
    }
}

/// An image that is mounted, until dropped.
struct Mount {
    at: PathBuf,
    mounted: bool,
}

impl Mount {
    fn new(image: &Path, at: PathBuf, kind: &str) -> Result<Self, Cannot> {
        std::fs::create_dir(&at).map_err(cannot)?;
        let mut command = Command::new("mount");
        command.args(["-t", kind, "-o", "loop"]).arg(image).arg(&at);
        match run(&mut command, "mount") {
            Ok(()) => Ok(Mount { at, mounted: true }),
            Err(error) => {
                let _ = std::fs::remove_dir(&at);
                Err(error)
            }
        }
    }

    fn end(&mut self) {
        if !std::mem::take(&mut self.mounted) {
            return;
        }
        // Somebody may still have a file open there: the mount goes now, the device with the last of them.
        let plain = run(Command::new("umount").arg(&self.at), "mount");
        let ended = plain.or_else(|_| run(Command::new("umount").arg("--lazy").arg(&self.at), "mount"));
        if let Err(error) = ended {
            eprintln!("{} stays mounted: {error}", self.at.display());
        }
        let _ = std::fs::remove_dir(&self.at);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.end();
    }
}

fn sparse(path: &Path, bytes: u64) -> Result<(), Cannot> {
    let file = File::create_new(path).map_err(cannot)?;
    file.set_len(bytes).map_err(cannot)
}

/// Runs a program of a Debian package.
fn run(command: &mut Command, package: &str) -> Result<(), Cannot> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Cannot(format!("{program} is not installed (Debian package {package})")),
        _ => Cannot(format!("{program}: {error}")),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Cannot(format!("{program} failed ({}): {}", output.status, said.trim())))
}

fn cannot(error: impl Into<io::Error>) -> Cannot {
    Cannot(error.into().to_string())
}

#[cfg(test)]
mod tests;
