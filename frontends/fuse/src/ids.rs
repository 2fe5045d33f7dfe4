//! Maps keyed by numbers that we or the kernel count up.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from such a number.
pub(crate) type IdMap<T> = HashMap<u64, T, BuildHasherDefault<IdHasher>>;

/// Spreads a counter over all bits (Fibonacci hashing). Nobody outside chooses the keys.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = (id.rotate_left(32) ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
