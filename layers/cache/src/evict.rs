//! Making room: copies go, longest unused first, never pinned ones.

use std::sync::Arc;

use crate::index::{Copy, space_of};
use crate::record::Key;
use crate::shared::Shared;

/// Copies that one open may evict before it goes without; the rest is the background's work.
const AT_ONCE: usize = 64;

/// Whether a copy of that size fits, with all limits kept.
pub(crate) fn has_room_for(shared: &Shared, size: u64) -> bool {
    let space = space_of(size);
    let used = shared.index.usage().bytes.saturating_add(space);
    shared.options.capacity.is_none_or(|capacity| used <= capacity) && disk_has_room(shared, space)
}

/// Whether it could fit if everything that is not pinned went: otherwise nothing has to go for it.
pub(crate) fn could_fit(shared: &Shared, size: u64) -> bool {
    let space = space_of(size);
    let with_pinned = shared.index.usage().pinned.saturating_add(space);
    let on_disk = disk(shared).is_some_and(|disk| disk.total.saturating_sub(disk.keep) >= space);
    shared.options.capacity.is_none_or(|capacity| with_pinned <= capacity) && on_disk
}

/// Bytes of the store's disk.
struct Disk {
    total: u64,
    /// Free, or soon to be.
    available: u64,
    /// To be kept free.
    keep: u64,
}

/// `None` if the disk does not tell.
fn disk(shared: &Shared) -> Option<Disk> {
    let leaving = shared.leaving();
    match shared.store.statfs() {
        Ok(told) => {
            let total = told.blocks.saturating_mul(told.block_size);
            let available = told.blocks_available.saturating_mul(told.block_size).saturating_add(leaving);
            Some(Disk { total, available, keep: (total as f64 * shared.options.min_free) as u64 })
        }
        Err(error) => {
            shared.store_failed(&error);
            None
        }
    }
}

/// Whether the store's disk keeps its free share with `space` bytes more in use.
fn disk_has_room(shared: &Shared, space: u64) -> bool {
    disk(shared).is_some_and(|disk| disk.available >= disk.keep.saturating_add(space))
}

/// Evicts until `done`, copies of one project if that is asked for; `false` if that was not reached in a while.
pub(crate) fn until(shared: &Arc<Shared>, projid: Option<u32>, done: impl Fn() -> bool) -> bool {
    for _ in 0..AT_ONCE {
        if done() {
            return true;
        }
        if !evict_one(shared, projid) {
            return false;
        }
    }
    done()
}

/// Evicts down to the low water mark if use is over the high one. For the background, every now and then.
pub(crate) fn keep_water(shared: &Arc<Shared>) {
    if let Some(capacity) = shared.options.capacity {
        let mark = |share: f64| (capacity as f64 * share) as u64;
        if shared.index.usage().bytes > mark(shared.options.high_water) {
            let low = mark(shared.options.low_water);
            while !shared.is_closing() && shared.index.usage().bytes > low && evict_one(shared, None) {}
        }
    }
    // A disk that does not tell has room: it is not made better by emptying it.
    let is_short = || disk(shared).is_some_and(|disk| disk.available < disk.keep);
    while !shared.is_closing() && is_short() && evict_one(shared, None) {}
}

/// Evicts one copy, or gives an idle fill up; `false` if there was nothing.
pub(crate) fn evict_one(shared: &Arc<Shared>, projid: Option<u32>) -> bool {
    while let Some(node) = shared.next_idle_fill() {
        if node.give_idle_fill_up() {
            return true;
        }
    }
    match shared.index.victim(projid, is_in_use) {
        Some((key, copy)) => evict(shared, key, &copy),
        None => false,
    }
}

/// Whether evicting it would free no space yet: its file is open.
fn is_in_use(copy: &Copy) -> bool {
    copy.node.upgrade().is_some_and(|node| node.file.lock().opens > 0)
}

/// Takes a copy away. Opens that read it go on; its space is free when they end.
pub(crate) fn evict(shared: &Arc<Shared>, key: Key, copy: &Copy) -> bool {
    let gone = match copy.node.upgrade() {
        Some(node) => node.drop_copy(key, copy.serial),
        None => {
            shared.index.remove(&key, copy.serial).inspect(|copy| shared.remove_files(key, copy)).is_some()
        }
    };
    if gone {
        shared.counters.evicted.add(1);
    }
    gone
}
