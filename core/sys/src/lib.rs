//! System calls that need unsafe, each behind a safe function.

pub mod cpu_time;
pub mod creds;
pub mod files;
pub mod fuse_dev;
pub mod fuse_ring;
pub mod handles;
pub mod lease;
pub mod mapping;
pub mod peer;
pub mod project;
pub mod umask;

/// The error of the call that has just failed.
fn last_errno() -> rustix::io::Errno {
    rustix::io::Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(rustix::io::Errno::IO)
}
