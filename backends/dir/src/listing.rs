//! An open directory.
//!
//! Entries are read from the host in batches and handed out one by one; what a reader leaves of a batch waits for its
//! next call. Going on where the last call ended asks for no seek, on which file systems that hash their names may
//! repeat or skip entries of equal hash. Any other position is sought, and read anew.

use std::ffi::OsStr;
use std::mem::{self, MaybeUninit};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use hither_rt::sync::Mutex;
use hither_vfs::{Call, DirEntry, DirHandle, DirSink, Entry, FileKind, Result};
use rustix::fs::{FileType, RawDir, SeekFrom};

use crate::attr;
use crate::node::DirNode;

/// Bytes of one batch as the host gives it: several hundred entries.
const BATCH: usize = 32 * 1024;

/// An open directory.
pub(crate) struct Listing {
    node: Arc<DirNode>,
    dir: OwnedFd,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The descriptor's own position.
    at: u64,
    /// What was read and not handed out.
    left: Batch,
}

/// Entries that follow each other.
#[derive(Default)]
struct Batch {
    /// The position of the first.
    from: u64,
    entries: Vec<Raw>,
    /// The first that was not handed out.
    first: usize,
    names: Vec<u8>,
}

/// An entry as the host gives it.
struct Raw {
    name: Range<usize>,
    ino: u64,
    kind: FileType,
    next: u64,
}

impl Listing {
    pub fn new(node: Arc<DirNode>, dir: OwnedFd) -> Self {
        Listing { node, dir, state: Mutex::default() }
    }

    /// The entries from a position on; none at the end.
    fn batch(&self, from: u64) -> Result<Batch> {
        let mut state = self.state.lock();
        // Position 0 asks for a fresh look (`rewinddir`).
        let left = mem::take(&mut state.left);
        if from != 0 && left.from == from && left.first < left.entries.len() {
            return Ok(left);
        }
        if state.at != from || from == 0 {
            rustix::fs::seek(&self.dir, SeekFrom::Start(from))?;
            state.at = from;
        }
        let batch = Batch::read(&self.dir, from)?;
        if let Some(last) = batch.entries.last() {
            state.at = last.next;
        }
        Ok(batch)
    }

    /// Hands out an entry; false if it was not taken.
    fn give(&self, call: &Call, batch: &Batch, raw: &Raw, plus: bool, sink: &mut dyn DirSink) -> bool {
        let name = OsStr::from_bytes(&batch.names[raw.name.clone()]);
        let is_dot = name == "." || name == "..";
        let mut kind = kind(raw.kind);
        let mut found = None;
        if is_dot {
            kind = Some(FileKind::Directory);
        } else if plus {
            found = self.look_up(call, name);
        }
        if let Some(entry) = &found {
            kind = Some(entry.attr.kind());
        }
        let asking = self.node.shared().asking;
        // Some file systems do not say; a name that is gone by now is any file.
        let asked =
            || asking.of_name(self.dir.as_fd(), name).map_or(FileKind::Regular, |stat| attr::kind_of(&stat));
        let ino = match &found {
            Some(entry) => entry.attr.ino,
            // What is above the root is none of the reader's business.
            None if name == ".." && self.node.is_root() => self.node.ino(),
            None => self.node.ino_of_entry(raw.ino),
        };
        sink.entry(DirEntry { name, ino, kind: kind.unwrap_or_else(asked), next: raw.next }, found)
    }

    fn look_up(&self, call: &Call, name: &OsStr) -> Option<Entry> {
        let (node, stat) = self.node.find(call, self.dir.as_fd(), name).ok()?;
        Some(node.entry(&stat))
    }
}

impl Batch {
    fn read(dir: &OwnedFd, from: u64) -> Result<Self> {
        let mut room = [MaybeUninit::uninit(); BATCH];
        let mut batch = Batch { from, ..Batch::default() };
        let mut host = RawDir::new(dir, &mut room);
        while let Some(entry) = host.next() {
            let entry = entry?;
            let start = batch.names.len();
            batch.names.extend(entry.file_name().to_bytes());
            batch.entries.push(Raw {
                name: start..batch.names.len(),
                ino: entry.ino(),
                kind: entry.file_type(),
                next: entry.next_entry_cookie(),
            });
            if host.is_buffer_empty() {
                break;
            }
        }
        Ok(batch)
    }
}

impl DirHandle for Listing {
    fn read(&self, call: &Call, from: u64, plus: bool, sink: &mut dyn DirSink) -> Result<()> {
        self.node.shared().admit(call)?;
        let mut from = from;
        loop {
            // Taken out, not locked: looking names up may take long, and the sink is anybody's.
            let mut batch = self.batch(from)?;
            while let Some(raw) = batch.entries.get(batch.first) {
                if !self.give(call, &batch, raw, plus, sink) {
                    self.state.lock().left = batch;
                    return Ok(());
                }
                batch.from = raw.next;
                batch.first += 1;
            }
            if batch.entries.is_empty() {
                return Ok(());
            }
            from = batch.from;
        }
    }

    fn fsync(&self, call: &Call, datasync: bool) -> Result<()> {
        self.node.shared().admit(call)?;
        if datasync {
            rustix::fs::fdatasync(&self.dir)?
        } else {
            rustix::fs::fsync(&self.dir)?
        }
        Ok(())
    }
}

fn kind(of: FileType) -> Option<FileKind> {
    match of {
        FileType::RegularFile => Some(FileKind::Regular),
        FileType::Directory => Some(FileKind::Directory),
        FileType::Symlink => Some(FileKind::Symlink),
        FileType::Fifo => Some(FileKind::Fifo),
        FileType::Socket => Some(FileKind::Socket),
        FileType::CharacterDevice => Some(FileKind::CharDevice),
        FileType::BlockDevice => Some(FileKind::BlockDevice),
        FileType::Unknown => None,
    }
}
