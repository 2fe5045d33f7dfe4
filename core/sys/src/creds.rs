//! Whose rights a thread's file system calls have: the file system uid, gid and supplementary groups of one thread.
//!
//! A guard is an identity: as long as it lives, the thread has it, and afterwards it is again what it was. A change
//! costs more than most calls made under it (0.7 µs for each of the ids), so a thread that does nothing but serve callers
//! may keep the last one's identity until it needs another ([`Acting::keep`]). On such a thread, and in threads that it
//! starts, since identities are inherited, whoever makes file system calls of the daemon's own says so first ([`own`]).
//!
//! The raw system calls are used: glibc's wrappers would change every thread of the process.

#![expect(unsafe_code, reason = "setfsuid(2), setfsgid(2)")]

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use rustix::io::{Errno, Result};
use rustix::process::Gid;
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet};

/// The process's own identity, and whether it may take on others.
#[derive(Debug)]
struct Own {
    uid: u32,
    gid: u32,
    may_assume: bool,
}

fn this_process() -> &'static Own {
    static OWN: OnceLock<Own> = OnceLock::new();
    OWN.get_or_init(|| {
        let uid = rustix::process::geteuid().as_raw();
        let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
        let capable = rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(needed));
        // With another effective uid than 0, or with that bit, the kernel neither drops nor restores the capabilities
        // that override permissions when the file system uid changes: the caller would keep the daemon's.
        let fixed = CapabilitiesSecureBits::NO_SETUID_FIXUP;
        let follows =
            uid == 0 && rustix::thread::capabilities_secure_bits().is_ok_and(|bits| !bits.intersects(fixed));
        Own { uid, gid: rustix::process::getegid().as_raw(), may_assume: capable && follows }
    })
}

/// What the thread is now, as far as is known.
#[derive(Clone, Default)]
struct Now {
    /// File system uid and gid; `None` until the first look.
    ids: Option<(u32, u32)>,
    /// Supplementary groups, once they were set here; before, they are the process's.
    groups: Option<Arc<[u32]>>,
    /// `CAP_SYS_RESOURCE` is out of effect.
    limited: bool,
    /// Guards alive.
    depth: u32,
}

thread_local! {
    static NOW: RefCell<Now> = RefCell::new(Now::default());
}

/// As long as it lives, the thread has the identity that was asked for. When it is dropped the thread gets back that of
/// the guard around it, or else the daemon's own.
#[must_use = "the identity is only promised while this lives"]
pub struct Acting {
    outer: Option<Now>,
    keep: bool,
    // An identity belongs to one thread.
    _here: PhantomData<*const ()>,
}

impl Acting {
    /// Ends the guard, but leaves its identity in effect unless there is a guard around it: the next call of the same
    /// caller costs no change then.
    pub fn keep(mut self) {
        self.keep = true;
    }
}

/// Whether this process may act as others at all: it is root, has `CAP_SETUID` and `CAP_SETGID`, and capabilities follow
/// uids as usual (`capabilities(7)`, `SECBIT_NO_SETUID_FIXUP`).
pub fn may_assume() -> bool {
    this_process().may_assume
}

/// Acts as a user from now on: the capabilities that override file permissions are in effect for uid 0 only, and
/// `CAP_SYS_RESOURCE` neither, which would let users past their quotas and into blocks reserved for root.
///
/// Fails with EPERM where the process may not, or where its user namespace does not know the ids.
pub fn assume(uid: u32, gid: u32, groups: &Arc<[u32]>) -> Result<Acting> {
    if !may_assume() {
        return Err(Errno::PERM);
    }
    enter(|now| {
        now.set_groups(groups)?;
        now.set_gid(gid)?;
        now.set_uid(uid)?;
        now.limit(uid != 0)
    })
}

/// Has this thread respect quotas and blocks reserved for root, or not (`CAP_SYS_RESOURCE`), without a change of identity:
/// for writes, which the open has been allowed already.
pub fn respect_limits(respect: bool) -> Result<()> {
    if !may_assume() {
        return Ok(());
    }
    NOW.with_borrow_mut(|now| now.limit(respect))
}

/// Acts as the daemon itself from now on. Supplementary groups and `CAP_SYS_RESOURCE` that were given up for a caller stay
/// given up: the process is root then, and has no need of them for files.
pub fn own() -> Acting {
    let acting = enter(|now| {
        now.become_own();
        Ok(())
    });
    acting.unwrap_or_else(|_| std::process::abort())
}

/// Runs `change` on the thread's state and returns its guard.
fn enter(change: impl FnOnce(&mut Now) -> Result<()>) -> Result<Acting> {
    NOW.with_borrow_mut(|now| {
        let outer = (now.depth > 0).then(|| now.clone());
        match change(now) {
            Ok(()) => {
                now.depth += 1;
                Ok(Acting { outer, keep: false, _here: PhantomData })
            }
            Err(errno) => {
                // Half a change must not be left to whoever acts next.
                match outer {
                    Some(outer) => now.restore(&outer),
                    None => now.become_own(),
                }
                Err(errno)
            }
        }
    })
}

impl Drop for Acting {
    fn drop(&mut self) {
        // Not reachable while the thread's storage is gone: a guard lives on its thread's stack.
        let _ = NOW.try_with(|now| {
            let mut now = now.borrow_mut();
            now.depth -= 1;
            match &self.outer {
                Some(outer) => now.restore(outer),
                None if self.keep => {}
                None => now.become_own(),
            }
        });
    }
}

impl Now {
    /// What the ids are, asked of the kernel once a thread.
    fn ids(&mut self) -> (u32, u32) {
        *self
            .ids
            .get_or_insert_with(|| (set_fs_id(libc::SYS_setfsuid, !0), set_fs_id(libc::SYS_setfsgid, !0)))
    }

    /// Takes the process's own ids. The kernel always lets a thread have its effective ids.
    fn become_own(&mut self) {
        let own = this_process();
        if self.set_gid(own.gid).and_then(|()| self.set_uid(own.uid)).is_err() {
            std::process::abort();
        }
    }

    fn set_uid(&mut self, uid: u32) -> Result<()> {
        let (old, gid) = self.ids();
        if old != uid {
            change_fs_id(libc::SYS_setfsuid, uid)?;
            self.ids = Some((uid, gid));
        }
        Ok(())
    }

    fn set_gid(&mut self, gid: u32) -> Result<()> {
        let (uid, old) = self.ids();
        if old != gid {
            change_fs_id(libc::SYS_setfsgid, gid)?;
            self.ids = Some((uid, gid));
        }
        Ok(())
    }

    fn set_groups(&mut self, groups: &Arc<[u32]>) -> Result<()> {
        if self.groups.as_ref().is_some_and(|now| Arc::ptr_eq(now, groups) || now == groups) {
            return Ok(());
        }
        let raw: Vec<Gid> = groups.iter().map(|group| Gid::from_raw_unchecked(*group)).collect();
        rustix::thread::set_thread_groups(&raw)?;
        self.groups = Some(groups.clone());
        Ok(())
    }

    fn limit(&mut self, limited: bool) -> Result<()> {
        if self.limited == limited {
            return Ok(());
        }
        let mut sets = rustix::thread::capabilities(None)?;
        let raise = !limited && sets.permitted.contains(CapabilitySet::SYS_RESOURCE);
        sets.effective.set(CapabilitySet::SYS_RESOURCE, raise);
        rustix::thread::set_capabilities(None, sets)?;
        self.limited = limited;
        Ok(())
    }

    /// Goes back to what was before. Going on with other rights than an outer guard promised is no option.
    fn restore(&mut self, outer: &Now) {
        let mut back = || {
            if let Some(groups) = &outer.groups {
                self.set_groups(groups)?;
            }
            if let Some((uid, gid)) = outer.ids {
                self.set_gid(gid)?;
                self.set_uid(uid)?;
            }
            self.limit(outer.limited)
        };
        if back().is_err() {
            std::process::abort();
        }
    }
}

fn change_fs_id(call: libc::c_long, id: u32) -> Result<()> {
    set_fs_id(call, id);
    // The call reports no error: only asking again tells whether it worked.
    if set_fs_id(call, !0) == id { Ok(()) } else { Err(Errno::PERM) }
}

/// `setfsuid(2)` or `setfsgid(2)`: the id before; with `!0`, which is no id, nothing changes.
fn set_fs_id(call: libc::c_long, id: u32) -> u32 {
    debug_assert!(call == libc::SYS_setfsuid || call == libc::SYS_setfsgid);
    // SAFETY: both calls take one integer and touch no memory of ours.
    unsafe { libc::syscall(call, libc::c_ulong::from(id)) as u32 }
}

#[cfg(test)]
mod tests;
