//! The operations on a directory of the host, one system call each where there is one.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use hither_vfs::{Attr, FileKind, Timestamp};
use rustix::fs::{
    AtFlags, CWD, Dir, FallocateFlags, FileType, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps,
    UTIME_NOW, UTIME_OMIT, Uid, XattrFlags,
};
use rustix::io::{Errno, Result};
use tempfile::TempDir;

use crate::model::Target;
use crate::model::op::{Creating, NodeKind, Op, Place, Renaming, SLOTS, Setting, TARGETS, Time};
use crate::model::outcome::{Item, Outcome, Stat, State, UMASK};
use crate::model::tree::xattr;

/// An empty directory, removed in the end, and what is held open in it.
pub(super) struct Host {
    directory: TempDir,
    root: OwnedFd,
    held: [Option<OwnedFd>; SLOTS],
}

/// Longest extended attribute that is asked for.
const XATTR_MAX: usize = 4096;

impl Host {
    pub(super) fn new(below: &Path) -> std::result::Result<Self, String> {
        let mask = rustix::fs::Mode::from_raw_mode(process_umask()?);
        if !Mode::from_raw_mode(UMASK).contains(mask) {
            return Err(format!(
                "the process has umask {mask:?}: it must be 022 or less to judge by its files"
            ));
        }
        let directory = tempfile::tempdir_in(below).map_err(|error| error.to_string())?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root =
            rustix::fs::open(directory.path(), flags, Mode::empty()).map_err(|errno| errno.to_string())?;
        let mode = Mode::from_raw_mode(0o755);
        rustix::fs::chmod(directory.path(), mode).map_err(|errno| errno.to_string())?;
        Ok(Host { directory, root, held: [const { None }; SLOTS] })
    }

    /// The directory of a path's last name, and that name. No symbolic link is followed.
    fn parent(&self, place: &Place) -> Result<(OwnedFd, &'static str)> {
        let mut names: Vec<&'static str> = place.names().collect();
        let last = names.pop().ok_or(Errno::INVAL)?;
        let mut at = rustix::io::dup(&self.root)?;
        for name in names {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            at = rustix::fs::openat(&at, name, flags, Mode::empty())?;
            if FileType::from_raw_mode(rustix::fs::fstat(&at)?.st_mode) != FileType::Directory {
                return Err(Errno::NOTDIR);
            }
        }
        Ok((at, last))
    }

    fn attr(&self, place: &Place) -> Result<Attr> {
        let (parent, name) = self.parent(place)?;
        attr_at(&parent, name)
    }

    /// Opens a regular file; `None` for a special one.
    fn open(&self, place: &Place, flags: OFlags) -> Result<Option<OwnedFd>> {
        let (parent, name) = self.parent(place)?;
        match attr_at(&parent, name)?.kind() {
            // Linux opens it for reading, but not as a file.
            FileKind::Directory => return Err(Errno::ISDIR),
            kind if is_special(kind) => return Ok(None),
            _ => {}
        }
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&parent, name, flags, Mode::empty()).map(Some)
    }

    fn with_open(
        &self,
        at: &Place,
        flags: OFlags,
        act: impl FnOnce(OwnedFd) -> Result<Outcome>,
    ) -> Result<Outcome> {
        match self.open(at, flags)? {
            Some(fd) => act(fd),
            None => Ok(Outcome::NotAsked),
        }
    }

    fn stat(&self, at: &Place) -> Result<Outcome> {
        Ok(Outcome::Stat((&self.attr(at)?).into()))
    }

    fn create(&self, at: &Place, mode: u16, how: Creating) -> Result<Outcome> {
        let how = match how {
            Creating::Open => OFlags::empty(),
            Creating::Exclusive => OFlags::EXCL,
            Creating::Truncate => OFlags::TRUNC,
        };
        let (parent, name) = self.parent(at)?;
        let there = attr_at(&parent, name).map(|attr| attr.kind());
        if !how.contains(OFlags::EXCL) && there.is_ok_and(is_special) {
            return Ok(Outcome::NotAsked);
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | how;
        drop(rustix::fs::openat(&parent, name, flags, masked(mode))?);
        self.stat(at)
    }

    fn mknod(&self, at: &Place, mode: u16, kind: NodeKind) -> Result<Outcome> {
        let kind = match kind {
            NodeKind::Regular => FileType::RegularFile,
            NodeKind::Fifo => FileType::Fifo,
            NodeKind::Socket => FileType::Socket,
        };
        let (parent, name) = self.parent(at)?;
        rustix::fs::mknodat(&parent, name, kind, masked(mode), 0)?;
        self.stat(at)
    }

    fn link(&self, from: &Place, to: &Place) -> Result<Outcome> {
        let (parent, name) = self.parent(from)?;
        attr_at(&parent, name)?;
        let (new_parent, new_name) = self.parent(to)?;
        rustix::fs::linkat(&parent, name, &new_parent, new_name, AtFlags::empty())?;
        self.stat(to)
    }

    fn rename(&self, from: &Place, to: &Place, how: Renaming) -> Result<Outcome> {
        let flags = match how {
            Renaming::Replace => RenameFlags::empty(),
            Renaming::NoReplace => RenameFlags::NOREPLACE,
            Renaming::Exchange => RenameFlags::EXCHANGE,
        };
        let (parent, name) = self.parent(from)?;
        let (new_parent, new_name) = self.parent(to)?;
        rustix::fs::renameat_with(&parent, name, &new_parent, new_name, flags).map(|()| Outcome::Done)
    }

    fn chmod(&self, at: &Place, mode: u16) -> Result<Outcome> {
        let (parent, name) = self.parent(at)?;
        if attr_at(&parent, name)?.kind() == FileKind::Symlink {
            // What the kernel says to it (`fchmodat2`), if it knows the call.
            return Err(Errno::OPNOTSUPP);
        }
        rustix::fs::chmodat(&parent, name, Mode::from_raw_mode(u32::from(mode)), AtFlags::empty())?;
        self.stat(at)
    }

    fn chown(&self, at: &Place, uid: u16, gid: u16) -> Result<Outcome> {
        let (parent, name) = self.parent(at)?;
        let (uid, gid) = (Uid::from_raw(uid.into()), Gid::from_raw(gid.into()));
        rustix::fs::chownat(&parent, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        self.stat(at)
    }

    fn set_times(&self, at: &Place, atime: Time, mtime: Time) -> Result<Outcome> {
        let (parent, name) = self.parent(at)?;
        let times = Timestamps { last_access: timespec(atime), last_modification: timespec(mtime) };
        rustix::fs::utimensat(&parent, name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
        let attr = attr_at(&parent, name)?;
        let stat = (&attr).into();
        Ok(if atime == Time::Omit { Outcome::Stat(stat) } else { Outcome::Times(stat, attr.atime.into()) })
    }

    fn resize(&self, at: &Place, size: u32) -> Result<Outcome> {
        match self.attr(at)?.kind() {
            FileKind::Directory => Err(Errno::ISDIR),
            FileKind::Regular => self.with_open(at, OFlags::WRONLY, |fd| {
                rustix::fs::ftruncate(&fd, size.into())?;
                fstat(&fd)
            }),
            _ => Err(Errno::INVAL),
        }
    }

    fn copy(&self, from: &Place, offset: u32, to: &Place, to_offset: u32, length: u16) -> Result<Outcome> {
        let Some(from) = self.open(from, OFlags::RDONLY)? else { return Ok(Outcome::NotAsked) };
        let Some(to) = self.open(to, OFlags::WRONLY)? else { return Ok(Outcome::NotAsked) };
        let (mut at, mut to_at) = (u64::from(offset), u64::from(to_offset));
        // Once: a second call would find what the first has added to the end.
        let copied = rustix::fs::copy_file_range(&from, Some(&mut at), &to, Some(&mut to_at), length.into())?;
        Ok(Outcome::Moved(copied as u64))
    }

    fn list(&self, at: &Place) -> Result<Outcome> {
        let (parent, name) = self.parent(at)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut names = Vec::new();
        for entry in Dir::read_from(rustix::fs::openat(&parent, name, flags, Mode::empty())?)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                let kind = FileKind::of_mode(entry.file_type().as_raw_mode());
                names.push((name, Some(kind)));
            }
        }
        names.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(Outcome::Names(names))
    }

    /// Extended attributes of an entry, in whose directory no link is followed on the way.
    fn on_xattrs(&self, at: &Place, act: impl FnOnce(&Path) -> Result<Outcome>) -> Result<Outcome> {
        let (parent, name) = self.parent(at)?;
        act(&PathBuf::from(format!("/proc/self/fd/{}", parent.as_raw_fd())).join(name))
    }

    fn hold(&mut self, slot: u8, at: &Place) -> Result<Outcome> {
        let Some(fd) = self.open(at, OFlags::RDWR)? else { return Ok(Outcome::NotAsked) };
        self.held[usize::from(slot)] = Some(fd);
        Ok(Outcome::Done)
    }

    fn hold_nameless(&mut self, slot: u8, within: &Place, mode: u16, exclusive: bool) -> Result<Outcome> {
        let (parent, name) = self.parent(within)?;
        let exclusive = if exclusive { OFlags::EXCL } else { OFlags::empty() };
        let path = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&parent, name, path, Mode::empty())?;
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC | exclusive;
        let fd = rustix::fs::openat(&directory, ".", flags, masked(mode))?;
        let outcome = fstat(&fd)?;
        self.held[usize::from(slot)] = Some(fd);
        Ok(outcome)
    }

    fn name_held(&self, fd: &OwnedFd, to: &Place) -> Result<Outcome> {
        let (parent, name) = self.parent(to)?;
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        rustix::fs::linkat(CWD, path, &parent, name, AtFlags::SYMLINK_FOLLOW)?;
        self.stat(to)
    }

    fn on_names(&mut self, op: &Op) -> Result<Outcome> {
        match op {
            Op::Create { at, mode, how } => self.create(at, *mode, *how),
            Op::Mkdir { at, mode } => {
                let (parent, name) = self.parent(at)?;
                rustix::fs::mkdirat(&parent, name, masked(*mode))?;
                self.stat(at)
            }
            Op::Mknod { at, mode, kind } => self.mknod(at, *mode, *kind),
            Op::Symlink { at, target } => {
                let (parent, name) = self.parent(at)?;
                rustix::fs::symlinkat(TARGETS[usize::from(*target)], &parent, name)?;
                self.stat(at)
            }
            Op::Link { from, to } => self.link(from, to),
            Op::Unlink { at } => {
                let (parent, name) = self.parent(at)?;
                rustix::fs::unlinkat(&parent, name, AtFlags::empty()).map(|()| Outcome::Done)
            }
            Op::Rmdir { at } => {
                let (parent, name) = self.parent(at)?;
                rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR).map(|()| Outcome::Done)
            }
            Op::Rename { from, to, how } => self.rename(from, to, *how),
            Op::Stat { at } => self.stat(at),
            Op::Readlink { at } => {
                let (parent, name) = self.parent(at)?;
                Ok(Outcome::Bytes(rustix::fs::readlinkat(&parent, name, Vec::new())?.into_bytes()))
            }
            Op::List { at } => self.list(at),
            Op::Chmod { at, mode } => self.chmod(at, *mode),
            Op::Chown { at, uid, gid } => self.chown(at, *uid, *gid),
            Op::SetTimes { at, atime, mtime } => self.set_times(at, *atime, *mtime),
            Op::SetXattr { at, key, value, how } => {
                self.on_xattrs(at, |path| set_xattr(path, *key, *value, *how))
            }
            Op::GetXattr { at, key } => {
                self.on_xattrs(at, |path| get_xattr(path, &xattr(*key, 0).0).map(Outcome::Bytes))
            }
            Op::ListXattrs { at } => self.on_xattrs(at, |path| {
                Ok(Outcome::Names(list_xattrs(path)?.into_iter().map(|key| (key, None)).collect()))
            }),
            Op::RemoveXattr { at, key } => self.on_xattrs(at, |path| {
                rustix::fs::lremovexattr(path, xattr(*key, 0).0)?;
                Ok(Outcome::Done)
            }),
            _ => self.on_bytes(op),
        }
    }

    fn on_bytes(&mut self, op: &Op) -> Result<Outcome> {
        match op {
            Op::Write { at, offset, length, fill } => {
                self.with_open(at, OFlags::WRONLY, |fd| write(&fd, Some(*offset), *length, *fill))
            }
            Op::Append { at, length, fill } => {
                self.with_open(at, OFlags::WRONLY | OFlags::APPEND, |fd| write(&fd, None, *length, *fill))
            }
            Op::Read { at, offset, length } => {
                self.with_open(at, OFlags::RDONLY, |fd| read(&fd, *offset, *length))
            }
            Op::OpenTruncate { at } => {
                self.with_open(at, OFlags::WRONLY | OFlags::TRUNC, |_| Ok(Outcome::Done))
            }
            Op::Resize { at, size } => self.resize(at, *size),
            Op::Allocate { at, offset, length, keep_size } => self.with_open(at, OFlags::WRONLY, |fd| {
                let flags = if *keep_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
                rustix::fs::fallocate(&fd, flags, (*offset).into(), (*length).into()).map(|()| Outcome::Done)
            }),
            Op::Punch { at, offset, length } => self.with_open(at, OFlags::WRONLY, |fd| {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                rustix::fs::fallocate(&fd, flags, (*offset).into(), (*length).into()).map(|()| Outcome::Done)
            }),
            Op::Copy { from, offset, to, to_offset, length } => {
                self.copy(from, *offset, to, *to_offset, *length)
            }
            Op::Hold { slot, at } => self.hold(*slot, at),
            Op::HoldNameless { slot, within, mode, exclusive } => {
                self.hold_nameless(*slot, within, *mode, *exclusive)
            }
            Op::Release { slot } => {
                let held = self.held[usize::from(*slot)].take();
                Ok(held.map_or(Outcome::NotAsked, |_| Outcome::Done))
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
        let Some(fd) = &self.held[usize::from(*slot)] else { return Ok(Outcome::NotAsked) };
        match op {
            Op::ReadHeld { offset, length, .. } => read(fd, *offset, *length),
            Op::WriteHeld { offset, length, fill, .. } => write(fd, Some(*offset), *length, *fill),
            Op::AppendHeld { length, fill, .. } => {
                let end = rustix::fs::fstat(fd)?.st_size as u32;
                write(fd, Some(end), *length, *fill)
            }
            Op::ResizeHeld { size, .. } => {
                rustix::fs::ftruncate(fd, (*size).into())?;
                fstat(fd)
            }
            Op::NameHeld { to, .. } => self.name_held(fd, to),
            _ => fstat(fd),
        }
    }

    fn collect(
        &self,
        path: &str,
        state: &mut State,
        first: &mut BTreeMap<u64, String>,
    ) -> std::io::Result<()> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(self.directory.path().join(path))? {
            entries.push(entry?.file_name());
        }
        entries.sort();
        for name in entries {
            let name = name.to_string_lossy().into_owned();
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            let full = self.directory.path().join(&path);
            let attr = attr_at(CWD, &full)?;
            let bytes = match attr.kind() {
                FileKind::Regular => std::fs::read(&full)?,
                FileKind::Symlink => std::fs::read_link(&full)?.into_os_string().into_vec(),
                _ => Vec::new(),
            };
            let mut xattrs = BTreeMap::new();
            for key in list_xattrs(&full)? {
                let value = get_xattr(&full, &key)?;
                xattrs.insert(key, value);
            }
            let first_path = first.entry(attr.ino).or_insert_with(|| path.clone()).clone();
            state.0.insert(path.clone(), Item { stat: (&attr).into(), bytes, xattrs, first: first_path });
            if attr.kind() == FileKind::Directory {
                self.collect(&path, state, first)?;
            }
        }
        Ok(())
    }
}

impl Target for Host {
    fn apply(&mut self, op: &Op) -> Outcome {
        self.on_names(op).unwrap_or_else(Outcome::Refused)
    }

    fn state(&mut self) -> State {
        let mut state = State::default();
        if let Err(error) = self.collect("", &mut state, &mut BTreeMap::new()) {
            state.cannot_be_walked(&error);
        }
        state
    }
}

/// The mode to ask for: the umask of the process is laid over it again, and is no wider.
fn masked(mode: u16) -> Mode {
    Mode::from_raw_mode(u32::from(mode) & 0o7777 & !UMASK)
}

/// The umask of the process: `umask(2)` could only tell it by changing it.
fn process_umask() -> std::result::Result<u32, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let mask = line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
    mask.ok_or_else(|| "/proc/self/status tells no umask".to_owned())
}

fn is_special(kind: FileKind) -> bool {
    !matches!(kind, FileKind::Regular | FileKind::Directory | FileKind::Symlink)
}

fn attr_at(parent: impl std::os::fd::AsFd, name: impl rustix::path::Arg) -> Result<Attr> {
    Ok(attr_of(&rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?))
}

fn fstat(fd: &OwnedFd) -> Result<Outcome> {
    let attr = attr_of(&rustix::fs::fstat(fd)?);
    Ok(Outcome::Stat(Stat::from(&attr)))
}

fn attr_of(stat: &rustix::fs::Stat) -> Attr {
    Attr {
        ino: stat.st_ino,
        size: stat.st_size as u64,
        atime: Timestamp { sec: stat.st_atime, nsec: stat.st_atime_nsec as u32 },
        mtime: Timestamp { sec: stat.st_mtime, nsec: stat.st_mtime_nsec as u32 },
        mode: stat.st_mode,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        ..Attr::default()
    }
}

fn timespec(time: Time) -> Timespec {
    match time {
        Time::Omit => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Time::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Time::At(sec, nsec) => Timespec { tv_sec: sec.into(), tv_nsec: nsec.into() },
    }
}

/// Writes at an offset, or where an `O_APPEND` file ends.
fn write(fd: &OwnedFd, offset: Option<u32>, length: u16, fill: u8) -> Result<Outcome> {
    let data = vec![fill; length.into()];
    let written = match offset {
        Some(offset) => rustix::io::pwrite(fd, &data, offset.into())?,
        None => rustix::io::write(fd, &data)?,
    };
    Ok(Outcome::Moved(written as u64))
}

fn read(fd: &OwnedFd, offset: u32, length: u16) -> Result<Outcome> {
    let mut bytes = vec![0; length.into()];
    let got = rustix::io::pread(fd, &mut bytes[..], offset.into())?;
    bytes.truncate(got);
    Ok(Outcome::Bytes(bytes))
}

fn set_xattr(path: &Path, key: u8, value: u16, how: Setting) -> Result<Outcome> {
    let flags = match how {
        Setting::Any => XattrFlags::empty(),
        Setting::Create => XattrFlags::CREATE,
        Setting::Replace => XattrFlags::REPLACE,
    };
    let (key, value) = xattr(key, value);
    rustix::fs::lsetxattr(path, key, &value, flags).map(|()| Outcome::Done)
}

fn get_xattr(path: &Path, key: &[u8]) -> Result<Vec<u8>> {
    let mut value = vec![0; XATTR_MAX];
    let length = rustix::fs::lgetxattr(path, key, &mut value[..])?;
    value.truncate(length);
    Ok(value)
}

fn list_xattrs(path: &Path) -> Result<Vec<Vec<u8>>> {
    let mut names = vec![0; XATTR_MAX];
    let length = rustix::fs::llistxattr(path, &mut names[..])?;
    names.truncate(length);
    let mut names: Vec<Vec<u8>> = names
        .split(|byte| *byte == 0)
        .filter(|name| name.starts_with(b"user."))
        .map(<[u8]>::to_vec)
        .collect();
    names.sort();
    Ok(names)
}
