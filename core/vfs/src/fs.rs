//! A file system as a whole: its root, its space, what it can do.

use std::sync::Arc;
use std::time::Duration;

use crate::{Call, EventSink, Node, Result, StatFs};

/// A tree of nodes. Implementations are shared by all threads of a front end.
pub trait FileSystem: Send + Sync {
    /// The root directory; the same node each time.
    fn root(&self) -> Arc<dyn Node>;

    /// What this file system can do. Constant for its life.
    fn capabilities(&self) -> Capabilities;

    /// Space and counts.
    fn statfs(&self, call: &Call) -> Result<StatFs>;

    /// Makes all that was written before durable.
    fn sync(&self, call: &Call) -> Result<()>;

    /// Adds a listener for changes that come from elsewhere.
    fn subscribe(&self, sink: Arc<dyn EventSink>);
}

/// For how long a front end may answer from what it was told before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// A name and the node it leads to (also that there is none).
    pub entry: Duration,
    /// Attributes.
    pub attr: Duration,
}

/// What an implementation can do. The conformance kit runs the tests that apply and counts the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// How long names and attributes may be kept: long where every change passes through us or is told to us.
    pub timeouts: Timeouts,
    /// Opens may come with a [`Backing`](crate::Backing).
    pub backings: bool,
    /// Nodes have a [`PersistentId`](crate::PersistentId) that outlives restarts.
    pub persistent_ids: bool,
    /// `link`.
    pub hard_links: bool,
    /// `symlink`, `readlink`.
    pub symlinks: bool,
    /// FIFOs, sockets, device nodes.
    pub special_files: bool,
    /// Extended attributes of the `user` namespace.
    pub xattrs: bool,
    /// POSIX ACLs as `system.posix_acl_*` attributes.
    pub acls: bool,
    /// `RENAME_EXCHANGE`.
    pub rename_exchange: bool,
    /// `O_TMPFILE`.
    pub tmpfile: bool,
    /// `fallocate` without flags and with `PUNCH_HOLE | KEEP_SIZE`.
    pub fallocate: bool,
    /// `SEEK_HOLE`, `SEEK_DATA` that know holes.
    pub sparse: bool,
}
