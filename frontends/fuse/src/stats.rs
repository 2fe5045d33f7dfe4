//! What a mount has done so far: numbers for `hither status` and for metrics.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use hither_vfs::Errno;

use crate::protocol::abi::opcode;

/// What a mount has done so far.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Requests by operation, those that came at least once.
    pub operations: Vec<Operation>,
    /// How requests come.
    pub requests: RequestPath,
    /// How file data travels.
    pub data_path: DataPath,
    /// Opens that the kernel serves by itself.
    pub opens_passthrough: u64,
    /// Opens through the page cache.
    pub opens_cached: u64,
    /// Opens with `O_DIRECT` that are served by us.
    pub opens_direct: u64,
    /// Opens that could have had a backing, but not beside others of the file, or the kernel refused it.
    pub opens_unbacked: u64,
    /// Opens answered with ESTALE so that the kernel looks the file up again in its new epoch.
    pub opens_stale: u64,
    /// Bytes of files that we read for the kernel.
    pub bytes_read: u64,
    /// Bytes of files that the kernel had us write.
    pub bytes_written: u64,
    /// Requests that had to wait and were served by the pool.
    pub posted: u64,
    /// Times a queue got another thread because its own one was stuck in a call.
    pub stuck: u64,
    /// Requests answered with EINTR on behalf of a handler that did not react.
    pub interrupted: u64,
    /// Requests answered with EIO since they were past their deadline.
    pub timed_out: u64,
    /// Results that came too late, and were undone.
    pub late: u64,
    /// Handlers that panicked.
    pub panics: u64,
    /// Threads that read requests.
    pub threads: usize,
    /// Threads of the pool.
    pub pool_threads: usize,
    /// Requests under way.
    pub in_flight: usize,
    /// Node ids that the kernel knows.
    pub nodes: usize,
    /// Open files.
    pub files: usize,
    /// Backing ids held in the kernel.
    pub backing_ids: usize,
}

/// Requests of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its name in the kernel's header, in lower case.
    pub name: String,
    /// Requests.
    pub count: u64,
    /// Those that failed, as [`is_failure`] has it.
    pub errors: u64,
}

/// How requests come from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestPath {
    /// Over io_uring.
    Ring {
        /// Queues: one a processor.
        queues: usize,
    },
    /// Through `/dev/fuse`.
    Dev {
        /// Why not over io_uring.
        why: String,
    },
}

impl Default for RequestPath {
    fn default() -> Self {
        RequestPath::Dev { why: String::new() }
    }
}

impl fmt::Display for RequestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestPath::Ring { queues } => write!(f, "io_uring, {queues} queues"),
            RequestPath::Dev { why } if why.is_empty() => f.write_str("/dev/fuse"),
            RequestPath::Dev { why } => write!(f, "/dev/fuse: {why}"),
        }
    }
}

/// How file data travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataPath {
    /// The kernel reads and writes the backing of an open that has one by itself.
    Passthrough {
        /// Why the last open that had a backing went without; empty if none did.
        why_not: String,
    },
    /// Through the page cache and us.
    PageCache {
        /// Why not by passthrough.
        why: String,
    },
}

impl fmt::Display for DataPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataPath::Passthrough { why_not } if why_not.is_empty() => f.write_str("passthrough"),
            DataPath::Passthrough { why_not } => write!(f, "passthrough, not for all: {why_not}"),
            DataPath::PageCache { why } => write!(f, "page cache: {why}"),
        }
    }
}

impl Default for DataPath {
    fn default() -> Self {
        DataPath::PageCache { why: String::new() }
    }
}

/// Whether an answer means that something broke or is lacking. All others are answers that programs ask for: no such
/// name, permission denied, not a terminal.
pub(crate) fn is_failure(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::IO
            | Errno::NXIO
            | Errno::NODEV
            | Errno::NOMEM
            | Errno::NOBUFS
            | Errno::NFILE
            | Errno::MFILE
            | Errno::BADMSG
            | Errno::PROTO
            | Errno::UCLEAN
            | Errno::REMOTEIO
            | Errno::COMM
            | Errno::TIMEDOUT
            | Errno::SHUTDOWN
            | Errno::HOSTDOWN
            | Errno::HOSTUNREACH
            | Errno::NETDOWN
            | Errno::NETUNREACH
            | Errno::CONNABORTED
            | Errno::CONNRESET
            | Errno::CONNREFUSED
    )
}

/// The counters behind [`Stats`].
pub(crate) struct Counters {
    requests: [AtomicU64; opcode::END],
    errors: [AtomicU64; opcode::END],
    pub(crate) opens_passthrough: Counter,
    pub(crate) opens_cached: Counter,
    pub(crate) opens_direct: Counter,
    pub(crate) opens_stale: Counter,
    pub(crate) bytes_read: Counter,
    pub(crate) bytes_written: Counter,
    pub(crate) posted: Counter,
    pub(crate) stuck: Counter,
    pub(crate) interrupted: Counter,
    pub(crate) timed_out: Counter,
    pub(crate) late: Counter,
    pub(crate) panics: Counter,
}

/// Counts.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            requests: std::array::from_fn(|_| AtomicU64::new(0)),
            errors: std::array::from_fn(|_| AtomicU64::new(0)),
            opens_passthrough: Counter::default(),
            opens_cached: Counter::default(),
            opens_direct: Counter::default(),
            opens_stale: Counter::default(),
            bytes_read: Counter::default(),
            bytes_written: Counter::default(),
            posted: Counter::default(),
            stuck: Counter::default(),
            interrupted: Counter::default(),
            timed_out: Counter::default(),
            late: Counter::default(),
            panics: Counter::default(),
        }
    }
}

impl Counters {
    /// A request came; those of newer kernels count as number 0.
    pub(crate) fn request(&self, code: u32) {
        let index = if (code as usize) < opcode::END { code as usize } else { 0 };
        self.requests[index].fetch_add(1, Ordering::Relaxed);
    }

    /// A request failed.
    pub(crate) fn error(&self, code: u32) {
        let index = if (code as usize) < opcode::END { code as usize } else { 0 };
        self.errors[index].fetch_add(1, Ordering::Relaxed);
    }

    /// What is counted here.
    pub(crate) fn snapshot(&self) -> Stats {
        let operations = self.requests.iter().zip(&self.errors).enumerate();
        let operations = operations.filter_map(|(code, (requests, errors))| {
            let count = requests.load(Ordering::Relaxed);
            let name = opcode::name(code as u32).unwrap_or("unknown").to_lowercase();
            (count > 0).then(|| Operation { name, count, errors: errors.load(Ordering::Relaxed) })
        });
        Stats {
            operations: operations.collect(),
            opens_passthrough: self.opens_passthrough.get(),
            opens_cached: self.opens_cached.get(),
            opens_direct: self.opens_direct.get(),
            opens_stale: self.opens_stale.get(),
            bytes_read: self.bytes_read.get(),
            bytes_written: self.bytes_written.get(),
            posted: self.posted.get(),
            stuck: self.stuck.get(),
            interrupted: self.interrupted.get(),
            timed_out: self.timed_out.get(),
            late: self.late.get(),
            panics: self.panics.get(),
            ..Stats::default()
        }
    }
}
