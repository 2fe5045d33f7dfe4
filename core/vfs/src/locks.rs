//! Advisory locks of one inode: POSIX record locks and BSD flocks (`fcntl(2)`, `flock(2)`).
//!
//! A waiting lock is a parked request, not a thread: whoever asks leaves a waker, and is told when the lock is granted.

/// The locks of one inode.
#[derive(Default)]
pub struct LockTable {}
