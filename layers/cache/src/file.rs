//! The state of one regular file: direct, filling, or backed by a copy; see `docs/decisions/0003-read-cache.md`.
//!
//! Pure but for the clock: nothing here touches origin or store, and what must happen outside is returned.

use std::sync::Arc;
use std::time::Duration;

use hither_rt::clock::Instant;
use hither_vfs::{Attr, Epoch};

use crate::fill::Fill;
use crate::record::{Key, Serial};
use crate::version::Version;

/// An open that has to look the file up again must find it unbacked, where it is not refused: the kernel retries only
/// once.
pub(crate) const HOLD_DIRECT: Duration = Duration::from_secs(2);

/// The copy that a file is backed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backing {
    pub(crate) key: Key,
    pub(crate) serial: Serial,
    pub(crate) version: Version,
}

/// Where reads of the file go.
#[derive(Clone, Default)]
pub(crate) enum Mode {
    /// To the origin.
    #[default]
    Direct,
    /// Into a fill.
    Filling(Arc<Fill>),
    /// To a copy.
    Backed(Backing),
}

/// What the origin said last.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    pub(crate) attr: Attr,
    pub(crate) at: Instant,
}

/// See the module.
#[derive(Default)]
pub(crate) struct FileState {
    pub(crate) mode: Mode,
    /// Opens for writing.
    pub(crate) writers: u64,
    /// All opens.
    pub(crate) opens: u64,
    /// Those of them that show a copy's version, whatever the file is now.
    pub(crate) backed_opens: u64,
    pub(crate) known: Option<Known>,
    /// The point of the last local change of the bytes.
    last_change: u64,
    /// Changes of the bytes under way.
    changing: u64,
    hold_direct_until: Option<Instant>,
    /// The version whose pages the kernel may have under epoch 0.
    paged: Option<Version>,
}

/// What an open may do.
pub(crate) enum Admission {
    /// Through the copy of that serial, if it still stands: the file was unbacked after the lookup, but not changed.
    /// Otherwise look up again.
    Left(Serial),
    /// Through the copy, which the front end may hand out.
    Backed(Backing),
    /// By the daemon, from what the file is at each read.
    Served,
    /// As `Served`, but nothing is known yet: a fill may begin.
    Direct,
}

/// What was taken from a file and must be let go outside its lock.
#[derive(Default)]
pub(crate) struct Dropped {
    pub(crate) fill: Option<Arc<Fill>>,
    pub(crate) copy: Option<Backing>,
}

impl FileState {
    /// The epoch that a lookup gives now.
    pub(crate) fn epoch(&self) -> Epoch {
        match &self.mode {
            Mode::Backed(backing) => backing.serial.0,
            Mode::Direct | Mode::Filling(_) => 0,
        }
    }

    /// Whether a copy may back the file.
    pub(crate) fn may_be_backed(&self, now: Instant) -> bool {
        self.writers == 0 && self.changing == 0 && self.hold_direct_until.is_none_or(|until| now >= until)
    }

    /// An answer of the origin that was asked for at `stamp`. `copy` is the copy that the index has of the file. Tells
    /// what that ends: a copy of another version, a fill of another version.
    pub(crate) fn observe(
        &mut self,
        stamp: u64,
        attr: &Attr,
        copy: Option<Backing>,
        now: Instant,
    ) -> Dropped {
        let mut dropped = Dropped::default();
        if stamp < self.last_change || self.changing > 0 {
            return dropped;
        }
        self.known = Some(Known { attr: *attr, at: now });
        let version = Version::of(attr);
        if self.is_direct() {
            dropped = self.unback();
        }
        match &self.mode {
            Mode::Backed(backing) if backing.version != version => {
                dropped.copy = Some(*backing);
                self.mode = Mode::Direct;
            }
            Mode::Filling(fill) if fill.version != version => {
                dropped.fill = Some(fill.clone());
                self.mode = Mode::Direct;
            }
            Mode::Direct => match copy {
                Some(copy) if copy.version != version => dropped.copy = Some(copy),
                Some(copy) if self.may_be_backed(now) => self.back(copy),
                _ => {}
            },
            _ => {}
        }
        dropped
    }

    /// Whether reads go to the origin: also those of a fill that was given up.
    pub(crate) fn is_direct(&self) -> bool {
        match &self.mode {
            Mode::Direct => true,
            Mode::Filling(fill) => fill.is_abandoned(),
            Mode::Backed(_) => false,
        }
    }

    /// The copy backs the file from now on.
    pub(crate) fn back(&mut self, copy: Backing) {
        self.mode = Mode::Backed(copy);
    }

    /// What an open for reading at epoch `at` may do. Epoch 0 is never refused.
    pub(crate) fn admit_reader(&self, at: Epoch) -> Admission {
        match &self.mode {
            Mode::Backed(backing) if at == backing.serial.0 => Admission::Backed(*backing),
            _ if at != 0 => Admission::Left(Serial(at)),
            _ if self.is_direct() => Admission::Direct,
            _ => Admission::Served,
        }
    }

    /// An open is about to be refused: nothing backs the file for a while, so that the next one is not.
    pub(crate) fn hold_direct(&mut self, now: Instant) -> Dropped {
        self.hold_direct_until = Some(now + HOLD_DIRECT);
        self.unback()
    }

    /// An open for writing at epoch 0 begins: nothing backs the file while it lasts.
    pub(crate) fn admit_writer(&mut self) -> Dropped {
        self.writers += 1;
        self.unback()
    }

    /// The file is read at the origin from now on. The copy, if any, stays in the store: a later lookup may find it.
    pub(crate) fn unback(&mut self) -> Dropped {
        match std::mem::take(&mut self.mode) {
            Mode::Filling(fill) => Dropped { fill: Some(fill), copy: None },
            Mode::Direct | Mode::Backed(_) => Dropped::default(),
        }
    }

    /// A local change of the bytes begins at `stamp`.
    pub(crate) fn begin_change(&mut self, stamp: u64) -> Dropped {
        self.changing += 1;
        self.last_change = stamp;
        self.known = None;
        self.paged = None;
        self.unback()
    }

    /// It has ended.
    pub(crate) fn end_change(&mut self, stamp: u64) {
        self.changing = self.changing.saturating_sub(1);
        self.last_change = stamp;
        self.known = None;
    }

    /// A change of attributes or names begins at `stamp`, that leaves the bytes: what the origin says meanwhile is not
    /// believed.
    pub(crate) fn begin_meta_change(&mut self, stamp: u64) {
        self.changing += 1;
        self.last_change = stamp;
    }

    /// The change that began at `began` has ended at `stamp`, and left the file with these attributes if they are known.
    /// They are believed only if nothing else was changed meanwhile: they may have been asked for before that.
    pub(crate) fn end_meta_change(&mut self, began: u64, stamp: u64, attr: Option<&Attr>, now: Instant) {
        let was_alone = self.changing == 1 && self.last_change == began;
        self.end_change(stamp);
        self.known = attr.filter(|_| was_alone).map(|attr| Known { attr: *attr, at: now });
    }

    /// Something about the file was changed here at `stamp`: what the origin said before is not believed.
    pub(crate) fn forget_known(&mut self, stamp: u64) {
        self.last_change = stamp;
        self.known = None;
    }

    /// The attributes, if the origin told them less than `window` ago.
    pub(crate) fn fresh(&self, now: Instant, window: Duration) -> Option<Attr> {
        self.known.filter(|known| now.saturating_duration_since(known.at) <= window).map(|known| known.attr)
    }

    /// The attributes of a file that is backed and that only opens of copies hold, however old. Those keep their version,
    /// also while the origin is away; who comes by its name has the kernel look the name up first, and that asks the
    /// origin. Other opens show what the file is: for them the origin is asked.
    pub(crate) fn held(&self) -> Option<Attr> {
        let only_copies = self.opens > 0 && self.opens == self.backed_opens;
        let is_held = only_copies && matches!(self.mode, Mode::Backed(_));
        self.known.filter(|_| is_held).map(|known| known.attr)
    }

    /// Whether the kernel's pages of epoch 0 are still right for an open of the version that is known now. A version
    /// that is not settled may name different bytes at different times.
    pub(crate) fn keep_pages(&mut self, is_settled: impl FnOnce(&Version) -> bool) -> bool {
        let version = self.known.map(|known| Version::of(&known.attr)).filter(is_settled);
        let keep = version.is_some() && self.paged == version;
        self.paged = version;
        keep
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_rt::clock::now;

    #[test]
    fn attributes_after_a_change_are_believed_only_if_nothing_else_was_changed() {
        let attr = Attr { size: 3, ..Attr::default() };
        let mut file = FileState::default();
        file.begin_meta_change(1);
        file.end_meta_change(1, 2, Some(&attr), now());
        assert_eq!(file.fresh(now(), Duration::MAX), Some(attr));
        // Another change began and ended after these attributes were asked for.
        file.begin_meta_change(3);
        file.begin_change(4);
        file.end_change(5);
        file.end_meta_change(3, 6, Some(&attr), now());
        assert_eq!(file.fresh(now(), Duration::MAX), None);
        // Another one is still under way.
        file.begin_change(7);
        file.begin_meta_change(8);
        file.end_meta_change(8, 9, Some(&attr), now());
        assert_eq!(file.fresh(now(), Duration::MAX), None);
    }
}
