//! A file system for tests that does what it is told: one directory of files whose bytes, epoch and backing are set by
//! the test, and whose every call first runs the test's hook, which may wait, fail or panic.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hither_rt::sync::Mutex;
use hither_vfs::locks::LockTable;
use hither_vfs::{
    Attr, Backing, Call, Capabilities, Created, DirEntry, DirHandle, DirSink, Entry, Epoch, Errno, Event,
    EventSink, Events, FallocateFlags, FileKind, FileSystem, Handle, Identity, Node, OFlags, PersistentId,
    RenameFlags, Result, SeekTo, SetAttr, StatFs, Timeouts, Timestamp, WriteAt, XattrFlags,
};

/// What runs at the begin of each call, with the operation's name.
pub(crate) type Hook = Arc<dyn Fn(&Call, &str) -> Result<()> + Send + Sync>;

pub(crate) struct Scripted {
    root: Arc<Root>,
    pub(crate) capabilities: Capabilities,
    events: Events,
}

#[derive(Default)]
struct Shared {
    hook: Mutex<Option<Hook>>,
    open_handles: AtomicUsize,
}

impl Shared {
    fn enter(&self, call: &Call, operation: &str) -> Result<()> {
        let hook = self.hook.lock().clone();
        hook.map_or(Ok(()), |hook| hook(call, operation))
    }
}

pub(crate) struct Root {
    shared: Arc<Shared>,
    files: Mutex<BTreeMap<OsString, Arc<File>>>,
    locks: LockTable,
}

/// One file: its present version.
pub(crate) struct File {
    shared: Arc<Shared>,
    ino: u64,
    pub(crate) version: Mutex<Version>,
    locks: LockTable,
}

#[derive(Clone)]
pub(crate) struct Version {
    pub(crate) epoch: Epoch,
    pub(crate) bytes: Arc<Mutex<Vec<u8>>>,
    pub(crate) backing: Option<Backing>,
    pub(crate) mode: u32,
    pub(crate) nlink: u32,
}

impl Version {
    fn attr(&self, ino: u64) -> Attr {
        let time = Timestamp { sec: 1_000_000 + self.epoch as i64, nsec: 0 };
        Attr {
            ino,
            size: self.bytes.lock().len() as u64,
            mode: self.mode,
            nlink: self.nlink,
            atime: time,
            mtime: time,
            ctime: time,
            btime: Some(time),
            blksize: 4096,
            ..Attr::default()
        }
    }
}

struct Open {
    shared: Arc<Shared>,
    ino: u64,
    version: Version,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.open_handles.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Scripted {
    pub(crate) fn new() -> Arc<Self> {
        let day = Duration::from_secs(86_400);
        Arc::new(Scripted {
            root: Arc::new(Root {
                shared: Arc::default(),
                files: Mutex::default(),
                locks: LockTable::default(),
            }),
            capabilities: Capabilities {
                timeouts: Timeouts { entry: day, attr: day },
                backings: true,
                persistent_ids: false,
                hard_links: true,
                symlinks: true,
                special_files: false,
                xattrs: false,
                acls: false,
                rename_exchange: false,
                tmpfile: false,
                fallocate: false,
                sparse: false,
            },
            events: Events::default(),
        })
    }

    /// Adds a file in epoch 1 without a backing.
    pub(crate) fn add(&self, name: &str, bytes: &[u8]) -> Arc<File> {
        let mut files = self.root.files.lock();
        let file = Arc::new(File {
            shared: self.root.shared.clone(),
            ino: 100 + files.len() as u64,
            version: Mutex::new(Version {
                epoch: 1,
                bytes: Arc::new(Mutex::new(bytes.to_vec())),
                backing: None,
                mode: 0o100_644,
                nlink: 1,
            }),
            locks: LockTable::default(),
        });
        files.insert(name.into(), file.clone());
        file
    }

    /// The file of that name.
    pub(crate) fn root_file(&self, name: &str) -> Arc<File> {
        self.root.files.lock()[OsStr::new(name)].clone()
    }

    pub(crate) fn set_hook(&self, hook: impl Fn(&Call, &str) -> Result<()> + Send + Sync + 'static) {
        *self.root.shared.hook.lock() = Some(Arc::new(hook));
    }

    pub(crate) fn tell(&self, event: &Event) {
        self.events.notify(event);
    }

    pub(crate) fn open_handles(&self) -> usize {
        self.root.shared.open_handles.load(Ordering::SeqCst)
    }

    pub(crate) fn root_identity(&self) -> Identity {
        self.root.identity()
    }
}

/// A file without a name that holds `bytes`, to back opens.
pub(crate) fn backing(bytes: &[u8]) -> Backing {
    let file = tempfile::tempfile_in("/dev/shm").unwrap();
    std::io::Write::write_all(&mut &file, bytes).unwrap();
    Backing(Arc::new(OwnedFd::from(file)))
}

impl File {
    fn entry(self: &Arc<Self>) -> Entry {
        let version = self.version.lock();
        Entry { node: self.clone(), attr: version.attr(self.ino), epoch: version.epoch }
    }

    fn open_version(&self) -> Arc<dyn Handle> {
        self.shared.open_handles.fetch_add(1, Ordering::SeqCst);
        Arc::new(Open { shared: self.shared.clone(), ino: self.ino, version: self.version.lock().clone() })
    }

    /// A new version in the next epoch: what is open keeps the old one.
    pub(crate) fn advance(&self, bytes: &[u8], backing: Option<Backing>) {
        let mut version = self.version.lock();
        version.epoch += 1;
        version.bytes = Arc::new(Mutex::new(bytes.to_vec()));
        version.backing = backing;
    }
}

impl FileSystem for Scripted {
    fn root(&self) -> Arc<dyn Node> {
        self.root.clone()
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn statfs(&self, call: &Call) -> Result<StatFs> {
        self.root.shared.enter(call, "statfs")?;
        Ok(StatFs { block_size: 4096, name_max: 255, ..StatFs::default() })
    }

    fn sync(&self, _: &Call) -> Result<()> {
        Ok(())
    }

    fn subscribe(&self, sink: Arc<dyn EventSink>) {
        self.events.subscribe(sink);
    }
}

/// What neither kind of node does.
macro_rules! not_here {
    ($($name:ident($($kind:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, _: &Call $(, _: $kind)*) -> Result<$result> {
            Err(Errno::NOSYS.into())
        })*
    };
}

impl Node for Root {
    fn identity(&self) -> Identity {
        Identity { dev: 1, ino: 1, generation: 0 }
    }

    fn persistent_id(&self, _: &Call) -> Result<Option<PersistentId>> {
        Ok(None)
    }

    fn locks(&self) -> &LockTable {
        &self.locks
    }

    fn getattr(&self, call: &Call) -> Result<Attr> {
        self.shared.enter(call, "getattr")?;
        Ok(Attr { ino: 1, mode: 0o040_777, nlink: 2, ..Attr::default() })
    }

    fn opendir(&self, call: &Call) -> Result<Arc<dyn DirHandle>> {
        self.shared.enter(call, "opendir")?;
        let files = self.files.lock().iter().map(|(name, file)| (name.clone(), file.clone())).collect();
        Ok(Arc::new(Listing { shared: self.shared.clone(), files }))
    }

    fn lookup(&self, call: &Call, name: &OsStr) -> Result<Entry> {
        self.shared.enter(call, "lookup")?;
        Ok(self.files.lock().get(name).ok_or(Errno::NOENT)?.entry())
    }

    fn create(&self, call: &Call, name: &OsStr, _: OFlags, mode: u32) -> Result<Created> {
        self.shared.enter(call, "create")?;
        let mut files = self.files.lock();
        let ino = 100 + files.len() as u64;
        let file = files.entry(name.to_owned()).or_insert_with(|| {
            let mode = 0o100_000 | mode & !call.caller.umask;
            let version = Version { epoch: 1, bytes: Arc::default(), backing: None, mode, nlink: 1 };
            Arc::new(File {
                shared: self.shared.clone(),
                ino,
                version: Mutex::new(version),
                locks: LockTable::default(),
            })
        });
        Ok(Created { entry: file.entry(), handle: file.open_version() })
    }

    fn link(&self, _: &Call, name: &OsStr, node: &dyn Node) -> Result<Entry> {
        let file = self.files.lock().values().find(|file| file.identity() == node.identity()).cloned();
        let file = file.ok_or(Errno::NOENT)?;
        file.version.lock().nlink += 1;
        self.files.lock().insert(name.to_owned(), file.clone());
        Ok(file.entry())
    }

    fn unlink(&self, call: &Call, name: &OsStr) -> Result<()> {
        self.shared.enter(call, "unlink")?;
        let file = self.files.lock().remove(name).ok_or(Errno::NOENT)?;
        file.version.lock().nlink -= 1;
        Ok(())
    }

    fn setattr(&self, _: &Call, _: &SetAttr, _: Option<&dyn Handle>) -> Result<Attr> {
        Err(Errno::PERM.into())
    }

    fn rename(&self, _: &Call, _: &OsStr, _: &dyn Node, _: &OsStr, _: RenameFlags) -> Result<()> {
        Err(Errno::PERM.into())
    }

    fn open(&self, _: &Call, _: OFlags, _: Epoch) -> Result<Arc<dyn Handle>> {
        Err(Errno::ISDIR.into())
    }

    not_here! {
        access(u32) -> ();
        readlink() -> OsString;
        tmpfile(OFlags, u32) -> Created;
        mkdir(&OsStr, u32) -> Entry;
        mknod(&OsStr, u32, u64) -> Entry;
        symlink(&OsStr, &OsStr) -> Entry;
        rmdir(&OsStr) -> ();
        getxattr(&OsStr) -> Vec<u8>;
        setxattr(&OsStr, &[u8], XattrFlags) -> ();
        listxattr() -> Vec<OsString>;
        removexattr(&OsStr) -> ();
        project_id() -> u32;
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Node for File {
    fn identity(&self) -> Identity {
        Identity { dev: 1, ino: self.ino, generation: 0 }
    }

    fn persistent_id(&self, _: &Call) -> Result<Option<PersistentId>> {
        Ok(None)
    }

    fn locks(&self) -> &LockTable {
        &self.locks
    }

    fn getattr(&self, call: &Call) -> Result<Attr> {
        self.shared.enter(call, "getattr")?;
        Ok(self.version.lock().attr(self.ino))
    }

    fn setattr(&self, call: &Call, set: &SetAttr, _: Option<&dyn Handle>) -> Result<Attr> {
        self.shared.enter(call, "setattr")?;
        let mut version = self.version.lock();
        if let Some(mode) = set.mode {
            version.mode = 0o100_000 | mode;
        }
        if let Some(size) = set.size {
            version.bytes.lock().resize(size as usize, 0);
        }
        Ok(version.attr(self.ino))
    }

    fn open(&self, call: &Call, _: OFlags, at: Epoch) -> Result<Arc<dyn Handle>> {
        self.shared.enter(call, "open")?;
        if self.version.lock().epoch != at {
            return Err(Errno::STALE.into());
        }
        Ok(self.open_version())
    }

    fn opendir(&self, _: &Call) -> Result<Arc<dyn DirHandle>> {
        Err(Errno::NOTDIR.into())
    }

    fn rename(&self, _: &Call, _: &OsStr, _: &dyn Node, _: &OsStr, _: RenameFlags) -> Result<()> {
        Err(Errno::NOTDIR.into())
    }

    not_here! {
        access(u32) -> ();
        readlink() -> OsString;
        lookup(&OsStr) -> Entry;
        create(&OsStr, OFlags, u32) -> Created;
        tmpfile(OFlags, u32) -> Created;
        mkdir(&OsStr, u32) -> Entry;
        mknod(&OsStr, u32, u64) -> Entry;
        symlink(&OsStr, &OsStr) -> Entry;
        link(&OsStr, &dyn Node) -> Entry;
        unlink(&OsStr) -> ();
        rmdir(&OsStr) -> ();
        getxattr(&OsStr) -> Vec<u8>;
        setxattr(&OsStr, &[u8], XattrFlags) -> ();
        listxattr() -> Vec<OsString>;
        removexattr(&OsStr) -> ();
        project_id() -> u32;
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Handle for Open {
    fn read(&self, call: &Call, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.shared.enter(call, "read")?;
        let bytes = self.version.bytes.lock();
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write(&self, call: &Call, data: &[u8], at: WriteAt) -> Result<usize> {
        self.shared.enter(call, "write")?;
        let mut bytes = self.version.bytes.lock();
        let begin = match at {
            WriteAt::Offset(offset) => offset as usize,
            WriteAt::End => bytes.len(),
        };
        let end = begin + data.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[begin..end].copy_from_slice(data);
        Ok(data.len())
    }

    fn flush(&self, call: &Call) -> Result<()> {
        self.shared.enter(call, "flush")
    }

    fn fsync(&self, call: &Call, _: bool) -> Result<()> {
        self.shared.enter(call, "fsync")
    }

    not_here! {
        fallocate(FallocateFlags, u64, u64) -> ();
        seek(u64, SeekTo) -> u64;
        copy_range(u64, &dyn Handle, u64, u64) -> u64;
    }

    fn backing(&self) -> Option<Backing> {
        self.version.backing.clone()
    }

    fn keep_cache(&self) -> bool {
        true
    }

    fn getattr(&self, call: &Call) -> Result<Option<Attr>> {
        self.shared.enter(call, "getattr of an open")?;
        Ok(Some(self.version.attr(self.ino)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct Listing {
    shared: Arc<Shared>,
    files: Vec<(OsString, Arc<File>)>,
}

impl DirHandle for Listing {
    fn read(&self, call: &Call, from: u64, plus: bool, sink: &mut dyn DirSink) -> Result<()> {
        self.shared.enter(call, "readdir")?;
        for (at, (name, file)) in self.files.iter().enumerate().skip(from as usize) {
            let entry = DirEntry { name, ino: file.ino, kind: FileKind::Regular, next: at as u64 + 1 };
            if !sink.entry(entry, plus.then(|| file.entry())) {
                break;
            }
        }
        Ok(())
    }

    fn fsync(&self, _: &Call, _: bool) -> Result<()> {
        Ok(())
    }
}

/// A name of `length` bytes.
pub(crate) fn name_of(length: usize) -> OsString {
    OsString::from_vec(vec![b'n'; length])
}
