//! What is said over the control socket: one JSON object a line, a version in each.
//!
//! A client sends requests one after another; each is answered by any number of progress lines and then one line that
//! is the outcome or an error. Fields that one side does not know are ignored, so that a field can be added without a
//! new version; the version changes when an old reader would misunderstand.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The version of this protocol.
pub const VERSION: u32 = 1;

/// The longest request, in bytes with its newline: a path of 4096 bytes as numbers fits.
pub const MAX_REQUEST: usize = 64 << 10;

/// The longest reply: a thousand failures with long paths fit.
pub const MAX_REPLY: usize = 16 << 20;

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// [`VERSION`] of who asks.
    pub version: u32,
    /// What is asked.
    #[serde(flatten)]
    pub operation: Operation,
}

/// What may be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "kebab-case")]
pub enum Operation {
    /// How the mount is doing.
    Status,
    /// Take the mount away; `lazy` also while it is in use.
    Unmount { lazy: bool },
    /// What the cache has of a file.
    State { path: WirePath },
    /// Fetch a file.
    Attach { path: WirePath, wait: bool },
    /// Drop the copy of a file.
    Detach { path: WirePath, keep: bool },
    /// Fetch a file or a tree.
    Warm { path: WirePath },
    /// Keep a file or a tree, or no longer.
    Pin { path: WirePath, pinned: bool },
    /// Make room; without a number down to the low-water mark.
    Evict { to_bytes: Option<u64> },
    /// Compare all copies with their checksums.
    Verify,
    /// The rules.
    Rules,
    /// Add a rule.
    AddRule { rule: String, before: Option<String> },
    /// Remove a rule by its name.
    RemoveRule { name: String },
}

/// One line of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// [`VERSION`] of who answers.
    pub version: u32,
    /// What is answered.
    #[serde(flatten)]
    pub body: Body,
}

/// What may be answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// It goes on.
    Progress(Progress),
    /// It is done.
    Done(Outcome),
    /// It failed.
    Error(Problem),
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// For the person.
    pub message: String,
    /// Whether what was asked for cannot be, as opposed to what went wrong on the way.
    pub usage: bool,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Of `status`.
    Status(Box<Status>),
    /// Of `state` and `attach`.
    File(FileState),
    /// Of `warm` and `pin`.
    Files(Progress),
    /// Of `evict`.
    Evicted(Evicted),
    /// Of `verify`.
    Verified(Verified),
    /// Of everything about rules: how they are now, in order.
    Rules(Vec<String>),
    /// Of `detach` and `unmount`.
    Nothing,
}

/// A path below the mount point, of any bytes: a string where it is UTF-8, a list of numbers where it is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WirePath(pub PathBuf);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WireBytes {
    Text(String),
    Bytes(Vec<u8>),
}

impl Serialize for WirePath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => serializer.collect_seq(self.0.as_os_str().as_bytes()),
        }
    }
}

impl<'de> Deserialize<'de> for WirePath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(WirePath(match WireBytes::deserialize(deserializer)? {
            WireBytes::Text(text) => text.into(),
            WireBytes::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }))
    }
}

impl From<&Path> for WirePath {
    fn from(path: &Path) -> Self {
        WirePath(path.to_owned())
    }
}

impl AsRef<OsStr> for WirePath {
    fn as_ref(&self) -> &OsStr {
        self.0.as_os_str()
    }
}

/// How a mount is doing. Sizes are bytes, counts are since the mount began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub mountpoint: WirePath,
    pub pid: u32,
    /// Who mounted it.
    pub uid: u32,
    /// The version of the daemon.
    pub hither: String,
    /// Whole seconds since 1970.
    pub started: u64,
    /// `cache` or `dir`.
    pub kind: String,
    /// What is shown.
    pub source: String,
    /// `io_uring` or `dev`: how requests come from the kernel.
    #[serde(default)]
    pub transport: String,
    /// Why they do not come over io_uring; empty if they do.
    #[serde(default)]
    pub transport_reason: String,
    /// `passthrough` or `page-cache`: how file data travels.
    pub data_path: String,
    /// Why data does not travel by passthrough, always or at times; empty if it does.
    pub data_path_reason: String,
    pub read_only: bool,
    /// Whether users other than the one who mounted it may use it.
    pub allow_other: bool,
    /// How long a program may wait for an answer; `None`: for ever.
    #[serde(default)]
    pub origin_timeout_ms: Option<u64>,
    /// Where the daemon logs.
    pub log: String,
    /// Where metrics are served, if they are.
    pub metrics: Option<String>,
    /// Numbers of the front end.
    pub front_end: FrontEnd,
    /// The caches of the stack, the outermost first.
    pub caches: Vec<CacheStatus>,
}

/// Requests of one operation of the kernel's protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// As the kernel calls it, in lower case.
    pub operation: String,
    pub count: u64,
    /// Those that failed: something broke or is lacking. Answers like "no such name" or "permission denied" do not count.
    pub errors: u64,
}

/// Numbers of the front end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FrontEnd {
    /// The same by operation, those that came at least once.
    pub operations: Vec<Requests>,
    pub requests: u64,
    /// Requests that failed: see [`Requests::errors`].
    pub errors: u64,
    /// Opens by how their data travels.
    pub opens_passthrough: u64,
    pub opens_cached: u64,
    pub opens_direct: u64,
    /// Bytes of files that the daemon read or wrote for the kernel; what goes by passthrough is not seen.
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub interrupted: u64,
    /// Requests that failed since no answer came within the time allowed; `errors` counts them too.
    pub timed_out: u64,
    pub panics: u64,
    pub threads: u64,
    pub in_flight: u64,
    pub nodes: u64,
    pub open_files: u64,
}

/// Numbers of a cache: see [`hither_cache::Stats`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheStatus {
    pub origin: String,
    pub store: String,
    pub capacity_bytes: Option<u64>,
    pub used_bytes: u64,
    pub pinned_bytes: u64,
    pub copies: u64,
    pub durable_copies: u64,
    /// The store is still being listed; numbers of copies are low until then.
    pub scanning: bool,
    pub hits: u64,
    pub hit_bytes: u64,
    pub misses: u64,
    pub miss_bytes: u64,
    pub bypassed_by_rule: u64,
    pub bypassed_full: u64,
    pub bypassed_unsettled: u64,
    pub served_bytes: u64,
    pub fetched_bytes: u64,
    pub fetches: u64,
    pub fills: u64,
    pub fills_abandoned: u64,
    pub invalidated: u64,
    pub evicted: u64,
    pub origin_errors: u64,
    pub store_errors: u64,
    /// Copies that `verify` found damaged since the mount began.
    #[serde(default)]
    pub damaged: u64,
    /// Of the disk of the store: its size, and what is free of it for users.
    #[serde(default)]
    pub disk_bytes: u64,
    #[serde(default)]
    pub disk_free_bytes: u64,
    /// How much of the disk stays free.
    #[serde(default)]
    pub min_free_bytes: u64,
}

/// What a cache has of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    pub path: WirePath,
    pub state: State,
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of it in the store.
    pub present: u64,
    pub pinned: bool,
    pub open_count: u64,
    /// Below the store.
    pub copy: Option<WirePath>,
    /// Why it is not cached.
    pub reason: Option<String>,
}

/// See [`hither_cache::FileState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    None,
    Filling,
    Cached,
    NotAFile,
}

/// See [`hither_cache::Progress`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub files_done: u64,
    pub files_total: u64,
    pub bytes_done: u64,
    pub bytes_total: u64,
    pub failed: u64,
    pub skipped: u64,
    /// Only in the outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<(WirePath, String)>,
}

/// What was evicted, and what remains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evicted {
    pub files: u64,
    pub bytes: u64,
    /// What copies were to take at most.
    pub target_bytes: u64,
    /// What they take now
    pub used_bytes: u64,
    /// and how much of it is pinned.
    pub pinned_bytes: u64,
}

/// See [`hither_cache::Verified`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    pub copies: u64,
    pub bytes: u64,
    pub damaged: Vec<WirePath>,
    pub refetched: u64,
}

impl From<hither_cache::FileReport> for FileState {
    fn from(report: hither_cache::FileReport) -> Self {
        FileState {
            path: WirePath(report.path),
            state: match report.state {
                hither_cache::FileState::None => State::None,
                hither_cache::FileState::Filling => State::Filling,
                hither_cache::FileState::Cached => State::Cached,
                hither_cache::FileState::NotAFile => State::NotAFile,
            },
            size: report.size,
            present: report.present,
            pinned: report.pinned,
            open_count: report.open_count,
            copy: report.copy.map(WirePath),
            reason: report.reason,
        }
    }
}

impl Progress {
    /// The numbers alone, as they are sent on the way.
    pub fn counts(progress: &hither_cache::Progress) -> Self {
        Progress {
            files_done: progress.files_done,
            files_total: progress.files_total,
            bytes_done: progress.bytes_done,
            bytes_total: progress.bytes_total,
            failed: progress.failed,
            skipped: progress.skipped,
            failures: Vec::new(),
        }
    }
}

impl From<hither_cache::Progress> for Progress {
    fn from(progress: hither_cache::Progress) -> Self {
        let counts = Progress::counts(&progress);
        let failures = progress.failures.into_iter().map(|(path, why)| (WirePath(path), why)).collect();
        Progress { failures, ..counts }
    }
}

impl From<hither_cache::Verified> for Verified {
    fn from(verified: hither_cache::Verified) -> Self {
        Verified {
            copies: verified.copies,
            bytes: verified.bytes,
            damaged: verified.damaged.into_iter().map(WirePath).collect(),
            refetched: verified.refetched,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_any_bytes_survive_the_wire() {
        for bytes in [&b"a/\xff\n\"\0b"[..], b"", "däta".as_bytes()] {
            let path = WirePath(PathBuf::from(OsString::from_vec(bytes.to_vec())));
            let operation = Operation::Attach { path, wait: true };
            let request = Request { version: VERSION, operation };
            let line = serde_json::to_string(&request).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Request>(&line).unwrap(), request);
        }
    }

    #[test]
    fn the_longest_path_fits_a_request_even_as_numbers() {
        let path = WirePath(PathBuf::from(OsString::from_vec(vec![0xff; 4096])));
        let request = Request { version: VERSION, operation: Operation::Warm { path } };
        assert!(serde_json::to_string(&request).unwrap().len() < MAX_REQUEST);
    }

    #[test]
    fn this_is_what_version_1_looks_like() {
        let operation = Operation::Pin { path: WirePath("a".into()), pinned: true };
        let line = serde_json::to_string(&Request { version: 1, operation }).unwrap();
        assert_eq!(line, r#"{"version":1,"operation":"pin","path":"a","pinned":true}"#);
        let evicted = Evicted { files: 1, bytes: 2, target_bytes: 3, used_bytes: 4, pinned_bytes: 5 };
        let body = Body::Done(Outcome::Evicted(evicted));
        let line = serde_json::to_string(&Reply { version: 1, body }).unwrap();
        let evicted = r#""files":1,"bytes":2,"target_bytes":3,"used_bytes":4,"pinned_bytes":5"#;
        assert_eq!(line, format!(r#"{{"version":1,"done":{{"evicted":{{{evicted}}}}}}}"#));
        let newer = r#"{"version":1,"operation":"evict","to_bytes":null,"new":[1]}"#;
        let operation = Operation::Evict { to_bytes: None };
        assert_eq!(serde_json::from_str::<Request>(newer).unwrap(), Request { version: 1, operation });
    }
}
