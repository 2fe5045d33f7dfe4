//! One class of locks of one inode: what is held, who waits, who is next.

use std::collections::VecDeque;

use super::spans::Spans;
use super::{LockClass, LockKind, LockRequest, Ticket, Waker, registry};
use crate::Result;

/// How often a parked request may be overtaken by one that came later and conflicts with it.
pub(super) const OVERTAKEN_MAX: u32 = 16;

#[derive(Default)]
pub(super) struct Side {
    pub(super) held: Spans,
    /// Oldest first.
    parked: VecDeque<Parked>,
}

struct Parked {
    ticket: Ticket,
    request: LockRequest,
    overtaken: u32,
    waker: Waker,
}

/// Whether a request can be done now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Grant,
    Wait,
}

impl Side {
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.parked.is_empty()
    }

    pub(super) fn has(&self, ticket: Ticket) -> bool {
        self.parked.iter().any(|parked| parked.ticket == ticket)
    }

    /// What to do with a new request; one that would rather fail than wait (`patient` false) also does not queue.
    pub(super) fn decide(&self, request: &LockRequest, patient: bool) -> Decision {
        self.decide_before(request, if patient { self.parked.len() } else { 0 })
    }

    /// What to do with a request before which the first `queue` parked ones came.
    fn decide_before(&self, request: &LockRequest, queue: usize) -> Decision {
        if request.kind == LockKind::Unlock {
            return Decision::Grant;
        }
        let blocked = self.held.conflicts(request.owner, &request.range, request.kind).next().is_some();
        let queues = || {
            let mut earlier = self.parked.iter().take(queue);
            earlier.any(|parked| parked.overtaken >= OVERTAKEN_MAX && conflict(&parked.request, request))
                && !registry::is_holder(request.pid)
        };
        if blocked || queues() { Decision::Wait } else { Decision::Grant }
    }

    /// Does what was decided to be done.
    pub(super) fn grant(&mut self, request: &LockRequest) {
        self.grant_before(request, self.parked.len());
    }

    fn grant_before(&mut self, request: &LockRequest, queue: usize) {
        for parked in self.parked.iter_mut().take(queue) {
            if conflict(&parked.request, request) {
                parked.overtaken = parked.overtaken.saturating_add(1);
            }
        }
        self.held.set(request.owner, request.pid, &request.range, request.kind);
    }

    /// Lets a request wait; EDEADLK if its owner would wait for itself.
    pub(super) fn park(&mut self, ticket: Ticket, request: LockRequest, waker: Waker) -> Result<()> {
        if request.class == LockClass::Posix {
            registry::wait(ticket, request.owner, self.blockers(&request))?;
        }
        self.parked.push_back(Parked { ticket, request, overtaken: 0, waker });
        Ok(())
    }

    /// Takes one request out of the queue.
    pub(super) fn unpark(&mut self, ticket: Ticket) -> Option<Waker> {
        let at = self.parked.iter().position(|parked| parked.ticket == ticket)?;
        self.take(at).map(|parked| parked.waker)
    }

    /// Takes all requests of one owner out of the queue.
    pub(super) fn unpark_owner(&mut self, owner: u64) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(at) = self.parked.iter().position(|parked| parked.request.owner == owner) {
            wakers.extend(self.take(at).map(|parked| parked.waker));
        }
        wakers
    }

    /// Drops what the owner holds.
    pub(super) fn release(&mut self, owner: u64) {
        self.held.release(owner);
    }

    /// After a change: grants what can be granted, oldest first, and brings the registry of waits up to date. A grant
    /// can free bytes too (its owner held them for writing and now only reads), so it begins again after each.
    pub(super) fn settle(&mut self, ended: &mut Vec<(Waker, Result<()>)>) {
        let mut at = 0;
        while at < self.parked.len() {
            if self.decide_before(&self.parked[at].request, at) == Decision::Wait {
                at += 1;
                continue;
            }
            if let Some(parked) = self.take(at) {
                self.grant_before(&parked.request, at);
                ended.push((parked.waker, Ok(())));
            }
            at = 0;
        }
        for parked in &self.parked {
            if parked.request.class == LockClass::Posix {
                registry::update(parked.ticket, self.blockers(&parked.request));
            }
        }
    }

    fn take(&mut self, at: usize) -> Option<Parked> {
        let parked = self.parked.remove(at)?;
        registry::wait_no_more(parked.ticket);
        Some(parked)
    }

    /// Owners whose locks keep the request waiting.
    fn blockers(&self, request: &LockRequest) -> Vec<u64> {
        let mut owners: Vec<u64> =
            self.held.conflicts(request.owner, &request.range, request.kind).map(|held| held.owner).collect();
        owners.dedup();
        owners
    }
}

impl Drop for Side {
    /// Nobody can wake who still waits here: the inode is gone, and so is the front end that parked it.
    fn drop(&mut self) {
        for parked in &self.parked {
            registry::wait_no_more(parked.ticket);
        }
    }
}

impl std::fmt::Debug for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parked: Vec<_> = self.parked.iter().map(|parked| (parked.ticket, &parked.request)).collect();
        f.debug_struct("Side").field("held", &self.held).field("parked", &parked).finish()
    }
}

/// Whether the two requests could not both be granted.
fn conflict(one: &LockRequest, other: &LockRequest) -> bool {
    let meet = one.range.start() <= other.range.end() && other.range.start() <= one.range.end();
    let forbid = match (one.kind, other.kind) {
        (LockKind::Unlock, _) | (_, LockKind::Unlock) | (LockKind::Read, LockKind::Read) => false,
        (LockKind::Write, _) | (_, LockKind::Write) => true,
    };
    one.owner != other.owner && meet && forbid
}
