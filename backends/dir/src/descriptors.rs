//! Which nodes keep their `O_PATH` descriptor: a bounded number of them, the lately used ones.
//!
//! A node that has a descriptor stands once in a ring, and is marked each time the descriptor is used. When there are
//! too many, the ring turns: a marked node loses its mark and goes round once more, an unmarked one loses its descriptor
//! (CLOCK: close to least recently used, and a use costs no lock but the node's own). Nodes that could not be found
//! again, and those whose descriptor is in use, keep it.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use hither_rt::sync::Mutex;
use hither_vfs::Errno;

use crate::node::DirNode;

/// Nodes looked at for one that comes in: bounds the work where most cannot let go.
const TURNS: usize = 16;

/// What a node answers when it is to give up its descriptor.
pub(crate) enum LetGo {
    /// Here it is.
    Closed(Arc<OwnedFd>),
    /// It has none.
    Absent,
    /// Not now.
    Later,
    /// Not as long as nothing leads to it but those who hold it.
    Pinned,
}

/// The ring, and the nodes outside it.
pub(crate) struct Descriptors {
    limit: usize,
    ring: Mutex<VecDeque<Weak<DirNode>>>,
    pinned: Mutex<Vec<Weak<DirNode>>>,
}

impl Descriptors {
    /// Room for `wanted` descriptors, but at most half of what the process may have.
    pub fn new(wanted: usize) -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let half = limit.map_or(usize::MAX, |limit| (limit / 2) as usize);
        Descriptors { limit: wanted.min(half).max(1), ring: Mutex::default(), pinned: Mutex::default() }
    }

    /// A node has got a descriptor.
    pub fn opened(&self, node: &Weak<DirNode>) {
        let mut turns = TURNS;
        let mut ring = self.ring.lock();
        ring.push_back(node.clone());
        while ring.len() > self.limit && turns > 0 {
            turns -= 1;
            let Some(oldest) = ring.pop_front() else { return };
            // What is given up is closed with the ring unlocked: it may be the last of a node.
            drop(ring);
            let again = self.turn(&oldest);
            ring = self.ring.lock();
            if again {
                ring.push_back(oldest);
            }
        }
    }

    /// Whether that node goes round again; otherwise it has lost its descriptor, or is gone.
    fn turn(&self, oldest: &Weak<DirNode>) -> bool {
        match oldest.upgrade().map(|node| node.let_go()) {
            Some(LetGo::Later) => return true,
            Some(LetGo::Pinned) => self.pin(oldest),
            Some(LetGo::Closed(descriptor)) => drop(descriptor),
            Some(LetGo::Absent) | None => {}
        }
        false
    }

    fn pin(&self, node: &Weak<DirNode>) {
        let mut pinned = self.pinned.lock();
        if pinned.len() == pinned.capacity() {
            pinned.retain(|node| node.strong_count() > 0);
        }
        pinned.push(node.clone());
    }

    /// Runs `open`; if the process is out of descriptors, gives up many of those kept here and tries again.
    pub fn with_room<T>(&self, open: impl Fn() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
        match open() {
            Err(Errno::MFILE | Errno::NFILE) => {
                self.shed();
                open()
            }
            other => other,
        }
    }

    /// Gives up half of the ring and, since otherwise nothing could be opened any more, all that are pinned: unlinked
    /// inodes that nobody has open, whose holders find them stale then.
    fn shed(&self) {
        let len = self.ring.lock().len();
        // Twice around the half, since the first turn may only take marks away.
        for _ in 0..2 * len.div_ceil(2) {
            let Some(oldest) = self.ring.lock().pop_front() else { break };
            if self.turn(&oldest) {
                self.ring.lock().push_back(oldest);
            }
        }
        let pinned = std::mem::take(&mut *self.pinned.lock());
        tracing::warn!(
            kept = len,
            pinned = pinned.len(),
            "out of file descriptors: raise the limit of open files"
        );
        for node in pinned {
            if !node.upgrade().is_none_or(|node| node.give_up()) {
                self.pin(&node);
            }
        }
    }
}
