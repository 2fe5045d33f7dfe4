//! The store on disk: copies and their records, through the trait. See `docs/formats/store.md`.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hither_rt::sync::Mutex;
use hither_vfs::{
    Call, DirEntry, DirSink, Entry, Errno, Error, FileSystem, Handle, Node, OFlags, RenameFlags, Result,
    SetAttr, StatFs, WriteAt, open_current,
};

use crate::record::{Key, Record, Serial, Synced, decode_label, encode_label};

const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;
const FANOUT: usize = 256;
/// A record of the largest file that is possible is smaller (8 bytes a MiB of 2^53 bytes would not fit in memory anyway).
const MAX_SMALL_FILE: u64 = 1 << 30;

/// A store, opened for one session.
pub(crate) struct Store {
    fs: Arc<dyn FileSystem>,
    call: Call,
    root: Arc<dyn Node>,
    shelves: Vec<Arc<dyn Node>>,
    /// One a shelf: held while a record is replaced or removed, so that neither acts on what the other just changed.
    records: Vec<Mutex<()>>,
    instance: [u8; 16],
    session: u32,
    counter: AtomicU32,
    commits: Mutex<Commits>,
    synced: Mutex<Synced>,
    failed_syncs: AtomicU64,
    /// Held while `synced` is replaced: by whoever made copies durable, and by the scan.
    writing_synced: Mutex<()>,
}

/// The numbers of records, and which of them are being written: a sync covers what lies before all of these.
#[derive(Default)]
struct Commits {
    next: u32,
    under_way: BTreeSet<u32>,
}

/// What the scan of a store finds.
pub(crate) enum Found {
    /// A copy that counts.
    Copy(Key, Box<Record>),
    /// A file that belongs to no valid copy, and was removed.
    Rubbish,
}

impl Store {
    /// Opens a store, making it if the directory is empty, and begins a session.
    pub(crate) fn open(fs: Arc<dyn FileSystem>, origin: &str, instance: [u8; 16]) -> Result<Self> {
        let call = Call::own();
        let root = fs.root();
        let copies = directory(&call, &*root, OsStr::new("copies"))?;
        check_label(&call, &*root, origin)?;
        let shelves = (0..FANOUT)
            .map(|shelf| directory(&call, &*copies, OsStr::new(&format!("{shelf:02x}"))))
            .collect::<Result<Vec<_>>>()?;
        let synced = match read_small(&call, &*root, OsStr::new("synced"))? {
            Some(bytes) => Synced::decode(&bytes).ok_or_else(|| {
                Error::with_cause(
                    Errno::IO,
                    "the file `synced` of the store is damaged or of another version; empty the store",
                )
            })?,
            None => Synced::default(),
        };
        let session = synced.0.keys().next_back().map_or(1, |last| last.saturating_add(1));
        let store = Store {
            fs,
            call,
            root,
            records: shelves.iter().map(|_| Mutex::new(())).collect(),
            shelves,
            instance,
            session,
            counter: AtomicU32::new(0),
            commits: Mutex::default(),
            synced: Mutex::new(synced),
            failed_syncs: AtomicU64::new(0),
            writing_synced: Mutex::new(()),
        };
        store.synced.lock().0.insert(session, 0);
        store.write_synced()?;
        Ok(store)
    }

    /// Space of the store's disk.
    pub(crate) fn statfs(&self) -> Result<StatFs> {
        self.fs.statfs(&self.call)
    }

    /// Begins a copy: its data file, of the full size and empty.
    pub(crate) fn create_data(&self, key: Key, size: u64) -> Result<(Serial, Arc<dyn Handle>)> {
        let serial = Serial::new(self.session, self.counter.fetch_add(1, Ordering::Relaxed));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let created = self.shelf(key).create(&self.call, &data_name(key, serial), flags, FILE_MODE)?;
        let set = SetAttr { size: Some(size), ..SetAttr::default() };
        if let Err(error) = created.entry.node.setattr(&self.call, &set, Some(&*created.handle)) {
            self.remove_data(key, serial);
            return Err(error);
        }
        Ok((serial, created.handle))
    }

    /// Writes a piece of a copy.
    pub(crate) fn write_data(&self, data: &dyn Handle, bytes: &[u8], offset: u64) -> Result<()> {
        write_all(&self.call, data, bytes, offset)
    }

    /// Reads from a copy.
    pub(crate) fn read_data(&self, data: &dyn Handle, buf: &mut [u8], offset: u64) -> Result<usize> {
        data.read(&self.call, buf, offset)
    }

    /// The calls of the daemon itself.
    pub(crate) fn call(&self) -> &Call {
        &self.call
    }

    /// Makes a record valid, in place of the one that was there; numbers it.
    pub(crate) fn commit(&self, key: Key, record: &mut Record) -> Result<()> {
        let _held = self.record_lock(key).lock();
        self.write_record(key, record)
    }

    /// Changes the record of a copy, if it is still that of this serial and counts; gives what it is then.
    pub(crate) fn amend(
        &self,
        key: Key,
        serial: Serial,
        change: impl FnOnce(&mut Record),
    ) -> Result<Option<Record>> {
        let _held = self.record_lock(key).lock();
        let Some(mut record) = self.load(key)?.filter(|record| record.serial == serial) else {
            return Ok(None);
        };
        change(&mut record);
        self.write_record(key, &mut record)?;
        Ok(Some(record))
    }

    /// With the record's lock held.
    fn write_record(&self, key: Key, record: &mut Record) -> Result<()> {
        let number = {
            let mut commits = self.commits.lock();
            let number = commits.next;
            commits.next += 1;
            commits.under_way.insert(number);
            number
        };
        record.commit = Serial::new(self.session, number);
        record.instance = self.instance;
        let written = write_small(&self.call, &**self.shelf(key), &record_name(key), &record.encode(), false);
        self.commits.lock().under_way.remove(&number);
        written
    }

    /// The record of a copy, if it counts: whole and trusted. Whether its data is there shows when that is opened.
    pub(crate) fn load(&self, key: Key) -> Result<Option<Record>> {
        let Some(bytes) = read_small(&self.call, &**self.shelf(key), &record_name(key))? else {
            return Ok(None);
        };
        Ok(Record::decode(&bytes).filter(|record| Key::of(&record.id) == key && self.trusts(record)))
    }

    fn trusts(&self, record: &Record) -> bool {
        record.instance == self.instance || self.synced.lock().covers(record.commit)
    }

    /// Opens the data of a copy for reading; its size must be what the record says.
    pub(crate) fn open_data(&self, key: Key, serial: Serial, size: u64) -> Result<Arc<dyn Handle>> {
        let (entry, handle) =
            open_current(&self.call, &**self.shelf(key), &data_name(key, serial), OFlags::RDONLY)?;
        if entry.attr.size != size {
            return Err(Error::with_cause(
                Errno::IO,
                "a copy in the store has another size than its record says",
            ));
        }
        Ok(handle)
    }

    /// Whether the copy was made by this session.
    pub(crate) fn is_own(&self, serial: Serial) -> bool {
        serial.session() == self.session
    }

    /// Removes a copy: the record, if it is still the one of that serial, then the data. What is not there is fine.
    pub(crate) fn remove(&self, key: Key, serial: Serial) {
        let held = self.record_lock(key).lock();
        if matches!(self.load_any(key), Ok(Some(record)) if record.serial == serial) {
            self.unlink(key, &record_name(key));
        }
        drop(held);
        self.remove_data(key, serial);
    }

    /// Removes data that no record names.
    pub(crate) fn remove_data(&self, key: Key, serial: Serial) {
        self.unlink(key, &data_name(key, serial));
    }

    fn load_any(&self, key: Key) -> Result<Option<Record>> {
        let bytes = read_small(&self.call, &**self.shelf(key), &record_name(key))?;
        Ok(bytes.and_then(|bytes| Record::decode(&bytes)))
    }

    fn unlink(&self, key: Key, name: &OsStr) {
        match self.shelf(key).unlink(&self.call, name) {
            Err(error) if error != Errno::NOENT => {
                tracing::warn!(%error, file = %name.display(), "cannot remove a file of the store");
            }
            _ => {}
        }
    }

    /// Where a copy is, below the store.
    pub(crate) fn data_path(key: Key, serial: Serial) -> std::path::PathBuf {
        std::path::Path::new("copies").join(format!("{:02x}", key.0[0])).join(data_name(key, serial))
    }

    /// The first record that a sync that begins now may not cover.
    pub(crate) fn sync_point(&self) -> u32 {
        let commits = self.commits.lock();
        commits.under_way.first().copied().unwrap_or(commits.next)
    }

    /// Makes all records before `point`, with their data, durable, and says so in the store.
    pub(crate) fn sync(&self, point: u32) -> Result<()> {
        self.fs.sync(&self.call).inspect_err(|_| {
            self.failed_syncs.fetch_add(1, Ordering::SeqCst);
        })?;
        self.synced.lock().0.insert(self.session, point);
        self.write_synced()
    }

    /// How many syncs failed so far. What was written before the last of them may be lost.
    pub(crate) fn failed_syncs(&self) -> u64 {
        self.failed_syncs.load(Ordering::SeqCst)
    }

    /// Whether a copy would survive a power loss now.
    pub(crate) fn is_durable(&self, commit: Serial) -> bool {
        self.synced.lock().covers(commit)
    }

    fn write_synced(&self) -> Result<()> {
        let _writing = self.writing_synced.lock();
        let bytes = self.synced.lock().encode();
        write_small(&self.call, &*self.root, OsStr::new("synced"), &bytes, true)
    }

    /// Forgets sessions of which nothing is left.
    pub(crate) fn keep_sessions(&self, living: impl Fn(u32) -> bool) -> Result<()> {
        let own = self.session;
        self.synced.lock().0.retain(|session, _| *session == own || living(*session));
        self.write_synced()
    }

    /// Lists one of the 256 shelves, removes what is rubbish, and tells of each copy that counts. Data of this session is
    /// left alone: its fills are under way. What cannot be read is left alone, too, and is the error in the end.
    pub(crate) fn scan(&self, shelf: usize, mut tell: impl FnMut(Found)) -> Result<()> {
        let Some(dir) = self.shelves.get(shelf) else { return Ok(()) };
        let mut names = Names::default();
        dir.opendir(&self.call)?.read(&self.call, 0, false, &mut names)?;
        let (mut serials, mut unread) = (HashMap::new(), HashMap::new());
        for name in names.0.iter().filter(|name| name.as_encoded_bytes().ends_with(b".rec")) {
            let Some(key) = key_of(name) else { continue };
            let _held = self.record_lock(key).lock();
            match self.load(key) {
                Ok(Some(record)) => {
                    serials.insert(key, record.serial);
                    tell(Found::Copy(key, Box::new(record)));
                }
                Ok(None) => {
                    self.unlink(key, name);
                    tell(Found::Rubbish);
                }
                Err(error) => {
                    unread.insert(key, error);
                }
            }
        }
        for name in &names.0 {
            if let Some(key) =
                name.to_str().and_then(|name| name.strip_suffix(".rec.new")).and_then(Key::from_hex)
            {
                let _held = self.record_lock(key).lock();
                self.unlink(key, name);
            }
            let Some((key, serial)) = data_of(name) else { continue };
            let is_rubbish = serials.get(&key) != Some(&serial) && !unread.contains_key(&key);
            if is_rubbish && !self.is_own(serial) {
                self.unlink(key, name);
                tell(Found::Rubbish);
            }
        }
        unread.into_values().next().map_or(Ok(()), Err)
    }

    /// How many shelves `scan` has to list.
    pub(crate) fn shelves(&self) -> usize {
        self.shelves.len()
    }

    fn record_lock(&self, key: Key) -> &Mutex<()> {
        &self.records[usize::from(key.0[0]) % self.records.len()]
    }

    fn shelf(&self, key: Key) -> &Arc<dyn Node> {
        &self.shelves[usize::from(key.0[0]) % self.shelves.len()]
    }
}

fn check_label(call: &Call, root: &dyn Node, origin: &str) -> Result<()> {
    let name = OsStr::new("store");
    let Some(bytes) = read_small(call, root, name)? else {
        return write_small(call, root, name, &encode_label(origin), true);
    };
    match decode_label(&bytes) {
        Some(found) if found == origin => Ok(()),
        Some(found) => Err(Error::with_cause(
            Errno::BUSY,
            format!(
                "the store holds copies of `{found}`, not of `{origin}`: choose another directory, or empty this one"
            ),
        )),
        None => Err(Error::with_cause(
            Errno::INVAL,
            "the store's file `store` is damaged or of another version: choose another directory, or empty this one",
        )),
    }
}

fn data_name(key: Key, serial: Serial) -> OsString {
    format!("{}-{:016x}.data", key.hex(), serial.0).into()
}

fn record_name(key: Key) -> OsString {
    format!("{}.rec", key.hex()).into()
}

fn key_of(name: &OsStr) -> Option<Key> {
    Key::from_hex(name.to_str()?.strip_suffix(".rec")?)
}

fn data_of(name: &OsStr) -> Option<(Key, Serial)> {
    let (key, serial) = name.to_str()?.strip_suffix(".data")?.split_once('-')?;
    (serial.len() == 16).then_some(())?;
    Some((Key::from_hex(key)?, Serial(u64::from_str_radix(serial, 16).ok()?)))
}

fn directory(call: &Call, parent: &dyn Node, name: &OsStr) -> Result<Arc<dyn Node>> {
    match parent.mkdir(call, name, DIR_MODE) {
        Ok(entry) => Ok(entry.node),
        Err(error) if error == Errno::EXIST => Ok(parent.lookup(call, name)?.node),
        Err(error) => Err(error),
    }
}

/// All of a file that is read in one go; `None` if it is not there.
fn read_small(call: &Call, dir: &dyn Node, name: &OsStr) -> Result<Option<Vec<u8>>> {
    let (entry, handle) = match open_current(call, dir, name, OFlags::RDONLY) {
        Ok(opened) => opened,
        Err(error) if error == Errno::NOENT => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; entry.attr.size.min(MAX_SMALL_FILE) as usize];
    let length = handle.read(call, &mut bytes, 0)?;
    bytes.truncate(length);
    Ok(Some(bytes))
}

/// Replaces a file as a whole; `durable` makes sure of it before the rename and after.
fn write_small(call: &Call, dir: &dyn Node, name: &OsStr, bytes: &[u8], durable: bool) -> Result<()> {
    let mut new = name.to_owned();
    new.push(".new");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let created = dir.create(call, &new, flags, FILE_MODE)?;
    let written = write_all(call, &*created.handle, bytes, 0)
        .and_then(|()| if durable { created.handle.fsync(call, false) } else { Ok(()) })
        .and_then(|()| dir.rename(call, &new, dir, name, RenameFlags::empty()))
        .and_then(|()| if durable { dir.opendir(call)?.fsync(call, false) } else { Ok(()) });
    if written.is_err() {
        // What matters is the first error; the leftover is overwritten by the next attempt.
        let _ = dir.unlink(call, &new);
    }
    written
}

fn write_all(call: &Call, handle: &dyn Handle, mut bytes: &[u8], mut offset: u64) -> Result<()> {
    while !bytes.is_empty() {
        let taken = handle.write(call, bytes, WriteAt::Offset(offset))?;
        if taken == 0 {
            return Err(Errno::NOSPC.into());
        }
        bytes = bytes.get(taken..).unwrap_or_default();
        offset += taken as u64;
    }
    Ok(())
}

/// Collects the names of a directory.
#[derive(Default)]
struct Names(Vec<OsString>);

impl DirSink for Names {
    fn entry(&mut self, entry: DirEntry<'_>, _found: Option<Entry>) -> bool {
        self.0.push(entry.name.to_owned());
        true
    }
}
