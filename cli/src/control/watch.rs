//! Notices that a client went away while its request is worked on, and cancels the work.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use hither_rt::sync::{Condvar, Mutex};
use hither_vfs::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How soon a hang-up is noticed.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Watches connections for hang-ups, in one thread for all of them that sleeps while there is none.
pub struct Watcher(Arc<Shared>);

#[derive(Default)]
struct Shared {
    watched: Mutex<Watched>,
    wake: Condvar,
}

#[derive(Default)]
struct Watched {
    next: u64,
    connections: Vec<(u64, Arc<OwnedFd>, Cancel)>,
}

/// As long as it lives, a hang-up cancels.
pub struct Watch<'a> {
    watcher: &'a Watcher,
    id: u64,
}

impl Watcher {
    /// Starts the thread.
    pub fn start() -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let watched = shared.clone();
        hither_rt::thread::spawn("control-watch", move || {
            loop {
                watched.look();
            }
        })?;
        Ok(Watcher(shared))
    }

    /// Watches `connection` until the answer is dropped.
    pub fn watch(&self, connection: &UnixStream, cancel: &Cancel) -> std::io::Result<Watch<'_>> {
        let fd = Arc::new(connection.as_fd().try_clone_to_owned()?);
        let mut watched = self.0.watched.lock();
        watched.next += 1;
        let id = watched.next;
        watched.connections.push((id, fd, cancel.clone()));
        self.0.wake.notify_one();
        Ok(Watch { watcher: self, id })
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.watcher.0.watched.lock().connections.retain(|(id, ..)| *id != self.id);
    }
}

impl Shared {
    /// Waits for something to watch, looks once, and cancels what hung up.
    fn look(&self) {
        let mut watched = self.watched.lock();
        while watched.connections.is_empty() {
            self.wake.wait(&mut watched);
        }
        let connections = watched.connections.clone();
        drop(watched);
        // A hang-up is reported without being asked for. Half a shutdown (`nc -N`) is none: the answer is still read.
        let mut fds: Vec<_> = connections
            .iter()
            .map(|(_, fd, _)| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::empty()))
            .collect();
        if poll(&mut fds, Some(&LOOK_EVERY)).is_err() {
            return;
        }
        let gone: Vec<bool> =
            fds.iter().map(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR)).collect();
        for ((id, _, cancel), _) in connections.iter().zip(gone).filter(|(_, gone)| *gone) {
            cancel.cancel();
            // Told once: polling it again would only spin.
            self.watched.lock().connections.retain(|(other, ..)| other != id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_hang_up_cancels_and_half_a_shutdown_does_not() {
        let watcher = Watcher::start().unwrap();
        let (here, there) = UnixStream::pair().unwrap();
        let (other_here, other_there) = UnixStream::pair().unwrap();
        let (cancel, other_cancel) = (Cancel::default(), Cancel::default());
        let _watch = watcher.watch(&here, &cancel).unwrap();
        let _other = watcher.watch(&other_here, &other_cancel).unwrap();
        other_there.shutdown(Shutdown::Write).unwrap();
        drop(there);
        let until = Instant::now() + Duration::from_secs(10);
        while !cancel.is_cancelled() {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!other_cancel.is_cancelled());
    }
}
