//! The log of failed requests: an EIO is always explained, at a rate that a log survives.

use hither_rt::clock::{Duration, Instant, now};
use hither_rt::sync::Mutex;
use hither_vfs::{Errno, Error};

use crate::protocol::abi::opcode;

/// Lines a window may have.
const LINES: u32 = 10;
const WINDOW: Duration = Duration::from_secs(10);

/// Logs failed requests.
#[derive(Default)]
pub(crate) struct ErrorLog(Mutex<Option<Window>>);

struct Window {
    since: Instant,
    lines: u32,
    left_out: u64,
}

impl ErrorLog {
    /// A request about `nodeid` failed with `errno`.
    pub(crate) fn report(&self, code: u32, nodeid: u64, errno: Errno, error: &Error) {
        let operation = opcode::name(code).unwrap_or("unknown");
        if errno != Errno::IO {
            tracing::debug!(operation, nodeid, %error, "request failed");
            return;
        }
        if let Some(left_out) = self.may_log(now()) {
            match error.cause() {
                Some(cause) => {
                    tracing::error!(operation, nodeid, left_out, cause, "a program got an I/O error")
                }
                None => {
                    tracing::error!(operation, nodeid, left_out, "a program got an I/O error (no cause told)")
                }
            }
        }
    }

    /// How many lines were left out since the last one, if this one may be written.
    fn may_log(&self, at: Instant) -> Option<u64> {
        let mut window = self.0.lock();
        let current = window.get_or_insert(Window { since: at, lines: 0, left_out: 0 });
        if at.saturating_duration_since(current.since) > WINDOW {
            (current.since, current.lines) = (at, 0);
        }
        if current.lines >= LINES {
            current.left_out += 1;
            return None;
        }
        current.lines += 1;
        Some(std::mem::take(&mut current.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_counted() {
        let log = ErrorLog::default();
        let begin = now();
        let written = (0..1000).filter(|_| log.may_log(begin).is_some()).count();
        assert_eq!(written, LINES as usize);
        assert_eq!(log.may_log(begin + WINDOW * 2), Some(1000 - u64::from(LINES)));
        assert_eq!(log.may_log(begin + WINDOW * 2), Some(0));
    }
}
