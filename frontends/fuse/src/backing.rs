//! Which opens the kernel serves by itself. The rules are the kernel's (`fs/fuse/iomode.c`, tested): while one open of
//! a node id is passthrough, all its opens are, with one backing id; while one goes through the page cache, none is.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use hither_rt::sync::{Mutex, RwLock};
use hither_vfs::{Backing, Errno, OFlags};

use crate::nodes::Known;
use crate::protocol::abi::fopen;

/// Backing ids of files that are not open now; each keeps a file open in the kernel.
const IDLE_MAX: usize = 4096;

/// Makes and ends backing ids.
pub(crate) trait BackingDevice: Send + Sync {
    /// `BACKING_OPEN`.
    fn open(&self, file: BorrowedFd<'_>) -> io::Result<i32>;
    /// `BACKING_CLOSE`.
    fn close(&self, id: i32) -> io::Result<()>;
}

/// A backing id. Ends with its last user.
struct BackingId {
    id: i32,
    file: Weak<OwnedFd>,
    device: Arc<dyn BackingDevice>,
    count: Arc<AtomicUsize>,
}

impl Drop for BackingId {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        if let Err(error) = self.device.close(self.id) {
            tracing::debug!(id = self.id, %error, "cannot close a backing id");
        }
    }
}

/// How the kernel treats an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenKind {
    /// Reads and writes the backing by itself.
    Passthrough,
    /// Through the page cache.
    Cached,
    /// Straight to us (`O_DIRECT`).
    Direct,
}

/// The opens of a node id.
#[derive(Default)]
pub(crate) struct Opens {
    passthrough: u32,
    cached: u32,
    direct: u32,
    backing: Option<Box<BackingId>>,
    /// The copy was evicted: no id is kept for later opens.
    evicted: bool,
    /// In the queue of idle ids, and opened again since it was put there.
    queued: bool,
    reused: bool,
}

impl Opens {
    fn count(&mut self, kind: OpenKind) -> &mut u32 {
        match kind {
            OpenKind::Passthrough => &mut self.passthrough,
            OpenKind::Cached => &mut self.cached,
            OpenKind::Direct => &mut self.direct,
        }
    }
}

/// What to tell the kernel of an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) kind: OpenKind,
    /// `FOPEN_*`
    pub(crate) flags: u32,
    /// The backing id; 0 without one.
    pub(crate) backing_id: i32,
}

/// An open that cannot live beside those of its node id: it needs a new id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch;

/// Gives opens their kind.
pub(crate) struct Backings {
    device: Option<Arc<dyn BackingDevice>>,
    /// Why opens have no backing though the file system gave one; empty while they do.
    why_not: RwLock<String>,
    idle: Mutex<VecDeque<Weak<Known>>>,
    count: Arc<AtomicUsize>,
    /// Opens that had a backing to give and went through the page cache.
    unbacked: AtomicUsize,
}

impl Backings {
    /// `device` is `None` where no open gets a backing, for the reason `why_not`.
    pub(crate) fn new(device: Option<Arc<dyn BackingDevice>>, why_not: &str) -> Self {
        Backings {
            device,
            why_not: RwLock::new(why_not.to_owned()),
            idle: Mutex::default(),
            count: Arc::default(),
            unbacked: AtomicUsize::new(0),
        }
    }

    /// Whether opens can get a backing.
    pub(crate) fn is_on(&self) -> bool {
        self.device.is_some()
    }

    /// Why the last open that could have had a backing did not get one.
    pub(crate) fn why_not(&self) -> String {
        self.why_not.read().clone()
    }

    /// Ids held now, and opens that went without though they had a backing.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.count.load(Ordering::Relaxed), self.unbacked.load(Ordering::Relaxed))
    }

    /// Counts an open of `known` in and says how the kernel shall treat it. [`Backings::close`] counts it out.
    pub(crate) fn open(
        &self,
        known: &Known,
        backing: Option<Backing>,
        flags: OFlags,
        keep_cache: bool,
    ) -> Result<Grant, Mismatch> {
        let mut opens = known.opens.lock();
        let backing_id = match (&self.device, backing) {
            (Some(device), Some(backing)) => self.id_for(device, &mut opens, &backing)?,
            _ => None,
        };
        if let Some(backing_id) = backing_id {
            opens.passthrough += 1;
            opens.reused = true;
            if !flags.intersection(OFlags::RWMODE).is_empty() {
                known.set_written_by_kernel();
            }
            return Ok(Grant { kind: OpenKind::Passthrough, flags: fopen::PASSTHROUGH, backing_id });
        }
        if opens.passthrough > 0 {
            return Err(Mismatch);
        }
        let (kind, mut fopen_flags) = if flags.contains(OFlags::DIRECT) {
            (OpenKind::Direct, fopen::DIRECT_IO | fopen::PARALLEL_DIRECT_WRITES)
        } else {
            (OpenKind::Cached, 0)
        };
        if keep_cache {
            fopen_flags |= fopen::KEEP_CACHE;
        }
        *opens.count(kind) += 1;
        Ok(Grant { kind, flags: fopen_flags, backing_id: 0 })
    }

    /// The one id of `opens`, made if there is none yet; `None` if this open has to go without.
    fn id_for(
        &self,
        device: &Arc<dyn BackingDevice>,
        opens: &mut Opens,
        backing: &Backing,
    ) -> Result<Option<i32>, Mismatch> {
        if opens.cached + opens.direct > 0 {
            self.unbacked.fetch_add(1, Ordering::Relaxed);
            return Ok(None);
        }
        if let Some(known) = &opens.backing {
            // Within one epoch the backing is one file, also if it was opened anew meanwhile.
            let is_other = known.file.upgrade().is_some_and(|file| !Arc::ptr_eq(&file, &backing.0));
            if !is_other {
                return Ok(Some(known.id));
            }
            if opens.passthrough > 0 {
                return Err(Mismatch);
            }
            opens.backing = None;
        }
        match device.open(backing.0.as_fd()) {
            Ok(id) => {
                self.count.fetch_add(1, Ordering::Relaxed);
                let file = Arc::downgrade(&backing.0);
                let (device, count) = (device.clone(), self.count.clone());
                opens.backing = Some(Box::new(BackingId { id, file, device, count }));
                Ok(Some(id))
            }
            Err(error) => {
                self.refused(&error);
                Ok(None)
            }
        }
    }

    /// Keeps the reason for `status`, and says it once.
    fn refused(&self, error: &io::Error) {
        let why = match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::PERM) => "the kernel wants CAP_SYS_ADMIN for it".to_owned(),
            Some(Errno::LOOP) => "the store's file system is itself stacked (overlayfs, FUSE)".to_owned(),
            _ => error.to_string(),
        };
        self.unbacked.fetch_add(1, Ordering::Relaxed);
        let mut why_not = self.why_not.write();
        if *why_not != why {
            tracing::warn!("an open goes through the page cache instead of straight to its copy: {why}");
            *why_not = why;
        }
    }

    /// Counts an open out.
    pub(crate) fn close(&self, known: &Arc<Known>, kind: OpenKind) {
        let mut opens = known.opens.lock();
        let count = opens.count(kind);
        *count = count.saturating_sub(1);
        if opens.passthrough > 0 || opens.backing.is_none() {
            return;
        }
        if opens.evicted {
            let ended = opens.backing.take();
            drop(opens);
            drop(ended);
            return;
        }
        if !std::mem::replace(&mut opens.queued, true) {
            opens.reused = false;
            drop(opens);
            let mut idle = self.idle.lock();
            idle.push_back(Arc::downgrade(known));
            self.trim(&mut idle);
        }
    }

    /// Ends the ids that were idle for longest (the clock algorithm: one that was used again gets another round).
    fn trim(&self, idle: &mut VecDeque<Weak<Known>>) {
        let mut rounds = 2 * idle.len();
        while idle.len() > IDLE_MAX && rounds > 0 {
            rounds -= 1;
            let Some(oldest) = idle.pop_front() else { return };
            let Some(known) = oldest.upgrade() else { continue };
            let mut opens = known.opens.lock();
            if opens.passthrough > 0 {
                opens.queued = false;
            } else if std::mem::take(&mut opens.reused) {
                idle.push_back(oldest);
            } else {
                opens.queued = false;
                opens.backing = None;
            }
        }
    }

    /// The copy behind `known` was evicted: its id ends now, or with its last open.
    pub(crate) fn evict(&self, known: &Known) {
        let mut opens = known.opens.lock();
        opens.evicted = true;
        let ended = if opens.passthrough == 0 { opens.backing.take() } else { None };
        drop(opens);
        drop(ended);
    }

    /// The mount is gone, `known` with it: its id ends, whether its opens were closed or not.
    pub(crate) fn end(&self, known: &Known) {
        let ended = known.opens.lock().backing.take();
        drop(ended);
    }
}

#[cfg(test)]
mod tests;
