//! Opens that were refused with ESTALE. The kernel looks the name up again and opens once more, and only once: whatever the
//! name leads to then must not be refused. Here is kept what that takes until the retry has come.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hither_rt::clock::{Duration, Instant, now};
use hither_rt::sync::Mutex;

use crate::file::HOLD_DIRECT;
use crate::node::CacheNode;

/// A thread that was refused retries within this time; looking a long path up at a slow origin may take a while.
const RETRY_WITHIN: Duration = HOLD_DIRECT;

/// See the module.
#[derive(Default)]
pub(crate) struct Refused {
    /// The kernel forgets a node between refusal and retry; what the node promised has to be remembered.
    nodes: Mutex<VecDeque<(Instant, Arc<CacheNode>)>>,
    /// Who was refused, by thread id, and until when that counts. Another file may have the name by then.
    callers: Mutex<HashMap<u32, Instant>>,
    /// How many callers there are, so that a lookup need not take the lock when there is none.
    count: AtomicUsize,
}

impl Refused {
    /// An open of that node by that thread is refused now.
    pub(crate) fn hold(&self, node: Arc<CacheNode>, caller: u32) {
        let now = now();
        self.nodes.lock().push_back((now + HOLD_DIRECT, node));
        if caller != 0 {
            let mut callers = self.callers.lock();
            callers.insert(caller, now + RETRY_WITHIN);
            self.count.store(callers.len(), Ordering::Release);
        }
        self.let_go();
    }

    /// Whether that thread is on its way to open once more. `true` once: what it finds now is held unbacked in its turn.
    pub(crate) fn retries(&self, caller: u32) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut callers = self.callers.lock();
        let until = callers.remove(&caller);
        self.count.store(callers.len(), Ordering::Release);
        until.is_some_and(|until| now() < until)
    }

    /// That thread has opened something: the retry, if there was one to come, has come.
    pub(crate) fn has_opened(&self, caller: u32) {
        self.retries(caller);
    }

    /// Lets go of what has ended.
    pub(crate) fn let_go(&self) {
        let now = now();
        let mut ended = Vec::new();
        let mut nodes = self.nodes.lock();
        while nodes.front().is_some_and(|(until, _)| *until <= now) {
            ended.extend(nodes.pop_front());
        }
        drop(nodes);
        drop(ended);
        let mut callers = self.callers.lock();
        callers.retain(|_, until| now < *until);
        self.count.store(callers.len(), Ordering::Release);
    }

    /// Lets go of all: nodes hold what holds this.
    pub(crate) fn forget(&self) {
        let nodes = std::mem::take(&mut *self.nodes.lock());
        drop(nodes);
    }
}
