//! The operations on a file system of ours.

use std::collections::BTreeMap;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;

use hither_vfs::{
    Caller, Entry, Errno, FallocateFlags, FileKind, FileSystem, Handle, Identity, Node, OFlags, RenameFlags,
    Result, SetAttr, SetTime, Timestamp, WriteAt, XattrFlags,
};

use super::Target;
use super::op::{Creating, NodeKind, Op, Place, Renaming, SLOTS, Setting, TARGETS, Time};
use super::outcome::{Item, Outcome, Stat, State, UMASK};
use super::tree::xattr;
use crate::Client;

/// A file system under test, and what is held open in it.
pub(crate) struct Subject {
    /// Kept, since nodes need not keep it.
    _fs: Arc<dyn FileSystem>,
    client: Client,
    held: [Option<Held>; SLOTS],
}

/// An open file.
type Held = (Arc<dyn Node>, Arc<dyn Handle>);

impl Subject {
    pub(crate) fn new(fs: Arc<dyn FileSystem>) -> Result<Self> {
        let mut caller = Caller::this_process();
        caller.umask = UMASK;
        let client = Client::new(&*fs).as_caller(caller);
        Ok(Subject { _fs: fs, client, held: [const { None }; SLOTS] })
    }

    /// Opens a regular file; `None` for a special one, which the kernel would open by itself.
    fn open(&self, at: &Place, flags: OFlags) -> Result<Option<Arc<dyn Handle>>> {
        if is_special(&self.client.lookup(at.path())?) {
            return Ok(None);
        }
        self.client.open(at.path(), flags).map(Some)
    }

    fn with_open(
        &self,
        at: &Place,
        flags: OFlags,
        act: impl FnOnce(&dyn Handle) -> Result<Outcome>,
    ) -> Result<Outcome> {
        match self.open(at, flags)? {
            Some(handle) => {
                let outcome = act(&*handle)?;
                handle.flush(self.client.call())?;
                Ok(outcome)
            }
            None => Ok(Outcome::NotAsked),
        }
    }

    fn create(&self, at: &Place, mode: u16, how: Creating) -> Result<Outcome> {
        let flags = match how {
            Creating::Open => OFlags::RDWR,
            Creating::Exclusive => OFlags::RDWR | OFlags::EXCL,
            Creating::Truncate => OFlags::RDWR | OFlags::TRUNC,
        };
        if how != Creating::Exclusive && self.client.lookup(at.path()).is_ok_and(|entry| is_special(&entry)) {
            return Ok(Outcome::NotAsked);
        }
        let created = self.client.create(at.path(), flags, mode.into())?;
        let again = self.client.lookup(at.path())?;
        same(&created.entry, &again)?;
        Ok(Outcome::Stat((&created.entry.attr).into()))
    }

    fn made(&self, at: &Place, entry: Result<Entry>) -> Result<Outcome> {
        let entry = entry?;
        same(&entry, &self.client.lookup(at.path())?)?;
        Ok(Outcome::Stat((&entry.attr).into()))
    }

    fn mknod(&self, at: &Place, mode: u16, kind: NodeKind) -> Result<Outcome> {
        let kind = match kind {
            NodeKind::Regular => FileKind::Regular,
            NodeKind::Fifo => FileKind::Fifo,
            NodeKind::Socket => FileKind::Socket,
        };
        let path = at.path();
        let (parent, name) = self.client.parent(&path)?;
        self.made(at, parent.mknod(self.client.call(), name, kind.mode_bits() | u32::from(mode), 0))
    }

    fn rename(&self, from: &Place, to: &Place, how: Renaming) -> Result<Outcome> {
        let flags = match how {
            Renaming::Replace => RenameFlags::empty(),
            Renaming::NoReplace => RenameFlags::NOREPLACE,
            Renaming::Exchange => RenameFlags::EXCHANGE,
        };
        self.client.rename(from.path(), to.path(), flags).map(|()| Outcome::Done)
    }

    fn set(&self, at: &Place, set: SetAttr) -> Result<Outcome> {
        let node = self.client.node(at.path())?;
        let attr = node.setattr(self.client.call(), &set, None)?;
        let stat = (&attr).into();
        Ok(if set.atime.is_some() { Outcome::Times(stat, attr.atime.into()) } else { Outcome::Stat(stat) })
    }

    fn write(&self, handle: &dyn Handle, at: WriteAt, length: u16, fill: u8) -> Result<Outcome> {
        let written = handle.write(self.client.call(), &vec![fill; length.into()], at)?;
        Ok(Outcome::Moved(written as u64))
    }

    fn read(&self, handle: &dyn Handle, offset: u32, length: u16) -> Result<Outcome> {
        self.client.read_at(handle, offset.into(), length.into()).map(Outcome::Bytes)
    }

    fn copy(&self, from: &Place, offset: u32, to: &Place, to_offset: u32, length: u16) -> Result<Outcome> {
        let Some(from) = self.open(from, OFlags::RDONLY)? else { return Ok(Outcome::NotAsked) };
        let Some(to) = self.open(to, OFlags::WRONLY)? else { return Ok(Outcome::NotAsked) };
        // Once: a second call would find what the first has added to the end.
        let copied =
            from.copy_range(self.client.call(), offset.into(), &*to, to_offset.into(), length.into())?;
        Ok(Outcome::Moved(copied))
    }

    fn list(&self, at: &Place) -> Result<Outcome> {
        let mut names: Vec<_> = self
            .client
            .list(at.path())?
            .into_iter()
            .map(|listed| (listed.name.into_vec(), Some(listed.kind)))
            .collect();
        names.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(Outcome::Names(names))
    }

    fn set_xattr(&self, at: &Place, key: u8, value: u16, how: Setting) -> Result<Outcome> {
        let flags = match how {
            Setting::Any => XattrFlags::empty(),
            Setting::Create => XattrFlags::CREATE,
            Setting::Replace => XattrFlags::REPLACE,
        };
        let (key, value) = xattr(key, value);
        let node = self.client.node(at.path())?;
        node.setxattr(self.client.call(), std::ffi::OsStr::from_bytes(&key), &value, flags)?;
        Ok(Outcome::Done)
    }

    fn on_key(&self, at: &Place, key: u8, remove: bool) -> Result<Outcome> {
        let (node, (key, _)) = (self.client.node(at.path())?, xattr(key, 0));
        let key = std::ffi::OsStr::from_bytes(&key);
        if remove {
            return node.removexattr(self.client.call(), key).map(|()| Outcome::Done);
        }
        node.getxattr(self.client.call(), key).map(Outcome::Bytes)
    }

    fn keys(&self, node: &dyn Node) -> Result<Vec<Vec<u8>>> {
        let names = node.listxattr(self.client.call())?.into_iter().map(OsStringExt::into_vec);
        let mut names: Vec<Vec<u8>> = names.filter(|name: &Vec<u8>| name.starts_with(b"user.")).collect();
        names.sort();
        Ok(names)
    }

    fn hold(&mut self, slot: u8, at: &Place) -> Result<Outcome> {
        let Some(handle) = self.open(at, OFlags::RDWR)? else { return Ok(Outcome::NotAsked) };
        self.held[usize::from(slot)] = Some((self.client.node(at.path())?, handle));
        Ok(Outcome::Done)
    }

    fn hold_nameless(&mut self, slot: u8, within: &Place, mode: u16, exclusive: bool) -> Result<Outcome> {
        let flags = OFlags::RDWR | if exclusive { OFlags::EXCL } else { OFlags::empty() };
        let directory = self.client.node(within.path())?;
        let created = directory.tmpfile(self.client.call(), flags, mode.into())?;
        self.held[usize::from(slot)] = Some((created.entry.node, created.handle));
        Ok(Outcome::Stat((&created.entry.attr).into()))
    }

    fn name_held(&self, node: &dyn Node, to: &Place) -> Result<Outcome> {
        let path = to.path();
        let (parent, name) = self.client.parent(&path)?;
        self.made(to, parent.link(self.client.call(), name, node))
    }

    fn on_names(&mut self, op: &Op) -> Result<Outcome> {
        match op {
            Op::Create { at, mode, how } => self.create(at, *mode, *how),
            Op::Mkdir { at, mode } => self.made(at, self.client.mkdir(at.path(), (*mode).into())),
            Op::Mknod { at, mode, kind } => self.mknod(at, *mode, *kind),
            Op::Symlink { at, target } => {
                self.made(at, self.client.symlink(TARGETS[usize::from(*target)], at.path()))
            }
            Op::Link { from, to } => self.made(to, self.client.link(from.path(), to.path())),
            Op::Unlink { at } => self.client.unlink(at.path()).map(|()| Outcome::Done),
            Op::Rmdir { at } => self.client.rmdir(at.path()).map(|()| Outcome::Done),
            Op::Rename { from, to, how } => self.rename(from, to, *how),
            Op::Stat { at } => Ok(Outcome::Stat((&self.client.attr(at.path())?).into())),
            Op::Readlink { at } => {
                let target = self.client.node(at.path())?.readlink(self.client.call())?;
                Ok(Outcome::Bytes(target.into_vec()))
            }
            Op::List { at } => self.list(at),
            Op::Chmod { at, mode } => {
                self.set(at, SetAttr { mode: Some((*mode).into()), ..SetAttr::default() })
            }
            Op::Chown { at, uid, gid } => {
                let (uid, gid) = (Some((*uid).into()), Some((*gid).into()));
                self.set(at, SetAttr { uid, gid, ..SetAttr::default() })
            }
            Op::SetTimes { at, atime, mtime } => {
                self.set(at, SetAttr { atime: time(*atime), mtime: time(*mtime), ..SetAttr::default() })
            }
            Op::SetXattr { at, key, value, how } => self.set_xattr(at, *key, *value, *how),
            Op::GetXattr { at, key } => self.on_key(at, *key, false),
            Op::RemoveXattr { at, key } => self.on_key(at, *key, true),
            Op::ListXattrs { at } => {
                let keys = self.keys(&*self.client.node(at.path())?)?;
                Ok(Outcome::Names(keys.into_iter().map(|key| (key, None)).collect()))
            }
            Op::Hold { slot, at } => self.hold(*slot, at),
            Op::HoldNameless { slot, within, mode, exclusive } => {
                self.hold_nameless(*slot, within, *mode, *exclusive)
            }
            Op::Release { slot } => {
                let held = self.held[usize::from(*slot)].take();
                Ok(held.map_or(Outcome::NotAsked, |_| Outcome::Done))
            }
            _ => self.on_bytes(op),
        }
    }

    fn on_bytes(&self, op: &Op) -> Result<Outcome> {
        let offset = |offset: &u32| WriteAt::Offset((*offset).into());
        match op {
            Op::Write { at, offset: to, length, fill } => {
                self.with_open(at, OFlags::WRONLY, |handle| self.write(handle, offset(to), *length, *fill))
            }
            Op::Append { at, length, fill } => {
                self.with_open(at, OFlags::WRONLY | OFlags::APPEND, |handle| {
                    self.write(handle, WriteAt::End, *length, *fill)
                })
            }
            Op::Read { at, offset, length } => {
                self.with_open(at, OFlags::RDONLY, |handle| self.read(handle, *offset, *length))
            }
            Op::OpenTruncate { at } => {
                self.with_open(at, OFlags::WRONLY | OFlags::TRUNC, |_| Ok(Outcome::Done))
            }
            Op::Resize { at, size } => {
                // With the time, as the kernel asks for it: whether a size that is set to what it was moves the time
                // by itself is up to the file system.
                let (size, mtime) = (Some((*size).into()), Some(SetTime::Now));
                self.set(at, SetAttr { size, mtime, ..SetAttr::default() })
            }
            Op::Allocate { at, offset, length, keep_size } => self.with_open(at, OFlags::WRONLY, |handle| {
                let flags = if *keep_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
                handle.fallocate(self.client.call(), flags, (*offset).into(), (*length).into())?;
                Ok(Outcome::Done)
            }),
            Op::Punch { at, offset, length } => self.with_open(at, OFlags::WRONLY, |handle| {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                handle.fallocate(self.client.call(), flags, (*offset).into(), (*length).into())?;
                Ok(Outcome::Done)
            }),
            Op::Copy { from, offset, to, to_offset, length } => {
                self.copy(from, *offset, to, *to_offset, *length)
            }
            _ => self.on_held(op),
        }
    }

    fn on_held(&self, op: &Op) -> Result<Outcome> {
        let slot = match op {
            Op::ReadHeld { slot, .. } | Op::WriteHeld { slot, .. } | Op::AppendHeld { slot, .. } => slot,
            Op::ResizeHeld { slot, .. } | Op::StatHeld { slot } | Op::NameHeld { slot, .. } => slot,
            _ => return Ok(Outcome::NotAsked),
        };
        let Some((node, handle)) = &self.held[usize::from(*slot)] else { return Ok(Outcome::NotAsked) };
        match op {
            Op::ReadHeld { offset, length, .. } => self.read(&**handle, *offset, *length),
            Op::WriteHeld { offset, length, fill, .. } => {
                self.write(&**handle, WriteAt::Offset((*offset).into()), *length, *fill)
            }
            Op::AppendHeld { length, fill, .. } => self.write(&**handle, WriteAt::End, *length, *fill),
            Op::ResizeHeld { size, .. } => {
                let (size, mtime) = (Some((*size).into()), Some(SetTime::Now));
                let set = SetAttr { size, mtime, ..SetAttr::default() };
                let attr = node.setattr(self.client.call(), &set, Some(&**handle))?;
                Ok(Outcome::Stat((&attr).into()))
            }
            Op::NameHeld { to, .. } => self.name_held(&**node, to),
            _ => Ok(Outcome::Stat((&node.getattr(self.client.call())?).into())),
        }
    }

    fn collect(
        &self,
        directory: &dyn Node,
        prefix: &str,
        state: &mut State,
        first: &mut BTreeMap<Identity, String>,
    ) -> Result<()> {
        let mut listed = self.client.list_node(directory, true)?;
        listed.retain(|listed| listed.name != "." && listed.name != "..");
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        for listed in listed {
            let path = format!("{prefix}{}", listed.name.to_string_lossy());
            let entry = directory.lookup(self.client.call(), &listed.name)?;
            if let Some(found) = &listed.found {
                same(found, &entry)?;
            }
            let (node, stat) = (entry.node, Stat::from(&entry.attr));
            let bytes = match stat.kind {
                FileKind::Regular => self.client.read(&path)?,
                FileKind::Symlink => node.readlink(self.client.call())?.into_vec(),
                _ => Vec::new(),
            };
            let mut xattrs = BTreeMap::new();
            for key in self.keys(&*node)? {
                let value = node.getxattr(self.client.call(), std::ffi::OsStr::from_bytes(&key))?;
                xattrs.insert(key, value);
            }
            let first_path = first.entry(node.identity()).or_insert_with(|| path.clone()).clone();
            state.0.insert(path.clone(), Item { stat, bytes, xattrs, first: first_path });
            if stat.kind == FileKind::Directory {
                self.collect(&*node, &format!("{path}/"), state, first)?;
            }
        }
        Ok(())
    }
}

fn is_special(entry: &Entry) -> bool {
    !matches!(entry.attr.kind(), FileKind::Regular | FileKind::Directory | FileKind::Symlink)
}

/// What two calls said of one name is the same node with the same attributes (but for the time of access).
fn same(one: &Entry, other: &Entry) -> Result<()> {
    let atime = Timestamp::default();
    let attr = |entry: &Entry| hither_vfs::Attr { atime, ..entry.attr };
    if Arc::ptr_eq(&one.node, &other.node) && attr(one) == attr(other) {
        return Ok(());
    }
    let story = format!("two calls differ on one name: {:?} and {:?}", one.attr, other.attr);
    Err(hither_vfs::Error::with_cause(Errno::UCLEAN, story))
}

fn time(time: Time) -> Option<SetTime> {
    match time {
        Time::Omit => None,
        Time::Now => Some(SetTime::Now),
        Time::At(sec, nsec) => Some(SetTime::At(Timestamp { sec: sec.into(), nsec })),
    }
}

impl Target for Subject {
    fn apply(&mut self, op: &Op) -> Outcome {
        self.on_names(op).unwrap_or_else(|error| Outcome::Refused(error.errno()))
    }

    fn state(&mut self) -> State {
        let mut state = State::default();
        if let Err(error) = self.collect(&**self.client.root(), "", &mut state, &mut BTreeMap::new()) {
            state.cannot_be_walked(&error);
        }
        state
    }
}
