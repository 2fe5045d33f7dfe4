//! Attributes of nodes, and of the file system.

use hither_vfs::{Attr, Call, Caller, FileKind, Result, SetAttr, SetTime, Timestamp};

use super::{Dispatcher, Flow};
use crate::nodes::Known;
use crate::protocol::abi::{GETATTR_FH, GetattrIn, SetattrIn, StatxIn, fattr};
use crate::protocol::encode;
use crate::reply::Reply;

/// Where in `struct fuse_attr_out` and `struct fuse_statx_out` the timeouts lie.
const ATTR_TIMEOUTS: std::ops::Range<usize> = 0..12;

const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o0010;

impl Dispatcher {
    pub(super) fn getattr(
        &self,
        call: &Call,
        known: &Known,
        args: &GetattrIn,
        reply: &mut Reply,
    ) -> Result<Flow> {
        let open = (args.getattr_flags & GETATTR_FH != 0).then_some(args.fh);
        let attr = self.attr_of(call, known, open)?;
        reply.put_timed(&encode::getattr(&attr, self.attr_timeout(known)), ATTR_TIMEOUTS);
        Ok(Flow::Answer)
    }

    pub(super) fn statx(
        &self,
        call: &Call,
        known: &Known,
        args: &StatxIn,
        reply: &mut Reply,
    ) -> Result<Flow> {
        let open = (args.getattr_flags & GETATTR_FH != 0).then_some(args.fh);
        let attr = self.attr_of(call, known, open)?;
        reply.put_timed(&encode::statx(&attr, self.attr_timeout(known)), ATTR_TIMEOUTS);
        Ok(Flow::Answer)
    }

    /// The kernel names an open where it asks for its own sake (to read within the file's size); `stat` and `fstat` ask
    /// for the node.
    fn attr_of(&self, call: &Call, known: &Known, open: Option<u64>) -> Result<Attr> {
        if let Some(file) = open.and_then(|number| self.files.get(number))
            && let Some(attr) = file.handle.getattr(call)?
        {
            known.set_own_version();
            return Ok(attr);
        }
        known.node.getattr(call)
    }

    pub(super) fn setattr(
        &self,
        call: &Call,
        known: &Known,
        args: &SetattrIn,
        reply: &mut Reply,
    ) -> Result<Flow> {
        let file = if args.valid & fattr::FH != 0 { Some(self.file(args.fh)?) } else { None };
        if args.valid & fattr::KILL_SUIDGID != 0 && args.valid & fattr::SIZE != 0 {
            self.kill_set_ids(call, known)?;
        }
        let set = set_attr(args);
        let mut attr = known.node.setattr(call, &set, file.as_ref().map(|file| &*file.handle))?;
        let changed_owner = set.uid.is_some() || set.gid.is_some();
        if changed_owner && set.mode.is_none() && self.drop_set_ids(call, known, &attr)? {
            attr = known.node.getattr(call)?;
        }
        self.notifier.changed_through(known, set.size.is_some());
        reply.put_timed(&encode::getattr(&attr, self.attr_timeout(known)), ATTR_TIMEOUTS);
        Ok(Flow::Answer)
    }

    /// Somebody without CAP_FSETID is about to change the bytes of a file: its set-id bits go first.
    pub(super) fn kill_set_ids(&self, call: &Call, known: &Known) -> Result<()> {
        let attr = known.node.getattr(call)?;
        if self.drop_set_ids(call, known, &attr)? {
            self.notifier.forget_attr(known);
            self.notifier.changed_through(known, false);
        }
        Ok(())
    }

    /// Clears the set-id bits that a change of owner or bytes clears. `true` if there were any.
    fn drop_set_ids(&self, call: &Call, known: &Known, attr: &Attr) -> Result<bool> {
        let mode = attr.permissions();
        let keep = without_set_ids(attr.kind(), mode);
        if keep == mode {
            return Ok(false);
        }
        // The caller may not be allowed to: the owner always is.
        let owner = Call::new(Caller::new(attr.uid, attr.gid, 0, 0), call.patience.clone());
        known.node.setattr(&owner, &SetAttr { mode: Some(keep), ..SetAttr::default() }, None)?;
        Ok(true)
    }

    pub(super) fn statfs(&self, call: &Call, reply: &mut Reply) -> Result<Flow> {
        let space = self.fs.statfs(call)?;
        reply.put(&encode::statfs(&space));
        Ok(Flow::Answer)
    }
}

/// Permissions after the set-id bits were killed (`setattr_should_drop_suidgid` in the kernel): set-group-id without
/// execute permission for the group is the mark of mandatory locking, and stays.
fn without_set_ids(kind: FileKind, mode: u32) -> u32 {
    if kind != FileKind::Regular {
        return mode;
    }
    let group = if mode & GROUP_EXECUTE != 0 { SET_GROUP_ID } else { 0 };
    mode & !(SET_USER_ID | group)
}

fn set_attr(args: &SetattrIn) -> SetAttr {
    let wants = |bit: u32| args.valid & bit != 0;
    let time = |set: u32, now: u32, sec: i64, nsec: u32| match (wants(set), wants(now)) {
        (_, true) => Some(SetTime::Now),
        (true, false) => Some(SetTime::At(Timestamp { sec, nsec })),
        (false, false) => None,
    };
    SetAttr {
        mode: wants(fattr::MODE).then_some(args.mode & 0o7777),
        uid: wants(fattr::UID).then_some(args.uid),
        gid: wants(fattr::GID).then_some(args.gid),
        size: wants(fattr::SIZE).then_some(args.size),
        atime: time(fattr::ATIME, fattr::ATIME_NOW, args.atime, args.atimensec),
        mtime: time(fattr::MTIME, fattr::MTIME_NOW, args.mtime, args.mtimensec),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_ids_go_as_on_a_local_file_system() {
        assert_eq!(without_set_ids(FileKind::Regular, 0o4755), 0o755);
        assert_eq!(without_set_ids(FileKind::Regular, 0o2755), 0o755);
        assert_eq!(without_set_ids(FileKind::Regular, 0o2745), 0o2745);
        assert_eq!(without_set_ids(FileKind::Regular, 0o1777), 0o1777);
        assert_eq!(without_set_ids(FileKind::Directory, 0o2755), 0o2755);
    }

    #[test]
    fn only_what_is_valid_is_set() {
        let args = SetattrIn {
            valid: fattr::MTIME | fattr::ATIME | fattr::ATIME_NOW,
            mtime: -5,
            mtimensec: 7,
            ..SetattrIn::default()
        };
        let expected = SetAttr {
            atime: Some(SetTime::Now),
            mtime: Some(SetTime::At(Timestamp { sec: -5, nsec: 7 })),
            ..SetAttr::default()
        };
        assert_eq!(set_attr(&args), expected);
    }
}
