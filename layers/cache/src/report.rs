//! What a cache tells of itself: counters, the state of a file, the outcome of long work.

use std::path::PathBuf;

/// Counters since the mount, and the store's use now. Sizes are bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Opens for reading that had a complete copy, and the sizes of those files added up.
    pub hits: u64,
    /// See `hits`.
    pub hit_bytes: u64,
    /// Opens for reading that had none.
    pub misses: u64,
    /// See `misses`.
    pub miss_bytes: u64,
    /// Misses that began no copy: by rule or size limits.
    pub bypassed_by_rule: u64,
    /// Misses that began no copy: no room in the store, or the project's quota used up.
    pub bypassed_full: u64,
    /// Misses that began no copy: the file was changed too recently, or is being written.
    pub bypassed_unsettled: u64,
    /// Bytes that reads were given by the daemon (the kernel serves hits by itself where it can).
    pub served_bytes: u64,
    /// Bytes fetched from the origin.
    pub fetched_bytes: u64,
    /// Reads made at the origin.
    pub fetches: u64,
    /// Copies completed.
    pub fills: u64,
    /// Fetches given up: the file changed meanwhile, the store or the origin failed.
    pub fills_abandoned: u64,
    /// Copies dropped because the origin's file changed.
    pub invalidated: u64,
    /// Copies evicted for room.
    pub evicted: u64,
    /// Errors that the origin answered.
    pub origin_errors: u64,
    /// Errors of the store.
    pub store_errors: u64,
    /// Copies in the store.
    pub copies: u64,
    /// Bytes that copies take.
    pub used_bytes: u64,
    /// Bytes that pinned copies take.
    pub pinned_bytes: u64,
    /// Copies that would survive a power loss now.
    pub durable_copies: u64,
    /// Whether the store is still being listed after the start (numbers are low until then).
    pub scanning: bool,
}

/// What the cache has of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// Below the mount point.
    pub path: PathBuf,
    /// See [`FileState`].
    pub state: FileState,
    /// Bytes of the file at the origin.
    pub size: u64,
    /// Bytes of it in the store.
    pub present: u64,
    /// Whether eviction spares it.
    pub pinned: bool,
    /// Opens at present.
    pub open_count: u64,
    /// Where the copy is, below the store.
    pub copy: Option<PathBuf>,
    /// Why it is not cached, if it is not and a rule or limit says so.
    pub reason: Option<String>,
}

/// See [`FileReport::state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// No copy.
    None,
    /// Being fetched.
    Filling,
    /// A complete copy of the version that the origin has.
    Cached,
    /// Not a regular file.
    NotAFile,
}

/// Progress of work on many files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Files finished (also those that needed nothing).
    pub files_done: u64,
    /// Files known so far.
    pub files_total: u64,
    /// Bytes finished.
    pub bytes_done: u64,
    /// Bytes known so far.
    pub bytes_total: u64,
    /// Files that failed, each with why (the first thousand).
    pub failures: Vec<(PathBuf, String)>,
    /// Files that failed.
    pub failed: u64,
    /// Files skipped by rule, limits or because they are being written.
    pub skipped: u64,
}

/// What an eviction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evicted {
    /// Copies removed.
    pub files: u64,
    /// Bytes that they took.
    pub bytes: u64,
}

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Copies read.
    pub copies: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files whose copy was damaged, by the path that it was made under; the copy was removed.
    pub damaged: Vec<PathBuf>,
    /// How many of them were fetched again.
    pub refetched: u64,
}
