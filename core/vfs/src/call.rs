//! Who asks, and how long the answer may take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, MutexGuard};
use rustix::io::Errno;

use crate::{Error, Result};

/// How often a waiting call looks whether it was cancelled. A killed program waits at most this long.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// The process on whose behalf a call is made.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// File system user id.
    pub uid: u32,
    /// File system group id.
    pub gid: u32,
    /// Thread id as the front end saw it; 0 where it is unknown (another pid namespace).
    pub pid: u32,
    /// Mode bits to leave out of what is created (`umask(2)`).
    pub umask: u32,
    groups: OnceLock<Arc<[u32]>>,
}

impl Caller {
    /// A caller whose supplementary groups are read from `/proc` when somebody asks for them.
    pub fn new(uid: u32, gid: u32, pid: u32, umask: u32) -> Self {
        Caller { uid, gid, pid, umask, groups: OnceLock::new() }
    }

    /// The same caller with its supplementary groups given.
    pub fn with_groups(self, groups: impl Into<Arc<[u32]>>) -> Self {
        Caller { groups: OnceLock::from(groups.into()), ..self }
    }

    /// This very process, with umask 0.
    pub fn this_process() -> Self {
        Caller::new(
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
            std::process::id(),
            0,
        )
    }

    /// Supplementary groups, if they can be told without a look at `/proc`: were given, or asked for before.
    pub fn known_groups(&self) -> Option<&Arc<[u32]>> {
        self.groups.get().or_else(|| (self.pid == 0).then(|| self.groups()))
    }

    /// Supplementary groups. FUSE requests do not carry them, so they are read once a call from the thread's
    /// status, and are empty if the thread is gone or unknown: less may be allowed then, never more.
    pub fn groups(&self) -> &Arc<[u32]> {
        self.groups.get_or_init(|| if self.pid == 0 { Arc::from([]) } else { groups_of(self.pid) })
    }
}

/// The `Groups:` line of a thread's status (`proc(5)`).
fn groups_of(pid: u32) -> Arc<[u32]> {
    let Ok(status) = std::fs::read(format!("/proc/{pid}/status")) else { return Arc::from([]) };
    let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Groups:"));
    let text = line.and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|group| group.parse().ok()).collect()
}

/// A flag that ends a waiting call: the program was killed or interrupted.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends every wait under this flag, now or later.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// How long a call may take.
#[derive(Clone, Debug)]
pub enum Patience {
    /// Serve at once or answer [`Error::WOULD_BLOCK`]: the thread that asks serves others too.
    Never,
    /// Wait, until the deadline (EIO) or the cancel (EINTR).
    Until {
        /// When to give up; `None` waits for as long as it takes.
        deadline: Option<Instant>,
        /// Gives up at once when set.
        cancel: Cancel,
    },
}

impl Patience {
    /// Waits for as long as it takes and cannot be cancelled: for background work and tests.
    pub fn forever() -> Self {
        Patience::Until { deadline: None, cancel: Cancel::default() }
    }

    /// Waits for at most `limit` from now.
    pub fn at_most(limit: Duration) -> Self {
        Patience::Until { deadline: Instant::now().checked_add(limit), cancel: Cancel::default() }
    }

    /// Whether the call may be made to wait at all: to be asked before anything that can block.
    pub fn check(&self) -> Result<()> {
        match self {
            Patience::Never => Err(Error::WOULD_BLOCK),
            Patience::Until { cancel, .. } if cancel.is_cancelled() => Err(Errno::INTR.into()),
            Patience::Until { deadline: Some(deadline), .. } if Instant::now() >= *deadline => {
                Err(timed_out())
            }
            Patience::Until { .. } => Ok(()),
        }
    }

    /// Waits once on `condvar`; returns when notified or after a short while (the caller looks at its condition
    /// and waits again), and fails when patience has run out.
    pub fn wait<T>(&self, condvar: &Condvar, guard: &mut MutexGuard<'_, T>) -> Result<()> {
        self.check()?;
        let mut slice = CANCEL_POLL;
        if let Patience::Until { deadline: Some(deadline), .. } = self {
            slice = slice.min(deadline.saturating_duration_since(Instant::now()));
        }
        condvar.wait_for(guard, slice);
        Ok(())
    }
}

fn timed_out() -> Error {
    Error::with_cause(Errno::IO, "no answer within the time allowed (--origin-timeout for a cache)")
}

/// What every call of the trait carries.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who asks.
    pub caller: Caller,
    /// How long the answer may take.
    pub patience: Patience,
}

impl Call {
    /// A call of the given caller.
    pub fn new(caller: Caller, patience: Patience) -> Self {
        Call { caller, patience }
    }

    /// A call of the daemon itself, for background work and tests; waits for as long as it takes.
    pub fn own() -> Self {
        Call { caller: Caller::this_process(), patience: Patience::forever() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_this_process_are_those_that_getgroups_tells() {
        let mut told: Vec<u32> =
            rustix::process::getgroups().unwrap().into_iter().map(|group| group.as_raw()).collect();
        let mut read = Caller::this_process().groups().to_vec();
        told.sort_unstable();
        read.sort_unstable();
        assert_eq!(told, read);
    }

    #[test]
    fn patience_runs_out_as_it_says() {
        assert!(Patience::Never.check().unwrap_err().is_would_block());
        assert_eq!(Patience::at_most(Duration::ZERO).check().unwrap_err().errno(), Errno::IO);
        let cancel = Cancel::default();
        let patience = Patience::Until { deadline: None, cancel: cancel.clone() };
        assert!(patience.check().is_ok());
        cancel.cancel();
        assert_eq!(patience.check().unwrap_err().errno(), Errno::INTR);
    }
}
