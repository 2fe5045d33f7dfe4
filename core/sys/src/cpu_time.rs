//! Processor time that processes have used: what a measurement charges to a daemon and to programs that have ended.

#![expect(unsafe_code, reason = "clock_getcpuclockid(3), getrusage(2)")]

use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::io::{Errno, Result};

/// User and system time of all threads, past and present, of a living process.
///
/// # Errors
/// ESRCH if there is no such process.
pub fn of_process(pid: u32) -> Result<Duration> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| Errno::SRCH)?;
    let mut clock = 0;
    // SAFETY: `clock` is a clockid_t that the call writes to.
    let failed = unsafe { libc::clock_getcpuclockid(pid, &mut clock) };
    if failed != 0 {
        return Err(Errno::from_raw_os_error(failed));
    }
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `time` is large enough for what the call writes.
    if unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) } != 0 {
        return Err(crate::last_errno());
    }
    // SAFETY: the call has succeeded, so it has written `time`.
    let time = unsafe { time.assume_init() };
    Ok(Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0)))
}

/// User and system time of the children of this process that have ended and were waited for, and of theirs.
pub fn of_ended_children() -> Duration {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is large enough for what the call writes.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    // SAFETY: all zeros is a value of it; the call cannot fail with these arguments.
    let usage = unsafe { usage.assume_init() };
    let of = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(time.tv_usec.unsigned_abs())
    };
    of(usage.ru_utime) + of(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    #[test]
    fn a_busy_child_is_charged_while_it_lives_and_when_it_has_ended() {
        let before = of_ended_children();
        let mut child = Command::new("/bin/sh")
            .args(["-c", "while :; do :; done"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let give_up = Instant::now() + Duration::from_secs(30);
        let enough = Duration::from_millis(50);
        while of_process(child.id()).unwrap() < enough {
            assert!(Instant::now() < give_up, "a process that spins is charged nothing");
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(of_ended_children() - before >= enough / 2);
        assert_eq!(of_process(child.id()).unwrap_err(), Errno::SRCH);
    }
}
