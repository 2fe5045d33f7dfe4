//! The one door to clock, randomness, threads and locks.
