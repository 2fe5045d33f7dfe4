//! Requests under way: each is answered exactly once, by whoever comes first: its handler, the waker of a parked lock,
//! or the watchdog on behalf of a handler that is stuck.

use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use hither_rt::clock::{Duration, Instant, now};
use hither_rt::sync::Mutex;
use hither_vfs::{Cancel, Errno, Patience};

use crate::ids::IdMap;
use crate::protocol::abi::{InHeader, opcode};
use crate::transport::Channel;

/// Where one answer goes.
#[derive(Clone)]
pub(crate) struct Destination {
    pub(crate) channel: Arc<dyn Channel>,
    pub(crate) slot: u32,
}

/// Whether an answer reached the kernel. If not, what it gave (a lookup, an open) is to be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Delivery {
    Delivered,
    /// Answered by another before, or the kernel did not wait any more.
    Lost,
}

/// A request that is not answered yet.
pub(crate) struct InFlight {
    unique: u64,
    opcode: u32,
    pid: u32,
    destination: Destination,
    started: Instant,
    answered: AtomicBool,
    cancel: OnceLock<Cancel>,
    progress: Mutex<Progress>,
}

/// What the watchdog goes by.
#[derive(Default)]
struct Progress {
    /// The program got a signal.
    interrupted: bool,
    /// When it was seen that it will not outlive it.
    doomed: Option<Instant>,
    deadline: Option<Instant>,
    /// A thread of a queue is in the handler (not one of the pool, not parked).
    inline: bool,
    /// The watchdog has seen that it holds its queue's thread for long.
    stuck: bool,
    /// The queue got another thread because of it.
    replaced: bool,
    /// Ends a parked request early; `true` if it had not ended yet.
    unpark: Option<Box<dyn FnOnce() -> bool + Send>>,
}

impl InFlight {
    fn new(header: &InHeader, destination: Destination) -> Self {
        InFlight {
            unique: header.unique,
            opcode: header.opcode,
            pid: header.pid,
            destination,
            started: now(),
            answered: AtomicBool::new(false),
            cancel: OnceLock::new(),
            progress: Mutex::new(Progress { inline: true, ..Progress::default() }),
        }
    }

    /// The operation, as the kernel numbers it.
    pub(crate) fn opcode(&self) -> u32 {
        self.opcode
    }

    /// What was asked, for logs.
    pub(crate) fn operation(&self) -> &'static str {
        opcode::name(self.opcode).unwrap_or("unknown")
    }

    /// Takes the right to answer. `false` if someone else has it.
    pub(crate) fn claim(&self) -> bool {
        !self.answered.swap(true, Ordering::AcqRel)
    }

    /// Whether it was answered or is just being.
    pub(crate) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }

    /// Answers with what was asked for.
    pub(crate) fn answer(&self, body: &[IoSlice<'_>]) -> Delivery {
        if self.claim() { self.send(0, body) } else { Delivery::Lost }
    }

    /// Answers with an error.
    pub(crate) fn fail(&self, errno: Errno) -> Delivery {
        if self.claim() { self.send(-errno.raw_os_error(), &[]) } else { Delivery::Lost }
    }

    fn send(&self, error: i32, body: &[IoSlice<'_>]) -> Delivery {
        match self.destination.channel.answer(self.destination.slot, self.unique, error, body) {
            Ok(()) => Delivery::Delivered,
            Err(failure) => {
                report_lost(self.opcode, &failure);
                Delivery::Lost
            }
        }
    }

    fn cancel(&self) -> &Cancel {
        self.cancel.get_or_init(Cancel::default)
    }

    /// The handler goes on elsewhere than on a queue's thread: the patience it has there.
    pub(crate) fn post(&self, limit: Option<Duration>) -> Patience {
        let deadline = limit.and_then(|limit| self.started.checked_add(limit));
        let mut progress = self.progress.lock();
        progress.inline = false;
        progress.deadline = deadline;
        Patience::Until { deadline, cancel: self.cancel().clone() }
    }

    /// Whether it is past its deadline: if it fails now, that is why.
    pub(crate) fn is_late(&self) -> bool {
        self.progress.lock().deadline.is_some_and(|deadline| deadline <= now())
    }

    /// The request waits without a thread. `unpark` takes it back if it has not ended; it is called at most once, at
    /// once if the request was interrupted before.
    pub(crate) fn park(&self, unpark: impl FnOnce() -> bool + Send + 'static) {
        let mut progress = self.progress.lock();
        progress.inline = false;
        if !progress.interrupted {
            progress.unpark = Some(Box::new(unpark));
            return;
        }
        drop(progress);
        self.end_parked(unpark);
    }

    fn end_parked(&self, unpark: impl FnOnce() -> bool) {
        if unpark() {
            let _ = self.fail(Errno::INTR);
        }
    }

    /// The program got a signal. A wait for a lock ends with any, as everywhere; all else only with one that kills, as
    /// on a local file system: few programs expect EINTR from `stat(2)`. The kernel tells of the first signal only, so
    /// the watchdog goes on asking.
    fn interrupt(&self) {
        let mut progress = self.progress.lock();
        progress.interrupted = true;
        let unpark = progress.unpark.take();
        drop(progress);
        match unpark {
            Some(unpark) => self.end_parked(unpark),
            None => self.ask_whether_doomed(),
        }
    }

    /// Cancels the request if its program is dying.
    fn ask_whether_doomed(&self) {
        if is_dying(self.pid) {
            self.progress.lock().doomed.get_or_insert_with(now);
            self.cancel().cancel();
        }
    }

    /// The thread of the queue comes back from the request. `true` if it was replaced meanwhile and has to end.
    pub(crate) fn leave_queue(&self) -> bool {
        let mut progress = self.progress.lock();
        progress.inline = false;
        progress.replaced
    }

    /// Has another thread serve the queue, unless this request's one came back just now. `true` if it was done.
    pub(crate) fn replace_thread(&self) -> bool {
        let mut progress = self.progress.lock();
        progress.replaced = progress.inline && self.destination.channel.replace_thread();
        progress.replaced
    }
}

/// Whether a thread has a SIGKILL pending: what the kernel makes of every signal that ends a program. `true` if that
/// cannot be seen: it is gone, or in another pid namespace.
fn is_dying(pid: u32) -> bool {
    const SIGKILL_BIT: u64 = 1 << 8;
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return true };
    let pending = status.lines().filter_map(|line| {
        let mask = line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    });
    pending.fold(0, |all, mask| all | mask) & SIGKILL_BIT != 0
}

/// ENOENT is the kernel's way to say that a request was aborted; all else should not be.
fn report_lost(opcode: u32, failure: &io::Error) {
    match failure.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NODEV | Errno::CONNABORTED) => {
            tracing::debug!(opcode, "the kernel does not wait for this answer any more");
        }
        _ => {
            tracing::error!(opcode, error = %failure, "the kernel refused an answer; this is a bug, please report it")
        }
    }
}

/// What is overdue, and what is to be done about it.
pub(crate) enum Overdue {
    /// Its program is dying for a while, and its handler has not reacted.
    Doomed(Arc<InFlight>),
    /// Past its deadline.
    TimedOut(Arc<InFlight>),
    /// Holds a thread of a queue.
    Stuck(Arc<InFlight>),
}

/// Limits of the watchdog.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long a handler may take to react to an interrupt.
    pub(crate) interrupt: Duration,
    /// How long a handler may take to react to its deadline.
    pub(crate) deadline: Duration,
    /// How long a queue's thread may be in one call.
    pub(crate) inline: Duration,
}

const SHARDS: usize = 16;
/// Interrupts that came before their request was seen here, since another thread reads them.
const EARLY_MAX: usize = 64;

/// All requests under way.
pub(crate) struct Table {
    shards: [Mutex<IdMap<Arc<InFlight>>>; SHARDS],
    early: Mutex<Vec<u64>>,
}

impl Default for Table {
    fn default() -> Self {
        Table { shards: std::array::from_fn(|_| Mutex::default()), early: Mutex::default() }
    }
}

impl Table {
    fn shard(&self, unique: u64) -> &Mutex<IdMap<Arc<InFlight>>> {
        // The kernel counts in steps of 2.
        &self.shards[(unique >> 1) as usize % SHARDS]
    }

    /// Begins a request.
    pub(crate) fn begin(&self, header: &InHeader, destination: Destination) -> Arc<InFlight> {
        let unique = header.unique;
        let request = Arc::new(InFlight::new(header, destination));
        self.shard(unique).lock().insert(unique, request.clone());
        let mut early = self.early.lock();
        if !early.is_empty() && early.contains(&unique) {
            early.retain(|known| *known != unique);
            drop(early);
            request.interrupt();
        }
        request
    }

    /// A request that was begun and has not ended.
    pub(crate) fn get(&self, unique: u64) -> Option<Arc<InFlight>> {
        self.shard(unique).lock().get(&unique).cloned()
    }

    /// Ends a request: it is answered.
    pub(crate) fn end(&self, request: &InFlight) {
        self.shard(request.unique).lock().remove(&request.unique);
    }

    /// The kernel says that the program waiting for `unique` was interrupted. `false` if that request is not known:
    /// it is answered already, or another thread is about to begin it.
    pub(crate) fn interrupt(&self, unique: u64) -> bool {
        let mut early = self.early.lock();
        let found = self.get(unique);
        match found {
            Some(request) => {
                drop(early);
                request.interrupt();
                true
            }
            None => {
                if early.len() >= EARLY_MAX {
                    early.remove(0);
                }
                early.push(unique);
                false
            }
        }
    }

    /// Requests that need somebody else's hand at `at`; a stuck one is reported once.
    pub(crate) fn overdue(&self, at: Instant, limits: &Limits) -> Vec<Overdue> {
        let mut overdue = Vec::new();
        for request in self.all() {
            let mut progress = request.progress.lock();
            if progress.inline && !progress.stuck && is_past(Some(request.started), limits.inline, at) {
                progress.stuck = true;
                overdue.push(Overdue::Stuck(request.clone()));
            }
            if request.is_answered() {
                continue;
            }
            if is_past(progress.doomed, limits.interrupt, at) {
                overdue.push(Overdue::Doomed(request.clone()));
            } else if is_past(progress.deadline, limits.deadline, at) {
                overdue.push(Overdue::TimedOut(request.clone()));
            } else if progress.interrupted && progress.doomed.is_none() {
                drop(progress);
                request.ask_whether_doomed();
            }
        }
        overdue
    }

    /// How long nothing can become overdue, as seen at `at`; `None` while nothing is under way.
    pub(crate) fn quiet_for(&self, at: Instant, limits: &Limits) -> Option<Duration> {
        let all = self.all();
        let due = all.iter().flat_map(|request| {
            let progress = request.progress.lock();
            let inline = (progress.inline && !progress.stuck).then_some((request.started, limits.inline));
            let answered = request.is_answered();
            let doomed = progress.doomed.filter(|_| !answered).map(|since| (since, limits.interrupt));
            let deadline = progress.deadline.filter(|_| !answered).map(|since| (since, limits.deadline));
            // Its program may be killed any time.
            let watched = (progress.interrupted && !answered).then_some((at, limits.interrupt));
            [inline, doomed, deadline, watched].into_iter().flatten()
        });
        due.map(|(since, grace)| (since + grace).saturating_duration_since(at)).min()
    }

    fn all(&self) -> Vec<Arc<InFlight>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(shard.lock().values().cloned());
        }
        all
    }

    /// How many wait without a thread.
    #[cfg(test)]
    pub(crate) fn parked(&self) -> usize {
        self.all().iter().filter(|request| request.progress.lock().unpark.is_some()).count()
    }

    /// How many interrupts wait for their request.
    #[cfg(test)]
    pub(crate) fn early(&self) -> usize {
        self.early.lock().len()
    }

    /// How many are under way.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }
}

fn is_past(since: Option<Instant>, grace: Duration, at: Instant) -> bool {
    since.is_some_and(|since| at.saturating_duration_since(since) > grace)
}
