//! Open directories.

use std::ffi::OsStr;
use std::sync::Arc;

use hither_vfs::{Call, DirEntry, DirHandle, DirSink, Errno, FileKind, Result};

use crate::attrs::atime_is_due;
use crate::directory::{DOT, DOT_DOT};
use crate::node::MemNode;

/// Entries taken out under the directory's lock at a time: the sink must find the directory unlocked.
const BATCH: usize = 128;

/// An open of a directory.
struct MemDirHandle {
    node: Arc<MemNode>,
}

impl MemNode {
    pub(crate) fn open_listing(&self) -> Result<Arc<dyn DirHandle>> {
        if !self.is_directory() {
            return Err(Errno::NOTDIR.into());
        }
        let node = self.me().upgrade().ok_or(Errno::STALE)?;
        Ok(Arc::new(MemDirHandle { node }))
    }
}

impl MemDirHandle {
    /// Gives `.` or `..`; whether the sink wants more.
    fn dot(&self, position: u64, sink: &mut dyn DirSink) -> Result<bool> {
        let (name, ino) = if position == DOT {
            (".", self.node.ino())
        } else {
            let parent = self.node.state().read().directory()?.parent().upgrade();
            ("..", parent.map_or(self.node.ino(), |parent| parent.ino()))
        };
        let entry = DirEntry { name: OsStr::new(name), ino, kind: FileKind::Directory, next: position };
        Ok(sink.entry(entry, None))
    }
}

impl DirHandle for MemDirHandle {
    fn read(&self, _: &Call, from: u64, plus: bool, sink: &mut dyn DirSink) -> Result<()> {
        // As Linux has it: a removed directory lists nothing, not even itself.
        let state = self.node.state().read();
        let (dead, note) = (state.directory()?.is_dead(), atime_is_due(&state));
        drop(state);
        if dead {
            return Err(Errno::NOENT.into());
        }
        if note {
            self.node.accessed();
        }
        let mut at = from;
        while at < DOT_DOT {
            if !self.dot(at + 1, sink)? {
                return Ok(());
            }
            at += 1;
        }
        loop {
            let batch = self.node.state().read().directory()?.behind(at, BATCH);
            let Some((last, _)) = batch.last() else { return Ok(()) };
            at = *last;
            for (position, child) in batch {
                let found = plus.then(|| child.node.entry());
                let (ino, kind) = (child.node.ino(), child.node.kind());
                if !sink.entry(DirEntry { name: &child.name, ino, kind, next: position }, found) {
                    return Ok(());
                }
            }
        }
    }

    fn fsync(&self, _: &Call, _: bool) -> Result<()> {
        Ok(())
    }
}
