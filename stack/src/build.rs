//! Builds the tree of file systems that a configuration describes: directories checked, stores locked, layers stacked.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hither_cache::Cache;
use hither_dir::{Dir, Identity};
use hither_vfs::{Errno, FileSystem};

use crate::config::{CacheConfig, CacheSettings, FsConfig, MountConfig};
use crate::instance;
use crate::lock::{Refused, StoreLock};
use crate::paths::{self, Role};

/// Why a configuration cannot be built. A message leaves out what its source says: who prints errors prints the chain.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A directory is not there, cannot be reached or is none.
    #[error("the {role} {} cannot be used", path.display())]
    Unusable {
        /// What it is for.
        role: &'static str,
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Two directories are one, or one lies in the other.
    #[error(
        "the {inner_role} {} is or lies in the {outer_role} {}: they must be apart",
        inner.display(),
        outer.display()
    )]
    Overlap {
        /// What the inner one is for.
        inner_role: &'static str,
        /// Its real path.
        inner: PathBuf,
        /// What the outer one is for.
        outer_role: &'static str,
        /// Its real path.
        outer: PathBuf,
    },
    /// A store is to be made in a directory that is not there.
    #[error(
        "the store {} cannot be made, since {} does not exist: make that first (or is a disk not mounted there?)",
        store.display(),
        parent.display()
    )]
    NoParent {
        /// The store.
        store: PathBuf,
        /// What should hold it.
        parent: PathBuf,
    },
    /// An empty directory would be mounted over one that has files.
    #[error(
        "the origin {} is empty, but the mount point {} is not: did you swap the origin and the mount point?",
        origin.display(),
        mountpoint.display()
    )]
    Swapped {
        /// The real path of the origin.
        origin: PathBuf,
        /// The real path of the mount point.
        mountpoint: PathBuf,
    },
    /// The store directory holds something else.
    #[error(
        "{} holds other files ({}) and is not a store: name an empty or a new directory",
        store.display(),
        found.display()
    )]
    NotAStore {
        /// The directory.
        store: PathBuf,
        /// The name of something in it.
        found: PathBuf,
    },
    /// Settings that contradict each other.
    #[error("{0}")]
    Settings(String),
    /// Another mount uses the store.
    #[error(
        "the store {} is in use by process {pid}, mounted at {mountpoint}: unmount that first, or name another store",
        store.display()
    )]
    StoreInUse {
        /// The store.
        store: PathBuf,
        /// The owner, as the store's lock says.
        pid: String,
        /// Its mount point.
        mountpoint: String,
    },
    /// A mount that was taken away while programs used it still uses the store.
    #[error(
        "the store {} is still in use by process {pid}, whose mount at {mountpoint} is gone: it ends with the last \
         program that has a file open there; wait for it, or name another store",
        store.display()
    )]
    StoreLingers {
        /// The store.
        store: PathBuf,
        /// The owner, as the store's lock says.
        pid: String,
        /// Where it was mounted.
        mountpoint: String,
    },
    /// A store's lock could not be taken or written.
    #[error("cannot lock the store {}", store.display())]
    Lock {
        /// The store.
        store: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A directory could not be opened as a file system.
    #[error("cannot open the {role} {}", path.display())]
    Dir {
        /// What it is for.
        role: &'static str,
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: Story,
    },
    /// The store is that of another origin, or of another version of hither.
    #[error("the store {} cannot be used: {why} ({})", store.display(), removal(store))]
    ForeignStore {
        /// The store.
        store: PathBuf,
        /// What it is.
        why: String,
    },
    /// The cache could not use its store.
    #[error("cannot open the store {}", store.display())]
    Cache {
        /// The store.
        store: PathBuf,
        /// Why not.
        source: Story,
    },
}

/// What a person wants to know of a failed call: the story behind it if it has one, else what the errno means.
#[derive(Debug)]
pub struct Story(pub hither_vfs::Error);

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.cause() {
            Some(cause) => fmt::Display::fmt(cause, f),
            None => fmt::Display::fmt(&io::Error::from(self.0.errno()), f),
        }
    }
}

/// The cause is told by the story itself.
impl std::error::Error for Story {}

/// The command that empties a store, fit to be typed: a wrong one would remove something else.
fn removal(store: &Path) -> String {
    match store.to_str() {
        Some(text) if text.chars().any(char::is_control) => "remove it".to_owned(),
        None => "remove it".to_owned(),
        Some(text) => {
            let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
            let quoted = if text.chars().all(is_plain) {
                text.to_owned()
            } else {
                format!("'{}'", text.replace('\'', r"'\''"))
            };
            format!("its copies are thrown away by: rm -r {quoted}")
        }
    }
}

impl BuildError {
    /// Whether what was asked for is wrong, as opposed to what was found.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            BuildError::Unusable { .. }
                | BuildError::NoParent { .. }
                | BuildError::Swapped { .. }
                | BuildError::Overlap { .. }
                | BuildError::NotAStore { .. }
                | BuildError::ForeignStore { .. }
                | BuildError::Settings(_)
        )
    }
}

/// A tree of file systems, ready to be mounted. Dropping it gives its stores up; [`Built::shutdown`] comes first.
pub struct Built {
    /// The outermost file system.
    pub fs: Arc<dyn FileSystem>,
    /// Where it is to be mounted: the real path.
    pub mountpoint: PathBuf,
    /// How many files and directories lie in the mount point and will be hidden by the mount.
    pub hidden: usize,
    /// Every cache in it, the outermost first.
    pub caches: Vec<BuiltCache>,
}

/// A cache of the tree, with what it was made of.
pub struct BuiltCache {
    /// The cache.
    pub cache: Arc<Cache>,
    /// What it caches, for people.
    pub origin: String,
    /// The real path of its store.
    pub store: PathBuf,
    /// Its settings.
    pub settings: CacheSettings,
    _lock: StoreLock,
}

impl BuiltCache {
    /// Bytes to which eviction goes when nobody says a number: the low-water mark, where there is a capacity.
    pub fn low_water_bytes(&self) -> Option<u64> {
        self.settings.capacity.map(|capacity| (capacity.0 as f64 * self.settings.low_water.0) as u64)
    }
}

impl Built {
    /// Makes what the caches hold durable; to be called once nothing uses the tree any more.
    pub fn shutdown(&self) {
        for built in &self.caches {
            built.cache.shutdown();
        }
    }
}

/// Builds the tree of `config`. Nothing is mounted yet; the mount point must be free of a stale mount.
///
/// # Errors
///
/// See [`BuildError`].
pub fn build(config: &MountConfig) -> Result<Built, BuildError> {
    config.options.check().map_err(BuildError::Settings)?;
    let mountpoint = paths::existing(Role::Mountpoint, &config.mountpoint)?;
    let mut directories = vec![(Role::Mountpoint, mountpoint.clone())];
    check(&config.fs, &mut directories)?;
    paths::refuse_overlap(&directories)?;
    let hidden = paths::entries(&mountpoint).unwrap_or(0);
    if hidden > 0 {
        refuse_swapped(&mountpoint, &directories)?;
    }
    let mut caches = Vec::new();
    let (fs, _) = open(&config.fs, alone_options(), &mountpoint, &mut caches)?;
    // Inner ones were built first.
    caches.reverse();
    Ok(Built { fs, mountpoint, hidden, caches })
}

/// An empty tree over one with files: whoever mixed the two up must not believe the files to be lost, nor find a store
/// bound to the wrong origin.
fn refuse_swapped(mountpoint: &Path, directories: &[(Role, PathBuf)]) -> Result<(), BuildError> {
    let origin = directories.iter().find(|(role, _)| *role == Role::Origin);
    match origin {
        Some((_, origin)) if paths::entries(origin) == Some(0) => {
            Err(BuildError::Swapped { origin: origin.clone(), mountpoint: mountpoint.to_owned() })
        }
        _ => Ok(()),
    }
}

/// Checks the settings of a tree and collects its directories, before anything of it is opened or locked.
fn check(fs: &FsConfig, directories: &mut Vec<(Role, PathBuf)>) -> Result<(), BuildError> {
    match fs {
        FsConfig::Dir(dir) => {
            let origin = paths::existing(Role::Origin, &dir.source)?;
            paths::readable(Role::Origin, &origin)?;
            directories.push((Role::Origin, origin));
        }
        FsConfig::Cache(cache) => {
            cache.settings.check().map_err(BuildError::Settings)?;
            check(&cache.origin, directories)?;
            directories.push((Role::Store, paths::place_of_store(&cache.settings.store)?));
        }
    }
    Ok(())
}

/// Refuses a directory that is neither empty nor a store: what if somebody named the disk itself?
fn refuse_foreign(store: &Path) -> Result<(), BuildError> {
    let unusable = |source| BuildError::Unusable { role: Role::Store.name(), path: store.to_owned(), source };
    let names = fs::read_dir(store).map_err(unusable)?.map(|entry| Ok(entry?.file_name()));
    let names: Vec<_> = names.collect::<io::Result<_>>().map_err(unusable)?;
    if names.iter().any(|name| name == "lock") {
        return Ok(());
    }
    match names.into_iter().find(|name| name != "lost+found") {
        Some(found) => Err(BuildError::NotAStore { store: store.to_owned(), found: found.into() }),
        None => Ok(()),
    }
}

/// Opens a file system; also gives it a name. A directory is opened with `options`.
fn open(
    fs: &FsConfig,
    options: hither_dir::Options,
    mountpoint: &Path,
    caches: &mut Vec<BuiltCache>,
) -> Result<(Arc<dyn FileSystem>, String), BuildError> {
    match fs {
        FsConfig::Dir(dir) => {
            let path = paths::existing(Role::Origin, &dir.source)?;
            let name = path.display().to_string();
            Ok((open_dir(Role::Origin, &path, options)?, name))
        }
        FsConfig::Cache(cache) => {
            let built = open_cache(cache, mountpoint, caches)?;
            let opened = (built.cache.clone() as Arc<dyn FileSystem>, format!("cache of {}", built.origin));
            caches.push(built);
            Ok(opened)
        }
    }
}

fn open_cache(
    config: &CacheConfig,
    mountpoint: &Path,
    caches: &mut Vec<BuiltCache>,
) -> Result<BuiltCache, BuildError> {
    let store = paths::place_of_store(&config.settings.store)?;
    paths::make_store(&store)?;
    refuse_foreign(&store)?;
    let lock = StoreLock::take(&store, mountpoint).map_err(|refused| match refused {
        Refused::Held(owner) if !paths::is_mounted(&owner.mountpoint) => {
            BuildError::StoreLingers { store: store.clone(), pid: owner.pid, mountpoint: owner.mountpoint }
        }
        Refused::Held(owner) => {
            BuildError::StoreInUse { store: store.clone(), pid: owner.pid, mountpoint: owner.mountpoint }
        }
        Refused::Failed(source) => BuildError::Lock { store: store.clone(), source },
    })?;
    let failed = |error| unusable_store(&store, error);
    let instance = File::open(&store).and_then(instance::of).map_err(|error| failed(error.into()))?;
    let (origin_fs, origin) = open(&config.origin, origin_options(), mountpoint, caches)?;
    let store_fs = open_dir(Role::Store, &store, store_options())?;
    let options = config.settings.to_options(origin.clone(), instance);
    let cache = Cache::open(origin_fs, store_fs, options).map_err(failed)?;
    Ok(BuiltCache { cache, origin, store, settings: config.settings.clone(), _lock: lock })
}

/// Why a cache does not take its store. Whose store it is, the cache answers as EBUSY or EINVAL, with what it found.
fn unusable_store(store: &Path, error: hither_vfs::Error) -> BuildError {
    let store = store.to_owned();
    match error.cause() {
        Some(why) if error == Errno::BUSY || error == Errno::INVAL => {
            BuildError::ForeignStore { store, why: why.to_string() }
        }
        _ => BuildError::Cache { store, source: Story(error) },
    }
}

fn open_dir(
    role: Role,
    path: &Path,
    options: hither_dir::Options,
) -> Result<Arc<dyn FileSystem>, BuildError> {
    let opened = Dir::open(path, options);
    let dir = opened.map_err(|error| BuildError::Dir {
        role: role.name(),
        path: path.to_owned(),
        source: Story(error),
    })?;
    Ok(dir)
}

/// A directory that is mounted as it is: no thread that serves it does anything else.
fn alone_options() -> hither_dir::Options {
    hither_dir::Options { identity: Identity::Caller, keep_identity: true, ..hither_dir::Options::default() }
}

/// What people reach through a layer: everything as themselves, and not to be waited for on a thread that others need.
fn origin_options() -> hither_dir::Options {
    hither_dir::Options {
        identity: Identity::Caller,
        may_block: true,
        fresh_attributes: true,
        ..hither_dir::Options::default()
    }
}

/// What only the daemon changes.
fn store_options() -> hither_dir::Options {
    let ever = Duration::from_secs(3600);
    hither_dir::Options {
        identity: Identity::Daemon,
        timeouts: hither_vfs::Timeouts { entry: ever, attr: ever },
        ..hither_dir::Options::default()
    }
}

#[cfg(test)]
mod tests;
