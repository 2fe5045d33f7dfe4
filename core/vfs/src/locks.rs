//! Advisory locks of one inode: POSIX record locks and BSD flocks (`fcntl(2)`, `flock(2)`).
//!
//! A waiting lock is a parked request, not a thread: whoever asks leaves a [`Waker`], and is told when the lock is
//! granted. Nothing here ever blocks, so a queue's thread may call everything.
//!
//! Rules, as Linux has them:
//! - The two classes do not see each other. A POSIX lock is a range of bytes of one owner; setting a part of it to
//!   another kind splits it, and equal neighbours merge. A flock is the whole file.
//! - Changing the kind of a POSIX lock is atomic. Changing a flock first gives up the old one, which is lost even if
//!   the new one cannot be had (`flock(2)`).
//! - A wait that would close a circle of POSIX owners, over all tables of the process, fails with EDEADLK.
//!
//! Fairness: what is freed goes to the parked requests in the order in which they came. A newcomer may overtake parked
//! requests it conflicts with, as on any local file system, but a request that was overtaken often enough is passed by
//! no waiting newcomer any more, so a stream of readers cannot starve a writer. A process that holds any lock is never
//! made to queue: that could close a circle of waits that would not exist on a local file system.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::io::Errno;

use crate::Result;

mod registry;
mod side;
mod spans;

use side::{Decision, Side};

/// Which of the two kinds of advisory locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockClass {
    /// Record locks of `fcntl(2)`; the owner is a process (its table of files).
    Posix,
    /// `flock(2)`; the owner is an open file description. The range is ignored: it is always the whole file.
    Flock,
}

/// What a lock allows, or that it is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// Shared.
    Read,
    /// Exclusive.
    Write,
    /// No lock.
    Unlock,
}

/// A wish to lock or unlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRequest {
    /// The class.
    pub class: LockClass,
    /// Whose lock: locks of one owner never conflict with each other.
    pub owner: u64,
    /// The process, to be told to others that ask (`F_GETLK`); 0 if unknown.
    pub pid: u32,
    /// First to last byte, both included; to the end of any file: `u64::MAX`.
    pub range: RangeInclusive<u64>,
    /// The kind.
    pub kind: LockKind,
}

/// A lock that is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Whose.
    pub owner: u64,
    /// The process that set it.
    pub pid: u32,
    /// First to last byte, both included.
    pub range: RangeInclusive<u64>,
    /// `Read` or `Write`.
    pub kind: LockKind,
}

/// Names a parked request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done; the waker was dropped.
    Granted,
    /// It waits; the waker will be called, once, unless the ticket is cancelled before.
    Parked(Ticket),
}

/// Hears how a parked request ended. Called by whatever thread freed the lock, with no lock of the table held: it may
/// come back to the table, and should be short. It is dropped unheard if the table is: whoever waits holds the node.
pub type Waker = Box<dyn FnOnce(Result<()>) + Send>;

/// The locks of one inode. Two words when unused.
#[derive(Default)]
pub struct LockTable {
    state: Mutex<Option<Box<State>>>,
}

#[derive(Default)]
struct State {
    posix: Side,
    flock: Side,
}

impl State {
    fn side(&mut self, class: LockClass) -> &mut Side {
        match class {
            LockClass::Posix => &mut self.posix,
            LockClass::Flock => &mut self.flock,
        }
    }

    fn is_empty(&self) -> bool {
        self.posix.is_empty() && self.flock.is_empty()
    }
}

/// Requests that ended under the table's lock, to be told after it.
#[derive(Default)]
struct Ended(Vec<(Waker, Result<()>)>);

impl Ended {
    fn tell(self) {
        for (waker, result) in self.0 {
            waker(result);
        }
    }
}

impl LockTable {
    /// A lock of another owner that keeps `owner` from locking `range` that way (`F_GETLK`), the one that begins
    /// first; `None` if it could be locked now.
    pub fn get(
        &self,
        class: LockClass,
        owner: u64,
        range: RangeInclusive<u64>,
        kind: LockKind,
    ) -> Option<Held> {
        let mut state = self.state.lock();
        let side = state.as_mut()?.side(class);
        side.held.conflicts(owner, &whole_if_flock(class, range), kind).min_by_key(|held| *held.range.start())
    }

    /// Locks or unlocks (`F_SETLK`; with a waker `F_SETLKW`).
    ///
    /// # Errors
    /// Without a waker, EAGAIN if a lock of another owner is in the way. With one, EDEADLK if the wait could not end.
    /// EINVAL for an empty range.
    pub fn set(&self, request: LockRequest, waker: Option<Waker>) -> Result<Outcome> {
        if request.range.is_empty() {
            return Err(Errno::INVAL.into());
        }
        let class = request.class;
        let request = LockRequest { range: whole_if_flock(class, request.range), ..request };
        self.change(|state, ended| {
            let side = state.side(class);
            if class == LockClass::Flock {
                if side.held.kind_of(request.owner) == Some(request.kind) {
                    return Ok(Outcome::Granted);
                }
                side.release(request.owner);
                side.settle(&mut ended.0);
            }
            match (side.decide(&request, waker.is_some()), waker) {
                (Decision::Grant, _) => {
                    side.grant(&request);
                    side.settle(&mut ended.0);
                    Ok(Outcome::Granted)
                }
                (Decision::Wait, None) => Err(Errno::AGAIN.into()),
                (Decision::Wait, Some(waker)) => {
                    let ticket = next_ticket();
                    side.park(ticket, request, waker)?;
                    Ok(Outcome::Parked(ticket))
                }
            }
        })
    }

    /// Takes a parked request back. `true`: its waker was dropped and will not be called (the caller answers EINTR);
    /// `false`: it has ended already, and its waker was or is being called.
    pub fn cancel(&self, ticket: Ticket) -> bool {
        self.change(|state, ended| {
            let side = if state.posix.has(ticket) { &mut state.posix } else { &mut state.flock };
            let Some(waker) = side.unpark(ticket) else { return false };
            drop(waker);
            side.settle(&mut ended.0);
            true
        })
    }

    /// Gives up all locks that `owner` holds: a descriptor was closed. Requests of the owner that are parked go on
    /// waiting, as those of another thread do when `close(2)` drops the locks of its process.
    pub fn release(&self, class: LockClass, owner: u64) {
        // Every close of every file comes here, and hardly any has locks.
        if self.is_empty() {
            return;
        }
        self.change(|state, ended| {
            let side = state.side(class);
            side.release(owner);
            side.settle(&mut ended.0);
        });
    }

    /// Gives up all locks that `owner` holds and ends its parked requests with EINTR: the owner is gone.
    pub fn forget(&self, class: LockClass, owner: u64) {
        self.change(|state, ended| {
            let side = state.side(class);
            for waker in side.unpark_owner(owner) {
                ended.0.push((waker, Err(Errno::INTR.into())));
            }
            side.release(owner);
            side.settle(&mut ended.0);
        });
    }

    /// Whether nothing is held and nothing waits.
    pub fn is_empty(&self) -> bool {
        self.state.lock().is_none()
    }

    /// Runs `act` on the state, which exists only meanwhile if it is empty before and after; then tells those whose
    /// requests have ended.
    fn change<T>(&self, act: impl FnOnce(&mut State, &mut Ended) -> T) -> T {
        let mut ended = Ended::default();
        let mut slot = self.state.lock();
        let state = slot.get_or_insert_default();
        let result = act(state, &mut ended);
        if state.is_empty() {
            *slot = None;
        }
        drop(slot);
        ended.tell();
        result
    }
}

impl std::fmt::Debug for LockTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut state = self.state.lock();
        let mut shown = f.debug_struct("LockTable");
        if let Some(state) = state.as_mut() {
            shown.field("posix", &state.posix).field("flock", &state.flock);
        }
        shown.finish()
    }
}

fn whole_if_flock(class: LockClass, range: RangeInclusive<u64>) -> RangeInclusive<u64> {
    match class {
        LockClass::Posix => range,
        LockClass::Flock => 0..=u64::MAX,
    }
}

/// Tickets are unique in the process, since the registry of waits spans all tables.
fn next_ticket() -> Ticket {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Ticket(NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests;
