//! Randomness that needs no secrecy: victims of eviction, names of temporary files, jitter.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// A random number, each value equally likely (SplitMix64, seeded per thread by the standard library's hash keys).
pub fn u64() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(std::thread::current().id()));
    }
    STATE.with(|state| {
        let next = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(next);
        let mixed = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

/// A random index below `bound`; 0 if `bound` is 0. The bias is below 2^-32 for bounds that fit in memory.
pub fn below(bound: usize) -> usize {
    ((u128::from(u64()) * bound as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    #[test]
    fn below_stays_below_and_reaches_all() {
        let mut seen = [false; 10];
        for _ in 0..1000 {
            seen[super::below(seen.len())] = true;
        }
        assert_eq!(seen, [true; 10]);
        assert_eq!(super::below(0), 0);
    }
}
