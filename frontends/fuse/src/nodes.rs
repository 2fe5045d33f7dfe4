//! The kernel's node ids. One stands for an inode *in one backing epoch*: all opens of a node id have the same backing,
//! as the kernel demands, while opens of an older epoch live on under theirs. All ids of an inode show the same
//! `st_ino`. An id is never used again.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use hither_rt::sync::Mutex;
use hither_vfs::{Entry, Epoch, FileKind, Identity, Node};

use crate::backing::Opens;
use crate::ids::IdMap;
use crate::protocol::abi::ROOT_ID;

/// A node that the kernel knows under an id.
pub(crate) struct Known {
    /// The kernel's id.
    pub(crate) id: u64,
    /// The node.
    pub(crate) node: Arc<dyn Node>,
    /// Which inode it is.
    pub(crate) identity: Identity,
    /// The epoch in which it was looked up.
    pub(crate) epoch: Epoch,
    /// Its opens, and the backing they share.
    pub(crate) opens: Mutex<Opens>,
    /// The inode is in another epoch now: what is said of it may not fit the opens of this one.
    superseded: AtomicBool,
    /// Its opens show a version of their own, whatever the node is now.
    has_own_version: AtomicBool,
    /// No lookup gives this id again.
    retired: AtomicBool,
    /// Somebody could write past us, through a backing: size and times are to be asked for often.
    written_by_kernel: AtomicBool,
}

impl Known {
    fn new(id: u64, node: Arc<dyn Node>, epoch: Epoch) -> Self {
        let identity = node.identity();
        Known {
            id,
            node,
            identity,
            epoch,
            opens: Mutex::default(),
            superseded: AtomicBool::new(false),
            has_own_version: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            written_by_kernel: AtomicBool::new(false),
        }
    }

    /// The epoch has moved.
    pub(crate) fn supersede(&self) {
        self.superseded.store(true, Ordering::Relaxed);
    }

    /// Whether a lookup that found this in that epoch means this id.
    fn stands_for(&self, node: &Arc<dyn Node>, epoch: Epoch) -> bool {
        // A number that was given to another inode meanwhile comes with another node.
        self.epoch == epoch && Arc::ptr_eq(&self.node, node) && !self.retired.load(Ordering::Relaxed)
    }

    /// Whether the epoch has moved, as far as is known here.
    pub(crate) fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Relaxed)
    }

    /// An open of it told attributes of its own.
    pub(crate) fn set_own_version(&self) {
        self.has_own_version.store(true, Ordering::Relaxed);
    }

    /// Whether changes of the node do not concern this id: the epoch has moved, and its opens show what was before.
    pub(crate) fn is_past(&self) -> bool {
        self.is_superseded() && self.has_own_version.load(Ordering::Relaxed)
    }

    /// An open for writing with a backing begins.
    pub(crate) fn set_written_by_kernel(&self) {
        self.written_by_kernel.store(true, Ordering::Relaxed);
    }

    /// Whether there ever was an open for writing with a backing (a mapping of it outlives it).
    pub(crate) fn is_written_by_kernel(&self) -> bool {
        self.written_by_kernel.load(Ordering::Relaxed)
    }
}

/// Node ids end in the number of their shard, so both maps of a shard are under one lock.
const SHARDS: u64 = 64;

#[derive(Default)]
struct Shard {
    by_id: IdMap<Slot>,
    by_identity: HashMap<Identity, Ids>,
}

struct Slot {
    known: Arc<Known>,
    /// How often the kernel was told of the id, less what it has forgotten.
    lookups: u64,
}

/// The ids of one inode: nearly always one.
#[derive(Default)]
struct Ids {
    /// The id that the last lookup gave.
    current: Option<Arc<Known>>,
    /// Other epochs (which may come back), and ids that were retired.
    others: Vec<Arc<Known>>,
}

impl Ids {
    fn all(&self) -> impl Iterator<Item = &Arc<Known>> {
        self.current.iter().chain(&self.others)
    }

    fn len(&self) -> usize {
        usize::from(self.current.is_some()) + self.others.len()
    }

    /// Makes `known` the present one; gives the one before.
    fn set_current(&mut self, known: Arc<Known>) -> Option<Arc<Known>> {
        self.others.retain(|other| other.id != known.id);
        known.superseded.store(false, Ordering::Relaxed);
        let before = self.current.replace(known);
        if let Some(before) = &before {
            before.supersede();
            self.others.push(before.clone());
        }
        before
    }

    fn remove(&mut self, id: u64) {
        self.current.take_if(|known| known.id == id);
        self.others.retain(|known| known.id != id);
    }
}

/// All node ids.
pub(crate) struct Nodes {
    shards: Box<[Mutex<Shard>]>,
    root: Arc<Known>,
    next: AtomicU64,
    /// How many ids stand beside another one of the same inode. Mostly 0, which spares the search for siblings.
    beside: AtomicUsize,
}

impl Nodes {
    /// Only the root is known.
    pub(crate) fn new(root: Arc<dyn Node>) -> Self {
        Nodes {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            root: Arc::new(Known::new(ROOT_ID, root, 0)),
            next: AtomicU64::new(1),
            beside: AtomicUsize::new(0),
        }
    }

    /// The node of an id.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<Known>> {
        if id == ROOT_ID {
            return Some(self.root.clone());
        }
        self.shards[(id % SHARDS) as usize].lock().by_id.get(&id).map(|slot| slot.known.clone())
    }

    fn shard_of(&self, identity: &Identity) -> u64 {
        let mixed = (identity.ino ^ identity.dev.rotate_left(17) ^ identity.generation.rotate_left(40))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed >> (64 - SHARDS.trailing_zeros())
    }

    /// The id of what a name leads to, which the kernel is told once more by this; and the one that it takes the place of
    /// by this, whose attributes the kernel must not keep any longer.
    pub(crate) fn look_up(&self, entry: &Entry) -> (Arc<Known>, Option<Arc<Known>>) {
        // Only opens of regular files have epochs; a directory with two ids would lose its working directories.
        let epoch = if entry.attr.kind() == FileKind::Regular { entry.epoch } else { 0 };
        let identity = entry.node.identity();
        if identity == self.root.identity {
            return (self.root.clone(), None);
        }
        let shard_number = self.shard_of(&identity);
        let mut shard = self.shards[shard_number as usize].lock();
        let Shard { by_id, by_identity } = &mut *shard;
        let ids = by_identity.entry(identity).or_default();
        let found = ids.all().find(|known| known.stands_for(&entry.node, epoch)).cloned();
        if let Some(known) = found {
            if let Some(slot) = by_id.get_mut(&known.id) {
                slot.lookups += 1;
            }
            let is_current = ids.current.as_ref().is_some_and(|current| current.id == known.id);
            let before = if is_current { None } else { ids.set_current(known.clone()) };
            return (known, before);
        }
        self.beside.fetch_add(usize::from(ids.len() > 0), Ordering::Relaxed);
        let id = self.next.fetch_add(1, Ordering::Relaxed) * SHARDS + shard_number;
        let known = Arc::new(Known::new(id, entry.node.clone(), epoch));
        let before = ids.set_current(known.clone());
        by_id.insert(id, Slot { known: known.clone(), lookups: 1 });
        (known, before)
    }

    /// No lookup gives this id any more: the next one gives the inode a new id.
    pub(crate) fn retire(&self, known: &Known) {
        known.retired.store(true, Ordering::Relaxed);
        known.supersede();
    }

    /// The kernel forgets `count` lookups of an id.
    pub(crate) fn forget(&self, id: u64, count: u64) {
        if id == ROOT_ID {
            return;
        }
        let mut shard = self.shards[(id % SHARDS) as usize].lock();
        let Some(slot) = shard.by_id.get_mut(&id) else {
            tracing::debug!(id, "the kernel forgets a node that it does not know");
            return;
        };
        slot.lookups = slot.lookups.saturating_sub(count);
        if slot.lookups > 0 {
            return;
        }
        let slot = shard.by_id.remove(&id);
        if let Some(Slot { known, .. }) = &slot
            && let Some(ids) = shard.by_identity.get_mut(&known.identity)
        {
            self.beside.fetch_sub(usize::from(ids.len() > 1), Ordering::Relaxed);
            ids.remove(id);
            if ids.len() == 0 {
                shard.by_identity.remove(&known.identity);
            }
        }
        drop(shard);
        // Closing what the node holds may take long: not under the lock.
        drop(slot);
    }

    /// All ids of an inode, the root's included.
    pub(crate) fn ids_of(&self, identity: &Identity) -> Vec<Arc<Known>> {
        if *identity == self.root.identity {
            return vec![self.root.clone()];
        }
        let shard = self.shards[self.shard_of(identity) as usize].lock();
        shard.by_identity.get(identity).map(|ids| ids.all().cloned().collect()).unwrap_or_default()
    }

    /// Whether any inode has more than one id now.
    pub(crate) fn has_siblings(&self) -> bool {
        self.beside.load(Ordering::Relaxed) > 0
    }

    /// The other ids of the inode of `known`.
    pub(crate) fn siblings(&self, known: &Known) -> Vec<Arc<Known>> {
        if !self.has_siblings() {
            return Vec::new();
        }
        let mut ids = self.ids_of(&known.identity);
        ids.retain(|other| other.id != known.id);
        ids
    }

    /// All ids but the root's.
    pub(crate) fn all(&self) -> Vec<Arc<Known>> {
        let of = |shard: &Mutex<Shard>| -> Vec<Arc<Known>> {
            shard.lock().by_id.values().map(|slot| slot.known.clone()).collect()
        };
        self.shards.iter().flat_map(of).collect()
    }

    /// How many ids the kernel knows.
    pub(crate) fn len(&self) -> usize {
        1 + self.shards.iter().map(|shard| shard.lock().by_id.len()).sum::<usize>()
    }
}
