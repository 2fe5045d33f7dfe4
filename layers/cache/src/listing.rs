//! Reading directories: from the remembered listing, or from the origin while remembering it.

use std::ffi::OsStr;
use std::sync::{Arc, OnceLock};

use hither_rt::clock::now;
use hither_rt::sync::Mutex;
use hither_vfs::{Attr, Call, DirEntry, DirHandle, DirSink, Entry, Epoch, Result};

use crate::directory::{Listed, Listing};
use crate::node::CacheNode;

/// Directories with more entries are not remembered.
const REMEMBERED: usize = 1 << 16;

/// Opens a directory of the cache. A listing that is too old is asked for again even if the directory has not changed
/// since: the origin's client learns its entries' attributes on the way, which one by one would be a request each.
pub(crate) fn open(node: &CacheNode, call: &Call) -> Result<Arc<dyn DirHandle>> {
    let node = node.arc()?;
    let remembered = node.directory.lock().listing(now(), node.window());
    if let Some(listing) = remembered {
        return Ok(Arc::new(Remembered { node, listing, rewound: OnceLock::new() }));
    }
    call.patience.check()?;
    let stamp = node.shared.stamp();
    let origin = node.origin_result(node.origin.opendir(call))?;
    let listing = Listing { entries: Vec::new(), at: now() };
    let memory = Mutex::new(Some(Memory { listing, stamp, next: 0 }));
    Ok(Arc::new(Streaming { node, origin, memory }))
}

/// An open directory that is read from memory; the positions are places in the listing.
struct Remembered {
    node: Arc<CacheNode>,
    listing: Arc<Listing>,
    /// Where it was begun again after the directory had changed: `rewinddir` shows what is there then.
    rewound: OnceLock<Arc<dyn DirHandle>>,
}

impl DirHandle for Remembered {
    fn read(&self, call: &Call, from: u64, plus: bool, sink: &mut dyn DirSink) -> Result<()> {
        if from == 0
            && self.rewound.get().is_none()
            && !self.node.directory.lock().is_listed_as(&self.listing)
        {
            call.patience.check()?;
            // It reads anew whenever it is begun again.
            let origin = self.node.origin_result(self.node.origin.opendir(call))?;
            let streaming = Streaming { node: self.node.clone(), origin, memory: Mutex::new(None) };
            self.rewound.get_or_init(|| Arc::new(streaming));
        }
        if let Some(rewound) = self.rewound.get() {
            return rewound.read(call, from, plus, sink);
        }
        for (place, listed) in self.listing.entries.iter().enumerate().skip(from as usize) {
            let entry =
                DirEntry { name: &listed.name, ino: listed.ino, kind: listed.kind, next: place as u64 + 1 };
            // What is not known without asking is looked up when somebody wants it.
            let found = if plus { self.node.known(&listed.name) } else { None };
            if !sink.entry(entry, found) {
                break;
            }
        }
        Ok(())
    }

    fn fsync(&self, call: &Call, datasync: bool) -> Result<()> {
        call.patience.check()?;
        self.node.origin.opendir(call)?.fsync(call, datasync)
    }
}

/// An open directory of the origin; what it lists is remembered when it was listed from start to end.
struct Streaming {
    node: Arc<CacheNode>,
    origin: Arc<dyn DirHandle>,
    memory: Mutex<Option<Memory>>,
}

struct Memory {
    listing: Listing,
    stamp: u64,
    /// The position behind the last entry remembered.
    next: u64,
}

impl DirHandle for Streaming {
    fn read(&self, call: &Call, from: u64, plus: bool, sink: &mut dyn DirSink) -> Result<()> {
        call.patience.check()?;
        let mut memory = self.memory.lock().take().filter(|memory| memory.next == from);
        let mut tap = Tap {
            node: &self.node,
            call,
            stamp: self.node.shared.stamp(),
            sink,
            memory: &mut memory,
            full: false,
        };
        let read = self.node.origin_result(self.origin.read(call, from, plus, &mut tap));
        let ended = !tap.full && read.is_ok();
        match memory {
            Some(memory) if ended => {
                self.node.directory.lock().listed(Some(Arc::new(memory.listing)), memory.stamp);
            }
            memory => *self.memory.lock() = memory,
        }
        read
    }

    fn fsync(&self, call: &Call, datasync: bool) -> Result<()> {
        call.patience.check()?;
        self.origin.fsync(call, datasync)
    }
}

/// Stands between the origin and the reader: makes the origin's nodes ours, and remembers.
struct Tap<'a> {
    node: &'a Arc<CacheNode>,
    call: &'a Call,
    stamp: u64,
    sink: &'a mut dyn DirSink,
    memory: &'a mut Option<Memory>,
    full: bool,
}

impl DirSink for Tap<'_> {
    fn entry(&mut self, entry: DirEntry<'_>, found: Option<Entry>) -> bool {
        let found = found.map(|found| self.node.own_entry(self.call, entry.name, found, self.stamp));
        let listed = Listed { name: entry.name.to_owned(), ino: entry.ino, kind: entry.kind };
        let next = entry.next;
        if !self.sink.entry(entry, found) {
            self.full = true;
            return false;
        }
        if let Some(memory) = &mut self.memory {
            memory.listing.entries.push(listed);
            memory.next = next;
            if memory.listing.entries.len() > REMEMBERED {
                *self.memory = None;
            }
        }
        true
    }
}

impl CacheNode {
    /// What a name leads to, from memory only.
    fn known(&self, name: &OsStr) -> Option<Entry> {
        let node = self.directory.lock().name(name, now(), self.window())?;
        let file = node.file.lock();
        let attr = file.fresh(now(), self.window())?;
        let epoch = file.epoch();
        drop(file);
        Some(Entry { node, attr, epoch })
    }

    /// What a name leads to, from memory or the origin.
    pub(crate) fn find(&self, call: &Call, name: &OsStr) -> Result<(Arc<CacheNode>, Attr, Epoch)> {
        let known = self.directory.lock().name(name, now(), self.window());
        if let Some(node) = known
            && let Some(attr) = node.fresh_attr()
        {
            let epoch = node.epoch_for(call);
            return Ok((node, attr, epoch));
        }
        call.patience.check()?;
        let stamp = self.shared.stamp();
        let found = self.origin_result(self.origin.lookup(call, name))?;
        let (node, attr) = (self.adopt_node(name, &found, stamp)?, found.attr);
        node.observe(call, stamp, &attr);
        let epoch = node.epoch_for(call);
        Ok((node, attr, epoch))
    }

    /// The epoch that a lookup gives this caller: 0, which no open is refused at, if it was refused a moment ago.
    fn epoch_for(&self, call: &Call) -> Epoch {
        let epoch = self.file.lock().epoch();
        if epoch == 0 || !self.shared.refused.retries(call.caller.pid) {
            return epoch;
        }
        let dropped = self.file.lock().hold_direct(now());
        self.let_go(dropped, "an open that was refused comes again");
        0
    }

    /// The origin's entry as ours, when it was asked for at `stamp`.
    pub(crate) fn own_entry(&self, call: &Call, name: &OsStr, found: Entry, stamp: u64) -> Entry {
        match self.adopt_node(name, &found, stamp) {
            Ok(node) => {
                let epoch = node.observe(call, stamp, &found.attr);
                Entry { node, attr: found.attr, epoch }
            }
            Err(_) => found,
        }
    }

    fn adopt_node(&self, name: &OsStr, found: &Entry, stamp: u64) -> Result<Arc<CacheNode>> {
        let node = self.shared.intern(found.node.clone(), &found.attr);
        node.found_at(self.arc()?, name);
        self.directory.lock().found(name, &node, stamp, now());
        Ok(node)
    }
}
