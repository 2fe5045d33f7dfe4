//! Times of changes: the wall clock, but never the same twice and never backwards.

use std::sync::atomic::{AtomicI64, Ordering};

use hither_vfs::Timestamp;

const NANOS: i64 = 1_000_000_000;

/// Gives each change a time of its own, so that a changed ctime is a sure sign of a change and an unchanged one of none.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// Nanoseconds since 1970 (good until 2262) that were given last.
    last: AtomicI64,
}

impl Clock {
    pub(crate) fn tick(&self) -> Timestamp {
        let wall = Timestamp::now();
        let wall = wall.sec.saturating_mul(NANOS).saturating_add(i64::from(wall.nsec));
        let before =
            self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(wall.max(last + 1)));
        let now = wall.max(before.unwrap_or_default() + 1);
        Timestamp { sec: now.div_euclid(NANOS), nsec: now.rem_euclid(NANOS) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tick_is_later_over_threads() {
        let clock = Clock::default();
        let ticks = || (0..10_000).map(|_| clock.tick()).collect::<Vec<_>>();
        let mut all = std::thread::scope(|scope| {
            let threads = [scope.spawn(ticks), scope.spawn(ticks)];
            threads.map(|thread| thread.join().unwrap()).concat()
        });
        assert!(all[..10_000].is_sorted() && all[10_000..].is_sorted());
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 20_000);
    }
}
