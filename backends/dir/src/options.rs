//! How a directory is to be served.

use std::time::Duration;

use hither_vfs::Timeouts;

/// As whom system calls are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// As the caller of each call, by the thread's file system uid, gid and groups: what he may do, who owns what he
    /// creates and what his quota allows is decided by the host, also on a server that squashes root. Where the
    /// process is not root it can only act as itself.
    #[default]
    Caller,
    /// As the daemon, whoever calls: for stores, which belong to the daemon.
    Daemon,
}

/// How nodes whose descriptor was closed are found again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handles {
    /// By file handle where the file system gives them and the process may use them (`CAP_DAC_READ_SEARCH`),
    /// otherwise by name from the parent.
    #[default]
    Auto,
    /// Always by name from the parent.
    Never,
}

/// How a directory is to be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// As whom.
    pub identity: Identity,
    /// A thread keeps the identity of its last caller: a run of calls of one user changes it once, not twice a call
    /// (1.4 µs each way). Only where nothing else makes file system calls on the threads that call (see
    /// [`hither_sys::creds`]): a mount of this directory alone.
    pub keep_identity: bool,
    /// For how long a front end may keep names and attributes. A directory of the host may change behind us at any
    /// time and nobody tells, so this bounds how stale they are.
    pub timeouts: Timeouts,
    /// How many `O_PATH` descriptors may stay open for nodes; half the limit of open files (`RLIMIT_NOFILE`) at most.
    /// Open files, and unlinked nodes that somebody still holds, are on top of it.
    pub descriptors: usize,
    /// How to find nodes again.
    pub handles: Handles,
    /// Opens come with a backing: the file itself.
    pub backings: bool,
    /// The disk may be far away: under [`Patience::Never`](hither_vfs::Patience::Never) whatever touches it answers
    /// that it would block. Otherwise everything is served at once, as a local disk does.
    pub may_block: bool,
    /// `getattr` has a client of a network file system ask its server (`AT_STATX_FORCE_SYNC`), instead of telling what
    /// it keeps.
    pub fresh_attributes: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            identity: Identity::default(),
            keep_identity: false,
            timeouts: Timeouts { entry: Duration::from_secs(1), attr: Duration::from_secs(1) },
            descriptors: 4096,
            handles: Handles::default(),
            backings: true,
            may_block: false,
            fresh_attributes: false,
        }
    }
}
