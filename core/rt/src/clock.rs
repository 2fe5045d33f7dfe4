//! Time: a monotonic clock for deadlines and ages.

pub use std::time::{Duration, Instant};

/// The monotonic clock.
pub fn now() -> Instant {
    Instant::now()
}

/// Puts the thread to sleep. For waits that nothing can cut short, prefer a [`crate::sync::Condvar`].
pub fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}
