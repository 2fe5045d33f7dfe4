//! POSIX locks and flocks. They belong to the inode, over all its node ids; waiting ones are parked, not threads.

use std::ops::RangeInclusive;
use std::sync::Arc;

use hither_vfs::locks::{LockClass, LockKind, LockRequest, Outcome};
use hither_vfs::{Errno, Result};

use super::{Dispatcher, Flow};
use crate::inflight::InFlight;
use crate::nodes::Known;
use crate::protocol::abi::{FileLock, LK_FLOCK, LkIn};
use crate::reply::{Given, Reply};

const F_RDLCK: u32 = 0;
const F_WRLCK: u32 = 1;
const F_UNLCK: u32 = 2;
/// The kernel's end of every file (`OFFSET_MAX`); the lock table's is the last number.
const OFFSET_MAX: u64 = i64::MAX as u64;

impl Dispatcher {
    pub(super) fn getlk(&self, args: &LkIn, reply: &mut Reply) -> Result<Flow> {
        let file = self.file(args.fh)?;
        let wish = wish(args)?;
        let lock = match file.known.node.locks().get(wish.class, wish.owner, wish.range, wish.kind) {
            None => FileLock { kind: F_UNLCK, ..FileLock::default() },
            Some(held) => FileLock {
                start: *held.range.start(),
                end: (*held.range.end()).min(OFFSET_MAX),
                kind: if held.kind == LockKind::Read { F_RDLCK } else { F_WRLCK },
                pid: held.pid,
            },
        };
        reply.put(&lock);
        Ok(Flow::Answer)
    }

    pub(super) fn setlk(
        self: &Arc<Self>,
        args: &LkIn,
        wait: bool,
        in_flight: &Arc<InFlight>,
        reply: &mut Reply,
    ) -> Result<Flow> {
        let file = self.file(args.fh)?;
        let wish = wish(args)?;
        let known = &file.known;
        if wish.kind == LockKind::Unlock {
            known.node.locks().set(wish, None)?;
            return Ok(Flow::Answer);
        }
        if wish.class == LockClass::Posix {
            file.add_locker(wish.owner);
        }
        let waker = wait.then(|| {
            let (dispatcher, in_flight) = (self.clone(), in_flight.clone());
            let (known, wish) = (known.clone(), wish.clone());
            Box::new(move |result| dispatcher.woken(&in_flight, known, wish, result)) as _
        });
        match known.node.locks().set(wish.clone(), waker)? {
            Outcome::Granted => {
                reply.given.lock = Some((known.clone(), wish));
                Ok(Flow::Answer)
            }
            Outcome::Parked(ticket) => {
                let known = known.clone();
                let dispatcher = self.clone();
                let unique = in_flight.clone();
                in_flight.park(move || {
                    let taken_back = known.node.locks().cancel(ticket);
                    if taken_back {
                        dispatcher.in_flight.end(&unique);
                    }
                    taken_back
                });
                Ok(Flow::Parked)
            }
        }
    }

    /// A parked request ended.
    fn woken(&self, in_flight: &InFlight, known: Arc<Known>, wish: LockRequest, result: Result<()>) {
        let mut reply = Reply::new();
        match result {
            Ok(()) => {
                reply.given = Given { lock: Some((known, wish)), ..Given::default() };
                self.deliver(in_flight, &mut reply);
            }
            Err(error) => {
                let _ = in_flight.fail(error.errno());
                self.in_flight.end(in_flight);
            }
        }
    }
}

/// Undoes a lock whose owner never heard of it.
pub(super) fn unlock(known: &Known, lock: LockRequest) {
    let unlock = LockRequest { kind: LockKind::Unlock, ..lock };
    if let Err(error) = known.node.locks().set(unlock, None) {
        tracing::error!(%error, "cannot undo a lock that nobody waits for any more");
    }
}

fn wish(args: &LkIn) -> Result<LockRequest> {
    let FileLock { start, end, kind, pid } = args.lk;
    let end = if end >= OFFSET_MAX { u64::MAX } else { end };
    let range: RangeInclusive<u64> = start..=end;
    let class = if args.lk_flags & LK_FLOCK != 0 { LockClass::Flock } else { LockClass::Posix };
    let kind = match kind {
        F_RDLCK => LockKind::Read,
        F_WRLCK => LockKind::Write,
        F_UNLCK => LockKind::Unlock,
        _ => return Err(Errno::INVAL.into()),
    };
    Ok(LockRequest { class, owner: args.owner, pid, range, kind })
}
