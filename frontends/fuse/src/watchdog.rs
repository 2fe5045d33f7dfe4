//! Answers for handlers that do not come back, and replaces the threads that they hold.

use std::sync::Arc;

use hither_rt::clock::{Duration, now};
use hither_rt::sync::{Condvar, Mutex};
use hither_vfs::Errno;

use crate::dispatch::Dispatcher;
use crate::inflight::{Delivery, Limits, Overdue};
use crate::stats::is_failure;

/// What a mount uses.
pub(crate) const LIMITS: Limits = Limits {
    interrupt: Duration::from_millis(200),
    deadline: Duration::from_millis(250),
    inline: Duration::from_secs(1),
};

/// How long it sleeps at most, and at least.
const LONGEST: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(10);

/// Wakes the watchdog.
#[derive(Default)]
pub(crate) struct Bell {
    state: Mutex<BellState>,
    rung: Condvar,
}

#[derive(Default)]
struct BellState {
    is_rung: bool,
    is_over: bool,
}

impl Bell {
    /// Something was interrupted, or got a deadline.
    pub(crate) fn ring(&self) {
        self.state.lock().is_rung = true;
        self.rung.notify_one();
    }

    /// The session is over.
    pub(crate) fn end(&self) {
        self.state.lock().is_over = true;
        self.rung.notify_one();
    }

    /// `false` once the session is over.
    fn wait(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.is_rung && !state.is_over {
            self.rung.wait_for(&mut state, limit);
        }
        state.is_rung = false;
        !state.is_over
    }
}

/// Watches until the session is over.
pub(crate) fn watch(dispatcher: &Dispatcher, limits: &Limits) {
    loop {
        let quiet = dispatcher.in_flight.quiet_for(now(), limits).unwrap_or(LONGEST);
        if !dispatcher.bell.wait(quiet.clamp(SHORTEST, LONGEST)) {
            return;
        }
        for overdue in dispatcher.in_flight.overdue(now(), limits) {
            step_in(dispatcher, overdue);
        }
    }
}

fn step_in(dispatcher: &Dispatcher, overdue: Overdue) {
    let counters = &dispatcher.counters;
    let (request, errno, counter) = match overdue {
        Overdue::Stuck(request) => {
            if request.replace_thread() {
                counters.stuck.add(1);
                tracing::warn!(
                    operation = request.operation(),
                    "a call holds its thread for long (a hung disk or server below?); another thread takes over"
                );
            }
            return;
        }
        Overdue::Doomed(request) => (request, Errno::INTR, &counters.interrupted),
        Overdue::TimedOut(request) => {
            tracing::error!(
                operation = request.operation(),
                "no answer within the time allowed: a program gets an I/O error"
            );
            (request, Errno::IO, &counters.timed_out)
        }
    };
    if request.fail(errno) == Delivery::Delivered {
        counter.add(1);
        if is_failure(errno) {
            counters.error(request.opcode());
        }
    }
}

/// Starts watching, on a thread of its own.
pub(crate) fn start(dispatcher: Arc<Dispatcher>) -> std::io::Result<std::thread::JoinHandle<()>> {
    hither_rt::thread::spawn("fuse-watchdog", move || watch(&dispatcher, &LIMITS))
}
