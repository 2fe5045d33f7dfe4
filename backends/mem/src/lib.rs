//! A file system in memory: the quickest inner file system, and one whose every answer is known.
//!
//! It has the whole surface of the trait, with Linux's errno for every refusal. Rights are not checked (the kernel
//! does that under `default_permissions`), but what the kernel leaves to a file system is done: umask, set-group-id
//! directories, set-id bits that end when others write.
//!
//! How it is made: a node *is* its inode, and a directory holds its children, so that identity, unlinked open files
//! and the freeing of space follow from reference counts. Changes of names run one at a time under one lock; reads
//! and writes of files meet only at their own inode. See `namespace` for the order of locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hither_rt::sync::Mutex;
use hither_vfs::{Call, Capabilities, EventSink, FileSystem, Node, Result, StatFs, Timeouts};

mod attrs;
mod clock;
mod directory;
mod file;
mod listing;
mod names;
mod namespace;
mod node;
mod pages;
mod rename;
mod space;
mod xattrs;

use clock::Clock;
use node::MemNode;
use space::Space;

/// How long others may believe what they were told: every change passes through the file system itself.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// What a file system in memory is limited to, and what it says of itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of file contents, counted in blocks of 4 KiB; by default half of the machine's memory.
    pub capacity_bytes: u64,
    /// Inodes; by default one for each block.
    pub inodes: u64,
    /// What [`Capabilities::timeouts`] says. To be lowered where a test changes files behind a layer's back.
    pub timeouts: Timeouts,
}

impl Default for Options {
    fn default() -> Self {
        let system = rustix::system::sysinfo();
        let memory_bytes = system.totalram.saturating_mul(u64::from(system.mem_unit.max(1)));
        Options::with_capacity(memory_bytes / 2)
    }
}

impl Options {
    /// The default, but for the capacity.
    pub fn with_capacity(capacity_bytes: u64) -> Self {
        let timeouts = Timeouts { entry: TIMEOUT, attr: TIMEOUT };
        Options { capacity_bytes, inodes: (capacity_bytes / space::BLOCK_BYTES).max(1024), timeouts }
    }
}

/// A file system in memory. It lives for as long as it, or any node of it, is held.
pub struct Mem {
    root: Arc<MemNode>,
    timeouts: Timeouts,
}

/// What all nodes of one file system share.
struct Shared {
    /// Held by every change of names.
    names: Mutex<()>,
    clock: Clock,
    space: Space,
    next_ino: AtomicU64,
    /// Tells this instance from others in persistent ids.
    instance: u64,
}

impl Shared {
    fn next_ino(&self) -> u64 {
        self.next_ino.fetch_add(1, Ordering::Relaxed)
    }
}

impl Mem {
    /// An empty file system; its root belongs to the user of this process and has mode 0755.
    pub fn new() -> Self {
        Mem::with_options(&Options::default())
    }

    /// An empty file system with limits.
    pub fn with_options(options: &Options) -> Self {
        let shared = Arc::new(Shared {
            names: Mutex::new(()),
            clock: Clock::default(),
            space: Space::new(options.capacity_bytes, options.inodes),
            next_ino: AtomicU64::new(1),
            instance: hither_rt::random::u64(),
        });
        Mem { root: MemNode::root(&shared), timeouts: options.timeouts }
    }
}

impl Default for Mem {
    fn default() -> Self {
        Mem::new()
    }
}

impl FileSystem for Mem {
    fn root(&self) -> Arc<dyn Node> {
        self.root.clone()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            timeouts: self.timeouts,
            backings: false,
            persistent_ids: true,
            hard_links: true,
            symlinks: true,
            special_files: true,
            xattrs: true,
            acls: false,
            rename_exchange: true,
            tmpfile: true,
            fallocate: true,
            sparse: true,
        }
    }

    fn statfs(&self, _: &Call) -> Result<StatFs> {
        Ok(self.root.shared().space.statfs())
    }

    fn sync(&self, _: &Call) -> Result<()> {
        Ok(())
    }

    /// No change comes from elsewhere, so there is nothing to tell.
    fn subscribe(&self, _: Arc<dyn EventSink>) {}
}

#[cfg(test)]
mod tests;
