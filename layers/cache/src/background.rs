//! What runs beside the calls: listing the store at the start, making copies durable, keeping the water marks.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use hither_rt::clock::{Duration, Instant, now};
use hither_rt::sync::{Condvar, Mutex};
use hither_rt::thread;
use hither_vfs::Result;

use crate::evict;
use crate::index::Copy;
use crate::shared::Shared;
use crate::store::Found;

/// How often use is compared with the water marks.
const WATER_EVERY: Duration = Duration::from_millis(500);

/// The threads; dropping it ends them, with a last sync.
pub(crate) struct Background {
    stop: Arc<Stop>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    stopped: Mutex<bool>,
    wake: Condvar,
}

impl Stop {
    /// Sleeps; `true` if it is time to end.
    fn wait(&self, duration: Duration) -> bool {
        let end = now() + duration;
        let mut stopped = self.stopped.lock();
        while !*stopped && now() < end {
            self.wake.wait_until(&mut stopped, end);
        }
        *stopped
    }
}

impl Background {
    /// Starts the threads.
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Self> {
        let stop = Arc::new(Stop::default());
        let mut background = Background { stop: stop.clone(), threads: Vec::new() };
        let scan = shared.clone();
        background.threads.push(thread::spawn("hither-scan", move || scan_store(&scan))?);
        let (syncer, ending) = (shared.clone(), stop.clone());
        background.threads.push(thread::spawn("hither-sync", move || keep_durable(&syncer, &ending))?);
        let (water, ending) = (shared.clone(), stop);
        background.threads.push(thread::spawn("hither-evict", move || {
            while !ending.wait(WATER_EVERY) {
                evict::keep_water(&water);
                water.refused.let_go();
            }
        })?);
        Ok(background)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        *self.stop.stopped.lock() = true;
        self.stop.wake.notify_all();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a background thread of the cache panicked; this is a bug, please report it");
            }
        }
    }
}

/// Lists the store: fills the index, removes rubbish.
fn scan_store(shared: &Arc<Shared>) {
    let began: Instant = now();
    let (mut rubbish, mut sessions, mut is_whole) = (0u64, HashSet::new(), true);
    for shelf in 0..shared.store.shelves() {
        if shared.is_closing() {
            return;
        }
        let scanned = shared.store.scan(shelf, |found| match found {
            Found::Copy(key, record) => {
                sessions.insert(record.commit.session());
                shared.index.insert_found(key, Copy::of(&record));
            }
            Found::Rubbish => rubbish += 1,
        });
        if let Err(error) = scanned {
            shared.store_failed(&error);
            is_whole = false;
        }
    }
    shared.scan_is_over.store(true, Ordering::Release);
    if !is_whole {
        // Copies that were not seen are found when their files are opened, as long as `scanning` stays set.
        tracing::warn!(
            "not all of the store could be listed; what was not is found when its files are opened"
        );
        return;
    }
    shared.index.listed();
    shared.scanning.store(false, Ordering::Release);
    let copies = shared.index.usage().copies;
    tracing::info!(copies, rubbish, seconds = (now() - began).as_secs_f64(), "the store is listed");
    if let Err(error) = shared.store.keep_sessions(|session| sessions.contains(&session)) {
        shared.store_failed(&error);
    }
}

/// Makes new copies durable every now and then, and at the end.
fn keep_durable(shared: &Arc<Shared>, stop: &Stop) {
    let mut synced = 0;
    loop {
        let stopped = stop.wait(shared.options.sync_every);
        let point = shared.store.sync_point();
        if point > synced {
            match shared.store.sync(point) {
                Ok(()) => synced = point,
                Err(error) => distrust(shared, &error),
            }
        }
        if stopped {
            return;
        }
    }
}

/// A sync failed: the kernel may have dropped what it could not write, and say so only once. Nothing that was not
/// durable before is trusted any more.
fn distrust(shared: &Arc<Shared>, error: &hither_vfs::Error) {
    shared.store_failed(error);
    let mut dropped = 0u64;
    for (key, copy) in shared.index.all() {
        if !shared.store.is_durable(copy.commit) && evict::evict(shared, key, &copy) {
            dropped += 1;
        }
    }
    tracing::error!(%error, dropped, "the store's disk could not write all copies; those that were not safe were dropped");
}
