//! The threads of a transport: how many serve, and how many stand in for stuck ones.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use hither_rt::clock::Duration;
use hither_rt::sync::{Condvar, Mutex};

/// Counts threads.
pub(crate) struct Threads {
    serving: Mutex<usize>,
    changed: Condvar,
    replacements: AtomicUsize,
    replacements_max: usize,
}

impl Threads {
    /// None yet, and at most so many that stand in.
    pub(crate) fn new(replacements_max: usize) -> Self {
        Threads {
            serving: Mutex::default(),
            changed: Condvar::new(),
            replacements: AtomicUsize::new(0),
            replacements_max,
        }
    }

    /// How many serve.
    pub(crate) fn serving(&self) -> usize {
        *self.serving.lock()
    }

    /// One serves from now on.
    pub(crate) fn begin(&self) {
        *self.serving.lock() += 1;
    }

    /// One does not any more; `last` runs if it was the last, before anybody learns of it.
    pub(crate) fn end(&self, last: impl FnOnce()) {
        let mut serving = self.serving.lock();
        *serving -= 1;
        if *serving == 0 {
            last();
        }
        self.changed.notify_all();
    }

    /// Waits until none serves.
    pub(crate) fn join(&self) {
        let mut serving = self.serving.lock();
        while *serving > 0 {
            self.changed.wait(&mut serving);
        }
    }

    /// The same, but not for threads of which none ends for so long: they are stuck.
    pub(crate) fn join_unless_stuck(&self, limit: Duration) {
        let mut serving = self.serving.lock();
        while *serving > 0 && !self.changed.wait_for(&mut serving, limit).timed_out() {}
    }

    /// Has another thread stand in for a stuck one. `false` if too many do already, or it cannot be started.
    pub(crate) fn replace(&self, start: impl FnOnce() -> io::Result<()>) -> bool {
        if self.replacements.fetch_add(1, Ordering::Relaxed) >= self.replacements_max {
            self.replaced_ended();
            return false;
        }
        let started = start();
        if let Err(error) = &started {
            tracing::error!(%error, "cannot replace a stuck thread");
            self.replaced_ended();
        }
        started.is_ok()
    }

    /// A thread for which another stands in has ended.
    pub(crate) fn replaced_ended(&self) {
        self.replacements.fetch_sub(1, Ordering::Relaxed);
    }
}
