//! Removing and moving names, and what that means for the nodes they led to.
//!
//! A node that somebody holds goes on working after its last name is gone: its descriptor is opened before, and kept.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use hither_vfs::{Call, Errno, Node, RenameFlags, Result};
use rustix::fs::AtFlags;

use super::{DirNode, GONE};
use crate::proc::checked;

/// A node that is about to lose a name, with a descriptor that it will still have then.
struct Losing {
    node: Arc<DirNode>,
    path: Arc<OwnedFd>,
}

impl DirNode {
    /// `unlink`, or with `REMOVEDIR` `rmdir`.
    pub(super) fn remove_name(&self, call: &Call, name: &OsStr, how: AtFlags) -> Result<()> {
        self.shared.admit(call)?;
        let name = checked(name)?;
        let dir = self.reach(call)?;
        let losing = self.losing(call, &dir, name);
        self.shared.as_caller(call, || rustix::fs::unlinkat(&dir, name, how))?;
        if let Some(losing) = losing {
            losing.lost(self, name);
        }
        Ok(())
    }

    fn losing(&self, call: &Call, dir: &OwnedFd, name: &OsStr) -> Option<Losing> {
        let mut node = self.find_held(call, dir.as_fd(), name)?;
        if !node.is_kept() {
            // By the name, while there is one: as the caller, with no change of identity.
            (node, ..) = self.find_unknown(call, dir.as_fd(), name).ok()?;
        }
        let path = node.reach(call).ok()?;
        Some(Losing { node, path })
    }

    pub(super) fn move_name(
        &self,
        call: &Call,
        name: &OsStr,
        new_parent: &dyn Node,
        new_name: &OsStr,
        flags: RenameFlags,
    ) -> Result<()> {
        self.shared.admit(call)?;
        let (name, new_name) = (checked(name)?, checked(new_name)?);
        let to = new_parent.as_any().downcast_ref::<DirNode>().ok_or(Errno::XDEV)?;
        if !Arc::ptr_eq(&to.shared, &self.shared) {
            return Err(Errno::XDEV.into());
        }
        let (dir, to_dir) = (self.reach(call)?, to.reach(call)?);
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        let losing = if exchange { None } else { to.losing(call, &to_dir, new_name) };
        // Only nodes that are found by name have to know theirs.
        let moving = if self.mount.handles { None } else { self.find_held(call, dir.as_fd(), name) };
        let coming =
            if exchange && !to.mount.handles { to.find_held(call, to_dir.as_fd(), new_name) } else { None };
        self.shared.as_caller(call, || rustix::fs::renameat_with(&dir, name, &to_dir, new_name, flags))?;
        if let Some(losing) = losing {
            losing.lost(to, new_name);
        }
        if let Some(node) = moving {
            node.seen_at(to, new_name);
        }
        if let Some(node) = coming {
            node.seen_at(self, name);
        }
        Ok(())
    }
}

impl Losing {
    /// The name is gone, or leads to another node.
    fn lost(self, parent: &DirNode, name: &OsStr) {
        self.node.not_at(parent, name);
        // Asked, not counted: another link may have been made or removed meanwhile, by anybody. A directory that was
        // removed has no links; one that was moved away behind our back has.
        if self.node.shared.asking.of_fd(self.path.as_fd()).is_ok_and(|stat| stat.stx_nlink == 0) {
            self.node.set(GONE, true);
        }
    }
}
