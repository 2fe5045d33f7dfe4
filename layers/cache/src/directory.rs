//! What is remembered of a directory: names that were looked up, and the listing. Pure but for the clock.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Weak};

use hither_rt::clock::{Duration, Instant};
use hither_vfs::FileKind;

use crate::node::CacheNode;

/// Names of nodes that are gone are swept when there are twice as many as after the last sweep, at least this many.
const SWEEP_MIN: usize = 64;

/// See the module.
#[derive(Default)]
pub(crate) struct Directory {
    names: HashMap<OsString, Name>,
    sweep_at: usize,
    listing: Option<Arc<Listing>>,
    /// The point of the last local change.
    last_change: u64,
}

struct Name {
    node: Weak<CacheNode>,
    at: Instant,
}

/// All entries of a directory, in the origin's order, `.` and `..` among them.
pub(crate) struct Listing {
    pub(crate) entries: Vec<Listed>,
    /// When it was asked for.
    pub(crate) at: Instant,
}

/// One entry.
#[derive(Clone)]
pub(crate) struct Listed {
    pub(crate) name: OsString,
    pub(crate) ino: u64,
    pub(crate) kind: FileKind,
}

impl Directory {
    /// The node that a name led to less than `window` ago, if anyone still knows it.
    pub(crate) fn name(&self, name: &OsStr, now: Instant, window: Duration) -> Option<Arc<CacheNode>> {
        let known = self.names.get(name)?;
        if now.saturating_duration_since(known.at) > window {
            return None;
        }
        known.node.upgrade()
    }

    /// The origin, asked at `stamp`, led a name to that node.
    pub(crate) fn found(&mut self, name: &OsStr, node: &Arc<CacheNode>, stamp: u64, now: Instant) {
        if stamp < self.last_change {
            return;
        }
        let value = Name { node: Arc::downgrade(node), at: now };
        if let Some(known) = self.names.get_mut(name) {
            *known = value;
            return;
        }
        if self.names.len() >= self.sweep_at.max(SWEEP_MIN) {
            self.names.retain(|_, name| name.node.strong_count() > 0);
            self.sweep_at = self.names.len() * 2;
        }
        self.names.insert(name.to_owned(), value);
    }

    /// Names change here, at `stamp`.
    pub(crate) fn forget(&mut self, names: &[&OsStr], stamp: u64) {
        self.last_change = stamp;
        self.listing = None;
        for name in names {
            self.names.remove(*name);
        }
    }

    /// The listing, if it was asked for less than `window` ago.
    pub(crate) fn listing(&self, now: Instant, window: Duration) -> Option<Arc<Listing>> {
        self.listing.as_ref().filter(|listing| now.saturating_duration_since(listing.at) <= window).cloned()
    }

    /// Whether that listing is the one that is remembered: nothing was changed here since.
    pub(crate) fn is_listed_as(&self, listing: &Arc<Listing>) -> bool {
        self.listing.as_ref().is_some_and(|known| Arc::ptr_eq(known, listing))
    }

    /// Keeps a listing that was asked for at `stamp`.
    pub(crate) fn listed(&mut self, listing: Option<Arc<Listing>>, stamp: u64) {
        if stamp >= self.last_change {
            self.listing = listing;
        }
    }
}
