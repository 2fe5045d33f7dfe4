//! Open files and directories, by the number that the kernel gives back with each request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hither_rt::sync::Mutex;
use hither_vfs::{DirHandle, Handle};

use crate::backing::OpenKind;
use crate::ids::IdMap;
use crate::nodes::Known;

const SHARDS: usize = 32;

/// Numbers and what they stand for.
pub(crate) struct Handles<T> {
    shards: [Mutex<IdMap<Arc<T>>>; SHARDS],
    next: AtomicU64,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Handles { shards: std::array::from_fn(|_| Mutex::default()), next: AtomicU64::new(1) }
    }
}

impl<T> Handles<T> {
    fn shard(&self, number: u64) -> &Mutex<IdMap<Arc<T>>> {
        &self.shards[number as usize % SHARDS]
    }

    /// Gives a number, never given before.
    pub(crate) fn insert(&self, handle: Arc<T>) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.shard(number).lock().insert(number, handle);
        number
    }

    /// What a number stands for.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<T>> {
        self.shard(number).lock().get(&number).cloned()
    }

    /// Takes a number back.
    pub(crate) fn remove(&self, number: u64) -> Option<Arc<T>> {
        self.shard(number).lock().remove(&number)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }
}

/// An open file.
pub(crate) struct OpenFile {
    pub(crate) known: Arc<Known>,
    pub(crate) handle: Arc<dyn Handle>,
    /// How the kernel treats it.
    pub(crate) kind: OpenKind,
    lockers: Mutex<Vec<u64>>,
    has_lockers: AtomicBool,
}

impl OpenFile {
    pub(crate) fn new(known: Arc<Known>, handle: Arc<dyn Handle>, kind: OpenKind) -> Self {
        OpenFile { known, handle, kind, lockers: Mutex::default(), has_lockers: AtomicBool::new(false) }
    }

    /// `owner` asks for a POSIX lock through this open.
    pub(crate) fn add_locker(&self, owner: u64) {
        let mut lockers = self.lockers.lock();
        if !lockers.contains(&owner) {
            lockers.push(owner);
        }
        self.has_lockers.store(true, Ordering::Release);
    }

    /// `owner` closes a descriptor of this open, and has lost its locks by it.
    pub(crate) fn remove_locker(&self, owner: u64) {
        if self.has_lockers.load(Ordering::Acquire) {
            self.lockers.lock().retain(|known| *known != owner);
        }
    }

    /// Who locked through this open and never closed it: owners of open file description locks, which go with it.
    pub(crate) fn lockers_left(&self) -> Vec<u64> {
        if self.has_lockers.load(Ordering::Acquire) {
            std::mem::take(&mut *self.lockers.lock())
        } else {
            Vec::new()
        }
    }
}

/// An open directory.
pub(crate) struct OpenDir {
    pub(crate) handle: Arc<dyn DirHandle>,
}
