//! Counters that every part of the cache adds to.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::report::Stats;

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// One number each; see [`Stats`] for what they mean.
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $(pub(crate) $name: Count),* }

        impl Counters {
            /// The numbers now; what is not counted but looked up is left 0.
            pub(crate) fn stats(&self) -> Stats {
                Stats { $($name: self.$name.get(),)* ..Stats::default() }
            }
        }
    };
}

counters!(
    hits,
    hit_bytes,
    misses,
    miss_bytes,
    bypassed_by_rule,
    bypassed_full,
    bypassed_unsettled,
    served_bytes,
    fetched_bytes,
    fetches,
    fills,
    fills_abandoned,
    invalidated,
    evicted,
    origin_errors,
    store_errors,
);

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Adds `amount`.
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
