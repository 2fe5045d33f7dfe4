//! A node: a file, a directory, a link, and what can be done to it.

use std::any::Any;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use rustix::fs::{OFlags, RenameFlags, XattrFlags};
use rustix::io::Errno;

use crate::locks::LockTable;
use crate::{Attr, Call, DirHandle, Handle, Result, SetAttr};

/// Names one inode while its file system is up. Equal for all names of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Which device (or part) of the file system, where it spans several.
    pub dev: u64,
    /// Which inode on it.
    pub ino: u64,
    /// Tells apart inodes that had one number after another; 0 where the file system does not tell.
    pub generation: u64,
}

/// Names one inode for ever: over restarts of the daemon and of the machine, and never another inode that gets the
/// same number later. At most [`PersistentId::MAX_LEN`] bytes (a file handle, `name_to_handle_at(2)`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PersistentId(pub Box<[u8]>);

impl PersistentId {
    /// Bytes: a file handle (128) with its type and a device.
    pub const MAX_LEN: usize = 160;
}

/// Names what backs a file's opens; 0 is "nothing: we serve them". When that changes (a copy is complete, a new
/// version, a writer came) the epoch moves; an open that names another one fails with ESTALE and the file is looked up
/// again. Opens of different epochs live side by side. See "The one idea: a backing" in ARCHITECTURE.md.
pub type Epoch = u64;

/// What a name leads to.
#[derive(Clone)]
pub struct Entry {
    /// The node.
    pub node: Arc<dyn Node>,
    /// Its attributes now.
    pub attr: Attr,
    /// Its backing epoch now: what `open` will want to be told.
    pub epoch: Epoch,
}

/// What `create` made.
pub struct Created {
    /// The new file.
    pub entry: Entry,
    /// The open of it, of the entry's epoch.
    pub handle: Arc<dyn Handle>,
}

/// A file, directory, link or special file. The same `Arc` for one inode for as long as anyone holds it.
///
/// Names are any bytes but `/` and NUL, at most 255 of them, never `.` or `..`. Errors are those of the system call of
/// the same name.
pub trait Node: Send + Sync + Any {
    /// Which inode this is.
    fn identity(&self) -> Identity;

    /// Which inode this is, for ever; `None` where the file system cannot tell.
    fn persistent_id(&self, call: &Call) -> Result<Option<PersistentId>>;

    /// POSIX and flock locks of this inode, over all its epochs.
    fn locks(&self) -> &LockTable;

    /// Attributes.
    fn getattr(&self, call: &Call) -> Result<Attr>;

    /// Changes attributes; `handle` is the open through which a program did it (`ftruncate`), which needs no
    /// permission of its own. Returns the attributes after.
    fn setattr(&self, call: &Call, set: &SetAttr, handle: Option<&dyn Handle>) -> Result<Attr>;

    /// Whether the caller may read (4), write (2), execute (1), as `access(2)`; 0 asks for existence.
    fn access(&self, call: &Call, mask: u32) -> Result<()>;

    /// The target of a symbolic link.
    fn readlink(&self, call: &Call) -> Result<OsString>;

    /// Opens a file that was looked up in epoch `at`; ESTALE, with nothing done, if the epoch has moved since or moves
    /// by this very open.
    /// `flags` carry the access mode, `TRUNC`, `APPEND`, `DIRECT`, `SYNC`, `DSYNC`, `NOATIME`.
    fn open(&self, call: &Call, flags: OFlags, at: Epoch) -> Result<Arc<dyn Handle>>;

    /// Opens a directory.
    fn opendir(&self, call: &Call) -> Result<Arc<dyn DirHandle>>;

    /// What `name` leads to in this directory; ENOENT if nothing.
    fn lookup(&self, call: &Call, name: &OsStr) -> Result<Entry>;

    /// Creates and opens a regular file, or opens the one that is there unless `flags` have `EXCL`. `mode` is as
    /// the program gave it; the caller's umask still applies (unless a default ACL says otherwise).
    fn create(&self, call: &Call, name: &OsStr, flags: OFlags, mode: u32) -> Result<Created>;

    /// Opens a nameless regular file in this directory (`O_TMPFILE`).
    fn tmpfile(&self, call: &Call, flags: OFlags, mode: u32) -> Result<Created>;

    /// Makes a directory.
    fn mkdir(&self, call: &Call, name: &OsStr, mode: u32) -> Result<Entry>;

    /// Makes a file of the type in `mode` (regular, FIFO, socket, device `rdev`).
    fn mknod(&self, call: &Call, name: &OsStr, mode: u32, rdev: u64) -> Result<Entry>;

    /// Makes a symbolic link to `target`.
    fn symlink(&self, call: &Call, name: &OsStr, target: &OsStr) -> Result<Entry>;

    /// Gives `node` (of this file system; EXDEV otherwise) another name here.
    fn link(&self, call: &Call, name: &OsStr, node: &dyn Node) -> Result<Entry>;

    /// Removes a name that is not a directory's.
    fn unlink(&self, call: &Call, name: &OsStr) -> Result<()>;

    /// Removes an empty directory.
    fn rmdir(&self, call: &Call, name: &OsStr) -> Result<()>;

    /// Moves `name` to `new_name` in `new_parent` (of this file system; EXDEV otherwise), as `renameat2(2)`.
    fn rename(
        &self,
        call: &Call,
        name: &OsStr,
        new_parent: &dyn Node,
        new_name: &OsStr,
        flags: RenameFlags,
    ) -> Result<()>;

    /// The value of an extended attribute; ENODATA if it has none of that name.
    fn getxattr(&self, call: &Call, name: &OsStr) -> Result<Vec<u8>>;

    /// Sets an extended attribute.
    fn setxattr(&self, call: &Call, name: &OsStr, value: &[u8], flags: XattrFlags) -> Result<()>;

    /// The names of the extended attributes.
    fn listxattr(&self, call: &Call) -> Result<Vec<OsString>>;

    /// Removes an extended attribute.
    fn removexattr(&self, call: &Call, name: &OsStr) -> Result<()>;

    /// The project id (`FS_IOC_FSGETXATTR`); 0 where there are none.
    fn project_id(&self, call: &Call) -> Result<u32>;

    /// For a file system to find its own nodes again among those it is handed.
    fn as_any(&self) -> &dyn Any;
}

/// Opens `name` of `parent` as the kernel does: looks it up, opens, and looks it up again if the epoch moved meanwhile.
/// For callers that are not a front end.
pub fn open_current(
    call: &Call,
    parent: &dyn Node,
    name: &OsStr,
    flags: OFlags,
) -> Result<(Entry, Arc<dyn Handle>)> {
    const TRIES: usize = 16;
    let mut stale = Errno::STALE.into();
    // The node is held over the next lookup, so that it remembers what it refused, as the kernel holds it.
    let mut refused = None;
    for _ in 0..TRIES {
        let entry = parent.lookup(call, name)?;
        match entry.node.open(call, flags, entry.epoch) {
            Ok(handle) => return Ok((entry, handle)),
            Err(error) if error == Errno::STALE => stale = error,
            Err(error) => return Err(error),
        }
        refused.replace(entry);
    }
    Err(stale)
}
