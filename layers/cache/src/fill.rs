//! Fetching one version of one file into the store, chunk by chunk, while it is being read.
//!
//! Whoever reads a chunk that is not there fetches it in its own thread; everybody else who wants it waits for that
//! fetch. Background threads fetch ahead of readers that read in order and, if the whole file is wanted, the rest.

use std::sync::Arc;

use hither_rt::sync::{Condvar, Mutex, MutexGuard};
use hither_vfs::{Call, Caller, Errno, Error, Handle, Patience, PersistentId, Result};

use crate::chunks::Chunks;
use crate::index::Reservation;
use crate::node::CacheNode;
use crate::piece::{Fetched, Piece};
use crate::record::{CHUNK, Key, Record, Serial, chunks_of};
use crate::shared::Shared;
use crate::version::Version;
use crate::window::Window;

/// One fetch of one file.
pub(crate) struct Fill {
    shared: Arc<Shared>,
    /// The version that is fetched.
    pub(crate) version: Version,
    /// The file at the origin, opened as the one who opened it first.
    pub(crate) origin: Arc<dyn Handle>,
    caller: Caller,
    pub(crate) key: Key,
    id: PersistentId,
    serial: Serial,
    /// Syncs of the store that had failed when this began.
    failed_syncs: u64,
    data: Arc<dyn Handle>,
    projid: u32,
    pinned: bool,
    path: Vec<u8>,
    state: Mutex<State>,
    /// Notified when a chunk arrives or fails, and at the end.
    changed: Condvar,
}

struct State {
    chunks: Chunks,
    window: Window,
    background: u64,
    /// Fetch chunks that nobody has asked for as well.
    whole: bool,
    end: Option<End>,
    reservation: Option<Reservation>,
}

/// How a fill ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All chunks are there; whether it becomes a copy is being decided.
    Complete,
    /// The file has taken it as its copy.
    Taken,
    /// It is the file's copy, and everybody can see it.
    Committed,
    /// It was given up; its readers read at the origin.
    Abandoned,
}

/// What a fill is made of.
pub(crate) struct Start {
    pub(crate) version: Version,
    pub(crate) origin: Arc<dyn Handle>,
    pub(crate) caller: Caller,
    pub(crate) key: Key,
    pub(crate) id: PersistentId,
    pub(crate) projid: u32,
    pub(crate) pinned: bool,
    pub(crate) path: Vec<u8>,
    pub(crate) whole: bool,
    pub(crate) reservation: Reservation,
}

impl Fill {
    /// Begins: makes the data file. On failure the reservation is given back.
    pub(crate) fn start(shared: &Arc<Shared>, start: Start) -> Result<Arc<Self>> {
        let failed_syncs = shared.store.failed_syncs();
        let (serial, data) = match shared.store.create_data(start.key, start.version.size) {
            Ok(created) => created,
            Err(error) => {
                shared.index.release(start.reservation);
                return Err(error);
            }
        };
        let state = State {
            chunks: Chunks::new(chunks_of(start.version.size)),
            window: Window::default(),
            background: 0,
            whole: start.whole,
            end: None,
            reservation: Some(start.reservation),
        };
        Ok(Arc::new(Fill {
            shared: shared.clone(),
            version: start.version,
            origin: start.origin,
            caller: start.caller,
            key: start.key,
            id: start.id,
            serial,
            failed_syncs,
            data,
            projid: start.projid,
            pinned: start.pinned,
            path: start.path,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }))
    }

    /// Reads as the program asked. `None` if the fill was given up: read at the origin.
    pub(crate) fn read(
        self: &Arc<Self>,
        node: &Arc<CacheNode>,
        call: &Call,
        buf: &mut [u8],
        offset: u64,
    ) -> Result<Option<usize>> {
        let size = self.version.size;
        let length = (buf.len() as u64).min(size.saturating_sub(offset)) as usize;
        if length == 0 {
            return Ok(Some(0));
        }
        let (first, last) = (offset / CHUNK, (offset + length as u64 - 1) / CHUNK);
        {
            let mut state = self.state.lock();
            state.window.read(first, last);
            self.fetch_ahead(node, &mut state);
        }
        for chunk in first..=last {
            let upto = (offset + length as u64 - chunk * CHUNK).min(CHUNK);
            if !self.ensure(node, call, chunk, upto)? {
                return Ok(None);
            }
        }
        let mut done = 0;
        while done < length {
            match self.shared.store.read_data(&*self.data, &mut buf[done..length], offset + done as u64) {
                Ok(0) | Err(_) => {
                    self.abandon("the store failed to read back what was fetched");
                    return Ok(None);
                }
                Ok(n) => done += n,
            }
        }
        Ok(Some(length))
    }

    /// Makes sure that the first `upto` bytes of a chunk are there: fetches them, or waits for who does. `false` if the
    /// fill was given up.
    fn ensure(self: &Arc<Self>, node: &Arc<CacheNode>, call: &Call, chunk: u64, upto: u64) -> Result<bool> {
        let mut state = self.state.lock();
        loop {
            if state.end == Some(End::Abandoned) {
                return Ok(false);
            }
            if state.chunks.has_bytes(chunk, upto) {
                return Ok(true);
            }
            call.patience.check()?;
            if state.chunks.begin(chunk) {
                drop(state);
                let piece = Piece::first(&self.shared.buffers, chunk, self.version.size, upto);
                self.fetch(node, call, piece, upto)?;
                state = self.state.lock();
                continue;
            }
            call.patience.wait(&self.changed, &mut state)?;
        }
    }

    /// Fetches a chunk that this thread has begun, at least `upto` bytes of it; the rest is left to the background.
    fn fetch(
        self: &Arc<Self>,
        node: &Arc<CacheNode>,
        call: &Call,
        mut piece: Piece,
        upto: u64,
    ) -> Result<()> {
        let chunk = piece.chunk();
        loop {
            let fetched = piece.fetch(&self.shared, call, &*self.origin, &*self.data);
            let mut state = self.state.lock();
            match fetched {
                Ok(Fetched::Piece(bytes)) => state.chunks.grew(chunk, bytes),
                Ok(Fetched::All(sum)) => {
                    state.chunks.arrived(chunk, sum);
                    if state.chunks.complete() && state.end.is_none() {
                        state.end = Some(End::Complete);
                        let (fill, node) = (self.clone(), node.clone());
                        self.shared.fetchers.post(move || fill.finish(&node));
                    }
                    drop(state);
                    self.changed.notify_all();
                    return Ok(());
                }
                Ok(Fetched::Never(why)) => {
                    state.chunks.failed(chunk);
                    drop(state);
                    self.abandon(why);
                    return Ok(());
                }
                Err(error) => {
                    state.chunks.failed(chunk);
                    drop(state);
                    self.changed.notify_all();
                    return Err(error);
                }
            }
            let is_enough = state.chunks.has_bytes(chunk, upto);
            drop(state);
            self.changed.notify_all();
            if is_enough {
                let (fill, node) = (self.clone(), node.clone());
                self.shared.fetchers.post(move || fill.fetch_rest(&node, piece));
                return Ok(());
            }
        }
    }

    /// Fetches the rest of a chunk whose first bytes somebody could not wait for.
    fn fetch_rest(self: &Arc<Self>, node: &Arc<CacheNode>, piece: Piece) {
        let call = Call::new(self.caller.clone(), Patience::forever());
        let chunk = piece.chunk();
        if let Err(error) = self.fetch(node, &call, piece, CHUNK) {
            tracing::debug!(%error, chunk, "the rest of a chunk could not be fetched; the next read tries again");
        }
    }

    /// Starts background fetches up to the window.
    fn fetch_ahead(self: &Arc<Self>, node: &Arc<CacheNode>, state: &mut MutexGuard<'_, State>) {
        let (next, width) = state.window.ahead();
        let width = width.min(self.shared.options.fetches as u64);
        while state.end.is_none() && state.background < width {
            let reach = next.saturating_add(width);
            let mut begun = state.chunks.begin_in(next, reach);
            if begun.is_none() && state.whole {
                // The chunks of the last read itself are left to their reader.
                let (all, behind) = (state.chunks.count(), state.window.behind());
                begun = state.chunks.begin_in(reach, all).or_else(|| state.chunks.begin_in(0, behind));
            }
            let Some(chunk) = begun else { return };
            state.background += 1;
            let (fill, node) = (self.clone(), node.clone());
            self.shared.fetchers.post(move || fill.fetch_in_background(&node, chunk));
        }
    }

    fn fetch_in_background(self: &Arc<Self>, node: &Arc<CacheNode>, chunk: u64) {
        let call = Call::new(self.caller.clone(), Patience::forever());
        let piece = Piece::first(&self.shared.buffers, chunk, self.version.size, CHUNK);
        let fetched = self.fetch(node, &call, piece, CHUNK);
        let mut state = self.state.lock();
        state.background -= 1;
        match fetched {
            Ok(()) => self.fetch_ahead(node, &mut state),
            // The next read tries again, and tells its program if it fails again.
            Err(error) => tracing::debug!(%error, chunk, "a fetch ahead of readers failed"),
        }
    }

    /// Wants all of the file and waits for the end; progress is told after each change.
    pub(crate) fn complete(self: &Arc<Self>, node: &Arc<CacheNode>, call: &Call) -> Result<()> {
        let count = {
            let mut state = self.state.lock();
            state.whole = true;
            self.fetch_ahead(node, &mut state);
            state.chunks.count()
        };
        for chunk in 0..count {
            if !self.ensure(node, call, chunk, CHUNK)? {
                break;
            }
        }
        let mut state = self.state.lock();
        while !matches!(state.end, Some(End::Committed | End::Abandoned)) {
            call.patience.wait(&self.changed, &mut state)?;
        }
        match state.end {
            Some(End::Committed) => Ok(()),
            _ => Err(Error::with_cause(
                Errno::AGAIN,
                "the file changed while it was fetched, or the store has no room",
            )),
        }
    }

    /// Wants all of the file, without waiting.
    pub(crate) fn want_all(self: &Arc<Self>, node: &Arc<CacheNode>) {
        let mut state = self.state.lock();
        state.whole = true;
        self.fetch_ahead(node, &mut state);
    }

    /// Whether all of the file is wanted, also what nobody reads.
    pub(crate) fn is_whole(&self) -> bool {
        self.state.lock().whole
    }

    /// Whether it was given up.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.state.lock().end == Some(End::Abandoned)
    }

    /// Bytes that are there.
    pub(crate) fn present(&self) -> u64 {
        (self.state.lock().chunks.present() * CHUNK).min(self.version.size)
    }

    /// Gives up, unless it has become a copy. Readers go on at the origin.
    pub(crate) fn abandon(&self, why: &str) {
        let mut state = self.state.lock();
        if matches!(state.end, Some(End::Taken | End::Committed | End::Abandoned)) {
            return;
        }
        state.end = Some(End::Abandoned);
        let reservation = state.reservation.take();
        drop(state);
        self.changed.notify_all();
        self.shared.counters.fills_abandoned.add(1);
        tracing::debug!(why, path = %String::from_utf8_lossy(&self.path), "a fill was given up");
        self.leave_nothing(reservation);
    }

    /// Gives room and data back.
    fn leave_nothing(&self, reservation: Option<Reservation>) {
        if let Some(reservation) = reservation {
            self.shared.index.release(reservation);
        }
        let (shared, key, serial) = (self.shared.clone(), self.key, self.serial);
        self.shared.background.post(move || shared.store.remove_data(key, serial));
    }

    /// All chunks are there: if the file is still the same, this becomes its copy.
    fn finish(self: &Arc<Self>, node: &Arc<CacheNode>) {
        let call = Call::new(self.caller.clone(), Patience::forever());
        // Asked in this order: who writes now is seen by the first question, who has ended by the second.
        if node.is_written_elsewhere(&call, &*self.origin) {
            return self.abandon("the file is open for writing at the origin");
        }
        match node.origin_attr(&call) {
            Ok(attr) if Version::of(&attr) == self.version => {}
            Ok(_) => return self.abandon("the file changed while it was fetched"),
            Err(_) => return self.abandon("the origin did not say whether the file is still the same"),
        }
        if self.is_distrusted() {
            return self.abandon("the store's disk failed while it was fetched");
        }
        let mut record = self.record();
        if let Err(error) = self.shared.store.commit(self.key, &mut record) {
            self.shared.store_failed(&error);
            return self.abandon("the store cannot take the record");
        }
        // From here on it is the copy, unless the file was opened for writing meanwhile.
        if node.back_with(self, &record) {
            self.state.lock().end = Some(End::Committed);
            self.changed.notify_all();
            // Asked again: whoever distrusts copies has not seen this one if it came after.
            if self.is_distrusted() {
                node.drop_copy(self.key, self.serial);
            }
        } else {
            self.shared.store.remove(self.key, self.serial);
            self.abandon("the file was changed here while it was fetched");
        }
    }

    /// Whether a sync of the store failed since this began: pages that were fetched may be lost, and no later sync tells.
    fn is_distrusted(&self) -> bool {
        self.shared.store.failed_syncs() != self.failed_syncs
    }

    /// Called by the file, under its lock, when it takes the fill as its copy. Gives up the room that was promised, which
    /// the copy now takes. `false` if it was given up before.
    pub(crate) fn take(&self) -> bool {
        let mut state = self.state.lock();
        if state.end != Some(End::Complete) {
            return false;
        }
        state.end = Some(End::Taken);
        if let Some(reservation) = state.reservation.take() {
            self.shared.index.release(reservation);
        }
        true
    }

    fn record(&self) -> Record {
        Record {
            pinned: self.pinned,
            serial: self.serial,
            commit: Serial::default(),
            instance: [0; 16],
            version: self.version,
            projid: self.projid,
            id: self.id.clone(),
            path: self.path.clone(),
            checksums: self.state.lock().chunks.sums().to_vec(),
        }
    }
}

impl Drop for Fill {
    /// Nobody reads it any more, and the file was forgotten before all of it was there.
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if state.end.is_none() {
            let reservation = state.reservation.take();
            self.leave_nothing(reservation);
        }
    }
}
