//! The locks that are held in one class: for each owner, disjoint spans of bytes.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{Held, LockKind, registry};

/// Held spans. Those of one owner never overlap, and neighbours of one owner differ in kind.
///
/// Every span is counted in the registry's holders under its pid from insertion to removal.
#[derive(Debug, Default)]
pub(super) struct Spans {
    /// By owner and first byte.
    spans: BTreeMap<(u64, u64), Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    /// Last byte.
    end: u64,
    write: bool,
    pid: u32,
}

impl Spans {
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Spans of other owners that forbid `kind` on `range`, in the order of owners.
    pub(super) fn conflicts(
        &self,
        owner: u64,
        range: &RangeInclusive<u64>,
        kind: LockKind,
    ) -> impl Iterator<Item = Held> {
        let (start, end) = (*range.start(), *range.end());
        self.spans.iter().filter_map(move |(&(whose, first), span)| {
            let meets = first <= end && span.end >= start;
            let forbids = match kind {
                LockKind::Read => span.write,
                LockKind::Write => true,
                LockKind::Unlock => false,
            };
            (whose != owner && meets && forbids).then(|| held(whose, first, span))
        })
    }

    /// The kind of the owner's first span.
    pub(super) fn kind_of(&self, owner: u64) -> Option<LockKind> {
        self.of(owner).next().map(|(_, span)| kind(&span))
    }

    /// Makes `range` of `owner` be of `kind`, whatever of it the owner held before.
    pub(super) fn set(&mut self, owner: u64, pid: u32, range: &RangeInclusive<u64>, kind: LockKind) {
        let (mut start, mut end) = (*range.start(), *range.end());
        let write = kind == LockKind::Write;
        let met: Vec<(u64, Span)> = self
            .of(owner)
            .filter(|(first, span)| *first <= end.saturating_add(1) && span.end.saturating_add(1) >= start)
            .collect();
        for (first, span) in met {
            let same = kind != LockKind::Unlock && span.write == write;
            let overlaps = first <= *range.end() && span.end >= *range.start();
            if same {
                start = start.min(first);
                end = end.max(span.end);
                self.remove(owner, first);
            } else if overlaps {
                self.remove(owner, first);
                if first < *range.start() {
                    self.insert(owner, first, Span { end: *range.start() - 1, ..span });
                }
                if span.end > *range.end() {
                    self.insert(owner, *range.end() + 1, span);
                }
            }
        }
        if kind != LockKind::Unlock {
            self.insert(owner, start, Span { end, write, pid });
        }
    }

    /// Drops all spans of the owner.
    pub(super) fn release(&mut self, owner: u64) {
        let firsts: Vec<u64> = self.of(owner).map(|(first, _)| first).collect();
        for first in firsts {
            self.remove(owner, first);
        }
    }

    /// First bytes and spans of one owner, ascending.
    fn of(&self, owner: u64) -> impl Iterator<Item = (u64, Span)> {
        self.spans.range((owner, 0)..=(owner, u64::MAX)).map(|(&(_, first), span)| (first, *span))
    }

    fn insert(&mut self, owner: u64, first: u64, span: Span) {
        debug_assert!(first <= span.end, "an empty span");
        registry::holds(span.pid);
        let before = self.spans.insert((owner, first), span);
        debug_assert!(before.is_none(), "spans of one owner overlap");
    }

    fn remove(&mut self, owner: u64, first: u64) {
        if let Some(span) = self.spans.remove(&(owner, first)) {
            registry::holds_no_more(span.pid);
        }
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> Vec<Held> {
        self.spans.iter().map(|(&(owner, first), span)| held(owner, first, span)).collect()
    }
}

impl Drop for Spans {
    fn drop(&mut self) {
        for span in self.spans.values() {
            registry::holds_no_more(span.pid);
        }
    }
}

fn kind(span: &Span) -> LockKind {
    if span.write { LockKind::Write } else { LockKind::Read }
}

fn held(owner: u64, first: u64, span: &Span) -> Held {
    Held { owner, pid: span.pid, range: first..=span.end, kind: kind(span) }
}
