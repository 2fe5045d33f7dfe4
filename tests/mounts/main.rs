//! Real mounts of the real `hither`: the suites in their short form, what the kernel does, crashes and faults, users.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by where it stops")]

mod faults;
mod kernel;
mod locks;
mod suites;
mod users;
