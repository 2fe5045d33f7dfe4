//! Extended attributes, POSIX ACLs (`system.posix_acl_*`) among them.
//!
//! The calls that take a descriptor refuse an `O_PATH` one, so they go by the path of its link in `/proc/self/fd`. What
//! is behind that link is not followed further: a symbolic link's own attributes are reached.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;

use hither_vfs::{Call, Errno, Result, XattrFlags};

use super::DirNode;
use crate::proc::ProcPath;

/// Bytes: more than nearly all values and lists of names have.
const USUAL: usize = 1024;
/// Bytes: the most that the kernel lets a value (`XATTR_SIZE_MAX`) or a list of names (`XATTR_LIST_MAX`) have.
const MAX: usize = 64 * 1024;

impl DirNode {
    pub(super) fn xattr(&self, call: &Call, name: &OsStr) -> Result<Vec<u8>> {
        self.shared.admit(call)?;
        if self.is_for_root_only(call, name, false) {
            return Err(Errno::NODATA.into());
        }
        let fd = self.reach(call)?;
        let path = ProcPath::of(fd.as_fd());
        self.shared.as_caller(call, || grown(|buf| rustix::fs::getxattr(path.as_c_str(), name, buf)))
    }

    pub(super) fn set_xattr(&self, call: &Call, name: &OsStr, value: &[u8], flags: XattrFlags) -> Result<()> {
        self.shared.admit(call)?;
        if self.is_for_root_only(call, name, true) {
            return Err(Errno::PERM.into());
        }
        let fd = self.reach(call)?;
        let path = ProcPath::of(fd.as_fd());
        let set = || rustix::fs::setxattr(path.as_c_str(), name, value, flags);
        // An ACL changes the mode, and that takes the set-group-id bit from those not in the group.
        if name.as_encoded_bytes().starts_with(b"system.") {
            self.shared.as_caller_exactly(call, set)
        } else {
            self.shared.as_caller(call, set)
        }
    }

    pub(super) fn xattr_names(&self, call: &Call) -> Result<Vec<OsString>> {
        self.shared.admit(call)?;
        let fd = self.reach(call)?;
        let path = ProcPath::of(fd.as_fd());
        let names =
            self.shared.as_caller(call, || grown(|buf| rustix::fs::listxattr(path.as_c_str(), buf)))?;
        let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let names = names.map(|name| OsString::from_vec(name.to_vec()));
        Ok(names.filter(|name| !self.is_for_root_only(call, name, false)).collect())
    }

    pub(super) fn remove_xattr(&self, call: &Call, name: &OsStr) -> Result<()> {
        self.shared.admit(call)?;
        if self.is_for_root_only(call, name, true) {
            return Err(Errno::PERM.into());
        }
        let fd = self.reach(call)?;
        let path = ProcPath::of(fd.as_fd());
        self.shared.as_caller(call, || rustix::fs::removexattr(path.as_c_str(), name))
    }
}

/// What `get` writes to a buffer, a small one first.
fn grown(get: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> rustix::io::Result<Vec<u8>> {
    let mut small = [0; USUAL];
    match get(&mut small) {
        Ok(len) => return Ok(small[..len].to_vec()),
        Err(Errno::RANGE) => {}
        Err(errno) => return Err(errno),
    }
    let mut large = vec![0; MAX];
    let len = get(&mut large)?;
    large.truncate(len);
    large.shrink_to_fit();
    Ok(large)
}
