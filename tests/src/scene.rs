//! A directory on an ext4 of its own, seen natively or through a mount: the same test runs on each.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::disk::{Disk, Format};
use crate::mount::Mount;
use crate::place::Place;

/// How a program sees the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// The directory itself.
    Native,
    /// `hither mount dir`.
    Dir,
    /// `hither mount cache`.
    Cache,
}

impl View {
    /// All of them.
    pub const ALL: [View; 3] = [View::Native, View::Dir, View::Cache];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            View::Native => "ext4",
            View::Dir => "dir",
            View::Cache => "cache",
        }
    }
}

/// Space of the origin's disk and of the store's (sparse images: only what is written takes memory).
const DISK_BYTES: u64 = 2 << 30;

/// A directory and a view of it. Fields are dropped in this order: mount, disks, folder.
#[derive(Debug)]
pub struct Scene {
    mount: Option<Mount>,
    origin_disk: Disk,
    store_disk: Option<Disk>,
    place: Place,
    view: View,
}

impl Scene {
    /// A new empty directory and its view; `options` are those of `hither mount`.
    ///
    /// # Errors
    /// It cannot be set up.
    pub fn new(view: View, options: &[&str]) -> Result<Self> {
        Scene::with_disks(view, Format::Ext4, DISK_BYTES, options)
    }

    /// The same with another file system beneath, and a store of `store_bytes`.
    ///
    /// # Errors
    /// It cannot be set up.
    pub fn with_disks(view: View, format: Format, store_bytes: u64, options: &[&str]) -> Result<Self> {
        let origin_disk = Disk::new(format, DISK_BYTES)?;
        origin_disk.folder("tree")?;
        let place = Place::new()?;
        let mountpoint = place.folder("mnt")?;
        let mut scene = Scene { mount: None, origin_disk, store_disk: None, place, view };
        match view {
            View::Native => {}
            View::Dir => scene.mount = Some(Mount::dir(&scene.origin(), &mountpoint, options)?),
            View::Cache => {
                let store = Disk::new(format, store_bytes)?;
                scene.mount =
                    Some(Mount::cache(&scene.origin(), &store.folder("store")?, &mountpoint, options)?);
                scene.store_disk = Some(store);
            }
        }
        Ok(scene)
    }

    /// The view.
    pub fn view(&self) -> View {
        self.view
    }

    /// The directory itself.
    pub fn origin(&self) -> PathBuf {
        self.origin_disk.path().join("tree")
    }

    /// The store of a cache.
    pub fn store(&self) -> PathBuf {
        self.store_disk.as_ref().map(|disk| disk.path().join("store")).unwrap_or_default()
    }

    /// Where programs work.
    pub fn root(&self) -> PathBuf {
        match self.view {
            View::Native => self.origin(),
            View::Dir | View::Cache => self.place.path().join("mnt"),
        }
    }

    /// A folder beside the mount point, for whatever a test needs.
    pub fn beside(&self) -> &Path {
        self.place.path()
    }

    /// The mount.
    ///
    /// # Errors
    /// There is none.
    pub fn mount(&mut self) -> Result<&mut Mount> {
        self.mount.as_mut().context("the directory itself is no mount")
    }

    /// Unmounts, and waits until all is done; the directory and the store stay.
    ///
    /// # Errors
    /// What `hither` said.
    pub fn unmount(&mut self) -> Result<()> {
        self.mount.as_mut().map_or(Ok(()), Mount::unmount)
    }
}
