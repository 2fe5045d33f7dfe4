//! Attributes: reading and changing them, and the set-id bits that end when ownership or bytes change.

use std::ffi::OsString;
use std::time::Duration;

use hither_vfs::{Attr, Caller, Errno, FileKind, Handle, Result, SetAttr, SetTime, Timestamp};

use crate::file::{FILE_MAX, MemHandle};
use crate::node::{Body, MemNode, State};
use crate::space::BLOCK_BYTES;

pub(crate) const SET_UID: u32 = 0o4000;
pub(crate) const SET_GID: u32 = 0o2000;
const GROUP_EXEC: u32 = 0o010;

/// Bytes that an entry adds to the size of its directory: only for show.
const DIRECTORY_BYTES: u64 = 4096;

/// An access time older than this is renewed by a read, even if nothing changed since (`relatime`).
const ATIME_MAX_AGE: Duration = Duration::from_secs(24 * 3600);

impl MemNode {
    pub(crate) fn attr(&self) -> Attr {
        self.attr_of(&self.state().read())
    }

    pub(crate) fn attr_of(&self, state: &State) -> Attr {
        let (size, blocks, rdev) = match &state.body {
            Body::File { pages, size } => (*size, pages.sectors(), 0),
            Body::Directory(_) => (DIRECTORY_BYTES, DIRECTORY_BYTES / 512, 0),
            Body::Symlink(target) => (target.len() as u64, 0, 0),
            Body::Special { rdev } => (0, 0, *rdev),
        };
        Attr {
            ino: self.ino(),
            size,
            blocks,
            atime: state.atime,
            mtime: state.mtime,
            ctime: state.ctime,
            btime: Some(state.btime),
            mode: self.kind().mode_bits() | state.permissions,
            nlink: state.nlink,
            uid: state.uid,
            gid: state.gid,
            rdev,
            blksize: BLOCK_BYTES as u32,
        }
    }

    /// Changes attributes, in the order size, owner, mode, times: all or, on an error, none.
    pub(crate) fn set_attr(
        &self,
        caller: &Caller,
        set: &SetAttr,
        handle: Option<&dyn Handle>,
    ) -> Result<Attr> {
        let handle = handle.and_then(|handle| handle.as_any().downcast_ref::<MemHandle>());
        let mut state = self.state().write();
        if *set == SetAttr::default() {
            return Ok(self.attr_of(&state));
        }
        if set.mode.is_some() && self.kind() == FileKind::Symlink {
            return Err(Errno::OPNOTSUPP.into());
        }
        let now = self.shared().clock.tick();
        if let Some(size) = set.size {
            if handle.is_some_and(|handle| !handle.can_write()) {
                return Err(Errno::INVAL.into());
            }
            self.set_size(&mut state, size)?;
            drop_set_ids(&mut state, caller);
            state.mtime = now;
        }
        if set.uid.is_some() || set.gid.is_some() {
            state.uid = set.uid.unwrap_or(state.uid);
            state.gid = set.gid.unwrap_or(state.gid);
            if !self.is_directory() {
                let keeps_group = state.permissions & GROUP_EXEC == 0;
                state.permissions &= if keeps_group { !SET_UID } else { !(SET_UID | SET_GID) };
            }
        }
        if let Some(mode) = set.mode {
            state.permissions = mode & 0o7777;
            if !in_group_or_root(state.gid, caller) {
                state.permissions &= !SET_GID;
            }
        }
        let time = |time| match time {
            SetTime::Now => now,
            SetTime::At(time) => time,
        };
        state.atime = set.atime.map_or(state.atime, time);
        state.mtime = set.mtime.map_or(state.mtime, time);
        state.ctime = now;
        Ok(self.attr_of(&state))
    }

    /// Cuts or extends a file, without touching its times.
    pub(crate) fn set_size(&self, state: &mut State, new_size: u64) -> Result<()> {
        match &mut state.body {
            Body::File { .. } if new_size > FILE_MAX => Err(Errno::FBIG.into()),
            Body::File { pages, size } => {
                // Also when it grows: what `fallocate` promised behind the end stays, as bytes behind the end are zero.
                if new_size < *size {
                    pages.truncate(new_size, &self.shared().space);
                }
                *size = new_size;
                Ok(())
            }
            Body::Directory(_) => Err(Errno::ISDIR.into()),
            Body::Symlink(_) | Body::Special { .. } => Err(Errno::INVAL.into()),
        }
    }

    /// `access(2)` by the mode bits.
    pub(crate) fn may(&self, caller: &Caller, mask: u32) -> Result<()> {
        let state = self.state().read();
        let mask = mask & 7;
        if caller.uid == 0 {
            let executable = self.is_directory() || state.permissions & 0o111 != 0;
            return if mask & 1 == 0 || executable { Ok(()) } else { Err(Errno::ACCESS.into()) };
        }
        let granted = if caller.uid == state.uid {
            state.permissions >> 6
        } else if in_group_or_root(state.gid, caller) {
            state.permissions >> 3
        } else {
            state.permissions
        };
        if mask & !granted == 0 { Ok(()) } else { Err(Errno::ACCESS.into()) }
    }

    /// The target of a symbolic link; EINVAL if it is none.
    pub(crate) fn target(&self) -> Result<OsString> {
        match &self.state().read().body {
            Body::Symlink(target) => Ok(target.clone()),
            _ => Err(Errno::INVAL.into()),
        }
    }

    /// Notes a read that found the access time [due](atime_is_due).
    pub(crate) fn accessed(&self) {
        self.state().write().atime = self.shared().clock.tick();
    }
}

/// Whether a read is to be noted, as on a mount with `relatime`.
pub(crate) fn atime_is_due(state: &State) -> bool {
    let age_ns = Timestamp::now().as_nanos() - state.atime.as_nanos();
    state.atime <= state.mtime || state.atime <= state.ctime || age_ns > ATIME_MAX_AGE.as_nanos() as i128
}

/// Takes the set-id bits away that a change of the bytes by this caller ends.
pub(crate) fn drop_set_ids(state: &mut State, caller: &Caller) {
    if caller.uid == 0 || state.permissions & (SET_UID | SET_GID) == 0 {
        return;
    }
    state.permissions &= !SET_UID;
    if state.permissions & GROUP_EXEC != 0 || !in_group_or_root(state.gid, caller) {
        state.permissions &= !SET_GID;
    }
}

/// Whether the caller may keep a set-group-id bit of that group.
pub(crate) fn in_group_or_root(gid: u32, caller: &Caller) -> bool {
    caller.uid == 0 || caller.gid == gid || caller.groups().contains(&gid)
}

/// Permission bits of something new: what of the wish the umask and the parent leave.
pub(crate) fn new_permissions(caller: &Caller, kind: FileKind, mode: u32, parent: &State) -> (u32, u32) {
    let inherits = parent.permissions & SET_GID != 0;
    let gid = if inherits { parent.gid } else { caller.gid };
    let mut permissions = mode & 0o7777 & !(caller.umask & 0o777);
    match kind {
        FileKind::Directory => {
            permissions &= 0o1777;
            permissions |= if inherits { SET_GID } else { 0 };
        }
        FileKind::Symlink => permissions = 0o777,
        _ if inherits && permissions & GROUP_EXEC != 0 && !in_group_or_root(gid, caller) => {
            permissions &= !SET_GID;
        }
        _ => {}
    }
    (permissions, gid)
}
