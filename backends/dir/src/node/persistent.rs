//! Names of inodes for ever.
//!
//! ```text
//! 1  handle   type: i32, bytes                  where there are file handles
//! 2  birth    inode: u64, birth: i64, u32       elsewhere, where there is a time of birth
//! ```
//!
//! Integers are little-endian. On another file system than the root's its id (`f_fsid`, u64) follows the first byte,
//! whose high bit is set then: device numbers and mount ids do not outlive a restart, that id does where a file system has
//! one of its own.

use hither_vfs::{Call, PersistentId, Result};

use super::DirNode;

const HANDLE: u8 = 1;
const BIRTH: u8 = 2;
const ELSEWHERE: u8 = 0x80;

impl DirNode {
    pub(super) fn persistent(&self, call: &Call) -> Result<Option<PersistentId>> {
        self.shared.admit(call)?;
        let mut id = Vec::with_capacity(PersistentId::MAX_LEN);
        if let Some(handle) = self.handle(call)? {
            self.tag(&mut id, HANDLE);
            id.extend(handle.kind().to_le_bytes());
            id.extend(handle.bytes());
        } else if let Some(btime) = self.btime {
            self.tag(&mut id, BIRTH);
            id.extend(self.identity.ino.to_le_bytes());
            id.extend(btime.sec.to_le_bytes());
            id.extend(btime.nsec.to_le_bytes());
        } else {
            return Ok(None);
        }
        debug_assert!(id.len() <= PersistentId::MAX_LEN);
        Ok(Some(PersistentId(id.into())))
    }

    fn tag(&self, id: &mut Vec<u8>, form: u8) {
        if self.identity.dev == self.shared.root_dev {
            id.push(form);
        } else {
            id.push(form | ELSEWHERE);
            id.extend(self.mount.fsid.to_le_bytes());
        }
    }
}
