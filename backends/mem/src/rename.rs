//! Renaming: the checks of `renameat2(2)` in the order in which Linux makes them (`fs/namei.c`), then the change.

use std::ffi::OsStr;
use std::sync::Arc;

use hither_vfs::{Errno, RenameFlags, Result};

use crate::names::check_name;
use crate::node::{MemNode, State};

impl MemNode {
    pub(crate) fn rename_child(
        &self,
        name: &OsStr,
        new_parent: &MemNode,
        new_name: &OsStr,
        flags: RenameFlags,
    ) -> Result<()> {
        let known = RenameFlags::NOREPLACE | RenameFlags::EXCHANGE;
        if !known.contains(flags) || flags == known {
            return Err(Errno::INVAL.into());
        }
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        let _names = self.shared().names.lock();
        let (old, new) = self.both_ends(name, new_parent, new_name)?;
        if flags.contains(RenameFlags::NOREPLACE) && new.is_some() {
            return Err(Errno::EXIST.into());
        }
        if exchange && new.is_none() {
            return Err(Errno::NOENT.into());
        }
        if new_parent.is_within(&old) {
            return Err(Errno::INVAL.into());
        }
        if new.as_ref().is_some_and(|new| self.is_within(new)) {
            return Err(if exchange { Errno::INVAL } else { Errno::NOTEMPTY }.into());
        }
        match new {
            Some(new) if Arc::ptr_eq(&old, &new) => Ok(()),
            Some(new) if exchange => self.exchange(name, &old, new_parent, new_name, &new),
            Some(new) => {
                may_replace(&old, &new)?;
                self.move_child(name, &old, new_parent, new_name)
            }
            None => self.move_child(name, &old, new_parent, new_name),
        }
    }

    /// What the two names lead to.
    fn both_ends(
        &self,
        name: &OsStr,
        new_parent: &MemNode,
        new_name: &OsStr,
    ) -> Result<(Arc<MemNode>, Option<Arc<MemNode>>)> {
        for parent in [self, new_parent] {
            if parent.state().read().directory()?.is_dead() {
                return Err(Errno::NOENT.into());
            }
        }
        check_name(name)?;
        check_name(new_name)?;
        let old = self.child(name)?;
        Ok((old, new_parent.child(new_name).ok()))
    }

    /// Whether this directory is `ancestor` or lies below it.
    fn is_within(&self, ancestor: &Arc<MemNode>) -> bool {
        let mut at = self.me().upgrade();
        while let Some(node) = at {
            if Arc::ptr_eq(&node, ancestor) {
                return true;
            }
            at = node.state().read().directory().ok().and_then(|directory| directory.parent().upgrade());
        }
        false
    }

    fn move_child(
        &self,
        name: &OsStr,
        old: &Arc<MemNode>,
        new_parent: &MemNode,
        new_name: &OsStr,
    ) -> Result<()> {
        let now = self.shared().clock.tick();
        let mut dirs = Dirs::lock(self, new_parent);
        dirs.from().directory_mut()?.remove(name);
        let replaced = dirs.to().directory_mut()?.put(new_name, old.clone());
        if old.is_directory() {
            dirs.from().nlink -= 1;
            dirs.to().nlink += 1;
        }
        if replaced.as_ref().is_some_and(|replaced| replaced.is_directory()) {
            dirs.to().nlink -= 1;
        }
        dirs.from().changed(now);
        dirs.to().changed(now);
        if let Some(replaced) = &replaced {
            replaced.lose_name(now);
        }
        old.moved_to(new_parent, now);
        Ok(())
    }

    fn exchange(
        &self,
        name: &OsStr,
        old: &Arc<MemNode>,
        new_parent: &MemNode,
        new_name: &OsStr,
        new: &Arc<MemNode>,
    ) -> Result<()> {
        let now = self.shared().clock.tick();
        let mut dirs = Dirs::lock(self, new_parent);
        dirs.from().directory_mut()?.put(name, new.clone());
        dirs.to().directory_mut()?.put(new_name, old.clone());
        if old.is_directory() {
            dirs.from().nlink -= 1;
            dirs.to().nlink += 1;
        }
        if new.is_directory() {
            dirs.to().nlink -= 1;
            dirs.from().nlink += 1;
        }
        dirs.from().changed(now);
        dirs.to().changed(now);
        old.moved_to(new_parent, now);
        new.moved_to(self, now);
        Ok(())
    }

    fn moved_to(&self, parent: &MemNode, now: hither_vfs::Timestamp) {
        let mut state = self.state().write();
        state.ctime = now;
        if let Ok(directory) = state.directory_mut() {
            directory.set_parent(parent.me().clone());
        }
    }
}

/// The states of the directory that a name leaves and of the one that it comes to, which may be the same.
struct Dirs<'a> {
    from: hither_rt::sync::RwLockWriteGuard<'a, State>,
    to: Option<hither_rt::sync::RwLockWriteGuard<'a, State>>,
}

impl<'a> Dirs<'a> {
    /// Both are locked together, so that no lookup sees the name in neither or in both.
    fn lock(from: &'a MemNode, to: &'a MemNode) -> Self {
        let same = std::ptr::eq(from, to);
        Dirs { from: from.state().write(), to: (!same).then(|| to.state().write()) }
    }

    fn from(&mut self) -> &mut State {
        &mut self.from
    }

    fn to(&mut self) -> &mut State {
        self.to.as_deref_mut().unwrap_or(&mut self.from)
    }
}

/// A directory replaces only an empty directory, anything else only what is no directory.
fn may_replace(old: &MemNode, new: &MemNode) -> Result<()> {
    match (old.is_directory(), new.is_directory()) {
        (true, false) => Err(Errno::NOTDIR.into()),
        (false, true) => Err(Errno::ISDIR.into()),
        (true, true) if !new.is_empty_directory()? => Err(Errno::NOTEMPTY.into()),
        _ => Ok(()),
    }
}
