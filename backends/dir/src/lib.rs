//! A directory of the host as a file system.
//!
//! [`Dir`] hands every call of the trait to the host's file system in as few system calls as possible: it is the
//! baseline that other file systems are measured against, the origin of a cache and the store of one.
//!
//! - **Nothing outside the directory is reached.** Names are looked up one at a time from an open parent, and symbolic
//!   links are never followed. Mounts below the directory are part of the tree.
//! - **Nodes are not descriptors.** A million known nodes need no million descriptors: see `descriptors`.
//! - **Calls act as their caller**, see [`Identity`] and `acting`. With a front end that has the kernel check permissions
//!   (`default_permissions`) supplementary groups are read only where a right depends on them.
//! - **Everything is served under [`Patience::Never`](hither_vfs::Patience::Never)** unless `may_block` is set.
//!
//! A process that forks after [`Dir::open`] must open it again: it keeps a descriptor of its own `/proc/self/fd`.
//! A daemon calls [`hither_sys::umask::clear`] when it starts, for kernels that refuse a thread its own mask.

mod acting;
mod attr;
mod descriptors;
mod dir;
mod file;
mod listing;
mod mounts;
mod node;
mod options;
mod probe;
mod proc;

pub use dir::Dir;
pub use options::{Handles, Identity, Options};
