//! Extended attributes: asked once for each version of a file. The kernel asks for the access control list of every file
//! that a program opens or lists, and the origin is far away; a change of an attribute moves ctime.

use std::ffi::{OsStr, OsString};

use hither_vfs::{Call, Errno, Result, Timestamp};

use crate::node::CacheNode;
use crate::version::Version;

/// Attributes remembered of one node, and their largest value in bytes.
const NAMES: usize = 8;
const VALUE: usize = 1024;

/// What was asked of one version; values that are not there are remembered, too.
#[derive(Default)]
pub(crate) struct Xattrs {
    version: Version,
    values: Vec<(OsString, Option<Vec<u8>>)>,
}

impl CacheNode {
    /// The value of an attribute, from memory if the version is known to be the one that it was asked of.
    pub(crate) fn xattr(&self, call: &Call, name: &OsStr) -> Result<Vec<u8>> {
        let version = self.fresh_attr().map(|attr| Version::of(&attr));
        if let Some(version) = version
            && let Some(value) = self.remembered_xattr(&version, name)
        {
            return value.ok_or(Errno::NODATA.into());
        }
        call.patience.check()?;
        let answer = self.origin_result(self.origin.getxattr(call, name));
        // Remembered only if the file was the same before and after, as far as anyone knows.
        let after = self.fresh_attr().map(|attr| Version::of(&attr));
        if let Some(version) = version.filter(|version| after == Some(*version)) {
            self.remember_xattr(version, name, &answer);
        }
        answer
    }

    fn remembered_xattr(&self, version: &Version, name: &OsStr) -> Option<Option<Vec<u8>>> {
        let xattrs = self.xattrs.lock();
        let known = xattrs.as_ref().filter(|known| known.version == *version)?;
        known.values.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    fn remember_xattr(&self, version: Version, name: &OsStr, answer: &Result<Vec<u8>>) {
        let value = match answer {
            Ok(value) if value.len() <= VALUE => Some(value.clone()),
            Err(error) if *error == Errno::NODATA => None,
            _ => return,
        };
        if !version.is_settled(Timestamp::now(), self.shared.options.settle) {
            return;
        }
        let mut xattrs = self.xattrs.lock();
        let known = xattrs.get_or_insert_default();
        if known.version != version {
            **known = Xattrs { version, values: Vec::new() };
        }
        if known.values.len() < NAMES && known.values.iter().all(|(known, _)| known != name) {
            known.values.push((name.to_owned(), value));
        }
    }
}
