//! A node: one inode of the tree, and the trait's calls on it.

use std::any::Any;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use hither_rt::sync::Mutex;
use hither_vfs::locks::LockTable;
use hither_vfs::{
    Attr, Call, Created, DirHandle, Entry, Epoch, FileKind, Handle, Identity, Node, OFlags, PersistentId,
    RenameFlags, Result, SetAttr, Timestamp, XattrFlags,
};
use rustix::fs::Statx;

use crate::attr;
use crate::dir::Shared;
use crate::mounts::Mount;

mod attrs;
mod change;
mod create;
mod interning;
mod lookup;
mod open;
mod persistent;
mod reach;
mod xattrs;

use reach::Slot;

/// The epoch of every node: what backs a file here never changes, it is the file.
const EPOCH: Epoch = 0;

/// Where the count of a tree's nodes begins.
pub(crate) const FIRST_BORN: u64 = 1;

/// The descriptor was used since the ring came by.
const USED: u8 = 1;
/// No name leads here any more, as far as is known: only the descriptor does.
const GONE: u8 = 2;
/// The handle led nowhere: the inode is no more, whatever has its number.
const STALE: u8 = 4;
/// Of a directory: the last name looked up in it led to a node that was known already.
const FAMILIAR: u8 = 8;

/// One inode.
pub(crate) struct DirNode {
    shared: Arc<Shared>,
    this: Weak<DirNode>,
    mount: Arc<Mount>,
    identity: Identity,
    /// Which node of the tree this was, counted from its start.
    born: u64,
    /// Time of birth, where it can be relied on.
    btime: Option<Timestamp>,
    kind: FileKind,
    /// The mode as last seen.
    mode: AtomicU32,
    flags: AtomicU8,
    slot: Mutex<Slot>,
    locks: LockTable,
}

impl DirNode {
    fn has(&self, flag: u8) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    fn set(&self, flag: u8, on: bool) {
        // Looked at before it is written, to leave the cache line shared where nothing changes.
        if self.has(flag) != on {
            if on {
                self.flags.fetch_or(flag, Ordering::Relaxed);
            } else {
                self.flags.fetch_and(!flag, Ordering::Relaxed);
            }
        }
    }

    /// Attributes from what was just asked of the host.
    pub(crate) fn attr(&self, stat: &Statx) -> Attr {
        self.mode.store(u32::from(stat.stx_mode), Ordering::Relaxed);
        attr::attr_of(stat, self.shared.root_dev)
    }

    pub(crate) fn entry(self: Arc<Self>, stat: &Statx) -> Entry {
        let attr = self.attr(stat);
        Entry { node: self, attr, epoch: EPOCH }
    }

    /// The set-id bits, as last seen.
    pub(crate) fn set_id_bits(&self) -> u32 {
        self.mode.load(Ordering::Relaxed) & 0o6000
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn mount(&self) -> &Mount {
        &self.mount
    }

    /// The inode number to show.
    pub(crate) fn ino(&self) -> u64 {
        self.ino_of_entry(self.identity.ino)
    }

    /// Whether this is the root of the tree: the first node there was.
    pub(crate) fn is_root(&self) -> bool {
        self.born == FIRST_BORN
    }

    /// The inode number to show for an entry of this directory.
    pub(crate) fn ino_of_entry(&self, ino: u64) -> u64 {
        attr::unique_ino(self.identity.dev, ino, self.shared.root_dev)
    }
}

impl Node for DirNode {
    fn identity(&self) -> Identity {
        self.identity
    }

    fn persistent_id(&self, call: &Call) -> Result<Option<PersistentId>> {
        self.persistent(call)
    }

    fn locks(&self) -> &LockTable {
        &self.locks
    }

    fn getattr(&self, call: &Call) -> Result<Attr> {
        self.shared.admit(call)?;
        Ok(self.attr(&self.shared.asking.of_fd_now(self.reach(call)?.as_fd())?))
    }

    fn setattr(&self, call: &Call, set: &SetAttr, handle: Option<&dyn Handle>) -> Result<Attr> {
        self.change_attr(call, set, handle)
    }

    fn access(&self, call: &Call, mask: u32) -> Result<()> {
        self.may_access(call, mask)
    }

    fn readlink(&self, call: &Call) -> Result<OsString> {
        self.target(call)
    }

    fn open(&self, call: &Call, flags: OFlags, at: Epoch) -> Result<Arc<dyn Handle>> {
        Ok(self.open_file(call, flags, at)?)
    }

    fn opendir(&self, call: &Call) -> Result<Arc<dyn DirHandle>> {
        Ok(self.open_dir(call)?)
    }

    fn lookup(&self, call: &Call, name: &OsStr) -> Result<Entry> {
        self.look_up(call, name)
    }

    fn create(&self, call: &Call, name: &OsStr, flags: OFlags, mode: u32) -> Result<Created> {
        self.create_file(call, name, flags, mode)
    }

    fn tmpfile(&self, call: &Call, flags: OFlags, mode: u32) -> Result<Created> {
        self.create_nameless(call, flags, mode)
    }

    fn mkdir(&self, call: &Call, name: &OsStr, mode: u32) -> Result<Entry> {
        self.create_dir(call, name, mode)
    }

    fn mknod(&self, call: &Call, name: &OsStr, mode: u32, rdev: u64) -> Result<Entry> {
        self.create_special(call, name, mode, rdev)
    }

    fn symlink(&self, call: &Call, name: &OsStr, target: &OsStr) -> Result<Entry> {
        self.create_symlink(call, name, target)
    }

    fn link(&self, call: &Call, name: &OsStr, node: &dyn Node) -> Result<Entry> {
        self.add_name(call, name, node)
    }

    fn unlink(&self, call: &Call, name: &OsStr) -> Result<()> {
        self.remove_name(call, name, rustix::fs::AtFlags::empty())
    }

    fn rmdir(&self, call: &Call, name: &OsStr) -> Result<()> {
        self.remove_name(call, name, rustix::fs::AtFlags::REMOVEDIR)
    }

    fn rename(
        &self,
        call: &Call,
        name: &OsStr,
        new_parent: &dyn Node,
        new_name: &OsStr,
        flags: RenameFlags,
    ) -> Result<()> {
        self.move_name(call, name, new_parent, new_name, flags)
    }

    fn getxattr(&self, call: &Call, name: &OsStr) -> Result<Vec<u8>> {
        self.xattr(call, name)
    }

    fn setxattr(&self, call: &Call, name: &OsStr, value: &[u8], flags: XattrFlags) -> Result<()> {
        self.set_xattr(call, name, value, flags)
    }

    fn listxattr(&self, call: &Call) -> Result<Vec<OsString>> {
        self.xattr_names(call)
    }

    fn removexattr(&self, call: &Call, name: &OsStr) -> Result<()> {
        self.remove_xattr(call, name)
    }

    fn project_id(&self, call: &Call) -> Result<u32> {
        self.project(call)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
