//! A node, which is its inode: what it is made of, and the trait's calls handed to the files that serve them.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use hither_rt::sync::RwLock;
use hither_vfs::locks::LockTable;
use hither_vfs::{
    Attr, Call, Caller, Created, DirHandle, Entry, Epoch, Errno, FileKind, Handle, Identity, Node, OFlags,
    PersistentId, RenameFlags, Result, SetAttr, Timestamp, XattrFlags,
};

use crate::Shared;
use crate::directory::Directory;
use crate::pages::Pages;

/// A file, directory, link or special file.
pub(crate) struct MemNode {
    shared: Arc<Shared>,
    /// For calls on `&self` that must hand out the node itself.
    me: Weak<MemNode>,
    ino: u64,
    kind: FileKind,
    state: RwLock<State>,
    locks: LockTable,
    /// Whether `link` may give a name to an inode that has none: one from `O_TMPFILE` without `O_EXCL`.
    pub(crate) nameless_linkable: AtomicBool,
}

/// What changes of a node.
pub(crate) struct State {
    /// Permission bits, without the type.
    pub(crate) permissions: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) nlink: u32,
    pub(crate) atime: Timestamp,
    pub(crate) mtime: Timestamp,
    pub(crate) ctime: Timestamp,
    pub(crate) btime: Timestamp,
    pub(crate) xattrs: BTreeMap<OsString, Vec<u8>>,
    pub(crate) body: Body,
}

pub(crate) enum Body {
    File { pages: Pages, size: u64 },
    Directory(Directory),
    Symlink(OsString),
    Special { rdev: u64 },
}

impl State {
    /// The entries; ENOTDIR if it is no directory.
    pub(crate) fn directory(&self) -> Result<&Directory> {
        match &self.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(Errno::NOTDIR.into()),
        }
    }

    /// The entries, to be changed; ENOTDIR if it is no directory.
    pub(crate) fn directory_mut(&mut self) -> Result<&mut Directory> {
        match &mut self.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(Errno::NOTDIR.into()),
        }
    }

    /// Notes that bytes or entries changed.
    pub(crate) fn changed(&mut self, now: Timestamp) {
        self.mtime = now;
        self.ctime = now;
    }
}

/// What a new node begins with.
pub(crate) struct Seed {
    pub(crate) kind: FileKind,
    pub(crate) permissions: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) nlink: u32,
    pub(crate) body: Body,
}

impl MemNode {
    /// A new inode; ENOSPC if there is none left.
    pub(crate) fn new(shared: &Arc<Shared>, seed: Seed) -> Result<Arc<Self>> {
        shared.space.take_inode()?;
        Ok(MemNode::build(shared, seed))
    }

    pub(crate) fn root(shared: &Arc<Shared>) -> Arc<Self> {
        let (kind, body) = (FileKind::Directory, Body::Directory(Directory::new(Weak::new())));
        // The root is not counted against the limit of inodes, so that there always is one; but `Drop` gives it back.
        let counted = shared.space.take_inode();
        debug_assert!(counted.is_ok(), "no file system without an inode");
        let Caller { uid, gid, .. } = Caller::this_process();
        MemNode::build(shared, Seed { kind, permissions: 0o755, uid, gid, nlink: 2, body })
    }

    fn build(shared: &Arc<Shared>, seed: Seed) -> Arc<Self> {
        let now = shared.clock.tick();
        let state = State {
            permissions: seed.permissions,
            uid: seed.uid,
            gid: seed.gid,
            nlink: seed.nlink,
            atime: now,
            mtime: now,
            ctime: now,
            btime: now,
            xattrs: BTreeMap::new(),
            body: seed.body,
        };
        Arc::new_cyclic(|me| MemNode {
            shared: shared.clone(),
            me: me.clone(),
            ino: shared.next_ino(),
            kind: seed.kind,
            state: RwLock::new(state),
            locks: LockTable::default(),
            nameless_linkable: AtomicBool::new(false),
        })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn me(&self) -> &Weak<MemNode> {
        &self.me
    }

    pub(crate) fn ino(&self) -> u64 {
        self.ino
    }

    pub(crate) fn kind(&self) -> FileKind {
        self.kind
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.kind == FileKind::Directory
    }

    pub(crate) fn state(&self) -> &RwLock<State> {
        &self.state
    }

    /// The node as one of this file system; EXDEV if it is another's.
    pub(crate) fn of_ours<'a>(&self, node: &'a dyn Node) -> Result<&'a MemNode> {
        let ours = node.as_any().downcast_ref::<MemNode>();
        ours.filter(|node| Arc::ptr_eq(&node.shared, &self.shared)).ok_or_else(|| Errno::XDEV.into())
    }

    /// The node with its attributes now.
    pub(crate) fn entry(self: &Arc<Self>) -> Entry {
        Entry { node: self.clone(), attr: self.attr(), epoch: 0 }
    }
}

impl Drop for MemNode {
    /// Gives back what the inode took, and takes a tree apart without recursion: it may be deeper than the stack.
    fn drop(&mut self) {
        self.shared.space.give_inode();
        let mut orphans: Vec<Arc<MemNode>> = Vec::new();
        match &mut self.state.get_mut().body {
            Body::File { pages, .. } => pages.clear(&self.shared.space),
            Body::Directory(directory) => orphans.extend(directory.drain()),
            Body::Symlink(_) | Body::Special { .. } => {}
        }
        while let Some(orphan) = orphans.pop() {
            if let Some(mut last) = Arc::into_inner(orphan)
                && let Body::Directory(directory) = &mut last.state.get_mut().body
            {
                orphans.extend(directory.drain());
            }
        }
    }
}

impl Node for MemNode {
    fn identity(&self) -> Identity {
        Identity { dev: 0, ino: self.ino, generation: 0 }
    }

    fn persistent_id(&self, _: &Call) -> Result<Option<PersistentId>> {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.shared.instance.to_le_bytes());
        id[8..].copy_from_slice(&self.ino.to_le_bytes());
        Ok(Some(PersistentId(Box::from(id))))
    }

    fn locks(&self) -> &LockTable {
        &self.locks
    }

    fn getattr(&self, _: &Call) -> Result<Attr> {
        Ok(self.attr())
    }

    fn setattr(&self, call: &Call, set: &SetAttr, handle: Option<&dyn Handle>) -> Result<Attr> {
        self.set_attr(&call.caller, set, handle)
    }

    fn access(&self, call: &Call, mask: u32) -> Result<()> {
        self.may(&call.caller, mask)
    }

    fn readlink(&self, _: &Call) -> Result<OsString> {
        self.target()
    }

    fn open(&self, call: &Call, flags: OFlags, at: Epoch) -> Result<Arc<dyn Handle>> {
        self.open_file(&call.caller, flags, at)
    }

    fn opendir(&self, _: &Call) -> Result<Arc<dyn DirHandle>> {
        self.open_listing()
    }

    fn lookup(&self, _: &Call, name: &OsStr) -> Result<Entry> {
        Ok(self.child(name)?.entry())
    }

    fn create(&self, call: &Call, name: &OsStr, flags: OFlags, mode: u32) -> Result<Created> {
        self.create_file(&call.caller, name, flags, mode)
    }

    fn tmpfile(&self, call: &Call, flags: OFlags, mode: u32) -> Result<Created> {
        self.create_nameless(&call.caller, flags, mode)
    }

    fn mkdir(&self, call: &Call, name: &OsStr, mode: u32) -> Result<Entry> {
        self.make_directory(&call.caller, name, mode)
    }

    fn mknod(&self, call: &Call, name: &OsStr, mode: u32, rdev: u64) -> Result<Entry> {
        self.make_node(&call.caller, name, mode, rdev)
    }

    fn symlink(&self, call: &Call, name: &OsStr, target: &OsStr) -> Result<Entry> {
        self.make_symlink(&call.caller, name, target)
    }

    fn link(&self, _: &Call, name: &OsStr, node: &dyn Node) -> Result<Entry> {
        self.add_link(name, self.of_ours(node)?)
    }

    fn unlink(&self, _: &Call, name: &OsStr) -> Result<()> {
        self.remove_file(name)
    }

    fn rmdir(&self, _: &Call, name: &OsStr) -> Result<()> {
        self.remove_directory(name)
    }

    fn rename(
        &self,
        _: &Call,
        name: &OsStr,
        new_parent: &dyn Node,
        new_name: &OsStr,
        flags: RenameFlags,
    ) -> Result<()> {
        self.rename_child(name, self.of_ours(new_parent)?, new_name, flags)
    }

    fn getxattr(&self, _: &Call, name: &OsStr) -> Result<Vec<u8>> {
        self.xattr(name)
    }

    fn setxattr(&self, _: &Call, name: &OsStr, value: &[u8], flags: XattrFlags) -> Result<()> {
        self.set_xattr(name, value, flags)
    }

    fn listxattr(&self, _: &Call) -> Result<Vec<OsString>> {
        Ok(self.state.read().xattrs.keys().cloned().collect())
    }

    fn removexattr(&self, _: &Call, name: &OsStr) -> Result<()> {
        self.remove_xattr(name)
    }

    fn project_id(&self, _: &Call) -> Result<u32> {
        Ok(0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
