//! A cache over an origin and a store in memory, both of which can be made to fail.

use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hither_cache::{Cache, FileState, Options};
use hither_mem::Mem;
use hither_testkit::Client;
use hither_testkit::faults::{Faulty, Script};
use hither_vfs::{FileSystem, Node, Result};

/// Bytes of a fetch.
pub const CHUNK: usize = 1 << 20;

/// A cache with its surroundings.
pub struct Kit {
    pub origin_fs: Arc<dyn FileSystem>,
    pub store_fs: Arc<dyn FileSystem>,
    /// What happens to calls of the origin, and how many there were.
    pub origin: Arc<Script>,
    /// The same for the store.
    pub store: Arc<Script>,
    pub cache: Arc<Cache>,
    /// A program that uses the cache.
    pub program: Client,
    /// Somebody who changes the origin behind the cache's back.
    pub elsewhere: Client,
    /// Files that are known, as a kernel knows those it has seen.
    known: Mutex<Vec<Arc<dyn Node>>>,
}

/// What tests start from: nothing has to settle, and the origin is asked each time.
pub fn options() -> Options {
    Options {
        origin_name: "origin".to_owned(),
        instance: [1; 16],
        revalidate: Duration::ZERO,
        settle: Duration::ZERO,
        sync_every: Duration::from_secs(3600),
        min_free: 0.0,
        ..Options::default()
    }
}

impl Kit {
    /// A new one.
    pub fn new(options: Options) -> Self {
        Kit::with_store(options, Arc::new(Mem::new()))
    }

    /// One with a store of that many bytes.
    pub fn with_store_of(options: Options, bytes: u64) -> Self {
        Kit::with_store(options, Arc::new(Mem::with_options(&hither_mem::Options::with_capacity(bytes))))
    }

    fn with_store(options: Options, store_fs: Arc<dyn FileSystem>) -> Self {
        Kit::over(Arc::new(Mem::new()), store_fs, options)
    }

    fn over(origin_fs: Arc<dyn FileSystem>, store_fs: Arc<dyn FileSystem>, options: Options) -> Self {
        Kit::over_failing(origin_fs, store_fs, options, |_| ())
    }

    fn over_failing(
        origin_fs: Arc<dyn FileSystem>,
        store_fs: Arc<dyn FileSystem>,
        options: Options,
        fail_store: impl FnOnce(&Script),
    ) -> Self {
        let (origin, store) = (Arc::new(Script::default()), Arc::new(Script::default()));
        fail_store(&store);
        let slow: Arc<dyn FileSystem> = Faulty::new(origin_fs.clone(), origin.clone());
        let disk: Arc<dyn FileSystem> = Faulty::new(store_fs.clone(), store.clone());
        let cache = Cache::open(slow, disk, options).unwrap();
        let program = Client::new(&*cache);
        let elsewhere = Client::new(&*origin_fs);
        Kit { origin_fs, store_fs, origin, store, cache, program, elsewhere, known: Mutex::default() }
    }

    /// The daemon is killed and started again.
    pub fn restarted(self, options: Options) -> Self {
        self.restarted_failing(options, |_| ())
    }

    /// The same, with a store that fails from the first moment on.
    pub fn restarted_failing(self, options: Options, fail_store: impl FnOnce(&Script)) -> Self {
        let (origin_fs, store_fs) = (self.origin_fs.clone(), self.store_fs.clone());
        // Killed: nothing is done at the end. The old one's threads find nothing to do.
        std::mem::forget(self);
        Kit::over_failing(origin_fs, store_fs, options, fail_store)
    }

    /// Waits until the copy of a file is complete.
    pub fn settle_copy(&self, path: &str) {
        self.until(|| self.state(path) != FileState::Filling);
    }

    /// What the cache has of a file.
    pub fn state(&self, path: &str) -> FileState {
        self.cache.state(self.program.call(), path.as_ref()).unwrap().state
    }

    /// Reads a file as a program does, and waits for its copy.
    pub fn cached(&self, path: &str) -> Vec<u8> {
        self.known.lock().unwrap().push(self.program.node(path).unwrap());
        let bytes = self.program.read(path).unwrap();
        self.settle_copy(path);
        assert_eq!(self.state(path), FileState::Cached, "{path}");
        bytes
    }

    /// The names of a directory, sorted, as the program sees them.
    pub fn names(&self, path: &str) -> Result<Vec<OsString>> {
        names(&self.program, path)
    }

    /// Waits for something that happens soon.
    pub fn until(&self, done: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !done() {
            assert!(Instant::now() < end, "what should happen soon did not; {:?}", self.cache.stats());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The names of a directory, sorted.
pub fn names(client: &Client, path: impl AsRef<std::path::Path>) -> Result<Vec<OsString>> {
    let mut names: Vec<_> = client.list(path)?.into_iter().map(|listed| listed.name).collect();
    names.sort();
    Ok(names)
}

/// Bytes that tell their place, none of them zero.
pub fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(31) ^ (at >> 8) ^ usize::from(seed)) as u8 | 1).collect()
}
