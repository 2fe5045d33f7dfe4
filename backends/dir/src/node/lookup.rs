//! Looking up a name.
//!
//! A name costs one `statx` if it leads to a node that is known, an `openat` and a `statx` if it does not. Which it will
//! be is guessed from the last name of the same directory, since a wrong guess costs one call more: directories are
//! read for the first time as a whole, and asked again as a whole when a front end's knowledge has run out.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use hither_vfs::{Call, Entry, Result};
use rustix::fs::{Mode, Statx};

use super::interning::Found;
use super::reach::PATH;
use super::{DirNode, FAMILIAR};
use crate::proc::checked;

impl DirNode {
    pub(super) fn look_up(&self, call: &Call, name: &OsStr) -> Result<Entry> {
        self.shared.admit(call)?;
        let name = checked(name)?;
        let dir = self.reach(call)?;
        let (node, stat) = self.find(call, dir.as_fd(), name)?;
        Ok(node.entry(&stat))
    }

    /// The node that a name of this directory leads to, and its attributes. `dir` is any descriptor of the directory.
    pub(crate) fn find(
        &self,
        call: &Call,
        dir: BorrowedFd<'_>,
        name: &OsStr,
    ) -> Result<(Arc<DirNode>, Statx)> {
        if self.has(FAMILIAR) {
            let stat = self.shared.as_caller(call, || self.shared.asking.of_name(dir, name))?;
            if let Some(node) = self.shared.known(&self.found(&stat, name)) {
                return Ok((node, stat));
            }
        }
        let (node, stat, was_known) = self.find_unknown(call, dir, name)?;
        self.set(FAMILIAR, was_known);
        Ok((node, stat))
    }

    /// The same for a name that is not expected to be known; and whether it was.
    pub(super) fn find_unknown(
        &self,
        call: &Call,
        dir: BorrowedFd<'_>,
        name: &OsStr,
    ) -> Result<(Arc<DirNode>, Statx, bool)> {
        let fd = self.shared.as_caller(call, || {
            self.shared.descriptors.with_room(|| rustix::fs::openat(dir, name, PATH, Mode::empty()))
        })?;
        let stat = self.shared.asking.of_fd(fd.as_fd())?;
        let (node, was_known) = self.shared.intern(&self.found(&stat, name), fd)?;
        Ok((node, stat, was_known))
    }

    fn found<'a>(&'a self, stat: &'a Statx, name: &'a OsStr) -> Found<'a> {
        Found { stat, place: Some((self, name)), not_before: 0 }
    }

    /// The node that a name leads to, if anybody holds it. For what is to be removed or moved; errors are left to the
    /// call that does it.
    pub(super) fn find_held(&self, call: &Call, dir: BorrowedFd<'_>, name: &OsStr) -> Option<Arc<DirNode>> {
        let stat = self.shared.as_caller(call, || self.shared.asking.of_name(dir, name)).ok()?;
        self.shared.known(&self.found(&stat, name))
    }
}
