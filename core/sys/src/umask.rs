//! The file mode creation mask, a thread's own.
//!
//! Only the kernel knows whether a mask applies to what is being created: not where the directory has a default ACL.
//! So the caller's mask is put in effect before the call, and the kernel does the rest. A mask belongs to the `fs`
//! structure that all threads of a process share (with the working directory), hence a thread first gets its own copy.

#![expect(unsafe_code, reason = "unshare(2)")]

use std::cell::Cell;

use rustix::fs::Mode;
use rustix::thread::UnshareFlags;

#[derive(Clone, Copy)]
enum Mask {
    /// Shared with other threads.
    Shared,
    /// This thread's own, with that value.
    Own(u32),
    /// A copy was refused (a seccomp filter).
    Refused,
}

thread_local! {
    static MASK: Cell<Mask> = const { Cell::new(Mask::Shared) };
}

/// Sets the mask of this thread alone; from then on it has its own working directory too. False if it cannot be had:
/// then masks have to be applied by hand, and the process's mask must be 0 ([`clear`]).
pub fn set(mask: u32) -> bool {
    let mask = mask & 0o777;
    match MASK.get() {
        Mask::Own(now) if now == mask => return true,
        Mask::Own(_) => {}
        Mask::Refused => return false,
        Mask::Shared => {
            // SAFETY: CLONE_FS gives the thread its own root, working directory and mask; memory and descriptors
            // stay shared.
            if unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS) }.is_err() {
                MASK.set(Mask::Refused);
                return false;
            }
        }
    }
    rustix::process::umask(Mode::from_raw_mode(mask));
    MASK.set(Mask::Own(mask));
    true
}

/// Sets the process's mask to 0: for a daemon to call when it starts, while it has one thread.
pub fn clear() {
    rustix::process::umask(Mode::empty());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_s_mask_is_its_own() {
        let here = rustix::process::umask(Mode::empty());
        rustix::process::umask(here);
        std::thread::spawn(|| {
            assert!(set(0o7027));
            assert_eq!(rustix::process::umask(Mode::from_raw_mode(0o027)).as_raw_mode(), 0o027);
            assert!(set(0o027) && set(0));
            assert_eq!(rustix::process::umask(Mode::empty()).as_raw_mode(), 0);
        })
        .join()
        .unwrap();
        assert_eq!(rustix::process::umask(here), here);
    }
}
