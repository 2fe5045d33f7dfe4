//! A directory of the host as a file system: what a program sees through the trait.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod acting;
mod ground;
mod identity;
mod listing;
mod mounts;
mod options;
mod posix;
mod races;
mod xattrs;
