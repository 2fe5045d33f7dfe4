//! What a cache is told when it is made.

use std::collections::BTreeMap;
use std::time::Duration;

use hither_rules::RuleSet;

/// The settings of one cache. [`Options::default`] is what the command line starts from.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names the origin, so that a store is not used for another one by mistake (for a directory: its real path).
    pub origin_name: String,
    /// Names the life of the store's page cache: equal for two runs only if nothing written by the first can have
    /// been lost when the second starts (same boot, same mount of the store's disk).
    pub instance: [u8; 16],
    /// Which files are cached; an empty set means all.
    pub rules: RuleSet,
    /// How long what the origin said of a name or a file is believed. `Duration::MAX` for ever (`--immutable`).
    pub revalidate: Duration,
    /// Files larger than this many bytes are not cached.
    pub max_file: u64,
    /// Files smaller than this many bytes are not cached.
    pub min_file: u64,
    /// Opening a file of at most this many bytes fetches all of it; larger ones only what is read (with readahead).
    pub whole_file: u64,
    /// Most bytes that copies may take; `None` leaves it to `min_free`.
    pub capacity: Option<u64>,
    /// Eviction starts when copies take more than this share of `capacity`,
    pub high_water: f64,
    /// and goes on until they take less than this share.
    pub low_water: f64,
    /// The share of the store's disk that is kept free.
    pub min_free: f64,
    /// Most bytes that the copies of a project's files may take, by project id.
    pub quotas: BTreeMap<u32, u64>,
    /// A version of a file is trusted only if its ctime was this old when the fetch began: the origin's clock may not
    /// tell two changes apart that are closer.
    pub settle: Duration,
    /// How often what was fetched is made durable (a power loss costs at most the copies made since).
    pub sync_every: Duration,
    /// Fetches from the origin at the same time.
    pub fetches: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            origin_name: String::new(),
            instance: [0; 16],
            rules: RuleSet::default(),
            revalidate: Duration::from_secs(1),
            max_file: u64::MAX,
            min_file: 0,
            whole_file: 1 << 30,
            capacity: None,
            high_water: 0.95,
            low_water: 0.85,
            min_free: 0.05,
            quotas: BTreeMap::new(),
            settle: Duration::from_secs(2),
            sync_every: Duration::from_secs(5),
            fetches: 16,
        }
    }
}
