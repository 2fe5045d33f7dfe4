//! Names: found, made, moved, removed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use hither_rt::clock::Duration;
use hither_vfs::{Call, Entry, Errno, FileKind, RenameFlags, Result};

use super::{Dispatcher, Flow};
use crate::nodes::Known;
use crate::protocol::abi::{EntryOut, MkdirIn, MknodIn};
use crate::protocol::encode;
use crate::reply::Reply;

/// Where in `struct fuse_entry_out` the timeouts lie.
pub(super) const ENTRY_TIMEOUTS: std::ops::Range<usize> = 16..40;

impl Dispatcher {
    pub(super) fn lookup(
        &self,
        call: &Call,
        parent: &Known,
        name: &OsStr,
        reply: &mut Reply,
    ) -> Result<Flow> {
        let timeout = self.capabilities.timeouts.entry;
        match parent.node.lookup(call, name) {
            Ok(entry) => {
                self.give_entry(&entry, reply);
                Ok(Flow::Answer)
            }
            Err(error) if error == Errno::NOENT && timeout > Duration::ZERO => {
                reply.put_timed(&encode::no_entry(timeout), ENTRY_TIMEOUTS);
                Ok(Flow::Answer)
            }
            Err(error) => Err(error),
        }
    }

    /// What the kernel is told of an entry; it counts as looked up once more by this.
    pub(super) fn entry_out(&self, entry: &Entry, reply: &mut Reply) -> (Arc<Known>, EntryOut) {
        let (known, before) = self.nodes.look_up(entry);
        if let Some(before) = before {
            self.notifier.superseded(&before);
        }
        reply.given.lookups.push(known.id);
        let out = self.entry_out_of(&known, entry);
        (known, out)
    }

    pub(super) fn entry_out_of(&self, known: &Known, entry: &Entry) -> EntryOut {
        encode::entry(known.id, &entry.attr, self.capabilities.timeouts.entry, self.attr_timeout(known))
    }

    pub(super) fn give_entry(&self, entry: &Entry, reply: &mut Reply) -> Arc<Known> {
        let (known, out) = self.entry_out(entry, reply);
        reply.put_timed(&out, ENTRY_TIMEOUTS);
        known
    }

    pub(super) fn readlink(&self, call: &Call, known: &Known, reply: &mut Reply) -> Result<Flow> {
        let target = known.node.readlink(call)?;
        reply.put_bytes(target.as_bytes());
        Ok(Flow::Answer)
    }

    pub(super) fn symlink(
        &self,
        call: &Call,
        parent: &Known,
        name: &OsStr,
        target: &OsStr,
        reply: &mut Reply,
    ) -> Result<Flow> {
        let entry = parent.node.symlink(call, name, target)?;
        self.give_entry(&entry, reply);
        Ok(Flow::Answer)
    }

    pub(super) fn mknod(
        &self,
        call: &Call,
        parent: &Known,
        name: &OsStr,
        args: &MknodIn,
        reply: &mut Reply,
    ) -> Result<Flow> {
        let entry = parent.node.mknod(call, name, args.mode, encode::unpack_dev(args.rdev))?;
        self.give_entry(&entry, reply);
        Ok(Flow::Answer)
    }

    pub(super) fn mkdir(
        &self,
        call: &Call,
        parent: &Known,
        name: &OsStr,
        args: &MkdirIn,
        reply: &mut Reply,
    ) -> Result<Flow> {
        let entry = parent.node.mkdir(call, name, args.mode)?;
        self.give_entry(&entry, reply);
        Ok(Flow::Answer)
    }

    pub(super) fn link(
        &self,
        call: &Call,
        parent: &Known,
        name: &OsStr,
        known: &Known,
        reply: &mut Reply,
    ) -> Result<Flow> {
        let entry = parent.node.link(call, name, &*known.node)?;
        let given = self.give_entry(&entry, reply);
        self.notifier.changed_through(&given, false);
        Ok(Flow::Answer)
    }

    pub(super) fn unlink(&self, call: &Call, parent: &Known, name: &OsStr, kind: FileKind) -> Result<Flow> {
        let losing = self.about_to_lose_a_name(call, parent, name);
        match kind {
            FileKind::Directory => parent.node.rmdir(call, name)?,
            _ => parent.node.unlink(call, name)?,
        }
        self.forget_attrs(&losing);
        Ok(Flow::Answer)
    }

    pub(super) fn rename(
        &self,
        call: &Call,
        (parent, name): (&Known, &OsStr),
        (new_parent, new_name): (&Known, &OsStr),
        flags: u32,
    ) -> Result<Flow> {
        let flags = RenameFlags::from_bits(flags).ok_or(Errno::INVAL)?;
        if flags.contains(RenameFlags::EXCHANGE) && !self.capabilities.rename_exchange {
            return Err(Errno::INVAL.into());
        }
        let losing = self.about_to_lose_a_name(call, new_parent, new_name);
        parent.node.rename(call, name, &*new_parent.node, new_name, flags)?;
        self.forget_attrs(&losing);
        Ok(Flow::Answer)
    }

    /// The ids of an inode that has several and is about to lose a name: the kernel corrects the link count of one.
    fn about_to_lose_a_name(&self, call: &Call, parent: &Known, name: &OsStr) -> Vec<Arc<Known>> {
        if !self.nodes.has_siblings() {
            return Vec::new();
        }
        // If it cannot be had, the link count shown through the other ids is old until their timeout.
        let Ok(entry) = parent.node.lookup(call, name) else { return Vec::new() };
        let ids = self.nodes.ids_of(&entry.node.identity());
        if ids.len() > 1 { ids } else { Vec::new() }
    }

    fn forget_attrs(&self, ids: &[Arc<Known>]) {
        for known in ids {
            self.notifier.forget_attr(known);
        }
    }
}
