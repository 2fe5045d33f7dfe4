//! Real mounts of the real `hither`: the suites in their short form, what the kernel does, crashes and faults, users.

mod faults;
mod kernel;
mod locks;
mod suites;
mod users;
