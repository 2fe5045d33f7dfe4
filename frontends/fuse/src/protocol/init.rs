//! The first exchange: which version is spoken, and which of the kernel's offers are taken.

use super::abi::{InitOut, MAJOR, MINOR, MINOR_OLDEST, init_flags as flag};
use super::decode::Dialect;

/// What hither would like, from its options and from what the file system can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes {
    /// Largest write, in bytes.
    pub(crate) max_write: u32,
    /// Opens may get a backing.
    pub(crate) passthrough: bool,
    /// Requests may come over io_uring.
    pub(crate) rings: bool,
    /// The file system has POSIX ACLs.
    pub(crate) acls: bool,
}

/// What was agreed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreement {
    /// The minor version spoken.
    pub(crate) minor: u32,
    /// The flags of both sides.
    pub(crate) flags: u64,
    /// Largest write, in bytes.
    pub(crate) max_write: u32,
}

impl Agreement {
    /// Whether a flag was agreed.
    pub(crate) fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }

    /// How requests look.
    pub(crate) fn dialect(&self) -> Dialect {
        Dialect { setxattr_ext: self.has(flag::SETXATTR_EXT) }
    }
}

/// What to do about the kernel's first message.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Answer so; the session begins.
    Agree(Agreement, InitOut),
    /// Answer so: the kernel is newer and will ask again in our version.
    AskAgain(InitOut),
    /// Versions do not meet.
    Refuse,
}

/// Requests in the background (readahead, asynchronous direct I/O) that the kernel may have under way. The kernel's
/// default of 12 leaves readers of several files waiting for each other.
const MAX_BACKGROUND: u16 = 64;
/// From how many of them on the kernel holds back writers.
const CONGESTION_THRESHOLD: u16 = 48;
/// The kernel counts a request's bytes in pages (`FUSE_MAX_MAX_PAGES` without a raised limit).
const PAGE: u32 = 4096;
const MAX_PAGES: u32 = 256;

/// Taken whenever the kernel offers them.
const ALWAYS: u64 = flag::ASYNC_READ
    | flag::BIG_WRITES
    | flag::ATOMIC_O_TRUNC
    | flag::POSIX_LOCKS
    | flag::FLOCK_LOCKS
    | flag::DONT_MASK
    | flag::DO_READDIRPLUS
    | flag::READDIRPLUS_AUTO
    | flag::PARALLEL_DIROPS
    | flag::ASYNC_DIO
    | flag::MAX_PAGES
    | flag::CACHE_SYMLINKS
    | flag::AUTO_INVAL_DATA
    | flag::HANDLE_KILLPRIV_V2
    | flag::SETXATTR_EXT
    | flag::INIT_EXT
    | flag::CREATE_SUPP_GROUP
    | flag::HAS_EXPIRE_ONLY
    | flag::DIRECT_IO_ALLOW_MMAP
    | flag::NO_EXPORT_SUPPORT;

/// Answers the kernel's offer.
pub(crate) fn negotiate(major: u32, minor: u32, max_readahead: u32, offered: u64, wishes: &Wishes) -> Answer {
    if major > MAJOR {
        return Answer::AskAgain(InitOut { major: MAJOR, minor: MINOR, ..InitOut::default() });
    }
    if major < MAJOR || minor < MINOR_OLDEST {
        return Answer::Refuse;
    }
    let mut wanted = ALWAYS;
    if wishes.acls {
        wanted |= flag::POSIX_ACL;
    }
    if wishes.passthrough {
        wanted |= flag::PASSTHROUGH;
    }
    if wishes.rings {
        wanted |= flag::OVER_IO_URING;
    }
    let flags = wanted & offered;
    let most = if flags & flag::MAX_PAGES != 0 { MAX_PAGES * PAGE } else { 32 * PAGE };
    let max_write = wishes.max_write.clamp(PAGE, most);
    let minor = minor.min(MINOR);
    let agreement = Agreement { minor, flags, max_write };
    let answer = InitOut {
        major: MAJOR,
        minor,
        max_readahead,
        flags: flags as u32,
        max_background: MAX_BACKGROUND,
        congestion_threshold: CONGESTION_THRESHOLD,
        max_write,
        time_gran: 1,
        max_pages: max_write.div_ceil(PAGE) as u16,
        flags2: (flags >> 32) as u32,
        // Backing files on a plain file system only: a mount of ours may itself be stacked on once more.
        max_stack_depth: u32::from(agreement.has(flag::PASSTHROUGH)),
        ..InitOut::default()
    };
    Answer::Agree(agreement, answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WISHES: Wishes = Wishes { max_write: 1 << 20, passthrough: true, rings: true, acls: false };

    #[test]
    fn what_was_not_offered_is_not_taken_and_what_is_unknown_is_ignored() {
        let offered = flag::ASYNC_READ | flag::PASSTHROUGH | flag::POSIX_ACL | 1 << 55 | 1 << 31;
        let Answer::Agree(agreement, out) = negotiate(7, 45, 131_072, offered, &WISHES) else { panic!() };
        assert_eq!(agreement.flags, flag::ASYNC_READ | flag::PASSTHROUGH);
        assert_eq!(u64::from(out.flags) | u64::from(out.flags2) << 32, agreement.flags);
        assert_eq!(out.max_stack_depth, 1);
        assert_eq!(agreement.max_write, 32 * PAGE, "without MAX_PAGES requests stay small");
        assert!(!agreement.dialect().setxattr_ext);
    }

    #[test]
    fn versions_meet_at_the_older_of_both() {
        let minor_of = |minor| match negotiate(7, minor, 0, 0, &WISHES) {
            Answer::Agree(_, out) => Some(out.minor),
            _ => None,
        };
        assert_eq!(minor_of(31), Some(31));
        assert_eq!(minor_of(99), Some(MINOR));
        assert_eq!(minor_of(30), None);
        assert!(matches!(negotiate(8, 0, 0, 0, &WISHES), Answer::AskAgain(out) if out.major == 7));
        assert!(matches!(negotiate(6, 50, 0, 0, &WISHES), Answer::Refuse));
    }
}
