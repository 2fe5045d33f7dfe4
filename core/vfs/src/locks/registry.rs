//! What spans all lock tables of the process: which owner waits for which, and which processes hold anything.
//!
//! Taken inside a table's lock, and never the other way round. Tables without waiting requests touch only the count
//! of holders.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use parking_lot::Mutex;
use rustix::io::Errno;

use super::Ticket;
use crate::Result;

static WAITS: LazyLock<Mutex<Waits>> = LazyLock::new(Mutex::default);
static HOLDERS: LazyLock<Mutex<HashMap<u32, usize>>> = LazyLock::new(Mutex::default);

/// The graph of waits of POSIX owners.
#[derive(Default)]
struct Waits {
    /// Who waits, and for which owners.
    by_ticket: HashMap<Ticket, (u64, Vec<u64>)>,
    /// The waits of an owner; several if it has several threads.
    by_owner: HashMap<u64, Vec<Ticket>>,
}

impl Waits {
    /// Whether one of `from`, or whom they wait for, and so on, is `owner`.
    fn reaches(&self, owner: u64, from: &[u64]) -> bool {
        let mut seen: HashSet<u64> = HashSet::new();
        let mut open: Vec<u64> = from.to_vec();
        while let Some(next) = open.pop() {
            if next == owner {
                return true;
            }
            if seen.insert(next) {
                let tickets = self.by_owner.get(&next).into_iter().flatten();
                let waits = tickets.filter_map(|ticket| self.by_ticket.get(ticket));
                open.extend(waits.flat_map(|(_, blockers)| blockers));
            }
        }
        false
    }
}

/// Notes that `owner` waits for `blockers`; EDEADLK, and nothing noted, if one of them waits for it.
pub(super) fn wait(ticket: Ticket, owner: u64, blockers: Vec<u64>) -> Result<()> {
    let mut waits = WAITS.lock();
    if waits.reaches(owner, &blockers) {
        return Err(Errno::DEADLK.into());
    }
    waits.by_ticket.insert(ticket, (owner, blockers));
    waits.by_owner.entry(owner).or_default().push(ticket);
    Ok(())
}

/// Notes whom a parked request waits for now.
pub(super) fn update(ticket: Ticket, blockers: Vec<u64>) {
    if let Some(wait) = WAITS.lock().by_ticket.get_mut(&ticket) {
        wait.1 = blockers;
    }
}

/// Forgets a wait.
pub(super) fn wait_no_more(ticket: Ticket) {
    let mut waits = WAITS.lock();
    let Some((owner, _)) = waits.by_ticket.remove(&ticket) else { return };
    if let Some(tickets) = waits.by_owner.get_mut(&owner) {
        tickets.retain(|other| *other != ticket);
        if tickets.is_empty() {
            waits.by_owner.remove(&owner);
        }
    }
}

/// Counts a lock that a process holds.
pub(super) fn holds(pid: u32) {
    *HOLDERS.lock().entry(pid).or_default() += 1;
}

/// A lock less.
pub(super) fn holds_no_more(pid: u32) {
    let mut holders = HOLDERS.lock();
    if let Some(count) = holders.get_mut(&pid) {
        *count -= 1;
        if *count == 0 {
            holders.remove(&pid);
        }
    }
}

/// Whether the process holds any lock anywhere; a process that is not known may hold some.
pub(super) fn is_holder(pid: u32) -> bool {
    pid == 0 || HOLDERS.lock().contains_key(&pid)
}

/// Owners that wait, for tests.
#[cfg(test)]
pub(super) fn waiting(owner: u64) -> usize {
    WAITS.lock().by_owner.get(&owner).map_or(0, Vec::len)
}
