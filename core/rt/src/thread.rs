//! Threads: named single ones, and a pool that grows while its threads are stuck.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::sync::{Condvar, Mutex};

/// How long a pool's thread waits for work before it ends.
const IDLE: Duration = Duration::from_secs(10);

static AT_START: OnceLock<fn()> = OnceLock::new();

/// Has `hook` run first in every thread that is started here from now on: a thread inherits more than it should know
/// (the identity that the starting one acts under). The first hook of the process stays.
pub fn at_start(hook: fn()) {
    AT_START.get_or_init(|| hook);
}

/// Starts a named thread (names are cut at 15 bytes by the kernel).
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(|| {
        if let Some(hook) = AT_START.get() {
            hook();
        }
        run();
    })
}

/// A thread, as long as it runs.
pub use std::thread::ThreadId;

/// Which thread this is.
pub fn current() -> ThreadId {
    std::thread::current().id()
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads for work that may block for long. It starts one whenever work waits and none is idle, up to a limit; beyond
/// it work queues. A job that panics ends with a line in the log, and its thread goes on.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    name: String,
    limit: usize,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

impl Pool {
    /// A pool of at most `limit` threads; none is started yet.
    pub fn new(name: &str, limit: usize) -> Self {
        let state = Mutex::new(State::default());
        Pool(Arc::new(Shared { name: name.to_owned(), limit, state, wake: Condvar::new() }))
    }

    /// Runs `job` on some thread, soon.
    pub fn post(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.0.state.lock();
        state.jobs.push_back(Box::new(job));
        if state.jobs.len() > state.idle && state.threads < self.0.limit {
            let shared = self.0.clone();
            match spawn(&self.0.name, move || shared.work()) {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads > 0 => tracing::debug!(%error, "no further thread; work queues"),
                Err(error) => {
                    tracing::error!(%error, pool = self.0.name, "cannot start a thread: work waits")
                }
            }
        }
        drop(state);
        self.0.wake.notify_one();
    }

    /// Threads now, and jobs that no thread has taken yet.
    pub fn load(&self) -> (usize, usize) {
        let state = self.0.state.lock();
        (state.threads, state.jobs.len())
    }
}

impl Shared {
    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                if catch_unwind(AssertUnwindSafe(job)).is_err() {
                    tracing::error!(pool = self.name, "a worker panicked; this is a bug, please report it");
                }
                state = self.state.lock();
                continue;
            }
            state.idle += 1;
            let timed_out = self.wake.wait_for(&mut state, IDLE).timed_out();
            state.idle -= 1;
            if timed_out && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn grows_while_jobs_are_stuck_and_outlives_a_panic() {
        let pool = Pool::new("test", 4);
        let (stuck, release) = mpsc::channel::<()>();
        let release = Arc::new(Mutex::new(release));
        for _ in 0..3 {
            let release = release.clone();
            pool.post(move || {
                let _ = release.lock().recv();
            });
        }
        pool.post(|| panic!("on purpose"));
        let (done, answer) = mpsc::channel();
        pool.post(move || done.send(7).unwrap());
        assert_eq!(answer.recv_timeout(Duration::from_secs(10)), Ok(7));
        assert!(pool.load().0 <= 4);
        drop(stuck);
    }
}
