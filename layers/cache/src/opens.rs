//! Opening files: who gets a copy, who starts a fetch, who goes to the origin.

use std::ffi::OsStr;
use std::sync::Arc;

use hither_rt::clock::now;
use hither_vfs::{Attr, Call, Created, Entry, Epoch, Errno, Handle, OFlags, Result, Timestamp};

use crate::admission::Refusal;
use crate::file::{Admission, Backing, Dropped, Mode};
use crate::fill::{Fill, Start};
use crate::handles::{BackedHandle, ServedHandle, WriterHandle};
use crate::index::Copy;
use crate::node::{CacheNode, backing_of, is_for_writing};
use crate::record::{Record, Serial};
use crate::version::Version;

impl CacheNode {
    /// Opens for reading.
    pub(crate) fn open_reader(&self, call: &Call, flags: OFlags, at: Epoch) -> Result<Arc<dyn Handle>> {
        let attr = match self.fresh_attr() {
            Some(attr) => attr,
            None => self.origin_attr(call)?,
        };
        let admission = self.file.lock().admit_reader(at);
        let opened = self.open_admitted(call, flags, &attr, admission)?;
        self.shared.refused.has_opened(call.caller.pid);
        Ok(opened)
    }

    fn open_admitted(
        &self,
        call: &Call,
        flags: OFlags,
        attr: &Attr,
        admission: Admission,
    ) -> Result<Arc<dyn Handle>> {
        match admission {
            Admission::Backed(backing) => self.open_copy(call, &backing, attr),
            Admission::Left(serial) => self.open_left(call, attr, serial),
            Admission::Served => self.open_served(attr, None),
            Admission::Direct => {
                call.patience.check()?;
                let origin = self.origin_result(self.origin.open(call, flags, 0))?;
                match self.start_fill(call, attr, &origin, false) {
                    // Not left to the first read: the kernel may have the pages and never ask us.
                    Ok(fill) if fill.is_whole() => fill.want_all(&self.arc()?),
                    Ok(_) => {}
                    Err(refusal) => refusal.count(&self.shared.counters),
                }
                self.open_served(attr, Some(origin))
            }
        }
    }

    /// The file was unbacked between lookup and open. While its copy stands nothing was changed, and it may be read.
    fn open_left(&self, call: &Call, attr: &Attr, serial: Serial) -> Result<Arc<dyn Handle>> {
        if let Some(backing) = self.find_copy(call).filter(|backing| backing.serial == serial) {
            return self.open_copy(call, &backing, attr);
        }
        self.refuse(call, "an open has to look the file up again")
    }

    /// Refuses an open, so that the file is looked up again, and makes sure that the next open is not refused.
    fn refuse<T>(&self, call: &Call, why: &str) -> Result<T> {
        let dropped = self.file.lock().hold_direct(now());
        self.let_go(dropped, why);
        self.shared.refused.hold(self.arc()?, call.caller.pid);
        Err(Errno::STALE.into())
    }

    fn open_copy(&self, call: &Call, backing: &Backing, attr: &Attr) -> Result<Arc<dyn Handle>> {
        let shared = &self.shared;
        match shared.open_copy(backing) {
            Ok(copy) => {
                let used_at = shared.age_s();
                shared.index.update(&backing.key, backing.serial, |copy| copy.used_at = used_at);
                shared.counters.hits.add(1);
                shared.counters.hit_bytes.add(backing.version.size);
                Ok(Arc::new(BackedHandle::new(self.arc()?, copy, shown(attr, &backing.version))))
            }
            Err(error) => {
                // A miss, then: the kernel looks the file up again and finds it unbacked.
                shared.store_failed(&error);
                self.let_go(Dropped { fill: None, copy: Some(*backing) }, "the copy cannot be opened");
                self.refuse(call, "the copy cannot be opened")
            }
        }
    }

    fn open_served(&self, attr: &Attr, origin: Option<Arc<dyn Handle>>) -> Result<Arc<dyn Handle>> {
        let (shared, settle) = (&self.shared, self.shared.options.settle);
        shared.counters.misses.add(1);
        shared.counters.miss_bytes.add(attr.size);
        let mut file = self.file.lock();
        let keep = file.keep_pages(|version| version.is_settled(Timestamp::now(), settle));
        let origin = origin.or_else(|| match &file.mode {
            Mode::Filling(fill) => Some(fill.origin.clone()),
            _ => None,
        });
        drop(file);
        Ok(Arc::new(ServedHandle::new(self.arc()?, origin, keep)))
    }

    /// Begins to fetch the file, if it may be cached; `asked` is for files that a person named: rules do not apply.
    pub(crate) fn start_fill(
        &self,
        call: &Call,
        attr: &Attr,
        origin: &Arc<dyn Handle>,
        asked: bool,
    ) -> std::result::Result<Arc<Fill>, Refusal> {
        let version = Version::of(attr);
        let Ok(Some((key, id))) = self.id(call) else { return Err(Refusal::Nameless) };
        let (pinned, projid) = self.eligible(call, attr, asked)?;
        // After the rules: it costs three system calls.
        if self.is_written_elsewhere(call, &**origin) {
            return Err(Refusal::Unsettled);
        }
        let reservation = self.reserve(attr.size, projid)?;
        let start = Start {
            version,
            origin: origin.clone(),
            caller: call.caller.clone(),
            key,
            id,
            projid,
            pinned,
            path: self.path(),
            whole: asked || version.size <= self.shared.options.whole_file,
            reservation,
        };
        let fill = Fill::start(&self.shared, start).map_err(|error| {
            self.shared.store_failed(&error);
            Refusal::Full
        })?;
        let mut file = self.file.lock();
        let known = file.known.map(|known| Version::of(&known.attr));
        match &file.mode {
            _ if file.is_direct() && file.may_be_backed(now()) && known == Some(version) => {
                let before = std::mem::replace(&mut file.mode, Mode::Filling(fill.clone()));
                drop(file);
                drop(before);
                Ok(fill)
            }
            Mode::Filling(other) => {
                let other = other.clone();
                drop(file);
                fill.abandon("another open began first");
                Ok(other)
            }
            _ => {
                drop(file);
                fill.abandon("the file changed before the fetch began");
                Err(Refusal::Unsettled)
            }
        }
    }

    /// A fill has all its chunks and a record in the store: it backs the file from now on, if that may be.
    pub(crate) fn back_with(&self, fill: &Arc<Fill>, record: &Record) -> bool {
        let mut file = self.file.lock();
        let is_mine = matches!(&file.mode, Mode::Filling(now) if Arc::ptr_eq(now, fill));
        if !is_mine || !file.may_be_backed(now()) || !fill.take() {
            return false;
        }
        let key = fill.key;
        let mut copy = Copy::of(record);
        copy.used_at = self.shared.age_s();
        let backing = backing_of(key, &copy);
        let old = self.shared.index.insert(key, copy);
        file.back(backing);
        self.bind(&backing);
        drop(file);
        self.shared.counters.fills.add(1);
        self.announce();
        if let Some(old) = old.filter(|old| old.serial != record.serial) {
            self.shared.remove_files(key, &old);
        }
        true
    }

    /// Whether some other process of this machine can change the file without its version telling: by a write that is
    /// under way, or a writable mapping. Where the origin cannot tell, it is believed that nobody does.
    pub(crate) fn is_written_elsewhere(&self, call: &Call, origin: &dyn Handle) -> bool {
        matches!(origin.has_writer(call), Ok(Some(true)))
    }

    /// Opens for writing: the file is read at the origin while it lasts.
    pub(crate) fn open_writer(&self, call: &Call, flags: OFlags, at: Epoch) -> Result<Arc<dyn Handle>> {
        call.patience.check()?;
        if at != 0 {
            return self.refuse(call, "the file is to be opened for writing");
        }
        self.shared.refused.has_opened(call.caller.pid);
        let dropped = self.file.lock().admit_writer();
        self.let_go(dropped, "the file was opened for writing");
        // From here on it counts as a writer, whatever happens.
        let writer = WriterHandle::begin(self.arc()?);
        let open = || self.origin_result(self.origin.open(call, flags, 0));
        let origin = if flags.contains(OFlags::TRUNC) { self.changing_bytes(call, open) } else { open() }?;
        Ok(Arc::new(writer.opened(origin)))
    }

    /// A file that this very call, which began at `asked_at`, created or opened at the origin, in this directory.
    pub(crate) fn created(
        &self,
        call: &Call,
        name: Option<&OsStr>,
        created: Created,
        flags: OFlags,
        asked_at: u64,
    ) -> Result<Created> {
        let Created { entry, handle } = created;
        let attr = entry.attr;
        let node = self.shared.intern(entry.node.clone(), &attr);
        if is_for_writing(flags) {
            // It may have been there, with a copy; if it was truncated the copy is wrong now.
            let dropped = node.file.lock().admit_writer();
            node.let_go(dropped, "the file was opened for writing");
            let writer = WriterHandle::begin(node.clone());
            if flags.contains(OFlags::TRUNC) {
                node.changing_bytes(call, || Ok(()))?;
            }
            let entry = self.entry_of_created(call, name, entry, asked_at);
            return Ok(Created { entry, handle: Arc::new(writer.opened(handle)) });
        }
        let entry = self.entry_of_created(call, name, entry, asked_at);
        let handle = Arc::new(ServedHandle::new(node, Some(handle), false));
        Ok(Created { entry, handle })
    }

    /// The entry of a file that is open: of epoch 0, whatever backs it, since the open is not backed.
    fn entry_of_created(&self, call: &Call, name: Option<&OsStr>, entry: Entry, asked_at: u64) -> Entry {
        let entry = match name {
            Some(name) => self.own_entry(call, name, entry, asked_at),
            None => Entry { node: self.shared.intern(entry.node.clone(), &entry.attr), ..entry },
        };
        Entry { epoch: 0, ..entry }
    }
}

/// Attributes of a file in the version of its copy.
fn shown(attr: &Attr, version: &Version) -> Attr {
    Attr { size: version.size, mtime: version.mtime, ctime: version.ctime, ..*attr }
}
