//! Extended attributes; ACLs come as such.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use hither_vfs::{Call, Errno, Result, SetAttr, XattrFlags};

use super::{Dispatcher, Flow};
use crate::nodes::Known;
use crate::protocol::abi::{GetxattrOut, SETXATTR_ACL_KILL_SGID, SetxattrIn};
use crate::protocol::wire::Pad;
use crate::reply::Reply;

const SET_GROUP_ID: u32 = 0o2000;

impl Dispatcher {
    pub(super) fn getxattr(
        &self,
        call: &Call,
        known: &Known,
        name: &OsStr,
        size: u32,
        reply: &mut Reply,
    ) -> Result<Flow> {
        put_sized(&known.node.getxattr(call, name)?, size, reply)
    }

    pub(super) fn listxattr(&self, call: &Call, known: &Known, size: u32, reply: &mut Reply) -> Result<Flow> {
        let mut list = Vec::new();
        for name in known.node.listxattr(call)? {
            list.extend_from_slice(name.as_bytes());
            list.push(0);
        }
        put_sized(&list, size, reply)
    }

    pub(super) fn setxattr(
        &self,
        call: &Call,
        known: &Known,
        name: &OsStr,
        value: &[u8],
        args: &SetxattrIn,
    ) -> Result<Flow> {
        let flags = XattrFlags::from_bits(args.flags).ok_or(Errno::INVAL)?;
        known.node.setxattr(call, name, value, flags)?;
        if args.setxattr_flags & SETXATTR_ACL_KILL_SGID != 0 {
            let mode = known.node.getattr(call)?.permissions();
            if mode & SET_GROUP_ID != 0 {
                let set = SetAttr { mode: Some(mode & !SET_GROUP_ID), ..SetAttr::default() };
                known.node.setattr(call, &set, None)?;
            }
        }
        self.notifier.changed_through(known, false);
        Ok(Flow::Answer)
    }

    pub(super) fn removexattr(&self, call: &Call, known: &Known, name: &OsStr) -> Result<Flow> {
        known.node.removexattr(call, name)?;
        self.notifier.changed_through(known, false);
        Ok(Flow::Answer)
    }
}

/// The bytes, or their length if the program asked for that (size 0); ERANGE if it left too little room.
fn put_sized(bytes: &[u8], size: u32, reply: &mut Reply) -> Result<Flow> {
    if size == 0 {
        let size = u32::try_from(bytes.len()).map_err(|_| Errno::TOOBIG)?;
        reply.put(&GetxattrOut { size, padding: Pad });
    } else if bytes.len() > size as usize {
        return Err(Errno::RANGE.into());
    } else {
        reply.put_bytes(bytes);
    }
    Ok(Flow::Answer)
}
