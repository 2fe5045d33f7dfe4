//! Open directories and their listing.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use hither_vfs::{Call, DirEntry, DirSink, Entry, Errno, Result};

use super::namespace::ENTRY_TIMEOUTS;
use super::{Dispatcher, Flow};
use crate::handles::OpenDir;
use crate::nodes::Known;
use crate::protocol::abi::{EntryOut, FSYNC_FDATASYNC, FsyncIn, OpenOut, ReadIn, ReleaseIn};
use crate::protocol::encode;
use crate::reply::Reply;

impl Dispatcher {
    pub(super) fn opendir(&self, call: &Call, known: &Known, reply: &mut Reply) -> Result<Flow> {
        let handle = known.node.opendir(call)?;
        let fh = self.dirs.insert(Arc::new(OpenDir { handle }));
        reply.given.dir = Some(fh);
        reply.put(&OpenOut { fh, open_flags: 0, backing_id: 0 });
        Ok(Flow::Answer)
    }

    pub(super) fn readdir(&self, call: &Call, args: &ReadIn, plus: bool, reply: &mut Reply) -> Result<Flow> {
        let dir = self.dir(args.fh)?;
        let mut sink = Dirents { dispatcher: self, reply, room: args.size as usize, plus, is_full: false };
        let result = dir.handle.read(call, args.offset, plus, &mut sink);
        let (is_full, is_empty) = (sink.is_full, sink.reply.head_mut().is_empty());
        match result {
            Ok(()) if is_empty && is_full => Err(Errno::INVAL.into()),
            Ok(()) => Ok(Flow::Answer),
            // What was listed so far is given; the error comes again for the next entry.
            Err(error) if !is_empty && !error.is_would_block() => {
                tracing::debug!(%error, "a listing ends early");
                Ok(Flow::Answer)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn releasedir(&self, args: &ReleaseIn) -> Result<Flow> {
        drop(self.dirs.remove(args.fh));
        Ok(Flow::Answer)
    }

    pub(super) fn fsyncdir(&self, call: &Call, args: &FsyncIn) -> Result<Flow> {
        let dir = self.dir(args.fh)?;
        dir.handle.fsync(call, args.fsync_flags & FSYNC_FDATASYNC != 0)?;
        Ok(Flow::Answer)
    }
}

/// Writes entries into the answer, as many as the kernel has room for.
struct Dirents<'a> {
    dispatcher: &'a Dispatcher,
    reply: &'a mut Reply,
    room: usize,
    plus: bool,
    is_full: bool,
}

impl DirSink for Dirents<'_> {
    fn entry(&mut self, entry: DirEntry<'_>, found: Option<Entry>) -> bool {
        let name = entry.name.as_bytes();
        let begin = self.reply.head_mut().len();
        if self.is_full || begin + encode::dirent_size(name.len(), self.plus) > self.room {
            self.is_full = true;
            return false;
        }
        let (mut ino, mut kind) = (entry.ino, entry.kind);
        // Without a node the kernel takes the name alone (node id 0).
        let plus = self.plus.then(|| match &found {
            Some(found) => {
                (ino, kind) = (found.attr.ino, found.attr.kind());
                self.dispatcher.entry_out(found, self.reply).1
            }
            None => EntryOut::default(),
        });
        encode::dirent(self.reply.head_mut(), plus.as_ref(), ino, entry.next, kind, name);
        if plus.is_some() {
            self.reply.mark_timeouts(begin + ENTRY_TIMEOUTS.start..begin + ENTRY_TIMEOUTS.end);
        }
        true
    }
}
