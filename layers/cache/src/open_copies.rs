//! Copies that are open for reading, one open for each copy however often its file is opened; a bounded number of them
//! stays open for the next time.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use hither_rt::sync::Mutex;
use hither_vfs::{Handle, Result};

use crate::file::Backing;
use crate::record::Serial;
use crate::store::Store;

/// Copies kept open while no file is: an open of a hit then costs no system call of ours. At most a quarter of the
/// descriptors that the process may have.
const KEPT: usize = 8192;
const KEPT_SHARE: u64 = 4;
/// Entries of dead copies are swept when there are this many more than were alive at the last sweep.
const SWEEP_SLACK: usize = 4096;

/// A copy that is open. All opens of a file in one epoch hold the same one, and so give the same backing.
pub(crate) struct OpenCopy {
    /// Which copy.
    pub(crate) serial: Serial,
    /// Its data.
    pub(crate) data: Arc<dyn Handle>,
}

/// See the module.
pub(crate) struct OpenCopies {
    tables: Mutex<Tables>,
    keep: usize,
}

#[derive(Default)]
struct Tables {
    open: HashMap<Serial, Weak<OpenCopy>>,
    kept: VecDeque<Arc<OpenCopy>>,
    sweep_at: usize,
}

impl Default for OpenCopies {
    fn default() -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let keep = limit.map_or(KEPT, |limit| KEPT.min((limit / KEPT_SHARE) as usize));
        OpenCopies { tables: Mutex::default(), keep }
    }
}

impl OpenCopies {
    /// The open copy of that serial, opened now if it is not. It is kept open only if it `is_current`.
    pub(crate) fn open(
        &self,
        store: &Store,
        copy: &Backing,
        is_current: impl FnOnce() -> bool,
    ) -> Result<Arc<OpenCopy>> {
        let serial = copy.serial;
        if let Some(open) = self.tables.lock().open.get(&serial).and_then(Weak::upgrade) {
            return Ok(open);
        }
        // Two may open at once; the first to come back is the one that both use.
        let data = store.open_data(copy.key, serial, copy.version.size)?;
        let mut tables = self.tables.lock();
        if let Some(open) = tables.open.get(&serial).and_then(Weak::upgrade) {
            return Ok(open);
        }
        if tables.open.len() >= tables.sweep_at {
            tables.open.retain(|_, open| open.strong_count() > 0);
            tables.sweep_at = tables.open.len() + SWEEP_SLACK;
        }
        let open = Arc::new(OpenCopy { serial, data });
        tables.open.insert(serial, Arc::downgrade(&open));
        tables.kept.push_back(open.clone());
        let unkept = if tables.kept.len() > self.keep { tables.kept.pop_front() } else { None };
        drop(tables);
        drop(unkept);
        // Who removes a copy takes it out of the index and then out of here: one of us two sees the other.
        if !is_current() {
            self.forget(serial);
        }
        Ok(open)
    }

    /// Does not keep that copy open any longer; opens that hold it go on.
    pub(crate) fn forget(&self, serial: Serial) {
        let mut tables = self.tables.lock();
        tables.open.remove(&serial);
        tables.kept.retain(|open| open.serial != serial);
    }
}
