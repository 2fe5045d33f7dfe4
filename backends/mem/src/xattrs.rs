//! Extended attributes: the namespaces and limits of `xattr(7)`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use hither_vfs::{Errno, FileKind, Result, XattrFlags};

use crate::node::MemNode;

/// Longest name and longest value, in bytes.
const NAME_MAX: usize = 255;
const VALUE_MAX: usize = 64 * 1024;

/// Bytes of all names together, each with its NUL: what `listxattr(2)` can tell.
const LIST_MAX: usize = 64 * 1024;

/// Prefixes of the namespaces that are kept. `system.` would be access lists, which there are none of.
const PREFIXES: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];

impl MemNode {
    pub(crate) fn xattr(&self, name: &OsStr) -> Result<Vec<u8>> {
        self.check_xattr(name, Errno::NODATA)?;
        self.state().read().xattrs.get(name).cloned().ok_or_else(|| Errno::NODATA.into())
    }

    pub(crate) fn set_xattr(&self, name: &OsStr, value: &[u8], flags: XattrFlags) -> Result<()> {
        if flags.contains(XattrFlags::CREATE | XattrFlags::REPLACE) {
            return Err(Errno::INVAL.into());
        }
        self.check_xattr(name, Errno::PERM)?;
        if value.len() > VALUE_MAX {
            return Err(Errno::TOOBIG.into());
        }
        let mut state = self.state().write();
        let exists = state.xattrs.contains_key(name);
        if exists && flags.contains(XattrFlags::CREATE) {
            return Err(Errno::EXIST.into());
        }
        if !exists && flags.contains(XattrFlags::REPLACE) {
            return Err(Errno::NODATA.into());
        }
        let listed: usize = state.xattrs.keys().map(|name| name.len() + 1).sum();
        if !exists && listed + name.len() + 1 > LIST_MAX {
            return Err(Errno::NOSPC.into());
        }
        state.xattrs.insert(name.to_owned(), value.to_vec());
        state.ctime = self.shared().clock.tick();
        Ok(())
    }

    pub(crate) fn remove_xattr(&self, name: &OsStr) -> Result<()> {
        self.check_xattr(name, Errno::PERM)?;
        let mut state = self.state().write();
        if state.xattrs.remove(name).is_none() {
            return Err(Errno::NODATA.into());
        }
        state.ctime = self.shared().clock.tick();
        Ok(())
    }

    /// Refuses names of no namespace; `user.` exists for files and directories only, and says `elsewhere` on others.
    fn check_xattr(&self, name: &OsStr, elsewhere: Errno) -> Result<()> {
        let bytes = name.as_bytes();
        if bytes.is_empty() || bytes.len() > NAME_MAX {
            return Err(Errno::RANGE.into());
        }
        let has_user = matches!(self.kind(), FileKind::Regular | FileKind::Directory);
        if bytes.starts_with(b"user.") && !has_user {
            return Err(elsewhere.into());
        }
        match PREFIXES.iter().find_map(|prefix| bytes.strip_prefix(*prefix)) {
            None => Err(Errno::OPNOTSUPP.into()),
            Some(b"") => Err(Errno::INVAL.into()),
            Some(_) => Ok(()),
        }
    }
}
