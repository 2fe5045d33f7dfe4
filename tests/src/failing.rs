//! A mounted directory that fails as a script says, to be the origin of a cache. This process serves it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use hither_testkit::faults::{Faulty, Script};

use crate::place::Place;

/// The mount. Fields are dropped in this order.
pub struct FailingOrigin {
    session: hither_fuse::Session,
    script: Arc<Script>,
    place: Place,
}

impl FailingOrigin {
    /// A new empty directory.
    ///
    /// # Errors
    /// It cannot be mounted.
    pub fn new() -> Result<Self> {
        let place = Place::new()?;
        let (beneath, mountpoint) = (place.folder("beneath")?, place.folder("mnt")?);
        let inner = hither_dir::Dir::open(&beneath, hither_dir::Options::default())?;
        let script = Arc::new(Script::default());
        let options = hither_fuse::Options { allow_other: true, ..Default::default() };
        let session = hither_fuse::mount(Faulty::new(inner, script.clone()), &mountpoint, &options)?;
        Ok(FailingOrigin { session, script, place })
    }

    /// What goes wrong.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.place.path().join("mnt")
    }

    /// The directory itself, which never fails.
    pub fn beneath(&self) -> PathBuf {
        self.place.path().join("beneath")
    }

    /// The front end that serves it.
    pub fn session(&self) -> &hither_fuse::Session {
        &self.session
    }
}

/// Whether something is mounted at `path`.
pub fn is_mounted(path: &Path) -> bool {
    crate::place::mounts_below(path).iter().any(|mount| mount == path)
}
