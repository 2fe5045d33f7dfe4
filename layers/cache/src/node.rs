//! A node of the cache: the origin's node, with what the cache knows of it.

use std::any::Any;
use std::ffi::{OsStr, OsString};
use std::sync::{Arc, OnceLock, Weak};

use hither_rt::clock::{Duration, now};
use hither_rt::sync::Mutex;
use hither_vfs::locks::LockTable;
use hither_vfs::{
    Attr, Call, Created, DirHandle, Entry, Epoch, Errno, Event, FileKind, Handle, Identity, Node, OFlags,
    PersistentId, RenameFlags, Result, SetAttr, XattrFlags,
};

use crate::directory::Directory;
use crate::file::{Backing, Dropped, FileState, Mode};
use crate::index::Copy;
use crate::listing;
use crate::record::{Key, Serial};
use crate::shared::Shared;
use crate::xattrs::Xattrs;

/// See the module. For directories only `directory` is used, for regular files only `file`.
pub(crate) struct CacheNode {
    pub(crate) shared: Arc<Shared>,
    this: Weak<CacheNode>,
    pub(crate) origin: Arc<dyn Node>,
    pub(crate) kind: FileKind,
    id: OnceLock<Option<(Key, PersistentId)>>,
    /// The directory and name that it was last found under: for rules on paths, and messages.
    place: Mutex<Option<(Arc<CacheNode>, OsString)>>,
    pub(crate) file: Mutex<FileState>,
    pub(crate) directory: Mutex<Directory>,
    pub(crate) xattrs: Mutex<Option<Box<Xattrs>>>,
}

impl std::fmt::Debug for CacheNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CacheNode").field("identity", &self.origin.identity()).finish_non_exhaustive()
    }
}

impl CacheNode {
    pub(crate) fn new(
        shared: Arc<Shared>,
        origin: Arc<dyn Node>,
        kind: FileKind,
        this: Weak<CacheNode>,
    ) -> Self {
        CacheNode {
            shared,
            this,
            origin,
            kind,
            id: OnceLock::new(),
            place: Mutex::new(None),
            file: Mutex::default(),
            directory: Mutex::default(),
            xattrs: Mutex::default(),
        }
    }

    /// This node, to be held.
    pub(crate) fn arc(&self) -> Result<Arc<CacheNode>> {
        self.this.upgrade().ok_or(Errno::STALE.into())
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind == FileKind::Regular
    }

    /// How long an answer of the origin is believed here. The front end believes us as long again, so that both
    /// together keep what `--revalidate` promises.
    pub(crate) fn window(&self) -> Duration {
        self.shared.options.revalidate / 2
    }

    /// The attributes, if they were asked for recently.
    pub(crate) fn fresh_attr(&self) -> Option<Attr> {
        self.file.lock().fresh(now(), self.window())
    }

    /// Which file this is, for ever; `None` where the origin cannot tell: such a file is not cached.
    ///
    /// Where the origin has no lasting ids (a FUSE file system: what it calls a handle is a number of this mount) the
    /// path and inode number that it was first found with take their place: a file that is moved is not found again.
    pub(crate) fn id(&self, call: &Call) -> Result<Option<(Key, PersistentId)>> {
        if let Some(id) = self.id.get() {
            return Ok(id.clone());
        }
        let id = if self.shared.origin.capabilities().persistent_ids {
            self.origin.persistent_id(call)?
        } else {
            Some(self.id_by_path())
        };
        let id = id.map(|id| (Key::of(&id), id));
        Ok(self.id.get_or_init(|| id).clone())
    }

    fn id_by_path(&self) -> PersistentId {
        let mut id = b"path\0".to_vec();
        id.extend_from_slice(&self.origin.identity().ino.to_le_bytes());
        id.extend_from_slice(&self.path());
        if id.len() > PersistentId::MAX_LEN {
            let hash = blake3::hash(&id);
            id.truncate(PersistentId::MAX_LEN / 2);
            id.extend_from_slice(hash.as_bytes());
        }
        PersistentId(id.into_boxed_slice())
    }

    /// The id, if it was asked for before.
    pub(crate) fn known_id(&self) -> Option<(Key, PersistentId)> {
        self.id.get().cloned().flatten()
    }

    /// Tells the front end that a lookup of this file leads to another epoch now.
    pub(crate) fn announce(&self) {
        let place = self.place.lock().clone();
        if let Some((parent, name)) = place {
            self.shared.notify(&Event::Name { parent: parent.identity(), name });
        }
    }

    /// Counts an error of the origin that is its own, not the program's.
    pub(crate) fn origin_result<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && !error.is_would_block()
            && matches!(
                error.errno(),
                Errno::IO | Errno::NOTCONN | Errno::STALE | Errno::TIMEDOUT | Errno::HOSTDOWN
            )
        {
            self.shared.counters.origin_errors.add(1);
        }
        result
    }

    /// Asks the origin for the attributes, and learns from them.
    pub(crate) fn origin_attr(&self, call: &Call) -> Result<Attr> {
        call.patience.check()?;
        let stamp = self.shared.stamp();
        let attr = self.origin_result(self.origin.getattr(call))?;
        self.observe(call, stamp, &attr);
        Ok(attr)
    }

    /// Learns from what the origin said when it was asked at `stamp`; tells the epoch after that.
    pub(crate) fn observe(&self, call: &Call, stamp: u64, attr: &Attr) -> Epoch {
        let copy = self.find_copy(call);
        let mut file = self.file.lock();
        let mut dropped = file.observe(stamp, attr, copy, now());
        if let Mode::Backed(backing) = file.mode
            && !self.bind(&backing)
        {
            // It was taken away since it was found.
            dropped = file.unback();
        }
        let epoch = file.epoch();
        drop(file);
        if dropped.copy.is_some() {
            self.shared.counters.invalidated.add(1);
        }
        self.let_go(dropped, "the file changed at the origin");
        epoch
    }

    /// The copy that is there, of whatever version. Nothing is asked where nothing can be.
    pub(crate) fn find_copy(&self, call: &Call) -> Option<Backing> {
        let scanning = self.shared.is_scanning();
        if !self.is_file() || (!scanning && self.shared.index.usage().copies == 0) {
            return None;
        }
        let (key, id) = self.id(call).ok()??;
        if let Some(copy) = self.shared.index.get(&key) {
            return Some(backing_of(key, &copy));
        }
        if !scanning {
            return None;
        }
        let record = self.shared.store.load(key).ok()??;
        if record.id != id {
            return None;
        }
        self.shared.index.insert_found(key, Copy::of(&record));
        self.shared.index.get(&key).map(|copy| backing_of(key, &copy))
    }

    /// Lets the index know whose copy that is, so that eviction can tell the file. `false` if it has no such copy.
    pub(crate) fn bind(&self, backing: &Backing) -> bool {
        let this = self.this.clone();
        self.shared.index.update(&backing.key, backing.serial, |copy| copy.node = this)
    }

    /// Ends what a file had, outside its lock.
    pub(crate) fn let_go(&self, dropped: Dropped, why: &str) {
        if let Some(fill) = dropped.fill {
            fill.abandon(why);
        }
        if let Some(copy) = dropped.copy {
            self.drop_copy(copy.key, copy.serial);
        }
    }

    /// Takes a copy away: out of the index first, so that no lookup backs the file with it again, then from the file, then
    /// its files. Opens that read it go on; its space is free when they end. Tells whether it was there.
    pub(crate) fn drop_copy(&self, key: Key, serial: Serial) -> bool {
        let copy = self.shared.index.remove(&key, serial);
        {
            let mut file = self.file.lock();
            if file.epoch() == serial.0 {
                // Of a copy nothing has to be let go.
                file.unback();
            }
        }
        if let Some(copy) = &copy {
            self.shared.remove_files(key, copy);
        }
        self.shared.notify(&Event::Evicted(self.identity()));
        copy.is_some()
    }

    /// Gives up a fill that nobody reads; `false` if there is none, or somebody has the file open again.
    pub(crate) fn give_idle_fill_up(&self) -> bool {
        let mut file = self.file.lock();
        if file.opens > 0 || !matches!(file.mode, Mode::Filling(_)) {
            return false;
        }
        let dropped = file.unback();
        drop(file);
        self.let_go(dropped, "its room was needed, and nobody had it open");
        true
    }

    /// Drops the copy, whatever it is: the bytes are about to change, or nobody wants it.
    pub(crate) fn end_copy(&self, call: &Call) {
        let Some(backing) = self.find_copy(call) else { return };
        self.let_go(Dropped { fill: None, copy: Some(backing) }, "the file is changed");
    }

    /// Remembers under which name it was found.
    pub(crate) fn found_at(&self, parent: Arc<CacheNode>, name: &OsStr) {
        let mut place = self.place.lock();
        if place.as_ref().is_none_or(|(known, known_name)| !Arc::ptr_eq(known, &parent) || known_name != name)
        {
            *place = Some((parent, name.to_owned()));
        }
    }

    /// The name that it was last found under.
    pub(crate) fn name(&self) -> Option<OsString> {
        self.place.lock().as_ref().map(|(_, name)| name.clone())
    }

    /// The path below the root that it was last found under, as bytes with `/` between.
    pub(crate) fn path(&self) -> Vec<u8> {
        /// Deeper paths than this are cut at the front; they are for rules and messages only.
        const DEPTH: usize = 256;
        let mut names = Vec::new();
        let mut place = self.place.lock().clone();
        while let Some((parent, name)) = place {
            names.push(name.into_encoded_bytes());
            place = if names.len() < DEPTH { parent.place.lock().clone() } else { None };
        }
        names.reverse();
        names.join(&b'/')
    }
}

pub(crate) fn backing_of(key: Key, copy: &Copy) -> Backing {
    Backing { key, serial: copy.serial, version: copy.version }
}

/// The cache's own node behind a `dyn Node`; EXDEV for another file system's.
pub(crate) fn own(node: &dyn Node) -> Result<&CacheNode> {
    node.as_any().downcast_ref::<CacheNode>().ok_or(Errno::XDEV.into())
}

impl Node for CacheNode {
    fn identity(&self) -> Identity {
        self.origin.identity()
    }

    fn persistent_id(&self, call: &Call) -> Result<Option<PersistentId>> {
        self.origin.persistent_id(call)
    }

    fn locks(&self) -> &LockTable {
        self.origin.locks()
    }

    fn getattr(&self, call: &Call) -> Result<Attr> {
        let known = {
            let file = self.file.lock();
            file.fresh(now(), self.window()).or_else(|| file.held())
        };
        known.map_or_else(|| self.origin_attr(call), Ok)
    }

    fn setattr(&self, call: &Call, set: &SetAttr, handle: Option<&dyn Handle>) -> Result<Attr> {
        let origin_handle = match handle {
            Some(handle) => crate::handles::at_origin(handle, call)?,
            None => None,
        };
        let change = || self.origin_result(self.origin.setattr(call, set, origin_handle.as_deref()));
        if self.is_file() && set.size.is_some() {
            self.changing_bytes(call, change)
        } else {
            self.changing_meta(call, change)
        }
    }

    fn access(&self, call: &Call, mask: u32) -> Result<()> {
        call.patience.check()?;
        self.origin_result(self.origin.access(call, mask))
    }

    fn readlink(&self, call: &Call) -> Result<OsString> {
        call.patience.check()?;
        self.origin_result(self.origin.readlink(call))
    }

    fn open(&self, call: &Call, flags: OFlags, at: Epoch) -> Result<Arc<dyn Handle>> {
        if is_for_writing(flags) {
            self.open_writer(call, flags, at)
        } else {
            self.open_reader(call, flags, at)
        }
    }

    fn opendir(&self, call: &Call) -> Result<Arc<dyn DirHandle>> {
        listing::open(self, call)
    }

    fn lookup(&self, call: &Call, name: &OsStr) -> Result<Entry> {
        self.find(call, name).map(|(node, attr, epoch)| Entry { node, attr, epoch })
    }

    fn create(&self, call: &Call, name: &OsStr, flags: OFlags, mode: u32) -> Result<Created> {
        let asked_at = self.shared.stamp();
        let created = self.changing_names(call, &[name], || self.origin.create(call, name, flags, mode))?;
        self.created(call, Some(name), created, flags, asked_at)
    }

    fn tmpfile(&self, call: &Call, flags: OFlags, mode: u32) -> Result<Created> {
        call.patience.check()?;
        let asked_at = self.shared.stamp();
        let created = self.origin_result(self.origin.tmpfile(call, flags, mode))?;
        self.created(call, None, created, flags, asked_at)
    }

    fn mkdir(&self, call: &Call, name: &OsStr, mode: u32) -> Result<Entry> {
        let asked_at = self.shared.stamp();
        let entry = self.changing_names(call, &[name], || self.origin.mkdir(call, name, mode))?;
        Ok(self.own_entry(call, name, entry, asked_at))
    }

    fn mknod(&self, call: &Call, name: &OsStr, mode: u32, rdev: u64) -> Result<Entry> {
        let asked_at = self.shared.stamp();
        let entry = self.changing_names(call, &[name], || self.origin.mknod(call, name, mode, rdev))?;
        Ok(self.own_entry(call, name, entry, asked_at))
    }

    fn symlink(&self, call: &Call, name: &OsStr, target: &OsStr) -> Result<Entry> {
        let asked_at = self.shared.stamp();
        let entry = self.changing_names(call, &[name], || self.origin.symlink(call, name, target))?;
        Ok(self.own_entry(call, name, entry, asked_at))
    }

    fn link(&self, call: &Call, name: &OsStr, node: &dyn Node) -> Result<Entry> {
        let node = own(node)?;
        let asked_at = self.shared.stamp();
        let link = || self.changing_names(call, &[name], || self.origin.link(call, name, &*node.origin));
        let entry = node.changing_meta_to(call, link, |entry| Some(entry.attr))?;
        Ok(self.own_entry(call, name, entry, asked_at))
    }

    fn unlink(&self, call: &Call, name: &OsStr) -> Result<()> {
        self.removing(call, name, || self.changing_names(call, &[name], || self.origin.unlink(call, name)))
    }

    fn rmdir(&self, call: &Call, name: &OsStr) -> Result<()> {
        self.changing_names(call, &[name], || self.origin.rmdir(call, name))
    }

    fn rename(
        &self,
        call: &Call,
        name: &OsStr,
        new_parent: &dyn Node,
        new_name: &OsStr,
        flags: RenameFlags,
    ) -> Result<()> {
        self.renaming(call, name, own(new_parent)?, new_name, flags)
    }

    fn getxattr(&self, call: &Call, name: &OsStr) -> Result<Vec<u8>> {
        self.xattr(call, name)
    }

    fn setxattr(&self, call: &Call, name: &OsStr, value: &[u8], flags: XattrFlags) -> Result<()> {
        let set = || self.origin_result(self.origin.setxattr(call, name, value, flags));
        self.changing_meta_to(call, set, |()| None)
    }

    fn listxattr(&self, call: &Call) -> Result<Vec<OsString>> {
        call.patience.check()?;
        self.origin_result(self.origin.listxattr(call))
    }

    fn removexattr(&self, call: &Call, name: &OsStr) -> Result<()> {
        let remove = || self.origin_result(self.origin.removexattr(call, name));
        self.changing_meta_to(call, remove, |()| None)
    }

    fn project_id(&self, call: &Call) -> Result<u32> {
        call.patience.check()?;
        self.origin_result(self.origin.project_id(call))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Whether an open may change bytes.
pub(crate) fn is_for_writing(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC)
}
