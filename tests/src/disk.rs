//! A file system of its own, in an image on a loop device: full, crashed and copied as a test likes, and never the
//! machine's own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::place::{self, Place};
use crate::program::output;

/// What a disk is formatted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// ext4, as Debian's mkfs makes it.
    Ext4,
    /// XFS, with reflinks.
    Xfs,
}

/// A mounted image.
#[derive(Debug)]
pub struct Disk {
    image: PathBuf,
    mountpoint: PathBuf,
    mounted: bool,
    // Dropped last: the image and the mount point lie in it.
    _place: Option<Place>,
}

impl Disk {
    /// A new file system of `bytes`.
    ///
    /// # Errors
    /// A program failed.
    pub fn new(format: Format, bytes: u64) -> Result<Self> {
        let place = Place::new()?;
        let image = place.path().join("image");
        make(&image, format, bytes)?;
        let mut disk = Disk::of(&image, &place.folder("mount")?)?;
        disk._place = Some(place);
        Ok(disk)
    }

    /// Mounts an image that somebody else keeps.
    ///
    /// # Errors
    /// It cannot be mounted.
    pub fn of(image: &Path, mountpoint: &Path) -> Result<Self> {
        let mut disk =
            Disk { image: image.to_owned(), mountpoint: mountpoint.to_owned(), mounted: false, _place: None };
        disk.mount()?;
        Ok(disk)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.mountpoint
    }

    /// Its image.
    pub fn image(&self) -> &Path {
        &self.image
    }

    /// A new folder on it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.path().join(name);
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }

    /// Mounts it, after [`unmount`](Disk::unmount).
    ///
    /// # Errors
    /// It cannot be mounted.
    pub fn mount(&mut self) -> Result<()> {
        ensure!(!self.mounted, "{} is mounted", self.mountpoint.display());
        output(Command::new("mount").args(["-o", "loop"]).arg(&self.image).arg(&self.mountpoint))?;
        self.mounted = true;
        Ok(())
    }

    /// Unmounts it, which writes everything back.
    ///
    /// # Errors
    /// It is in use.
    pub fn unmount(&mut self) -> Result<()> {
        output(Command::new("umount").arg(&self.mountpoint))?;
        self.mounted = false;
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.mounted && self.unmount().is_err() {
            place::detach(&self.mountpoint);
        }
    }
}

/// Formats a new image.
///
/// # Errors
/// No space, or mkfs failed.
pub fn make(image: &Path, format: Format, bytes: u64) -> Result<()> {
    File::create_new(image)?.set_len(bytes)?;
    let (program, options): (_, &[&str]) = match format {
        Format::Ext4 => ("mkfs.ext4", &["-q", "-F"]),
        Format::Xfs => ("mkfs.xfs", &["-q", "-f", "-m", "reflink=1"]),
    };
    let program = crate::requirement::find_program(program).context("not installed")?;
    output(Command::new(program).args(options).arg(image))?;
    Ok(())
}
