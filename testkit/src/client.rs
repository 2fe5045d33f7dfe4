//! A program's view of a file system in this process: paths, and the lookups and loops that a kernel makes for it.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path};
use std::sync::Arc;

use hither_vfs::{
    Attr, Call, Caller, Created, DirEntry, DirSink, Entry, Errno, FileKind, FileSystem, Handle, Node, OFlags,
    Patience, Result, WriteAt, open_current,
};

/// Bytes read at a time by [`Client::read`].
const READ_BYTES: usize = 64 * 1024;

/// What buffers are filled with before a read: zeros would hide that holes were not written to them.
const UNREAD: u8 = 0xa5;

/// Makes calls as one caller, from a directory on. Paths are relative to it; symbolic links are not followed.
#[derive(Clone)]
pub struct Client {
    root: Arc<dyn Node>,
    call: Call,
}

/// An entry of a listing.
#[derive(Clone)]
pub struct Listed {
    /// The name.
    pub name: OsString,
    /// The inode number that was told.
    pub ino: u64,
    /// The type that was told.
    pub kind: FileKind,
    /// The position behind it.
    pub next: u64,
    /// Node and attributes, of a listing that asks for them.
    pub found: Option<Entry>,
}

impl Client {
    /// A client of this process's user, at the root of `fs`.
    pub fn new(fs: &dyn FileSystem) -> Self {
        Client::at(fs.root(), Call::own())
    }

    /// A client at some directory.
    pub fn at(root: Arc<dyn Node>, call: Call) -> Self {
        Client { root, call }
    }

    /// The same place for another caller.
    pub fn as_caller(&self, caller: Caller) -> Self {
        Client { root: self.root.clone(), call: Call::new(caller, self.call.patience.clone()) }
    }

    /// The same caller with another patience.
    pub fn with_patience(&self, patience: Patience) -> Self {
        Client { root: self.root.clone(), call: Call::new(self.call.caller.clone(), patience) }
    }

    /// The same caller in another directory.
    pub fn within(&self, path: impl AsRef<Path>) -> Result<Self> {
        Ok(Client { root: self.node(path)?, call: self.call.clone() })
    }

    /// What its calls carry.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The directory that paths begin at.
    pub fn root(&self) -> &Arc<dyn Node> {
        &self.root
    }

    /// The node of a path; an empty path is the root.
    pub fn node(&self, path: impl AsRef<Path>) -> Result<Arc<dyn Node>> {
        let mut node = self.root.clone();
        for name in names(path.as_ref()) {
            node = node.lookup(&self.call, name)?.node;
        }
        Ok(node)
    }

    /// The directory of a path's last name, and that name; ENOTDIR if it is no directory.
    pub fn parent<'a>(&self, path: &'a (impl AsRef<Path> + ?Sized)) -> Result<(Arc<dyn Node>, &'a OsStr)> {
        let path = path.as_ref();
        let name = names(path).last().ok_or(Errno::INVAL)?;
        let mut node = self.root.clone();
        for part in names(path.parent().unwrap_or(Path::new(""))) {
            let entry = node.lookup(&self.call, part)?;
            if entry.attr.kind() != FileKind::Directory {
                return Err(Errno::NOTDIR.into());
            }
            node = entry.node;
        }
        Ok((node, name))
    }

    /// What a path leads to.
    pub fn lookup(&self, path: impl AsRef<Path>) -> Result<Entry> {
        let (parent, name) = self.parent(path.as_ref())?;
        parent.lookup(&self.call, name)
    }

    /// Attributes, asked of the node.
    pub fn attr(&self, path: impl AsRef<Path>) -> Result<Attr> {
        self.node(path)?.getattr(&self.call)
    }

    /// Creates (or opens) and keeps open.
    pub fn create(&self, path: impl AsRef<Path>, flags: OFlags, mode: u32) -> Result<Created> {
        let (parent, name) = self.parent(path.as_ref())?;
        parent.create(&self.call, name, flags, mode)
    }

    /// Opens what is there.
    pub fn open(&self, path: impl AsRef<Path>, flags: OFlags) -> Result<Arc<dyn Handle>> {
        let (parent, name) = self.parent(path.as_ref())?;
        Ok(open_current(&self.call, &*parent, name, flags)?.1)
    }

    /// Makes a directory.
    pub fn mkdir(&self, path: impl AsRef<Path>, mode: u32) -> Result<Entry> {
        let (parent, name) = self.parent(path.as_ref())?;
        parent.mkdir(&self.call, name, mode)
    }

    /// Removes a name.
    pub fn unlink(&self, path: impl AsRef<Path>) -> Result<()> {
        let (parent, name) = self.parent(path.as_ref())?;
        parent.unlink(&self.call, name)
    }

    /// Removes a directory.
    pub fn rmdir(&self, path: impl AsRef<Path>) -> Result<()> {
        let (parent, name) = self.parent(path.as_ref())?;
        parent.rmdir(&self.call, name)
    }

    /// Gives what is at `from` the further name `to`.
    pub fn link(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Entry> {
        let node = self.node(from)?;
        let (parent, name) = self.parent(to.as_ref())?;
        parent.link(&self.call, name, &*node)
    }

    /// Makes a symbolic link.
    pub fn symlink(&self, target: impl AsRef<OsStr>, path: impl AsRef<Path>) -> Result<Entry> {
        let (parent, name) = self.parent(path.as_ref())?;
        parent.symlink(&self.call, name, target.as_ref())
    }

    /// Renames.
    pub fn rename(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        flags: hither_vfs::RenameFlags,
    ) -> Result<()> {
        let (parent, name) = self.parent(from.as_ref())?;
        let (new_parent, new_name) = self.parent(to.as_ref())?;
        parent.rename(&self.call, name, &*new_parent, new_name, flags)
    }

    /// Makes a file of these bytes, in place of what was in it.
    pub fn write(&self, path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
        let created = self.create(path, OFlags::WRONLY | OFlags::TRUNC, 0o644)?;
        self.write_at(&*created.handle, bytes, 0)?;
        created.handle.flush(&self.call)
    }

    /// Writes all of `bytes`.
    pub fn write_at(&self, handle: &dyn Handle, bytes: &[u8], offset: u64) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let at = WriteAt::Offset(offset + done as u64);
            match handle.write(&self.call, &bytes[done..], at)? {
                0 => return Err(Errno::IO.into()),
                written => done += written,
            }
        }
        Ok(())
    }

    /// All bytes of a file.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>> {
        self.read_open(&*self.open(path, OFlags::RDONLY)?)
    }

    /// All bytes of an open file.
    pub fn read_open(&self, handle: &dyn Handle) -> Result<Vec<u8>> {
        let (mut bytes, mut piece) = (Vec::new(), vec![UNREAD; READ_BYTES]);
        loop {
            let got = handle.read(&self.call, &mut piece, bytes.len() as u64)?;
            bytes.extend_from_slice(&piece[..got]);
            if got < READ_BYTES {
                return Ok(bytes);
            }
            piece.fill(UNREAD);
        }
    }

    /// Up to `length` bytes from `offset`.
    pub fn read_at(&self, handle: &dyn Handle, offset: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![UNREAD; length];
        let got = handle.read(&self.call, &mut bytes, offset)?;
        bytes.truncate(got);
        Ok(bytes)
    }

    /// The entries of a directory but for `.` and `..`, in its order.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Vec<Listed>> {
        let all = self.list_node(&*self.node(path)?, false)?;
        Ok(all.into_iter().filter(|listed| listed.name != "." && listed.name != "..").collect())
    }

    /// All entries of a directory, in its order; with nodes and attributes if `plus`.
    pub fn list_node(&self, node: &dyn Node, plus: bool) -> Result<Vec<Listed>> {
        let mut sink = Collect { listed: Vec::new(), most: usize::MAX };
        node.opendir(&self.call)?.read(&self.call, 0, plus, &mut sink)?;
        Ok(sink.listed)
    }
}

/// The names of a path.
fn names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        _ => None,
    })
}

/// Takes up to so many entries.
pub struct Collect {
    /// What was taken.
    pub listed: Vec<Listed>,
    /// How many to take.
    pub most: usize,
}

impl DirSink for Collect {
    fn entry(&mut self, entry: DirEntry<'_>, found: Option<Entry>) -> bool {
        if self.listed.len() >= self.most {
            return false;
        }
        let DirEntry { name, ino, kind, next } = entry;
        self.listed.push(Listed { name: name.to_owned(), ino, kind, next, found });
        true
    }
}
