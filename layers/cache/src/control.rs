//! What a person tells a cache to do: attach, detach, warm, pin, evict, verify; Lustre's `lfs pcc` in our words.

use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hither_rt::clock::{Duration, now};
use hither_rt::sync::{Condvar, Mutex};
use hither_rt::thread::Pool;
use hither_rules::RuleSet;
use hither_vfs::{Attr, Call, Errno, Error, OFlags, Result};

use crate::admission::Refusal;
use crate::cache::Cache;
use crate::evict;
use crate::file::{Backing, Mode};
use crate::index::Copy;
use crate::node::CacheNode;
use crate::record::{CHUNK, Key, Record, checksum};
use crate::report::{Evicted, FileReport, FileState, Progress, Verified};
use crate::store::Store;

/// Files that `warm` works on at the same time.
const AT_ONCE: usize = 16;
/// Files that it knows ahead of those.
const AHEAD: usize = 4096;
/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// Failures that are listed; the rest is counted.
const FAILURES_LISTED: usize = 1000;

impl Cache {
    /// What the cache has of a file. Never starts to cache it.
    pub fn state(&self, call: &Call, path: &Path) -> Result<FileReport> {
        let (node, attr) = self.at(call, path)?;
        Ok(self.report(call, &node, &attr, path))
    }

    fn report(&self, call: &Call, node: &CacheNode, attr: &Attr, path: &Path) -> FileReport {
        let (mode, open_count) = {
            let file = node.file.lock();
            (file.mode.clone(), file.opens)
        };
        let copy = match (&mode, node.known_id()) {
            (Mode::Backed(backing), _) => self.shared.index.get(&backing.key).map(|copy| (backing.key, copy)),
            (_, Some((key, _))) => self.shared.index.get(&key).map(|copy| (key, copy)),
            _ => None,
        };
        let (state, present) = match &mode {
            _ if !node.is_file() => (FileState::NotAFile, 0),
            Mode::Filling(fill) if !fill.is_abandoned() => (FileState::Filling, fill.present()),
            Mode::Backed(_) => (FileState::Cached, attr.size),
            Mode::Direct | Mode::Filling(_) => (FileState::None, 0),
        };
        FileReport {
            path: path.to_owned(),
            state,
            size: attr.size,
            present,
            pinned: copy.as_ref().is_some_and(|(_, copy)| copy.pinned),
            open_count,
            copy: copy
                .filter(|_| state == FileState::Cached)
                .map(|(key, copy)| Store::data_path(key, copy.serial)),
            reason: why_not(call, node, attr).filter(|_| state == FileState::None).map(str::to_owned),
        }
    }

    /// Caches a file, whatever the rules say; `wait` until its copy is complete. EINVAL for what is not a regular file,
    /// EBUSY for one that is being written, ENOSPC or EDQUOT without room.
    pub fn attach(&self, call: &Call, path: &Path, wait: bool) -> Result<FileReport> {
        let (node, attr) = self.at(call, path)?;
        if !node.is_file() {
            return Err(Error::with_cause(Errno::INVAL, "only regular files are cached"));
        }
        fetch(&node, call, wait, true)?;
        Ok(self.report(call, &node, &attr, path))
    }

    /// Stops caching a file and removes its copy; with `keep` the copy stays and is used again at the next open.
    pub fn detach(&self, call: &Call, path: &Path, keep: bool) -> Result<()> {
        let (node, _) = self.at(call, path)?;
        let dropped = node.file.lock().unback();
        node.let_go(dropped, "detached");
        if !keep {
            node.end_copy(call);
        }
        node.announce();
        Ok(())
    }

    /// Fetches every file at or below a path that rules and limits let in. `tell` hears of progress a few times a second
    /// and ends the work by `false`.
    pub fn warm(
        &self,
        call: &Call,
        path: &Path,
        tell: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Progress> {
        self.work_on(call, path, tell, |node, call| fetch(node, call, true, false))
    }

    /// Pins every file at or below a path, fetching it first, or unpins it.
    pub fn pin(
        &self,
        call: &Call,
        path: &Path,
        pinned: bool,
        tell: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Progress> {
        self.work_on(call, path, tell, move |node, call| {
            if pinned {
                fetch(node, call, true, true)?;
            }
            set_pinned(node, call, pinned)
        })
    }

    fn work_on(
        &self,
        call: &Call,
        path: &Path,
        tell: &mut dyn FnMut(&Progress) -> bool,
        work: impl Fn(&Arc<CacheNode>, &Call) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Progress> {
        let crew = Crew::new(call.clone(), work);
        let mut last = now();
        let mut go_on = true;
        let mut failures = Vec::new();
        let walked = self.each_file(
            call,
            path,
            &mut |path, node, attr| {
                crew.give(path, node, attr.size);
                while go_on && (now() - last >= TELL_EVERY || crew.is_far_ahead()) {
                    last = now();
                    go_on = tell(&crew.progress());
                    if crew.is_far_ahead() {
                        crew.wait(TELL_EVERY);
                    } else {
                        break;
                    }
                }
                go_on
            },
            &mut |path, error| failures.push((path, error.to_string())),
        );
        for (path, why) in failures {
            crew.failed(path, why);
        }
        while walked.is_ok() && go_on && !crew.is_idle() {
            crew.wait(TELL_EVERY);
            go_on = tell(&crew.progress());
        }
        crew.stop();
        walked.map(|()| crew.progress())
    }

    /// Evicts unpinned copies, longest unused first, until copies take at most `to_bytes`.
    pub fn evict(&self, to_bytes: u64) -> Result<Evicted> {
        let before = self.shared.index.usage();
        while self.shared.index.usage().bytes > to_bytes && evict::evict_one(&self.shared, None) {}
        let after = self.shared.index.usage();
        Ok(Evicted {
            files: before.copies.saturating_sub(after.copies),
            bytes: before.bytes.saturating_sub(after.bytes),
        })
    }

    /// Reads every copy and compares it with its checksums; damaged ones are removed and fetched again.
    pub fn verify(&self, tell: &mut dyn FnMut(&Progress) -> bool) -> Result<Verified> {
        while !self.shared.scan_is_over.load(Ordering::Acquire) && !self.shared.is_closing() {
            if !tell(&Progress::default()) {
                return Ok(Verified::default());
            }
            hither_rt::clock::sleep(TELL_EVERY);
        }
        let all = self.shared.index.all();
        let mut progress = Progress {
            files_total: all.len() as u64,
            bytes_total: all.iter().map(|(_, copy)| copy.version.size).sum(),
            ..Progress::default()
        };
        let mut verified = Verified::default();
        let mut last = now();
        for (key, copy) in all {
            if let Some((path, node)) = self.verify_one(key, &copy) {
                verified.refetched += u64::from(self.refetch(&path, node, copy.pinned));
                verified.damaged.push(path);
            }
            verified.copies += 1;
            verified.bytes += copy.version.size;
            progress.files_done += 1;
            progress.bytes_done += copy.version.size;
            if now() - last >= TELL_EVERY {
                last = now();
                if !tell(&progress) {
                    break;
                }
            }
        }
        Ok(verified)
    }

    /// The path of a damaged copy, which is removed, and its file if somebody knows it; `None` for a sound one, or one
    /// that is gone meanwhile.
    fn verify_one(&self, key: Key, copy: &Copy) -> Option<(PathBuf, Option<Arc<CacheNode>>)> {
        let record =
            self.shared.store.load(key).ok().flatten().filter(|record| record.serial == copy.serial)?;
        if self.is_sound(key, &record) {
            return None;
        }
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(&record.path));
        // Asked again: it may have been dropped while it was read.
        if !evict::evict(&self.shared, key, copy) {
            return None;
        }
        tracing::error!(path = %path.display(), "a copy in the store was damaged and has been removed; check the disk");
        Some((path, copy.node.upgrade()))
    }

    fn is_sound(&self, key: Key, record: &Record) -> bool {
        let store = &self.shared.store;
        let Ok(data) = store.open_data(key, record.serial, record.version.size) else { return false };
        let mut buf = self.shared.buffers.take(CHUNK as usize);
        let mut offset = 0;
        let sound = record.checksums.iter().all(|sum| {
            let length = CHUNK.min(record.version.size - offset) as usize;
            let read = read_full(store, &*data, &mut buf[..length], offset);
            offset += length as u64;
            read && checksum(&buf[..length]) == *sum
        });
        self.shared.buffers.give(buf);
        sound
    }

    /// Fetches a file again whose copy was damaged: the one that is known, or the one that is at that path now.
    fn refetch(&self, path: &Path, node: Option<Arc<CacheNode>>, pinned: bool) -> bool {
        let call = Call::own();
        let node = node.or_else(|| self.at(&call, path).ok().map(|(node, _)| node));
        let refetched = node.map(|node| {
            fetch(&node, &call, true, true)?;
            if pinned { set_pinned(&node, &call, true) } else { Ok(()) }
        });
        match refetched {
            Some(Ok(())) => true,
            Some(Err(error)) => {
                tracing::warn!(%error, path = %path.display(), "could not be fetched again; the next open tries");
                false
            }
            None => false,
        }
    }

    /// The rules, in their order.
    pub fn rules(&self) -> RuleSet {
        self.shared.rules.read().clone()
    }

    /// Replaces the rules, for opens from now on.
    pub fn set_rules(&self, rules: RuleSet) {
        *self.shared.rules.write() = rules;
    }
}

/// Why an open would not begin to cache the file, room aside.
fn why_not(call: &Call, node: &CacheNode, attr: &Attr) -> Option<&'static str> {
    let is_written = node.file.lock().writers > 0;
    let refusal = if is_written { Some(Refusal::Unsettled) } else { node.eligible(call, attr, false).err() };
    refusal.map(Refusal::reason)
}

fn read_full(store: &Store, data: &dyn hither_vfs::Handle, buf: &mut [u8], offset: u64) -> bool {
    let mut done = 0;
    while done < buf.len() {
        match store.read_data(data, &mut buf[done..], offset + done as u64) {
            Ok(0) | Err(_) => return false,
            Ok(read) => done += read,
        }
    }
    true
}

/// Makes sure that a file is cached or being fetched; `wait` until it is cached. `asked` lets rules not apply.
fn fetch(node: &Arc<CacheNode>, call: &Call, wait: bool, asked: bool) -> Result<()> {
    let attr = node.origin_attr(call)?;
    let mode = node.file.lock().mode.clone();
    let fill = match mode {
        Mode::Backed(_) => return Ok(()),
        Mode::Filling(fill) => fill,
        Mode::Direct => {
            let origin = node.origin_result(node.origin.open(call, OFlags::RDONLY, 0))?;
            match node.start_fill(call, &attr, &origin, asked) {
                Ok(fill) => fill,
                Err(refusal) => return Err(refused(refusal)),
            }
        }
    };
    if wait {
        fill.complete(node, call)
    } else {
        fill.want_all(node);
        Ok(())
    }
}

fn refused(refusal: Refusal) -> Error {
    let errno = match refusal {
        Refusal::Rule | Refusal::Size => Errno::CANCELED,
        Refusal::Unsettled => Errno::BUSY,
        Refusal::Full => Errno::NOSPC,
        Refusal::Quota => Errno::DQUOT,
        Refusal::Nameless => Errno::OPNOTSUPP,
    };
    Error::with_cause(errno, refusal.reason())
}

fn set_pinned(node: &CacheNode, call: &Call, pinned: bool) -> Result<()> {
    let shared = &node.shared;
    let Some(Backing { key, serial, .. }) = node.find_copy(call) else {
        return if pinned { Err(Errno::AGAIN.into()) } else { Ok(()) };
    };
    if shared.index.get(&key).is_some_and(|copy| copy.serial == serial && copy.pinned == pinned) {
        return Ok(());
    }
    match shared.store.amend(key, serial, |record| record.pinned = pinned)? {
        Some(record) => {
            shared.index.update(&key, serial, |copy| {
                copy.pinned = pinned;
                copy.commit = record.commit;
            });
            Ok(())
        }
        // Gone meanwhile.
        None if pinned => Err(Errno::AGAIN.into()),
        None => Ok(()),
    }
}

/// What is done to each file.
type Work = dyn Fn(&Arc<CacheNode>, &Call) -> Result<()> + Send + Sync;

/// Threads that work through files while the tree is walked.
struct Crew {
    pool: Pool,
    work: Arc<Work>,
    call: Call,
    state: Arc<(Mutex<CrewState>, Condvar)>,
}

#[derive(Default)]
struct CrewState {
    waiting: VecDeque<(PathBuf, Arc<CacheNode>, u64)>,
    running: usize,
    stopped: bool,
    progress: Progress,
}

impl Crew {
    fn new(call: Call, work: impl Fn(&Arc<CacheNode>, &Call) -> Result<()> + Send + Sync + 'static) -> Self {
        Crew { pool: Pool::new("hither-warm", AT_ONCE), work: Arc::new(work), call, state: Arc::default() }
    }

    fn give(&self, path: PathBuf, node: Arc<CacheNode>, size: u64) {
        let mut state = self.state.0.lock();
        state.progress.files_total += 1;
        state.progress.bytes_total += size;
        state.waiting.push_back((path, node, size));
        if state.running < AT_ONCE {
            state.running += 1;
            let (shared, work, call) = (self.state.clone(), self.work.clone(), self.call.clone());
            self.pool.post(move || run(&shared, &*work, &call));
        }
    }

    fn failed(&self, path: PathBuf, why: String) {
        self.state.0.lock().fail(path, why);
    }

    fn is_far_ahead(&self) -> bool {
        self.state.0.lock().waiting.len() > AHEAD
    }

    fn is_idle(&self) -> bool {
        self.state.0.lock().running == 0
    }

    fn wait(&self, duration: Duration) {
        let mut state = self.state.0.lock();
        if state.running > 0 {
            self.state.1.wait_for(&mut state, duration);
        }
    }

    fn progress(&self) -> Progress {
        self.state.0.lock().progress.clone()
    }

    fn stop(&self) {
        let mut state = self.state.0.lock();
        state.stopped = true;
        state.waiting.clear();
    }
}

impl CrewState {
    fn fail(&mut self, path: PathBuf, why: String) {
        self.progress.failed += 1;
        if self.progress.failures.len() < FAILURES_LISTED {
            self.progress.failures.push((path, why));
        }
    }
}

/// One thread of the crew: works until nothing is left.
fn run(
    shared: &(Mutex<CrewState>, Condvar),
    work: &dyn Fn(&Arc<CacheNode>, &Call) -> Result<()>,
    call: &Call,
) {
    let mut state = shared.0.lock();
    while let Some((path, node, size)) = state.waiting.pop_front() {
        drop(state);
        let result = work(&node, call);
        state = shared.0.lock();
        state.progress.files_done += 1;
        state.progress.bytes_done += size;
        match result {
            Ok(()) => {}
            Err(error) if error == Errno::CANCELED || error == Errno::BUSY => state.progress.skipped += 1,
            Err(error) => state.fail(path, error.to_string()),
        }
        if state.stopped {
            break;
        }
    }
    state.running -= 1;
    shared.1.notify_all();
}
