//! Opens: found in their epoch or answered with ESTALE, given a backing or not, counted in and out.

use std::ffi::OsStr;
use std::sync::Arc;

use hither_vfs::locks::LockClass;
use hither_vfs::{Call, Created, Errno, Handle, OFlags, Result};

use super::namespace::ENTRY_TIMEOUTS;
use super::{Dispatcher, Flow};
use crate::backing::{Grant, Mismatch, OpenKind};
use crate::handles::OpenFile;
use crate::nodes::Known;
use crate::protocol::abi::{CreateIn, OPEN_KILL_SUIDGID, OpenIn, OpenOut, RELEASE_FLOCK_UNLOCK, ReleaseIn};
use crate::reply::Reply;

/// What of `open(2)`'s flags means something to a file system.
const FLAGS: OFlags = OFlags::RWMODE
    .union(OFlags::TRUNC)
    .union(OFlags::APPEND)
    .union(OFlags::DIRECT)
    .union(OFlags::SYNC)
    .union(OFlags::DSYNC)
    .union(OFlags::NOATIME)
    .union(OFlags::EXCL);

fn flags(bits: u32) -> OFlags {
    OFlags::from_bits_retain(bits).intersection(FLAGS)
}

impl Dispatcher {
    pub(super) fn open(
        &self,
        call: &Call,
        known: &Arc<Known>,
        args: &OpenIn,
        reply: &mut Reply,
    ) -> Result<Flow> {
        // O_EXCL without O_CREAT means nothing.
        let flags = flags(args.flags).difference(OFlags::EXCL);
        if args.open_flags & OPEN_KILL_SUIDGID != 0 {
            self.kill_set_ids(call, known)?;
        }
        let handle = match known.node.open(call, flags, known.epoch) {
            Ok(handle) => handle,
            Err(error) if error == Errno::STALE => return Err(self.stale(known)),
            Err(error) => return Err(error),
        };
        match self.grant(known, &handle, flags) {
            Ok(grant) => {
                let out = self.count_in(known.clone(), handle, grant, reply);
                reply.put(&out);
                if flags.contains(OFlags::TRUNC) {
                    self.notifier.changed_through(known, true);
                }
                Ok(Flow::Answer)
            }
            Err(Mismatch) => {
                tracing::warn!(
                    inode = known.identity.ino,
                    epoch = known.epoch,
                    "opens of one epoch differ in their backing; this is a bug of a layer, please report it"
                );
                self.nodes.retire(known);
                Err(self.stale(known))
            }
        }
    }

    /// The kernel is to look the name up again, and open what it finds then.
    fn stale(&self, known: &Known) -> hither_vfs::Error {
        known.supersede();
        self.notifier.superseded(known);
        self.counters.opens_stale.add(1);
        Errno::STALE.into()
    }

    fn grant(
        &self,
        known: &Known,
        handle: &Arc<dyn Handle>,
        flags: OFlags,
    ) -> std::result::Result<Grant, Mismatch> {
        let backing = if self.backings.is_on() { handle.backing() } else { None };
        self.backings.open(known, backing, flags, handle.keep_cache())
    }

    fn count_in(
        &self,
        known: Arc<Known>,
        handle: Arc<dyn Handle>,
        grant: Grant,
        reply: &mut Reply,
    ) -> OpenOut {
        match grant.kind {
            OpenKind::Passthrough => self.counters.opens_passthrough.add(1),
            OpenKind::Cached => self.counters.opens_cached.add(1),
            OpenKind::Direct => self.counters.opens_direct.add(1),
        }
        let fh = self.files.insert(Arc::new(OpenFile::new(known, handle, grant.kind)));
        reply.given.file = Some(fh);
        OpenOut { fh, open_flags: grant.flags, backing_id: grant.backing_id }
    }

    pub(super) fn create(
        &self,
        call: &Call,
        parent: &Known,
        name: &OsStr,
        args: &CreateIn,
        reply: &mut Reply,
    ) -> Result<Flow> {
        let flags = flags(args.flags);
        let created = parent.node.create(call, name, flags, args.mode)?;
        self.give_created(created, flags, reply)
    }

    pub(super) fn tmpfile(
        &self,
        call: &Call,
        parent: &Known,
        args: &CreateIn,
        reply: &mut Reply,
    ) -> Result<Flow> {
        let flags = flags(args.flags).difference(OFlags::TRUNC);
        let created = parent.node.tmpfile(call, flags, args.mode)?;
        self.give_created(created, flags, reply)
    }

    fn give_created(&self, created: Created, flags: OFlags, reply: &mut Reply) -> Result<Flow> {
        let Created { entry, handle } = created;
        let (mut known, mut entry_out) = self.entry_out(&entry, reply);
        let mut grant = self.grant(&known, &handle, flags);
        if grant.is_err() {
            // The file was there already, and open in a way that this open does not fit beside.
            self.nodes.retire(&known);
            (known, entry_out) = self.entry_out(&entry, reply);
            let given_before = reply.given.lookups.remove(0);
            self.nodes.forget(given_before, 1);
            grant = self.grant(&known, &handle, flags);
        }
        let grant = grant.map_err(|Mismatch| Errno::STALE)?;
        reply.put_timed(&entry_out, ENTRY_TIMEOUTS);
        let open_out = self.count_in(known, handle, grant, reply);
        reply.put(&open_out);
        Ok(Flow::Answer)
    }

    pub(super) fn release(&self, args: &ReleaseIn) -> Result<Flow> {
        if args.release_flags & RELEASE_FLOCK_UNLOCK != 0
            && let Some(file) = self.files.get(args.fh)
        {
            file.known.node.locks().forget(LockClass::Flock, args.lock_owner);
        }
        self.close_file(args.fh);
        Ok(Flow::Answer)
    }

    /// Counts an open file out. Its handle is closed when the last request that uses it ends.
    pub(super) fn close_file(&self, number: u64) {
        let Some(file) = self.files.remove(number) else { return };
        for owner in file.lockers_left() {
            file.known.node.locks().forget(LockClass::Posix, owner);
        }
        self.backings.close(&file.known, file.kind);
    }
}
