//! How much room there is: blocks of file contents, and inodes.

use std::sync::atomic::{AtomicU64, Ordering};

use hither_vfs::{Errno, Result, StatFs};

/// The unit in which contents are counted.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// Longest name, in bytes.
pub(crate) const NAME_MAX: usize = 255;

/// Room, and what is taken of it. Everything that is taken is given back by whoever took it when it is dropped.
#[derive(Debug)]
pub(crate) struct Space {
    blocks: u64,
    blocks_used: AtomicU64,
    inodes: u64,
    inodes_used: AtomicU64,
}

impl Space {
    pub(crate) fn new(capacity_bytes: u64, inodes: u64) -> Self {
        Space {
            blocks: capacity_bytes / BLOCK_BYTES,
            blocks_used: AtomicU64::new(0),
            inodes,
            inodes_used: AtomicU64::new(0),
        }
    }

    /// Takes that many blocks, or none and ENOSPC.
    pub(crate) fn take_blocks(&self, count: u64) -> Result<()> {
        take(&self.blocks_used, self.blocks, count)
    }

    pub(crate) fn give_blocks(&self, count: u64) {
        self.blocks_used.fetch_sub(count, Ordering::Relaxed);
    }

    /// Takes an inode; ENOSPC if there is none left.
    pub(crate) fn take_inode(&self) -> Result<()> {
        take(&self.inodes_used, self.inodes, 1)
    }

    pub(crate) fn give_inode(&self) {
        self.inodes_used.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn statfs(&self) -> StatFs {
        let free = self.blocks.saturating_sub(self.blocks_used.load(Ordering::Relaxed));
        StatFs {
            block_size: BLOCK_BYTES,
            blocks: self.blocks,
            blocks_free: free,
            blocks_available: free,
            files: self.inodes,
            files_free: self.inodes.saturating_sub(self.inodes_used.load(Ordering::Relaxed)),
            name_max: NAME_MAX as u32,
        }
    }
}

fn take(used: &AtomicU64, limit: u64, count: u64) -> Result<()> {
    let more = |used: u64| used.checked_add(count).filter(|sum| *sum <= limit);
    match used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
        Ok(_) => Ok(()),
        Err(_) => Err(Errno::NOSPC.into()),
    }
}
