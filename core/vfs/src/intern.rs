//! One object for one key, for as long as anyone holds it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Entries may outnumber living objects by this factor before dead ones are swept out.
const SWEEP_FACTOR: usize = 2;
const SWEEP_MIN: usize = 1024;

/// A map from keys to living objects: while anyone holds the object of a key, every lookup gives that same object.
///
/// Used by every file system that keeps state per inode, so that all names and all opens of one inode meet in one
/// node. Dead entries cost one key and one weak pointer until they are swept, in time proportional to insertions.
#[derive(Debug)]
pub struct Interner<K, T> {
    map: Mutex<Map<K, T>>,
}

#[derive(Debug)]
struct Map<K, T> {
    living: HashMap<K, Weak<T>>,
    sweep_at: usize,
}

impl<K, T> Default for Interner<K, T> {
    fn default() -> Self {
        Interner { map: Mutex::new(Map { living: HashMap::new(), sweep_at: SWEEP_MIN }) }
    }
}

impl<K: Hash + Eq, T> Interner<K, T> {
    /// The living object of `key`, or the one that `make` builds. `make` runs under the map's lock: it must be short
    /// and must not come back here.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> T) -> Arc<T> {
        self.get_or_insert_cyclic(key, |_| make())
    }

    /// The same, for an object that knows how to reach itself.
    pub fn get_or_insert_cyclic(&self, key: K, make: impl FnOnce(&Weak<T>) -> T) -> Arc<T> {
        self.get_or_replace_cyclic(key, |_| true, make)
    }

    /// The same, where an object may outlive what its key stood for (an inode number that was given to another inode):
    /// a living object that `is_current` refuses makes way for a new one, and stays with those who hold it.
    /// `is_current` runs under the map's lock too.
    pub fn get_or_replace_cyclic(
        &self,
        key: K,
        is_current: impl FnOnce(&Arc<T>) -> bool,
        make: impl FnOnce(&Weak<T>) -> T,
    ) -> Arc<T> {
        let mut map = self.map.lock();
        if let Some(living) = map.living.get(&key).and_then(Weak::upgrade) {
            if is_current(&living) {
                return living;
            }
            let made = Arc::new_cyclic(make);
            map.living.insert(key, Arc::downgrade(&made));
            // The last of an object must not be dropped under the lock.
            drop(map);
            drop(living);
            return made;
        }
        if map.living.len() >= map.sweep_at {
            map.living.retain(|_, object| object.strong_count() > 0);
            map.sweep_at = (map.living.len() * SWEEP_FACTOR).max(SWEEP_MIN);
        }
        let made = Arc::new_cyclic(make);
        map.living.insert(key, Arc::downgrade(&made));
        made
    }

    /// The living object of `key`, if there is one.
    pub fn get(&self, key: &K) -> Option<Arc<T>> {
        self.map.lock().living.get(key).and_then(Weak::upgrade)
    }

    /// Every living object. The order is arbitrary.
    pub fn living(&self) -> Vec<Arc<T>> {
        self.map.lock().living.values().filter_map(Weak::upgrade).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_object_while_held_and_a_new_one_after() {
        let interner = Interner::<u32, String>::default();
        let first = interner.get_or_insert_with(1, || "first".to_owned());
        let again = interner.get_or_insert_with(1, || "again".to_owned());
        assert!(Arc::ptr_eq(&first, &again));
        drop((first, again));
        assert!(interner.get(&1).is_none());
        assert_eq!(*interner.get_or_insert_with(1, || "again".to_owned()), "again");
    }

    #[test]
    fn an_object_whose_key_stands_for_something_else_now_is_replaced() {
        let interner = Interner::<u32, String>::default();
        let old = interner.get_or_insert_with(1, || "old".to_owned());
        let new = interner.get_or_replace_cyclic(1, |living| **living != "old", |_| "new".to_owned());
        assert_eq!((old.as_str(), new.as_str()), ("old", "new"));
        let kept = interner.get_or_replace_cyclic(1, |living| **living != "old", |_| "newer".to_owned());
        assert!(Arc::ptr_eq(&new, &kept));
    }

    #[test]
    fn dead_entries_are_swept() {
        let interner = Interner::<usize, usize>::default();
        let held = interner.get_or_insert_with(usize::MAX, || 0);
        for key in 0..100 * SWEEP_MIN {
            interner.get_or_insert_with(key, || key);
        }
        assert!(interner.map.lock().living.len() <= SWEEP_MIN + 1);
        assert_eq!(interner.living().len(), 1);
        assert!(Arc::ptr_eq(&held, &interner.living()[0]));
    }
}
