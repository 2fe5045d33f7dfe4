//! One node for one inode: found again by device and inode number, and told from another inode that had the number
//! before.
//!
//! While a node keeps its descriptor the inode lives, and nothing else can have its number. After that a name that leads
//! to the same numbers may lead to another inode. The time of birth tells them apart where a file system keeps one (no
//! extra system call), the file handle elsewhere. A node that took its number over within one tick of the clock, unseen by
//! us, passes for the old one until that one's handle is found stale: then it is never given again.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use hither_rt::sync::Mutex;
use hither_vfs::locks::LockTable;
use hither_vfs::{Identity, Result};
use rustix::fs::Statx;

use super::reach::Slot;
use super::{DirNode, GONE, STALE};
use crate::attr;
use crate::dir::Shared;

/// What is known of an inode for which the node is looked for.
pub(super) struct Found<'a> {
    /// Its attributes.
    pub stat: &'a Statx,
    /// Where it was found.
    pub place: Option<(&'a DirNode, &'a OsStr)>,
    /// It did not exist when that many nodes had been made: older ones cannot be it.
    pub not_before: u64,
}

impl DirNode {
    /// The root of a tree.
    pub(crate) fn root(shared: &Arc<Shared>, stat: &Statx, fd: OwnedFd) -> Result<Arc<DirNode>> {
        let (root, _) = shared.intern(&Found { stat, place: None, not_before: 0 }, fd)?;
        Ok(root)
    }

    /// Whether that inode is this node's. `fd` leads to the inode, if it is open.
    fn is_found(&self, found: &Found<'_>, fd: Option<BorrowedFd<'_>>) -> bool {
        if self.kind != attr::kind_of(found.stat) || self.has(STALE) || !self.is_inode(found.stat) {
            return false;
        }
        if self.slot.lock().path.is_some() {
            return true;
        }
        if self.has(GONE) || self.born < found.not_before {
            return false;
        }
        // Without a time of birth: by the handle; without that, by the numbers alone.
        self.btime.is_some() || !self.mount.handles || self.has_handle_of(fd).unwrap_or(false)
    }

    /// Takes in what was found out about the node.
    fn note(&self, found: &Found<'_>) {
        if self.has(GONE) && found.stat.stx_nlink > 0 && found.place.is_some() {
            self.set(GONE, false);
            self.shared.descriptors.opened(&self.this);
        }
        if let Some((parent, name)) = found.place {
            self.seen_at(parent, name);
        }
    }
}

impl Shared {
    /// The living node of an inode, if it can be told from the attributes alone.
    pub(super) fn known(&self, found: &Found<'_>) -> Option<Arc<DirNode>> {
        let key = (attr::dev_of(found.stat), found.stat.stx_ino);
        let node = self.nodes.get(&key).filter(|node| node.is_found(found, None))?;
        node.note(found);
        Some(node)
    }

    /// The node of an inode, to which `fd` leads, and whether it was there and [`Shared::known`] would have told it.
    pub(super) fn intern(self: &Arc<Self>, found: &Found<'_>, fd: OwnedFd) -> Result<(Arc<DirNode>, bool)> {
        let key = (attr::dev_of(found.stat), found.stat.stx_ino);
        let other = self.nodes.get(&key);
        if let Some(node) = &other {
            let at_sight = node.is_found(found, None);
            if at_sight || node.is_found(found, Some(fd.as_fd())) {
                node.note(found);
                node.keep(fd);
                return Ok((node.clone(), at_sight));
            }
        }
        let mount = self.mounts.of(found.stat, fd.as_fd(), &self.proc)?;
        let btime = attr::btime_of(found.stat).filter(|_| mount.fs.keeps_birth());
        let born = self.births.fetch_add(1, Ordering::Relaxed);
        let mut generation = btime.map_or(0, |btime| btime.as_nanos() as u64);
        if other.as_ref().is_some_and(|other| other.identity.generation == generation) {
            // Both are there at once, and whoever knows them by identity must tell them apart.
            generation = generation.wrapping_add(born);
        }
        let is_current =
            |living: &Arc<DirNode>| !other.as_ref().is_some_and(|other| Arc::ptr_eq(other, living));
        let mut fd = Some(fd);
        let node = self.nodes.get_or_replace_cyclic(key, is_current, |this| DirNode {
            shared: self.clone(),
            this: this.clone(),
            mount,
            identity: Identity { dev: key.0, ino: key.1, generation },
            born,
            btime,
            kind: attr::kind_of(found.stat),
            mode: AtomicU32::new(u32::from(found.stat.stx_mode)),
            flags: AtomicU8::new(0),
            // From the first moment on that others find it, it can be reached.
            slot: Mutex::new(Slot { path: fd.take().map(Arc::new), ..Slot::default() }),
            locks: LockTable::default(),
        });
        node.note(found);
        match fd {
            None => self.descriptors.opened(&node.this),
            Some(fd) => _ = node.keep(fd),
        }
        Ok((node, false))
    }
}
