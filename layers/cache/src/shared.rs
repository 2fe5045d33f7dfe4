//! What all parts of one cache share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use hither_rt::clock::{Instant, now};
use hither_rt::sync::{Mutex, RwLock};
use hither_rt::thread::Pool;
use hither_rules::RuleSet;
use hither_vfs::{Attr, Errno, Error, Event, Events, FileSystem, Identity, Interner, Node, Result};

use crate::counters::Counters;
use crate::file::Backing;
use crate::index::{Copy, Index};
use crate::node::CacheNode;
use crate::open_copies::{OpenCopies, OpenCopy};
use crate::options::Options;
use crate::record::Key;
use crate::refused::Refused;
use crate::store::Store;

/// One cache.
pub(crate) struct Shared {
    pub(crate) origin: Arc<dyn FileSystem>,
    pub(crate) store: Store,
    pub(crate) index: Index,
    pub(crate) options: Options,
    pub(crate) rules: RwLock<RuleSet>,
    pub(crate) nodes: Interner<Identity, CacheNode>,
    /// Opens that were refused a moment ago.
    pub(crate) refused: Refused,
    /// Files of which a part was fetched, and that nobody has open: the first to go when room is short.
    idle_fills: Mutex<VecDeque<Weak<CacheNode>>>,
    pub(crate) open_copies: OpenCopies,
    pub(crate) buffers: Buffers,
    pub(crate) counters: Counters,
    pub(crate) events: Events,
    /// Fetches ahead of readers, and ends of fills: what waits for the origin.
    pub(crate) fetchers: Pool,
    /// Removals: what waits for the store only.
    pub(crate) background: Pool,
    /// Whether the store is still being listed: until then a copy may be there that the index does not know.
    pub(crate) scanning: AtomicBool,
    /// Whether nobody lists it any more: all was listed, or some of it could not be read.
    pub(crate) scan_is_over: AtomicBool,
    /// Bytes of copies that are being removed: soon free.
    leaving: AtomicU64,
    /// Whether the cache is being shut down: background work ends.
    pub(crate) closing: AtomicBool,
    pub(crate) changes: AtomicU64,
    started: Instant,
}

/// Threads that remove files at the same time.
const BACKGROUND: usize = 4;

impl Shared {
    pub(crate) fn new(origin: Arc<dyn FileSystem>, store: Store, options: Options) -> Arc<Self> {
        Arc::new(Shared {
            origin,
            store,
            index: Index::default(),
            rules: RwLock::new(options.rules.clone()),
            nodes: Interner::default(),
            refused: Refused::default(),
            idle_fills: Mutex::default(),
            open_copies: OpenCopies::default(),
            buffers: Buffers::default(),
            counters: Counters::default(),
            events: Events::default(),
            // A fetch that hangs with the origin holds its thread; twice as many as may run keep others going.
            fetchers: Pool::new("hither-fetch", options.fetches.max(1) * 2),
            background: Pool::new("hither-cache", BACKGROUND),
            scanning: AtomicBool::new(true),
            scan_is_over: AtomicBool::new(false),
            leaving: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            changes: AtomicU64::new(1),
            started: now(),
            options,
        })
    }

    /// A point in the order of local changes: an answer of the origin that was asked for at a point before a file's
    /// last change is not believed.
    pub(crate) fn stamp(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// A new point: a local change begins or ends here.
    pub(crate) fn next_stamp(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Seconds since the cache was made, at least 1.
    pub(crate) fn age_s(&self) -> u32 {
        (now() - self.started).as_secs().saturating_add(1).min(u64::from(u32::MAX)) as u32
    }

    /// The node for an origin's node: the same one for as long as anyone holds it.
    pub(crate) fn intern(self: &Arc<Self>, origin: Arc<dyn Node>, attr: &Attr) -> Arc<CacheNode> {
        let identity = origin.identity();
        let kind = attr.kind();
        self.nodes.get_or_insert_cyclic(identity, |this: &Weak<CacheNode>| {
            CacheNode::new(self.clone(), origin, kind, this.clone())
        })
    }

    /// Nobody has that file open any more, and a part of it was fetched.
    pub(crate) fn fill_is_idle(&self, node: Weak<CacheNode>) {
        let mut idle = self.idle_fills.lock();
        if !idle.iter().any(|known| Weak::ptr_eq(known, &node)) {
            idle.push_back(node);
        }
    }

    /// A file whose fill may have to go for room: the one that has been idle for the longest time.
    pub(crate) fn next_idle_fill(&self) -> Option<Arc<CacheNode>> {
        let mut idle = self.idle_fills.lock();
        while let Some(node) = idle.pop_front() {
            if let Some(node) = node.upgrade() {
                return Some(node);
            }
        }
        None
    }

    /// Opens a copy, or gives the open that there is.
    pub(crate) fn open_copy(&self, copy: &Backing) -> Result<Arc<OpenCopy>> {
        let is_current = || self.index.has(&copy.key, copy.serial);
        self.open_copies.open(&self.store, copy, is_current)
    }

    /// Removes the files of a copy that was taken out of the index, soon.
    pub(crate) fn remove_files(self: &Arc<Self>, key: Key, copy: &Copy) {
        let (serial, space) = (copy.serial, copy.space());
        self.open_copies.forget(serial);
        self.leaving.fetch_add(space, Ordering::SeqCst);
        let shared = self.clone();
        self.background.post(move || {
            shared.store.remove(key, serial);
            shared.leaving.fetch_sub(space, Ordering::SeqCst);
        });
    }

    /// Bytes of copies that are being removed. To be asked before the disk is: what is free there already may be counted
    /// twice then, for a moment, but never not at all, which would evict too much.
    pub(crate) fn leaving(&self) -> u64 {
        self.leaving.load(Ordering::SeqCst)
    }

    /// Counts and logs an error of the store. That a copy is not there is none: it was evicted a moment ago, or somebody
    /// removed it, and the file is read at the origin.
    pub(crate) fn store_failed(&self, error: &Error) {
        if *error == Errno::NOENT {
            return;
        }
        self.counters.store_errors.add(1);
        if *error == Errno::NOSPC || *error == Errno::DQUOT {
            tracing::debug!(%error, "the store has no room; files are read at the origin");
        } else {
            tracing::warn!(%error, "the store failed; files are read at the origin. Check its disk");
        }
    }

    /// Tells the front end.
    pub(crate) fn notify(&self, event: &Event) {
        self.events.notify(event);
    }

    pub(crate) fn is_scanning(&self) -> bool {
        self.scanning.load(Ordering::Acquire)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }
}

/// Buffers of one chunk, used again.
#[derive(Default)]
pub(crate) struct Buffers(Mutex<Vec<Vec<u8>>>);

/// Kept for reuse; more are made when more fetches run.
const BUFFERS_KEPT: usize = 16;

impl Buffers {
    /// A buffer of at least `length` bytes, with anything in it.
    pub(crate) fn take(&self, length: usize) -> Vec<u8> {
        let mut buffer = self.0.lock().pop().unwrap_or_default();
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        buffer
    }

    /// Gives a buffer back.
    pub(crate) fn give(&self, buffer: Vec<u8>) {
        let mut kept = self.0.lock();
        if kept.len() < BUFFERS_KEPT {
            kept.push(buffer);
        }
    }
}
