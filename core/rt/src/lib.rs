//! The one door to clock, randomness, threads and locks, so that a simulator can stand in for them.

pub mod clock;
pub mod random;
pub mod sync;
pub mod thread;
