//! The model: a file system as one would write it on a page.
//!
//! Inodes are in a list and never leave it; a directory is a map from names to indices; a file is an array of bytes.
//! Every check stands in the order in which Linux makes it.

use std::collections::BTreeMap;

use hither_vfs::{Errno, FileKind};

use super::Target;
use super::op::{
    Creating, KEYS, NAMES, NodeKind, Op, Place, Renaming, SLOTS, Setting, TARGETS, Time as SetTime, Wanted,
};
use super::outcome::{Item, Outcome, Stat, State, Time, UMASK};

type Answer = Result<Outcome, Errno>;

/// The root's index.
const ROOT: usize = 0;

#[derive(Clone, Debug)]
struct Inode {
    body: Body,
    permissions: u32,
    uid: u32,
    gid: u32,
    nlink: u32,
    mtime: Time,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// A nameless file that may get its first name.
    linkable: bool,
}

#[derive(Clone, Debug)]
enum Body {
    File(Vec<u8>),
    Directory { entries: BTreeMap<&'static str, usize>, parent: usize },
    Symlink(&'static str),
    Special(FileKind),
}

/// The model.
#[derive(Debug)]
pub struct Tree {
    inodes: Vec<Inode>,
    held: [Option<usize>; SLOTS],
    /// Who makes the calls.
    uid: u32,
    gid: u32,
}

impl Default for Tree {
    fn default() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        let body = Body::Directory { entries: BTreeMap::new(), parent: ROOT };
        let root = Inode {
            body,
            permissions: 0o755,
            uid,
            gid,
            nlink: 2,
            mtime: Time::Clock,
            xattrs: BTreeMap::new(),
            linkable: false,
        };
        Tree { inodes: vec![root], held: [None; SLOTS], uid, gid }
    }
}

impl Inode {
    fn kind(&self) -> FileKind {
        match self.body {
            Body::File(_) => FileKind::Regular,
            Body::Directory { .. } => FileKind::Directory,
            Body::Symlink(_) => FileKind::Symlink,
            Body::Special(kind) => kind,
        }
    }

    fn is_directory(&self) -> bool {
        self.kind() == FileKind::Directory
    }

    fn stat(&self) -> Stat {
        let size = match &self.body {
            Body::File(bytes) => bytes.len(),
            Body::Symlink(target) => target.len(),
            Body::Directory { .. } | Body::Special(_) => 0,
        };
        Stat {
            kind: self.kind(),
            permissions: self.permissions,
            nlink: self.nlink,
            uid: self.uid,
            gid: self.gid,
            size: size as u64,
            mtime: self.mtime,
        }
    }
}

impl Tree {
    fn entries(&mut self, directory: usize) -> Result<&mut BTreeMap<&'static str, usize>, Errno> {
        match &mut self.inodes[directory].body {
            Body::Directory { entries, .. } => Ok(entries),
            _ => Err(Errno::NOTDIR),
        }
    }

    fn child(&mut self, directory: usize, name: &str) -> Result<usize, Errno> {
        self.entries(directory)?.get(name).copied().ok_or(Errno::NOENT)
    }

    /// The directory of a path's last name, and that name.
    fn parent(&mut self, place: &Place) -> Result<(usize, &'static str), Errno> {
        let mut names: Vec<&'static str> = place.names().collect();
        let last = names.pop().ok_or(Errno::INVAL)?;
        let mut at = ROOT;
        for name in names {
            at = self.child(at, name)?;
        }
        if self.inodes[at].is_directory() { Ok((at, last)) } else { Err(Errno::NOTDIR) }
    }

    fn find(&mut self, place: &Place) -> Result<usize, Errno> {
        let (parent, name) = self.parent(place)?;
        self.child(parent, name)
    }

    /// A regular file, to be opened.
    fn file(&mut self, place: &Place) -> Result<usize, Errno> {
        let found = self.find(place)?;
        match self.inodes[found].kind() {
            FileKind::Regular => Ok(found),
            FileKind::Directory => Err(Errno::ISDIR),
            FileKind::Symlink => Err(Errno::LOOP),
            _ => Err(NOT_ASKED),
        }
    }

    fn bytes(&mut self, file: usize) -> Result<&mut Vec<u8>, Errno> {
        match &mut self.inodes[file].body {
            Body::File(bytes) => Ok(bytes),
            Body::Directory { .. } => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    fn make(&mut self, place: &Place, mode: u32, body: Body) -> Result<usize, Errno> {
        let (parent, name) = self.parent(place)?;
        if self.entries(parent)?.contains_key(name) {
            return Err(Errno::EXIST);
        }
        let made = self.add(parent, mode, body);
        if self.inodes[made].is_directory() {
            self.inodes[parent].nlink += 1;
        }
        self.entries(parent)?.insert(name, made);
        self.inodes[parent].mtime = Time::Clock;
        Ok(made)
    }

    /// A new inode in a directory, without a name.
    fn add(&mut self, parent: usize, mode: u32, body: Body) -> usize {
        let within = &self.inodes[parent];
        let inherits = within.permissions & 0o2000 != 0;
        let gid = if inherits { within.gid } else { self.gid };
        let (permissions, nlink) = match body {
            Body::Directory { .. } => ((mode & 0o1777 & !UMASK) | if inherits { 0o2000 } else { 0 }, 2),
            Body::Symlink(_) => (0o777, 1),
            _ => (mode & 0o7777 & !UMASK, 1),
        };
        let (uid, mtime, xattrs) = (self.uid, Time::Clock, BTreeMap::new());
        self.inodes.push(Inode { body, permissions, uid, gid, nlink, mtime, xattrs, linkable: false });
        self.inodes.len() - 1
    }

    fn create(&mut self, at: &Place, mode: u32, how: Creating) -> Answer {
        let (parent, name) = self.parent(at)?;
        if self.entries(parent)?.contains_key(name) {
            if how == Creating::Exclusive {
                return Err(Errno::EXIST);
            }
            let file = self.file(at)?;
            if how == Creating::Truncate {
                self.bytes(file)?.clear();
                self.inodes[file].mtime = Time::Clock;
            }
            return Ok(Outcome::Stat(self.inodes[file].stat()));
        }
        let made = self.make(at, mode, Body::File(Vec::new()))?;
        Ok(Outcome::Stat(self.inodes[made].stat()))
    }

    fn mkdir(&mut self, at: &Place, mode: u32) -> Answer {
        let (parent, _) = self.parent(at)?;
        let made = self.make(at, mode, Body::Directory { entries: BTreeMap::new(), parent })?;
        Ok(Outcome::Stat(self.inodes[made].stat()))
    }

    fn link(&mut self, inode: usize, to: &Place) -> Answer {
        let (parent, name) = self.parent(to)?;
        if self.entries(parent)?.contains_key(name) {
            return Err(Errno::EXIST);
        }
        if self.inodes[inode].is_directory() {
            return Err(Errno::PERM);
        }
        if self.inodes[inode].nlink == 0 && !self.inodes[inode].linkable {
            return Err(Errno::NOENT);
        }
        self.inodes[inode].linkable = false;
        self.inodes[inode].nlink += 1;
        self.entries(parent)?.insert(name, inode);
        self.inodes[parent].mtime = Time::Clock;
        Ok(Outcome::Stat(self.inodes[inode].stat()))
    }

    fn remove(&mut self, at: &Place, directory: bool) -> Answer {
        let (parent, name) = self.parent(at)?;
        let inode = self.child(parent, name)?;
        match (directory, self.inodes[inode].is_directory()) {
            (false, true) => return Err(Errno::ISDIR),
            (true, false) => return Err(Errno::NOTDIR),
            (true, true) if !self.entries(inode)?.is_empty() => return Err(Errno::NOTEMPTY),
            _ => {}
        }
        self.take_out(parent, name)?;
        self.lose_name(inode);
        Ok(Outcome::Done)
    }

    /// Takes an entry out of its directory.
    fn take_out(&mut self, parent: usize, name: &str) -> Result<(), Errno> {
        let inode = self.child(parent, name)?;
        self.entries(parent)?.remove(name);
        self.inodes[parent].mtime = Time::Clock;
        if self.inodes[inode].is_directory() {
            self.inodes[parent].nlink -= 1;
        }
        Ok(())
    }

    /// Puts an entry into a directory.
    fn put_in(&mut self, directory: usize, name: &'static str, inode: usize) -> Result<(), Errno> {
        self.entries(directory)?.insert(name, inode);
        self.inodes[directory].mtime = Time::Clock;
        if let Body::Directory { parent, .. } = &mut self.inodes[inode].body {
            *parent = directory;
            self.inodes[directory].nlink += 1;
        }
        Ok(())
    }

    fn lose_name(&mut self, inode: usize) {
        let inode = &mut self.inodes[inode];
        inode.nlink = if inode.is_directory() { 0 } else { inode.nlink - 1 };
    }

    /// Whether a directory is another or lies below it.
    fn is_within(&self, mut directory: usize, ancestor: usize) -> bool {
        loop {
            if directory == ancestor {
                return true;
            }
            match self.inodes[directory].body {
                Body::Directory { parent, .. } if directory != ROOT => directory = parent,
                _ => return false,
            }
        }
    }

    fn rename(&mut self, from: &Place, to: &Place, how: Renaming) -> Answer {
        let (old_parent, old_name) = self.parent(from)?;
        let (new_parent, new_name) = self.parent(to)?;
        let old = self.child(old_parent, old_name)?;
        let new = self.entries(new_parent)?.get(new_name).copied();
        match (how, new) {
            (Renaming::NoReplace, Some(_)) => return Err(Errno::EXIST),
            (Renaming::Exchange, None) => return Err(Errno::NOENT),
            _ => {}
        }
        if self.is_within(new_parent, old) {
            return Err(Errno::INVAL);
        }
        if new.is_some_and(|new| self.is_within(old_parent, new)) {
            return Err(if how == Renaming::Exchange { Errno::INVAL } else { Errno::NOTEMPTY });
        }
        if new == Some(old) {
            return Ok(Outcome::Done);
        }
        if let (Some(new), Renaming::Replace) = (new, how) {
            match (self.inodes[old].is_directory(), self.inodes[new].is_directory()) {
                (true, false) => return Err(Errno::NOTDIR),
                (false, true) => return Err(Errno::ISDIR),
                (true, true) if !self.entries(new)?.is_empty() => return Err(Errno::NOTEMPTY),
                _ => {}
            }
        }
        self.take_out(old_parent, old_name)?;
        if let Some(new) = new {
            self.take_out(new_parent, new_name)?;
            match how {
                Renaming::Exchange => self.put_in(old_parent, old_name, new)?,
                _ => self.lose_name(new),
            }
        }
        self.put_in(new_parent, new_name, old)?;
        Ok(Outcome::Done)
    }

    fn write(&mut self, file: usize, offset: usize, length: u16, fill: u8) -> Answer {
        let bytes = self.bytes(file)?;
        let end = offset + usize::from(length);
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset..end].fill(fill);
        self.inodes[file].mtime = Time::Clock;
        Ok(Outcome::Moved(u64::from(length)))
    }

    fn append(&mut self, file: usize, length: u16, fill: u8) -> Answer {
        let end = self.bytes(file)?.len();
        self.write(file, end, length, fill)
    }

    fn read(&mut self, file: usize, offset: u32, length: u16) -> Answer {
        let bytes = self.bytes(file)?;
        let from = (offset as usize).min(bytes.len());
        let to = (from + usize::from(length)).min(bytes.len());
        Ok(Outcome::Bytes(bytes[from..to].to_vec()))
    }

    fn resize(&mut self, file: usize, size: u32) -> Answer {
        self.bytes(file)?.resize(size as usize, 0);
        self.inodes[file].mtime = Time::Clock;
        Ok(Outcome::Stat(self.inodes[file].stat()))
    }

    fn allocate(&mut self, file: usize, offset: u32, length: u16, keep_size: bool) -> Answer {
        let bytes = self.bytes(file)?;
        let end = offset as usize + usize::from(length);
        if !keep_size && bytes.len() < end {
            bytes.resize(end, 0);
        }
        self.inodes[file].mtime = Time::Clock;
        Ok(Outcome::Done)
    }

    fn punch(&mut self, file: usize, offset: u32, length: u32) -> Answer {
        let bytes = self.bytes(file)?;
        let from = (offset as usize).min(bytes.len());
        let to = (from + length as usize).min(bytes.len());
        bytes[from..to].fill(0);
        self.inodes[file].mtime = Time::Clock;
        Ok(Outcome::Done)
    }

    fn copy(&mut self, from: usize, offset: u32, to: usize, to_offset: u32, length: u16) -> Answer {
        let source = self.bytes(from)?.clone();
        let start = (offset as usize).min(source.len());
        let piece = &source[start..(start + usize::from(length)).min(source.len())];
        let (offset, to_offset) = (offset as usize, to_offset as usize);
        if from == to && to_offset + piece.len() > offset && to_offset < offset + piece.len() {
            return Err(Errno::INVAL);
        }
        if !piece.is_empty() {
            let bytes = self.bytes(to)?;
            let end = to_offset + piece.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[to_offset..end].copy_from_slice(piece);
            self.inodes[to].mtime = Time::Clock;
        }
        Ok(Outcome::Moved(piece.len() as u64))
    }

    fn chmod(&mut self, at: &Place, mode: u16) -> Answer {
        let found = self.find(at)?;
        if self.inodes[found].kind() == FileKind::Symlink {
            return Err(Errno::OPNOTSUPP);
        }
        self.inodes[found].permissions = u32::from(mode) & 0o7777;
        Ok(Outcome::Stat(self.inodes[found].stat()))
    }

    fn chown(&mut self, at: &Place, uid: u16, gid: u16) -> Answer {
        let found = self.find(at)?;
        let inode = &mut self.inodes[found];
        (inode.uid, inode.gid) = (uid.into(), gid.into());
        if !inode.is_directory() {
            inode.permissions &= if inode.permissions & 0o010 != 0 { !0o6000 } else { !0o4000 };
        }
        Ok(Outcome::Stat(inode.stat()))
    }

    fn set_times(&mut self, at: &Place, atime: SetTime, mtime: SetTime) -> Answer {
        let found = self.find(at)?;
        let inode = &mut self.inodes[found];
        match mtime {
            SetTime::Omit => {}
            SetTime::Now => inode.mtime = Time::Clock,
            SetTime::At(sec, nsec) => inode.mtime = Time::Set(sec.into(), nsec),
        }
        let stat = inode.stat();
        Ok(match atime {
            SetTime::Omit => Outcome::Stat(stat),
            SetTime::Now => Outcome::Times(stat, Time::Clock),
            SetTime::At(sec, nsec) => Outcome::Times(stat, Time::Set(sec.into(), nsec)),
        })
    }

    fn readlink(&mut self, at: &Place) -> Answer {
        let found = self.find(at)?;
        match self.inodes[found].body {
            Body::Symlink(target) => Ok(Outcome::Bytes(target.as_bytes().to_vec())),
            _ => Err(Errno::INVAL),
        }
    }

    fn list(&mut self, at: &Place) -> Answer {
        let found = self.find(at)?;
        let entries = self.entries(found)?.clone();
        let kinds =
            entries.iter().map(|(name, inode)| (name.as_bytes().to_vec(), Some(self.inodes[*inode].kind())));
        Ok(Outcome::Names(kinds.collect()))
    }

    /// The attributes of what may have some; `elsewhere` says what is refused where there can be none.
    fn xattrs(&mut self, at: &Place, elsewhere: Errno) -> Result<&mut BTreeMap<Vec<u8>, Vec<u8>>, Errno> {
        let found = self.find(at)?;
        match self.inodes[found].kind() {
            FileKind::Regular | FileKind::Directory => Ok(&mut self.inodes[found].xattrs),
            _ => Err(elsewhere),
        }
    }

    fn set_xattr(&mut self, at: &Place, key: u8, value: u16, how: Setting) -> Answer {
        let (key, value) = xattr(key, value);
        let xattrs = self.xattrs(at, Errno::PERM)?;
        match (how, xattrs.contains_key(&key)) {
            (Setting::Create, true) => return Err(Errno::EXIST),
            (Setting::Replace, false) => return Err(Errno::NODATA),
            _ => {}
        }
        xattrs.insert(key, value);
        Ok(Outcome::Done)
    }

    fn get_xattr(&mut self, at: &Place, key: u8) -> Answer {
        let xattrs = self.xattrs(at, Errno::NODATA)?;
        xattrs.get(&xattr(key, 0).0).cloned().map(Outcome::Bytes).ok_or(Errno::NODATA)
    }

    fn list_xattrs(&mut self, at: &Place) -> Answer {
        let found = self.find(at)?;
        Ok(Outcome::Names(self.inodes[found].xattrs.keys().map(|key| (key.clone(), None)).collect()))
    }

    fn remove_xattr(&mut self, at: &Place, key: u8) -> Answer {
        let xattrs = self.xattrs(at, Errno::PERM)?;
        xattrs.remove(&xattr(key, 0).0).map(|_| Outcome::Done).ok_or(Errno::NODATA)
    }

    fn hold(&mut self, slot: u8, at: &Place) -> Answer {
        let file = self.file(at)?;
        self.held[usize::from(slot)] = Some(file);
        Ok(Outcome::Done)
    }

    fn hold_nameless(&mut self, slot: u8, within: &Place, mode: u16, exclusive: bool) -> Answer {
        let directory = self.find(within)?;
        self.entries(directory)?;
        let made = self.add(directory, mode.into(), Body::File(Vec::new()));
        self.inodes[made].nlink = 0;
        self.inodes[made].linkable = !exclusive;
        self.held[usize::from(slot)] = Some(made);
        Ok(Outcome::Stat(self.inodes[made].stat()))
    }

    fn held(&self, slot: u8) -> Result<usize, Errno> {
        self.held[usize::from(slot)].ok_or(NOT_ASKED)
    }

    fn stat(&self, inode: usize) -> Answer {
        Ok(Outcome::Stat(self.inodes[inode].stat()))
    }

    fn answer(&mut self, op: &Op) -> Answer {
        match op {
            Op::Create { at, mode, how } => self.create(at, (*mode).into(), *how),
            Op::Mkdir { at, mode } => self.mkdir(at, (*mode).into()),
            Op::Mknod { at, mode, kind } => {
                let body = match kind {
                    NodeKind::Regular => Body::File(Vec::new()),
                    NodeKind::Fifo => Body::Special(FileKind::Fifo),
                    NodeKind::Socket => Body::Special(FileKind::Socket),
                };
                self.make(at, (*mode).into(), body).and_then(|made| self.stat(made))
            }
            Op::Symlink { at, target } => {
                let body = Body::Symlink(TARGETS[usize::from(*target)]);
                self.make(at, 0o777, body).and_then(|made| self.stat(made))
            }
            Op::Link { from, to } => self.find(from).and_then(|inode| self.link(inode, to)),
            Op::Unlink { at } => self.remove(at, false),
            Op::Rmdir { at } => self.remove(at, true),
            Op::Rename { from, to, how } => self.rename(from, to, *how),
            Op::Stat { at } => self.find(at).and_then(|inode| self.stat(inode)),
            Op::Readlink { at } => self.readlink(at),
            Op::List { at } => self.list(at),
            Op::Chmod { at, mode } => self.chmod(at, *mode),
            Op::Chown { at, uid, gid } => self.chown(at, *uid, *gid),
            Op::SetTimes { at, atime, mtime } => self.set_times(at, *atime, *mtime),
            Op::SetXattr { at, key, value, how } => self.set_xattr(at, *key, *value, *how),
            Op::GetXattr { at, key } => self.get_xattr(at, *key),
            Op::ListXattrs { at } => self.list_xattrs(at),
            Op::RemoveXattr { at, key } => self.remove_xattr(at, *key),
            _ => self.answer_bytes(op),
        }
    }

    /// The operations on bytes.
    fn answer_bytes(&mut self, op: &Op) -> Answer {
        match op {
            Op::Write { at, offset, length, fill } => {
                self.file(at).and_then(|file| self.write(file, *offset as usize, *length, *fill))
            }
            Op::Append { at, length, fill } => {
                self.file(at).and_then(|file| self.append(file, *length, *fill))
            }
            Op::Read { at, offset, length } => {
                self.file(at).and_then(|file| self.read(file, *offset, *length))
            }
            Op::OpenTruncate { at } => {
                self.file(at).and_then(|file| self.resize(file, 0)).map(|_| Outcome::Done)
            }
            Op::Resize { at, size } => self.find(at).and_then(|inode| self.resize(inode, *size)),
            Op::Allocate { at, offset, length, keep_size } => {
                self.file(at).and_then(|file| self.allocate(file, *offset, *length, *keep_size))
            }
            Op::Punch { at, offset, length } => {
                self.file(at).and_then(|file| self.punch(file, *offset, *length))
            }
            Op::Copy { from, offset, to, to_offset, length } => {
                let (from, to) = (self.file(from)?, self.file(to)?);
                self.copy(from, *offset, to, *to_offset, *length)
            }
            Op::Hold { slot, at } => self.hold(*slot, at),
            Op::HoldNameless { slot, within, mode, exclusive } => {
                self.hold_nameless(*slot, within, *mode, *exclusive)
            }
            Op::ReadHeld { slot, offset, length } => {
                self.held(*slot).and_then(|file| self.read(file, *offset, *length))
            }
            Op::WriteHeld { slot, offset, length, fill } => {
                self.held(*slot).and_then(|file| self.write(file, *offset as usize, *length, *fill))
            }
            Op::AppendHeld { slot, length, fill } => {
                self.held(*slot).and_then(|file| self.append(file, *length, *fill))
            }
            Op::ResizeHeld { slot, size } => self.held(*slot).and_then(|file| self.resize(file, *size)),
            Op::StatHeld { slot } => self.held(*slot).and_then(|file| self.stat(file)),
            Op::NameHeld { slot, to } => self.held(*slot).and_then(|file| self.link(file, to)),
            Op::Release { slot } => {
                let held = self.held[usize::from(*slot)].take();
                held.map(|_| Outcome::Done).ok_or(NOT_ASKED)
            }
            _ => Err(NOT_ASKED),
        }
    }

    /// The paths of all that is of the wanted kind (of anything, if there is none).
    pub(crate) fn paths(&self, wanted: Wanted) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        self.find_paths(ROOT, &mut Vec::new(), wanted, &mut found);
        if found.is_empty() && wanted != Wanted::Any { self.paths(Wanted::Any) } else { found }
    }

    fn find_paths(&self, directory: usize, path: &mut Vec<u8>, wanted: Wanted, found: &mut Vec<Vec<u8>>) {
        let Body::Directory { entries, .. } = &self.inodes[directory].body else { return };
        for (index, name) in NAMES.iter().enumerate() {
            let Some(child) = entries.get(name) else { continue };
            path.push(index as u8);
            let inode = &self.inodes[*child];
            let fits = match wanted {
                Wanted::Any => true,
                Wanted::File => inode.kind() == FileKind::Regular,
                Wanted::Directory => inode.is_directory(),
                Wanted::Xattrs => !inode.xattrs.is_empty(),
            };
            if fits {
                found.push(path.clone());
            }
            self.find_paths(*child, path, wanted, found);
            path.pop();
        }
    }

    /// Slots with a file in them.
    pub(crate) fn occupied(&self) -> Vec<u8> {
        (0..SLOTS as u8).filter(|slot| self.held[usize::from(*slot)].is_some()).collect()
    }

    fn collect(
        &self,
        directory: usize,
        prefix: &str,
        state: &mut State,
        first: &mut BTreeMap<usize, String>,
    ) {
        let Body::Directory { entries, .. } = &self.inodes[directory].body else { return };
        for (name, index) in entries {
            let path = format!("{prefix}{name}");
            let inode = &self.inodes[*index];
            let bytes = match &inode.body {
                Body::File(bytes) => bytes.clone(),
                Body::Symlink(target) => target.as_bytes().to_vec(),
                Body::Directory { .. } | Body::Special(_) => Vec::new(),
            };
            let first_path = first.entry(*index).or_insert_with(|| path.clone()).clone();
            let item = Item { stat: inode.stat(), bytes, xattrs: inode.xattrs.clone(), first: first_path };
            state.0.insert(path.clone(), item);
            self.collect(*index, &format!("{path}/"), state, first);
        }
    }
}

/// Stands for [`Outcome::NotAsked`] where an errno is passed: no call here is ever answered with it.
const NOT_ASKED: Errno = Errno::NOTRECOVERABLE;

/// The name and value of an extended attribute.
pub(crate) fn xattr(key: u8, value: u16) -> (Vec<u8>, Vec<u8>) {
    let key = KEYS[usize::from(key) % KEYS.len()];
    let length = usize::from(value % 50);
    (key.as_bytes().to_vec(), vec![(value >> 8) as u8; length])
}

impl Target for Tree {
    fn apply(&mut self, op: &Op) -> Outcome {
        match self.answer(op) {
            Ok(outcome) => outcome,
            Err(NOT_ASKED) => Outcome::NotAsked,
            Err(errno) => Outcome::Refused(errno),
        }
    }

    fn state(&mut self) -> State {
        let mut state = State::default();
        self.collect(ROOT, "", &mut state, &mut BTreeMap::new());
        state
    }
}
