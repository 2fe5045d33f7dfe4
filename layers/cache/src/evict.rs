//! Making room: copies go, longest unused first, never pinned ones.

use std::sync::Arc;

use crate::file::Dropped;
use crate::index::{Copy, space_of};
use crate::node::{CacheNode, backing_of};
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

/// Whether the store's disk keeps its free share with `space` bytes more in use.
fn disk_has_room(shared: &Shared, space: u64) -> bool {
    match shared.store.statfs() {
        Ok(disk) => {
            let keep = (disk.blocks.saturating_mul(disk.block_size) as f64 * shared.options.min_free) as u64;
            disk.blocks_available.saturating_mul(disk.block_size) >= keep.saturating_add(space)
        }
        Err(error) => {
            shared.store_failed(&error);
            false
        }
    }
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
    let Some(capacity) = shared.options.capacity else {
        while !shared.is_closing() && !disk_has_room(shared, 0) && evict_one(shared, None) {}
        return;
    };
    let mark = |share: f64| (capacity as f64 * share) as u64;
    if shared.index.usage().bytes > mark(shared.options.high_water) {
        let low = mark(shared.options.low_water);
        while !shared.is_closing() && shared.index.usage().bytes > low && evict_one(shared, None) {}
    }
    while !shared.is_closing() && !disk_has_room(shared, 0) && evict_one(shared, None) {}
}

/// Evicts one copy; `false` if there was none to evict.
pub(crate) fn evict_one(shared: &Arc<Shared>, projid: Option<u32>) -> bool {
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
        Some(node) => evict_known(&node, key, copy),
        None => shared.drop_copy(key, copy.serial).is_some(),
    };
    if gone {
        shared.counters.evicted.add(1);
    }
    gone
}

/// A copy of a file that somebody knows: the file is unbacked first.
fn evict_known(node: &CacheNode, key: Key, copy: &Copy) -> bool {
    let dropped = {
        let mut file = node.file.lock();
        if file.epoch() == copy.serial.0 { file.unback() } else { Dropped::default() }
    };
    node.let_go(dropped, "evicted");
    let was_there = node.shared.index.get(&key).is_some_and(|now| now.serial == copy.serial);
    node.let_go(Dropped { fill: None, copy: Some(backing_of(key, copy)) }, "evicted");
    was_there
}
