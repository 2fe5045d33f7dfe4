//! What goes wrong, and when: shared by a test and the file systems that it breaks.

use std::ffi::{OsStr, OsString};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hither_rt::sync::{Condvar, Mutex, MutexGuard};
use hither_vfs::{Call, Errno, Error, Identity, Patience, Result};

use super::{Kind, Kinds};

/// A waiting call looks this often whether it was cancelled.
const SLICE: Duration = Duration::from_millis(20);

/// Which of the calls that a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// All.
    Always,
    /// The Nth only, from 1.
    Nth(u64),
    /// The first N.
    First(u64),
    /// The Nth, the 2 Nth, and so on.
    Every(u64),
    /// All but the first N.
    After(u64),
}

impl When {
    fn fires(self, nth: u64) -> bool {
        match self {
            When::Always => true,
            When::Nth(n) => nth == n,
            When::First(n) => nth <= n,
            When::Every(n) => n > 0 && nth.is_multiple_of(n),
            When::After(n) => nth > n,
        }
    }
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It fails.
    Fail(Errno),
    /// It starts later.
    Delay(Duration),
    /// It does not return until [`Script::release`] or [`Script::fail_stuck`].
    Hang,
    /// A read or write moves at most so many bytes (at least one).
    Short(usize),
    /// In what was read, a bit is flipped: counted from the first byte read, modulo its length.
    FlipBit(usize),
}

/// A fault: to which calls, when, what.
#[derive(Clone, Debug)]
pub struct Rule {
    kinds: Kinds,
    when: When,
    action: Action,
    node: Option<Identity>,
    name: Option<OsString>,
    patient: bool,
}

impl Rule {
    /// A rule for calls of some kinds.
    pub fn new(kinds: impl Into<Kinds>, when: When, action: Action) -> Self {
        Rule { kinds: kinds.into(), when, action, node: None, name: None, patient: false }
    }

    /// Only for calls on that node (a directory's entries are calls on the directory; opens of a file on the file).
    pub fn on(self, node: Identity) -> Self {
        Rule { node: Some(node), ..self }
    }

    /// Only for calls that carry that name (of an entry or an extended attribute).
    pub fn named(self, name: impl Into<OsString>) -> Self {
        Rule { name: Some(name.into()), ..self }
    }

    /// A hang ends when the call's patience does.
    pub fn patiently(self) -> Self {
        Rule { patient: true, ..self }
    }

    fn concerns(&self, site: &Site<'_>) -> bool {
        self.kinds.contains(site.kind)
            && self.node.is_none_or(|node| site.node == Some(node))
            && self.name.as_deref().is_none_or(|name| site.name == Some(name))
    }
}

/// Names a rule, to take it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleId(u64);

/// A call as it comes by.
pub(super) struct Site<'a> {
    pub(super) kind: Kind,
    pub(super) node: Option<Identity>,
    pub(super) name: Option<&'a OsStr>,
    pub(super) patience: &'a Patience,
}

/// How the bytes of a call that goes on are tampered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tamper {
    pub(super) at_most: Option<usize>,
    pub(super) flip_bit: Option<usize>,
}

/// Rules, switches and counters. All of it may be changed while calls are running.
#[derive(Debug)]
pub struct Script {
    state: Mutex<State>,
    wake: Condvar,
    counts: [AtomicU64; Kind::COUNT],
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

impl Default for Script {
    fn default() -> Self {
        Script {
            state: Mutex::default(),
            wake: Condvar::new(),
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Active>,
    next_id: u64,
    gone: Option<Errno>,
    /// Bytes that can still be written, if that is limited.
    space: Option<u64>,
    stuck: usize,
    /// Counts releases: a stuck call goes on when it has moved.
    releases: u64,
    /// What the stuck calls of the last release fail with.
    released_with: Option<Errno>,
}

#[derive(Debug)]
struct Active {
    id: RuleId,
    rule: Rule,
    seen: u64,
}

impl Script {
    /// Adds a rule, behind those that are there.
    pub fn add(&self, rule: Rule) -> RuleId {
        let mut state = self.state.lock();
        let id = RuleId(state.next_id);
        state.next_id += 1;
        state.rules.push(Active { id, rule, seen: 0 });
        id
    }

    /// Takes a rule back. Calls that are stuck in it stay stuck.
    pub fn remove(&self, id: RuleId) {
        self.state.lock().rules.retain(|active| active.id != id);
    }

    /// Heals everything: no rules, enough space, back if it was gone, nobody stuck.
    pub fn heal(&self) {
        {
            let mut state = self.state.lock();
            state.rules.clear();
            state.gone = None;
            state.space = None;
        }
        self.release();
    }

    /// Shorthand: calls of these kinds fail.
    pub fn fail(&self, kinds: impl Into<Kinds>, when: When, errno: Errno) -> RuleId {
        self.add(Rule::new(kinds, when, Action::Fail(errno)))
    }

    /// Shorthand: calls of these kinds take so much longer.
    pub fn delay(&self, kinds: impl Into<Kinds>, by: Duration) -> RuleId {
        self.add(Rule::new(kinds, When::Always, Action::Delay(by)))
    }

    /// Shorthand: calls of these kinds hang, whatever their patience.
    pub fn hang(&self, kinds: impl Into<Kinds>) -> RuleId {
        self.add(Rule::new(kinds, When::Always, Action::Hang))
    }

    /// Drops all rules that hang, and lets the calls that are stuck in them go on.
    pub fn release(&self) {
        self.end_hangs(None);
    }

    /// Drops all rules that hang, and lets the calls that are stuck in them fail.
    pub fn fail_stuck(&self, errno: Errno) {
        self.end_hangs(Some(errno));
    }

    fn end_hangs(&self, with: Option<Errno>) {
        let mut state = self.state.lock();
        state.rules.retain(|active| active.rule.action != Action::Hang);
        state.releases += 1;
        state.released_with = with;
        self.wake.notify_all();
    }

    /// Calls that hang now.
    pub fn stuck(&self) -> usize {
        self.state.lock().stuck
    }

    /// Waits until so many calls hang; `false` if it takes longer than `limit`.
    pub fn wait_until_stuck(&self, calls: usize, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.state.lock();
        while state.stuck < calls {
            if self.wake.wait_until(&mut state, deadline).timed_out() {
                return state.stuck >= calls;
            }
        }
        true
    }

    /// From now on every call fails with `errno` (ESTALE, EIO, ENOTCONN).
    pub fn vanish(&self, errno: Errno) {
        self.state.lock().gone = Some(errno);
    }

    /// The end of [`Script::vanish`].
    pub fn come_back(&self) {
        self.state.lock().gone = None;
    }

    /// So many more bytes can be written before ENOSPC; `None` is as many as the inner file system takes.
    pub fn set_space(&self, bytes: Option<u64>) {
        self.state.lock().space = bytes;
    }

    /// Calls of a kind so far, also those that failed.
    pub fn count(&self, kind: Kind) -> u64 {
        self.counts[kind as usize].load(Ordering::Relaxed)
    }

    /// Calls of all kinds so far.
    pub fn count_all(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Bytes that reads have returned so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Bytes that writes have taken so far.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written.load(Ordering::Relaxed)
    }

    /// Sets all counters to 0.
    pub fn reset_counts(&self) {
        for count in self.counts.iter().chain([&self.bytes_read, &self.bytes_written]) {
            count.store(0, Ordering::Relaxed);
        }
    }

    pub(super) fn note_read(&self, bytes: usize) {
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Of so many bytes to write, how many there is space for; ENOSPC if for none. They are taken from the space; what
    /// is not used of them is to be given back.
    pub(super) fn take_space(&self, bytes: u64) -> Result<u64> {
        let mut state = self.state.lock();
        let Some(left) = state.space else { return Ok(bytes) };
        if left == 0 && bytes > 0 {
            return Err(Error::with_cause(Errno::NOSPC, "the script leaves no space"));
        }
        let taken = bytes.min(left);
        state.space = Some(left - taken);
        Ok(taken)
    }

    /// Notes how many of the bytes that space was taken for were written.
    pub(super) fn note_written(&self, taken: u64, written: u64) {
        self.bytes_written.fetch_add(written, Ordering::Relaxed);
        if let Some(space) = self.state.lock().space.as_mut() {
            *space += taken.saturating_sub(written);
        }
    }

    /// Lets a call happen, or not: returns when it may go on.
    pub(super) fn pass(&self, site: &Site<'_>) -> Result<Tamper> {
        self.counts[site.kind as usize].fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        if let Some(errno) = state.gone {
            return Err(Error::with_cause(errno, "the script made the file system vanish"));
        }
        let mut due: Vec<(Action, bool)> = Vec::new();
        for active in state.rules.iter_mut().filter(|active| active.rule.concerns(site)) {
            active.seen += 1;
            if active.rule.when.fires(active.seen) {
                due.push((active.rule.action, active.rule.patient));
            }
        }
        let mut tamper = Tamper::default();
        for (action, patient) in due {
            match action {
                Action::Fail(errno) => return Err(Error::with_cause(errno, "the script says so")),
                Action::Delay(by) => self.delayed(&mut state, by, site.patience)?,
                Action::Hang => self.stay(&mut state, patient.then_some(site.patience))?,
                Action::Short(bytes) => tamper.at_most = Some(bytes.max(1)),
                Action::FlipBit(bit) => tamper.flip_bit = Some(bit),
            }
        }
        Ok(tamper)
    }

    fn delayed(&self, state: &mut MutexGuard<'_, State>, by: Duration, patience: &Patience) -> Result<()> {
        let until = Instant::now() + by;
        loop {
            patience.check()?;
            let now = Instant::now();
            if now >= until {
                return Ok(());
            }
            // Others must be able to pass meanwhile, also those that wake this thread for no reason of its own.
            MutexGuard::unlocked(state, || std::thread::sleep((until - now).min(SLICE)));
        }
    }

    fn stay(&self, state: &mut MutexGuard<'_, State>, patience: Option<&Patience>) -> Result<()> {
        let releases = state.releases;
        state.stuck += 1;
        self.wake.notify_all();
        let mut ended = Ok(());
        while state.releases == releases && ended.is_ok() {
            ended = patience.map_or(Ok(()), Patience::check);
            if ended.is_ok() {
                self.wake.wait_for(state, SLICE);
            }
        }
        state.stuck -= 1;
        ended?;
        match state.released_with {
            Some(errno) => Err(Error::with_cause(errno, "the script let a stuck call fail")),
            None => Ok(()),
        }
    }
}

impl<'a> Site<'a> {
    pub(super) fn new(kind: Kind, call: &'a Call) -> Self {
        Site { kind, node: None, name: None, patience: &call.patience }
    }
}
