//! What a mount does for those who ask over its control socket.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hither_cache::Cache;
use hither_fuse::{Session, Unmount};
use hither_rt::clock;
use hither_rt::sync::Mutex;
use hither_stack::{Built, BuiltCache, Story};
use hither_vfs::{Call, Caller, Cancel, Errno, Patience};

use super::protocol::{
    CacheStatus, Evicted, FrontEnd, Operation, Outcome, Problem, Progress, Requests, Status, WirePath,
};
use super::server::Service;
use crate::failure::of_mounting;

/// What of a mount's status does not change while it is up.
#[derive(Debug, Clone)]
pub struct About {
    /// The real path.
    pub mountpoint: PathBuf,
    /// `cache` or `dir`.
    pub kind: &'static str,
    /// What is shown.
    pub source: String,
    /// See [`Status`].
    pub read_only: bool,
    /// See [`Status`].
    pub allow_other: bool,
    /// See [`Status`].
    pub origin_timeout: Option<Duration>,
    /// See [`Status`].
    pub log: String,
    /// See [`Status`].
    pub metrics: Option<String>,
    /// Who mounted it.
    pub uid: u32,
    /// Seconds since 1970.
    pub started: u64,
}

/// A mount as commands and metrics see it.
pub struct MountService {
    about: About,
    built: Arc<Built>,
    session: Arc<Session>,
    /// How long work on one file may take where nobody waits for it knowingly.
    deadline: Option<Duration>,
    /// One change of rules at a time, since each reads, edits and writes them.
    rules: Mutex<()>,
    /// Copies that were found damaged on request.
    damaged: AtomicU64,
    closing: AtomicBool,
}

impl MountService {
    /// The service of a mount that is up.
    pub fn new(about: About, built: Arc<Built>, session: Arc<Session>, deadline: Option<Duration>) -> Self {
        let closing = AtomicBool::new(false);
        let damaged = AtomicU64::new(0);
        MountService { about, built, session, deadline, rules: Mutex::new(()), damaged, closing }
    }

    /// Refuses everything from now on.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// How the mount is doing.
    pub fn status(&self) -> Status {
        let front_end = self.session.stats();
        let (data_path, data_path_reason) = match &front_end.data_path {
            hither_fuse::DataPath::Passthrough { why_not } => ("passthrough", why_not.clone()),
            hither_fuse::DataPath::PageCache { why } => ("page-cache", why.clone()),
        };
        let (transport, transport_reason) = match &front_end.requests {
            hither_fuse::RequestPath::Ring { .. } => ("io_uring", String::new()),
            hither_fuse::RequestPath::Dev { why } => ("dev", why.clone()),
        };
        let about = self.about.clone();
        let mut caches: Vec<CacheStatus> = self.built.caches.iter().map(cache_numbers).collect();
        if let Some(outermost) = caches.first_mut() {
            outermost.damaged = self.damaged.load(Ordering::Relaxed);
        }
        Status {
            mountpoint: WirePath(about.mountpoint),
            pid: std::process::id(),
            uid: about.uid,
            hither: env!("CARGO_PKG_VERSION").to_owned(),
            started: about.started,
            kind: about.kind.to_owned(),
            source: about.source,
            transport: transport.to_owned(),
            transport_reason,
            data_path: data_path.to_owned(),
            data_path_reason,
            read_only: about.read_only,
            allow_other: about.allow_other,
            origin_timeout_ms: about
                .origin_timeout
                .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            log: about.log,
            metrics: about.metrics,
            front_end: front_end_numbers(&front_end),
            caches,
        }
    }

    /// The cache that paths are about: the outermost.
    fn cache(&self) -> Result<&BuiltCache, Problem> {
        self.built.caches.first().ok_or_else(|| {
            let mountpoint = self.about.mountpoint.display();
            Problem { message: format!("{mountpoint} is mounted without a cache"), usage: true }
        })
    }

    fn unmount(&self, lazy: bool) -> Result<Outcome, Problem> {
        let how = if lazy { Unmount::Lazily } else { Unmount::IfUnused };
        match self.session.unmount(how) {
            Ok(()) => Ok(Outcome::Nothing),
            Err(error) => Err(Problem { message: of_mounting(error).to_string(), usage: false }),
        }
    }

    fn patience(&self, cancel: &Cancel, bounded: bool) -> Patience {
        let deadline = self.deadline.filter(|_| bounded).and_then(|limit| clock::now().checked_add(limit));
        Patience::Until { deadline, cancel: cancel.clone() }
    }

    fn edit_rules(&self, cache: &Cache, operation: Operation) -> Result<Outcome, Problem> {
        let usage = |message: String| Problem { message, usage: true };
        let _editing = self.rules.lock();
        let mut rules = cache.rules();
        match operation {
            Operation::AddRule { rule, before } => {
                let rule =
                    rule.parse().map_err(|error: hither_rules::ParseError| usage(error.to_string()))?;
                rules.add(rule, before.as_deref()).map_err(|error| usage(error.to_string()))?;
            }
            Operation::RemoveRule { name } => {
                rules.remove(&name).map_err(|error| usage(error.to_string()))?;
            }
            _ => return Ok(rule_lines(&rules)),
        }
        let lines = rule_lines(&rules);
        cache.set_rules(rules);
        tracing::info!("the rules were changed by a command");
        Ok(lines)
    }
}

impl Service for MountService {
    fn perform(
        &self,
        caller: Caller,
        cancel: &Cancel,
        operation: Operation,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Outcome, Problem> {
        if self.closing.load(Ordering::Acquire) {
            return Err(Problem { message: "the mount is being taken down".to_owned(), usage: false });
        }
        match operation {
            Operation::Status => return Ok(Outcome::Status(Box::new(self.status()))),
            Operation::Unmount { lazy } => return self.unmount(lazy),
            _ => {}
        }
        let built = self.cache()?;
        let cache = &built.cache;
        // Who says --wait waits for as long as a whole file takes; a cancel ends it.
        let bounded = !matches!(
            operation,
            Operation::Attach { wait: true, .. } | Operation::Warm { .. } | Operation::Pin { .. }
        );
        let call = Call::new(caller, self.patience(cancel, bounded));
        let mut tell = |now: &hither_cache::Progress| progress(Progress::counts(now));
        match operation {
            Operation::State { path } => {
                let report = cache.state(&call, &path.0).map_err(|error| of_path(&error))?;
                Ok(Outcome::File(report.into()))
            }
            Operation::Attach { path, wait } => {
                let report = cache.attach(&call, &path.0, wait).map_err(|error| of_attach(&error))?;
                Ok(Outcome::File(report.into()))
            }
            Operation::Detach { path, keep } => detach(cache, &call, &path, keep),
            Operation::Warm { path } => {
                let done = cache.warm(&call, &path.0, &mut tell).map_err(|error| of_path(&error))?;
                Ok(Outcome::Files(done.into()))
            }
            Operation::Pin { path, pinned } => {
                let done = cache.pin(&call, &path.0, pinned, &mut tell).map_err(|error| of_path(&error))?;
                Ok(Outcome::Files(done.into()))
            }
            Operation::Evict { to_bytes } => {
                let target = to_bytes.or(built.low_water_bytes()).ok_or_else(|| Problem {
                    message: "this cache has no capacity and so no low-water mark: say --to SIZE".to_owned(),
                    usage: true,
                })?;
                let evicted = cache.evict(target).map_err(|error| failed("evict", &error))?;
                let now = cache.stats();
                Ok(Outcome::Evicted(Evicted {
                    files: evicted.files,
                    bytes: evicted.bytes,
                    target_bytes: target,
                    used_bytes: now.used_bytes,
                    pinned_bytes: now.pinned_bytes,
                }))
            }
            Operation::Verify => {
                let verified = cache.verify(&mut tell).map_err(|error| failed("verify", &error))?;
                self.damaged.fetch_add(verified.damaged.len() as u64, Ordering::Relaxed);
                Ok(Outcome::Verified(verified.into()))
            }
            rules => self.edit_rules(cache, rules),
        }
    }
}

fn rule_lines(rules: &hither_rules::RuleSet) -> Outcome {
    Outcome::Rules(rules.rules().iter().map(ToString::to_string).collect())
}

/// Which path it was about, who asked knows best: as he wrote it.
fn of_path(error: &hither_vfs::Error) -> Problem {
    Problem { message: said(error), usage: false }
}

/// EINVAL: it is no regular file.
fn of_attach(error: &hither_vfs::Error) -> Problem {
    match error.errno() {
        Errno::INVAL => {
            let message = "only regular files are cached (`hither cache warm` fetches those of a directory)";
            Problem { message: message.to_owned(), usage: true }
        }
        _ => of_path(error),
    }
}

/// The cache has nothing to say against a directory, but no copy of it either.
fn detach(cache: &Cache, call: &Call, path: &WirePath, keep: bool) -> Result<Outcome, Problem> {
    let found = cache.state(call, &path.0).map_err(|error| of_path(&error))?;
    if found.state == hither_cache::FileState::NotAFile {
        let message = "only regular files have copies (of a directory: find DIR -type f -exec hither cache detach {} +)";
        return Err(Problem { message: message.to_owned(), usage: true });
    }
    cache.detach(call, &path.0, keep).map_err(|error| of_path(&error))?;
    Ok(Outcome::Nothing)
}

fn failed(what: &str, error: &hither_vfs::Error) -> Problem {
    Problem { message: format!("cannot {what}: {}", said(error)), usage: false }
}

/// What a person wants to know of an error: the story behind it if it has one, else what the errno means.
fn said(error: &hither_vfs::Error) -> String {
    Story(error.clone()).to_string()
}

fn front_end_numbers(stats: &hither_fuse::Stats) -> FrontEnd {
    let operations = stats.operations.iter().map(|operation| Requests {
        operation: operation.name.clone(),
        count: operation.count,
        errors: operation.errors,
    });
    FrontEnd {
        operations: operations.collect(),
        requests: stats.operations.iter().map(|operation| operation.count).sum(),
        errors: stats.operations.iter().map(|operation| operation.errors).sum(),
        opens_passthrough: stats.opens_passthrough,
        opens_cached: stats.opens_cached,
        opens_direct: stats.opens_direct,
        bytes_read: stats.bytes_read,
        bytes_written: stats.bytes_written,
        interrupted: stats.interrupted,
        timed_out: stats.timed_out,
        panics: stats.panics,
        threads: stats.threads as u64,
        in_flight: stats.in_flight as u64,
        nodes: stats.nodes as u64,
        open_files: stats.files as u64,
    }
}

fn cache_numbers(built: &BuiltCache) -> CacheStatus {
    let stats = built.cache.stats();
    let disk = rustix::fs::statvfs(&built.store).ok();
    let disk_bytes = disk.as_ref().map_or(0, |disk| disk.f_blocks * disk.f_frsize);
    CacheStatus {
        origin: built.origin.clone(),
        store: built.store.display().to_string(),
        capacity_bytes: built.settings.capacity.map(|size| size.0),
        used_bytes: stats.used_bytes,
        pinned_bytes: stats.pinned_bytes,
        copies: stats.copies,
        durable_copies: stats.durable_copies,
        scanning: stats.scanning,
        hits: stats.hits,
        hit_bytes: stats.hit_bytes,
        misses: stats.misses,
        miss_bytes: stats.miss_bytes,
        bypassed_by_rule: stats.bypassed_by_rule,
        bypassed_full: stats.bypassed_full,
        bypassed_unsettled: stats.bypassed_unsettled,
        served_bytes: stats.served_bytes,
        fetched_bytes: stats.fetched_bytes,
        fetches: stats.fetches,
        fills: stats.fills,
        fills_abandoned: stats.fills_abandoned,
        invalidated: stats.invalidated,
        evicted: stats.evicted,
        origin_errors: stats.origin_errors,
        store_errors: stats.store_errors,
        damaged: 0,
        disk_bytes,
        disk_free_bytes: disk.map_or(0, |disk| disk.f_bavail * disk.f_frsize),
        min_free_bytes: (disk_bytes as f64 * built.settings.min_free.0) as u64,
    }
}
