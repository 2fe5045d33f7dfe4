//! Changes that go to the origin, and what they do to copies.

use std::ffi::OsStr;
use std::sync::Arc;

use hither_rt::clock::now;
use hither_vfs::{Attr, Call, RenameFlags, Result};

use crate::file::{Backing, Mode};
use crate::node::CacheNode;
use crate::record::Serial;
use crate::version::Version;

impl CacheNode {
    /// Makes a change of a file's bytes: the copy ends before the origin is asked, and nothing that the origin said
    /// before the change is believed after it.
    pub(crate) fn changing_bytes<T>(&self, call: &Call, change: impl FnOnce() -> Result<T>) -> Result<T> {
        // A call that may not wait is refused before anything has happened.
        call.patience.check()?;
        self.id(call)?;
        let dropped = self.file.lock().begin_change(self.shared.next_stamp());
        self.let_go(dropped, "the file is changed here");
        self.end_copy(call);
        let result = change();
        self.file.lock().end_change(self.shared.next_stamp());
        result
    }

    /// Makes a change of attributes that tells the attributes after.
    pub(crate) fn changing_meta(&self, call: &Call, change: impl FnOnce() -> Result<Attr>) -> Result<Attr> {
        self.changing_meta_to(call, change, |attr| Some(*attr))
    }

    /// Makes a change that moves ctime but leaves the bytes; a copy that was right just before is right after, too.
    /// `after` gives the attributes after, if the change told them.
    pub(crate) fn changing_meta_to<T>(
        &self,
        call: &Call,
        change: impl FnOnce() -> Result<T>,
        after: impl FnOnce(&T) -> Option<Attr>,
    ) -> Result<T> {
        call.patience.check()?;
        let kept = self.right_copy(call)?;
        let began = self.shared.next_stamp();
        self.file.lock().begin_meta_change(began);
        let result = change();
        let attr = match &result {
            Ok(told) => after(told).or_else(|| self.origin.getattr(call).ok()),
            Err(_) => None,
        };
        let kept = kept.filter(|_| result.is_ok()).zip(attr);
        if let Some((backing, attr)) = kept {
            self.adopt(call, &backing, &attr);
        }
        self.file.lock().end_meta_change(began, self.shared.next_stamp(), attr.as_ref(), now());
        result
    }

    /// The copy that backs the file, if the origin says right now that it is of the right version.
    fn right_copy(&self, call: &Call) -> Result<Option<Backing>> {
        let Mode::Backed(_) = self.file.lock().mode else { return Ok(None) };
        self.origin_attr(call)?;
        match self.file.lock().mode {
            Mode::Backed(backing) => Ok(Some(backing)),
            _ => Ok(None),
        }
    }

    /// The copy is of the version that these attributes name, if nothing but our own change lies between.
    fn adopt(&self, call: &Call, backing: &Backing, attr: &Attr) {
        let version = Version::of(attr);
        if version == backing.version {
            return;
        }
        let renewed = Backing { version, ..*backing };
        let is_same = backing.version.differs_in_ctime_only(&version);
        if let Some(commit) = is_same.then(|| self.amend_version(backing, version)).flatten() {
            self.shared.index.update(&backing.key, backing.serial, |copy| {
                copy.version = version;
                copy.commit = commit;
            });
            let mut file = self.file.lock();
            if matches!(&file.mode, Mode::Backed(now) if now.serial == backing.serial) {
                file.mode = Mode::Backed(renewed);
            }
        } else {
            let dropped = self.file.lock().unback();
            self.let_go(dropped, "the file is changed here");
            self.end_copy(call);
        }
    }

    /// The copy's record names that version from now on; its new number, unless the copy is gone.
    fn amend_version(&self, backing: &Backing, version: Version) -> Option<Serial> {
        let path = self.path();
        let amended = self.shared.store.amend(backing.key, backing.serial, |record| {
            record.version = version;
            record.path = path;
        });
        match amended {
            Ok(record) => Some(record?.commit),
            Err(error) => {
                self.shared.store_failed(&error);
                None
            }
        }
    }

    /// Removes a name; the copy goes with the last one.
    pub(crate) fn removing(
        &self,
        call: &Call,
        name: &OsStr,
        remove: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        call.patience.check()?;
        let Some((node, attr)) = self.known_at(call, name)? else { return remove() };
        if attr.nlink > 1 {
            return node.changing_meta_to(call, remove, |()| None);
        }
        remove()?;
        node.lost_last_name(call);
        Ok(())
    }

    /// The file has no name any more, unless somebody gave it another one meanwhile.
    fn lost_last_name(&self, call: &Call) {
        if self.is_file() && !matches!(self.origin.getattr(call), Ok(attr) if attr.nlink > 0) {
            // Readers that have it open keep what they have: the copy's data lives as long as it is open.
            let dropped = self.file.lock().unback();
            self.let_go(dropped, "the file was removed");
            self.end_copy(call);
        }
        self.file.lock().forget_known(self.shared.next_stamp());
    }

    /// What a name leads to, if to anything. Names that were looked up a moment ago, as the kernel does, cost nothing.
    fn known_at(&self, call: &Call, name: &OsStr) -> Result<Option<(Arc<CacheNode>, Attr)>> {
        match self.find(call, name) {
            Ok((node, attr, _)) => Ok(Some((node, attr))),
            Err(error) if error.is_would_block() => Err(error),
            // What is wrong with the name the change itself will say.
            Err(_) => Ok(None),
        }
    }

    /// Moves a name, over another one or in exchange for it.
    pub(crate) fn renaming(
        &self,
        call: &Call,
        name: &OsStr,
        new_parent: &CacheNode,
        new_name: &OsStr,
        flags: RenameFlags,
    ) -> Result<()> {
        call.patience.check()?;
        let moved = self.known_at(call, name)?;
        let target = new_parent.known_at(call, new_name)?;
        let rename = || {
            new_parent.changing_names(call, &[new_name], || {
                self.changing_names(call, &[name], || {
                    self.origin.rename(call, name, &*new_parent.origin, new_name, flags)
                })
            })
        };
        let rename_target = || match &target {
            None => rename(),
            Some((node, _)) if moved.as_ref().is_some_and(|(moved, _)| Arc::ptr_eq(moved, node)) => rename(),
            Some((node, attr)) if flags.contains(RenameFlags::EXCHANGE) || attr.nlink > 1 => {
                node.changing_meta_to(call, rename, |()| None)
            }
            Some((node, _)) => rename().inspect(|()| node.lost_last_name(call)),
        };
        match &moved {
            None => rename_target(),
            Some((node, _)) => node.changing_meta_to(call, rename_target, |()| None),
        }?;
        // What a directory's move changes below it, paths, is found anew by lookups.
        if let Ok(node) = new_parent.find(call, new_name)
            && let Ok(parent) = new_parent.arc()
        {
            node.0.found_at(parent, new_name);
        }
        Ok(())
    }

    /// Makes a change of this directory's names: what is remembered of them is forgotten before and after.
    pub(crate) fn changing_names<T>(
        &self,
        call: &Call,
        names: &[&OsStr],
        change: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        call.patience.check()?;
        self.directory.lock().forget(names, self.shared.next_stamp());
        let result = self.origin_result(change());
        self.directory.lock().forget(names, self.shared.next_stamp());
        // Its mtime moved.
        self.file.lock().forget_known(self.shared.next_stamp());
        result
    }
}
