//! As whom a call's system calls are made.
//!
//! Supplementary groups are not in a FUSE request; reading them from `/proc` costs ten times what most calls do. So
//! calls go without them at first, where all that their absence can do is to be refused ([`Shared::as_caller`]: tried
//! again with them), and with them where it would change the result unseen ([`Shared::as_caller_exactly`]: a set-group-id
//! bit is dropped in silence if the caller is not in the group). A caller whose groups are known has them always.
//!
//! Without groups a caller may be taken for "others" where the group class would deny him more (mode 0604). A front end
//! that has the kernel check permissions is not touched by that; whoever else makes calls for others gives the groups
//! ([`Caller::with_groups`](hither_vfs::Caller::with_groups)).

use std::sync::{Arc, LazyLock};

use hither_sys::creds::{self, Acting};
use hither_vfs::{Call, Errno, Result};

use crate::dir::Shared;
use crate::options::Identity;

static NO_GROUPS: LazyLock<Arc<[u32]>> = LazyLock::new(|| Arc::from([]));

impl Shared {
    /// Whether calls are made as their callers at all.
    pub fn assumes(&self) -> bool {
        self.options.identity == Identity::Caller && creds::may_assume()
    }

    /// Whether a call is made with the rights of an ordinary user.
    pub fn is_restricted(&self, call: &Call) -> bool {
        self.assumes() && call.caller.uid != 0
    }

    /// Runs system calls as the caller; a second time with his groups if they are refused without.
    pub fn as_caller<T>(&self, call: &Call, run: impl Fn() -> rustix::io::Result<T>) -> Result<T> {
        let restricted = self.is_restricted(call);
        let known = if restricted { call.caller.known_groups() } else { Some(&*NO_GROUPS) };
        let first = {
            let acting = self.enter(call, known.unwrap_or(&NO_GROUPS))?;
            let result = uninterrupted(&run);
            self.leave(acting);
            result
        };
        match first {
            Err(Errno::ACCESS | Errno::PERM) if known.is_none() && !call.caller.groups().is_empty() => {
                self.as_caller_exactly(call, run)
            }
            other => Ok(other?),
        }
    }

    /// Runs system calls as the caller with his groups.
    pub fn as_caller_exactly<T>(&self, call: &Call, run: impl Fn() -> rustix::io::Result<T>) -> Result<T> {
        let groups = if self.is_restricted(call) { call.caller.groups() } else { &NO_GROUPS };
        let acting = self.enter(call, groups)?;
        let result = uninterrupted(&run);
        self.leave(acting);
        Ok(result?)
    }

    /// Runs system calls on an open file, for which who asks matters no more: only his limits do.
    pub fn as_opened<T>(&self, call: &Call, run: impl Fn() -> rustix::io::Result<T>) -> Result<T> {
        if self.assumes() {
            creds::respect_limits(call.caller.uid != 0)?;
        }
        Ok(uninterrupted(&run)?)
    }

    /// Runs system calls as the daemon, and as the caller if the daemon is refused: a server may squash root, but let
    /// the caller pass.
    pub fn as_own<T>(&self, call: &Call, run: impl Fn() -> rustix::io::Result<T>) -> Result<T> {
        let first = {
            let _own = creds::own();
            uninterrupted(&run)
        };
        match first {
            Err(Errno::ACCESS | Errno::PERM) if self.is_restricted(call) => self.as_caller(call, run),
            other => Ok(other?),
        }
    }

    fn enter(&self, call: &Call, groups: &Arc<[u32]>) -> Result<Acting> {
        if !self.assumes() {
            return Ok(creds::own());
        }
        Ok(creds::assume(call.caller.uid, call.caller.gid, groups)?)
    }

    fn leave(&self, acting: Acting) {
        if self.options.keep_identity {
            acting.keep();
        }
    }
}

/// Once more if a signal to the daemon interrupted it: the program knows nothing of that signal.
fn uninterrupted<T>(run: impl Fn() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match run() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}
