//! How a mount is made.

use std::time::Duration;

/// Whether the kernel may read and write backings by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Passthrough {
    /// Where the file system gives backings and the kernel allows it.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// How requests come from the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Over io_uring where the kernel allows it, else through `/dev/fuse`.
    #[default]
    Auto,
    /// Through `/dev/fuse`.
    Dev,
    /// Over io_uring, or not at all.
    Uring,
}

/// How a mount is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// What `df` and `mount` show as the source.
    pub fs_name: String,
    /// Nothing can be changed through the mount.
    pub read_only: bool,
    /// Users other than the one who mounts may use it. Always so for root.
    pub allow_other: bool,
    /// `nosuid`, `nodev`, `noexec`, `noatime`, `sync`, ... (`mount(8)`).
    pub mount_options: Vec<String>,
    /// How requests come.
    pub transport: Transport,
    /// Threads that read requests from `/dev/fuse`, each with its own descriptor. At least 1.
    pub threads: usize,
    /// How long a call may take before the program gets EIO; `None`: as long as it takes.
    pub deadline: Option<Duration>,
    /// Whether the kernel may read and write backings by itself.
    pub passthrough: Passthrough,
    /// Largest write, in bytes; at most 1 MiB.
    pub max_write: u32,
    /// What the kernel reads ahead of a sequential reader, in KiB; `None`: its default (128). Only root can set it.
    pub read_ahead_kib: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            fs_name: "hither".to_owned(),
            read_only: false,
            allow_other: false,
            mount_options: Vec::new(),
            transport: Transport::Auto,
            threads: 2,
            deadline: None,
            passthrough: Passthrough::Auto,
            max_write: 1 << 20,
            read_ahead_kib: None,
        }
    }
}
