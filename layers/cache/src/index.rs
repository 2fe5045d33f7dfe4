//! What copies there are, in memory: by key, with their use for eviction and quotas.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Weak;

use hither_rt::random;
use hither_rt::sync::Mutex;

use crate::node::CacheNode;
use crate::record::{Key, Record, Serial};
use crate::version::Version;

/// How many entries a victim is chosen from: the oldest of a few random ones is nearly as good as the oldest of all
/// (as Redis does it), and costs no list to keep in order.
const SAMPLE: usize = 16;

/// What is known of one copy: about 150 bytes with its place in the tables.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    /// Its file's name in the store ends with this.
    pub(crate) serial: Serial,
    /// Its record's number, for durability.
    pub(crate) commit: Serial,
    /// The version whose bytes it holds.
    pub(crate) version: Version,
    /// Project, for quotas.
    pub(crate) projid: u32,
    /// Spared by eviction.
    pub(crate) pinned: bool,
    /// Seconds since the cache was made, at the last open; 0 for copies found at the start.
    pub(crate) used_at: u32,
    /// The file, while somebody knows it.
    pub(crate) node: Weak<CacheNode>,
}

impl Copy {
    /// The copy that a record describes.
    pub(crate) fn of(record: &Record) -> Self {
        Copy {
            serial: record.serial,
            commit: record.commit,
            version: record.version,
            projid: record.projid,
            pinned: record.pinned,
            used_at: 0,
            node: Weak::new(),
        }
    }

    /// Bytes that it takes in the store: data in blocks, and its record.
    pub(crate) fn space(&self) -> u64 {
        space_of(self.version.size)
    }
}

/// Bytes that a copy of a file of that size takes.
pub(crate) fn space_of(size: u64) -> u64 {
    const BLOCK: u64 = 4096;
    size.div_ceil(BLOCK).saturating_add(1).saturating_mul(BLOCK)
}

/// Space in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Copies.
    pub(crate) copies: u64,
    /// Bytes that they take, with room promised to fills under way.
    pub(crate) bytes: u64,
    /// Bytes that pinned ones take.
    pub(crate) pinned: u64,
}

/// All copies. One lock, held for a few map operations at a time.
#[derive(Debug, Default)]
pub(crate) struct Index {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    copies: HashMap<Key, Slot>,
    /// Every key once, in any order: what victims are drawn from.
    keys: Vec<Key>,
    usage: Usage,
    projects: BTreeMap<u32, u64>,
    /// Whether the whole store was listed: what is not here is nowhere.
    is_listed: bool,
    /// Copies that ended before it was. Their records may have been read, or may still lie there, and must not come back.
    ended: HashSet<(Key, Serial)>,
}

#[derive(Debug)]
struct Slot {
    copy: Copy,
    place: usize,
}

/// Room promised to a fill; given back when dropped, unless the copy was added.
#[derive(Debug)]
pub(crate) struct Reservation {
    space: u64,
    projid: u32,
}

impl Index {
    /// The copy of a file, if there is one.
    pub(crate) fn get(&self, key: &Key) -> Option<Copy> {
        self.tables.lock().copies.get(key).map(|slot| slot.copy.clone())
    }

    /// Whether the copy of that serial is there.
    pub(crate) fn has(&self, key: &Key, serial: Serial) -> bool {
        self.tables.lock().copies.get(key).is_some_and(|slot| slot.copy.serial == serial)
    }

    /// Adds a copy, or replaces the one of the same key, which is returned.
    pub(crate) fn insert(&self, key: Key, copy: Copy) -> Option<Copy> {
        self.tables.lock().insert(key, copy)
    }

    /// Adds a copy whose record was found in the store, unless one of that key came since, or it has ended. Tells whether
    /// it was added.
    pub(crate) fn insert_found(&self, key: Key, copy: Copy) -> bool {
        let mut tables = self.tables.lock();
        let has_ended = tables.is_listed || tables.ended.contains(&(key, copy.serial));
        let is_new = !has_ended && !tables.copies.contains_key(&key);
        if is_new {
            tables.insert(key, copy);
        }
        is_new
    }

    /// All of the store was listed.
    pub(crate) fn listed(&self) {
        let mut tables = self.tables.lock();
        tables.is_listed = true;
        tables.ended = HashSet::new();
    }

    /// Takes a copy out, if it is still the one of that serial.
    pub(crate) fn remove(&self, key: &Key, serial: Serial) -> Option<Copy> {
        let mut tables = self.tables.lock();
        if tables.copies.get(key)?.copy.serial != serial {
            return None;
        }
        tables.remove(key)
    }

    /// Changes what is known of a copy, if it is still the one of that serial.
    pub(crate) fn update(&self, key: &Key, serial: Serial, change: impl FnOnce(&mut Copy)) -> bool {
        let mut tables = self.tables.lock();
        let Some(slot) = tables.copies.get(key).filter(|slot| slot.copy.serial == serial) else {
            return false;
        };
        let mut copy = slot.copy.clone();
        tables.account(&copy, false);
        change(&mut copy);
        tables.account(&copy, true);
        if let Some(slot) = tables.copies.get_mut(key) {
            slot.copy = copy;
        }
        true
    }

    /// Promises room for a copy of `size` bytes, without asking whether there is any.
    pub(crate) fn reserve(&self, size: u64, projid: u32) -> Reservation {
        let reservation = Reservation { space: space_of(size), projid };
        let mut tables = self.tables.lock();
        tables.usage.bytes += reservation.space;
        *tables.projects.entry(projid).or_default() += reservation.space;
        reservation
    }

    /// Takes a promise back.
    pub(crate) fn release(&self, reservation: Reservation) {
        let mut tables = self.tables.lock();
        tables.usage.bytes = tables.usage.bytes.saturating_sub(reservation.space);
        if let Some(bytes) = tables.projects.get_mut(&reservation.projid) {
            *bytes = bytes.saturating_sub(reservation.space);
        }
    }

    /// Space in use.
    pub(crate) fn usage(&self) -> Usage {
        self.tables.lock().usage
    }

    /// Bytes that the copies of a project take, with room promised.
    pub(crate) fn project_bytes(&self, projid: u32) -> u64 {
        self.tables.lock().projects.get(&projid).copied().unwrap_or(0)
    }

    /// How many copies are so.
    pub(crate) fn count(&self, is_so: impl Fn(&Copy) -> bool) -> u64 {
        self.tables.lock().copies.values().filter(|slot| is_so(&slot.copy)).count() as u64
    }

    /// Every key with its copy, for work on all of them.
    pub(crate) fn all(&self) -> Vec<(Key, Copy)> {
        self.tables.lock().copies.iter().map(|(key, slot)| (*key, slot.copy.clone())).collect()
    }

    /// A copy to evict: the longest unused of a random few, of one project if that is asked for, never a pinned one
    /// and preferably none that is open (`in_use`). `None` if chance finds none.
    pub(crate) fn victim(&self, projid: Option<u32>, in_use: impl Fn(&Copy) -> bool) -> Option<(Key, Copy)> {
        let sample: Vec<(Key, Copy)> = {
            let tables = self.tables.lock();
            let fits = |copy: &Copy| !copy.pinned && projid.is_none_or(|projid| copy.projid == projid);
            let slot = |key: &Key| tables.copies.get(key).map(|slot| (*key, slot.copy.clone()));
            if projid.is_some() || tables.keys.len() <= SAMPLE {
                tables.keys.iter().filter_map(slot).filter(|(_, copy)| fits(copy)).collect()
            } else {
                let draws = (0..4 * SAMPLE).map(|_| &tables.keys[random::below(tables.keys.len())]);
                draws.filter_map(slot).filter(|(_, copy)| fits(copy)).take(SAMPLE).collect()
            }
        };
        sample.into_iter().min_by_key(|(_, copy)| (in_use(copy), copy.used_at, copy.serial))
    }
}

impl Tables {
    fn insert(&mut self, key: Key, copy: Copy) -> Option<Copy> {
        let old = self.remove(&key);
        self.account(&copy, true);
        let place = self.keys.len();
        self.keys.push(key);
        self.copies.insert(key, Slot { copy, place });
        old
    }

    fn remove(&mut self, key: &Key) -> Option<Copy> {
        let slot = self.copies.remove(key)?;
        self.keys.swap_remove(slot.place);
        if let Some(moved) = self.keys.get(slot.place).copied()
            && let Some(moved) = self.copies.get_mut(&moved)
        {
            moved.place = slot.place;
        }
        self.account(&slot.copy, false);
        if !self.is_listed {
            self.ended.insert((*key, slot.copy.serial));
        }
        Some(slot.copy)
    }

    fn account(&mut self, copy: &Copy, add: bool) {
        let change = |total: &mut u64, amount: u64| {
            *total = if add { *total + amount } else { total.saturating_sub(amount) };
        };
        change(&mut self.usage.copies, 1);
        change(&mut self.usage.bytes, copy.space());
        if copy.pinned {
            change(&mut self.usage.pinned, copy.space());
        }
        change(self.projects.entry(copy.projid).or_default(), copy.space());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(serial: u64, size: u64, projid: u32, used_at: u32, pinned: bool) -> Copy {
        let version = Version { size, ..Version::default() };
        Copy {
            serial: Serial(serial),
            commit: Serial(serial),
            version,
            projid,
            pinned,
            used_at,
            node: Weak::new(),
        }
    }

    fn key(n: u8) -> Key {
        Key([n; 16])
    }

    #[test]
    fn usage_is_the_sum_of_what_is_there() {
        let index = Index::default();
        assert!(index.insert(key(1), copy(1, 4096, 5, 0, false)).is_none());
        assert!(index.insert(key(2), copy(2, 1, 5, 0, true)).is_none());
        let reservation = index.reserve(0, 6);
        assert_eq!(index.usage(), Usage { copies: 2, bytes: 5 * 4096, pinned: 2 * 4096 });
        assert_eq!((index.project_bytes(5), index.project_bytes(6)), (4 * 4096, 4096));
        index.release(reservation);
        assert_eq!(index.insert(key(1), copy(3, 0, 5, 0, false)).map(|old| old.serial), Some(Serial(1)));
        assert!(index.remove(&key(1), Serial(1)).is_none(), "of another serial");
        assert!(index.update(&key(2), Serial(2), |copy| copy.pinned = false));
        assert_eq!(index.usage(), Usage { copies: 2, bytes: 3 * 4096, pinned: 0 });
        assert!(index.remove(&key(1), Serial(3)).is_some());
        assert!(index.remove(&key(2), Serial(2)).is_some());
        assert_eq!(index.usage(), Usage::default());
        assert!(index.insert_found(key(2), copy(9, 0, 0, 0, false)));
        assert!(!index.insert_found(key(2), copy(8, 0, 0, 0, false)));
    }

    #[test]
    fn what_has_ended_is_not_found_again() {
        let index = Index::default();
        assert!(index.insert_found(key(1), copy(1, 0, 0, 0, false)));
        index.insert(key(1), copy(2, 0, 0, 0, false));
        index.remove(&key(1), Serial(2));
        for serial in [1, 2] {
            assert!(!index.insert_found(key(1), copy(serial, 0, 0, 0, false)), "{serial}");
        }
        assert!(index.insert_found(key(1), copy(3, 0, 0, 0, false)));
        index.listed();
        index.remove(&key(1), Serial(3));
        assert!(!index.insert_found(key(1), copy(3, 0, 0, 0, false)));
    }

    #[test]
    fn victims_are_old_unpinned_and_of_the_project() {
        let index = Index::default();
        for n in 1..=10u8 {
            index.insert(key(n), copy(u64::from(n), 0, u32::from(n % 2), u32::from(n), n == 1));
        }
        let victim =
            |projid| index.victim(projid, |copy| copy.serial == Serial(2)).map(|(_, copy)| copy.serial.0);
        assert_eq!(victim(None), Some(3), "1 is pinned, 2 is in use");
        assert_eq!(victim(Some(0)), Some(4));
        assert_eq!(victim(Some(7)), None);
        for n in 3..=10u8 {
            index.remove(&key(n), Serial(u64::from(n)));
        }
        assert_eq!(victim(None), Some(2), "in use, but the only one");
    }
}
