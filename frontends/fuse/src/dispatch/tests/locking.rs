//! Locks: parked, woken, interrupted, and gone with what held them.

use super::*;
use crate::protocol::abi::{LK_FLOCK, RELEASE_FLOCK_UNLOCK};

const READ: u32 = 0;
const WRITE: u32 = 1;
const UNLOCK: u32 = 2;
const END: u64 = i64::MAX as u64;

fn lock(fh: u64, owner: u64, kind: u32, lk_flags: u32) -> LkIn {
    LkIn { fh, owner, lk: FileLock { start: 0, end: END, kind, pid: owner as u32 }, lk_flags, padding: Pad }
}

impl Play {
    fn set(&self, wish: LkIn) -> i32 {
        self.ask(opcode::SETLK, 0, |out| wish.put(out)).0
    }

    fn wait_for_lock(&self, wish: LkIn) -> u64 {
        let before = self.dispatcher.in_flight.parked();
        let unique = self.send(opcode::SETLKW, 0, |out| wish.put(out));
        self.until(|dispatcher| dispatcher.in_flight.parked() == before + 1);
        unique
    }

    fn holder(&self, wish: LkIn) -> FileLock {
        let (errno, body) = self.ask(opcode::GETLK, 0, |out| wish.put(out));
        assert_eq!(errno, 0);
        FileLock::take(&mut &body[..]).unwrap()
    }
}

fn play_with_file() -> (Play, u64) {
    let fs = Scripted::new();
    fs.add("a", b"");
    let play = Play::new(fs);
    let fh = play.open(play.lookup("a").nodeid, 2).unwrap().fh;
    (play, fh)
}

const EAGAIN: i32 = 11;
const EINTR: i32 = 4;

#[test]
fn one_that_waits_is_parked_and_woken() {
    let (play, fh) = play_with_file();
    assert_eq!(play.set(lock(fh, 1, WRITE, 0)), 0);
    assert_eq!(play.set(lock(fh, 2, READ, 0)), EAGAIN);
    let held = play.holder(lock(fh, 2, READ, 0));
    assert_eq!((held.kind, held.pid, held.end), (WRITE, 1, END));
    let waiting = play.wait_for_lock(lock(fh, 2, WRITE, 0));
    assert!(!play.has_answer(waiting));
    assert_eq!(play.dispatcher.pool.load(), (0, 0), "no thread waits");
    assert_eq!(play.set(lock(fh, 1, UNLOCK, 0)), 0);
    assert_eq!(play.answer_to(waiting).0, 0);
    assert_eq!(play.holder(lock(fh, 1, READ, 0)).pid, 2);
    play.is_quiet();
}

#[test]
fn a_signal_ends_the_wait_also_of_a_program_that_lives() {
    let (play, fh) = play_with_file();
    assert_eq!(play.set(lock(fh, 1, WRITE, 0)), 0);
    let wish = lock(fh, 2, WRITE, 0);
    let waiting = play.send_as(std::process::id(), opcode::SETLKW, 0, |out| wish.put(out));
    play.until(|dispatcher| dispatcher.in_flight.parked() == 1);
    play.interrupt(waiting);
    assert_eq!(play.answer_to(waiting).0, EINTR);
    play.is_quiet();
    assert_eq!(play.set(lock(fh, 1, UNLOCK, 0)), 0);
    assert_eq!(play.holder(lock(fh, 3, WRITE, 0)).kind, UNLOCK, "the one that gave up holds nothing");
}

#[test]
fn a_lock_that_nobody_hears_of_is_not_held() {
    let (play, fh) = play_with_file();
    assert_eq!(play.set(lock(fh, 1, WRITE, 0)), 0);
    let waiting = play.wait_for_lock(lock(fh, 2, WRITE, 0));
    play.kernel.aborted.lock().push(waiting);
    assert_eq!(play.set(lock(fh, 1, UNLOCK, 0)), 0);
    play.is_quiet();
    assert_eq!(play.holder(lock(fh, 3, WRITE, 0)).kind, UNLOCK);
}

#[test]
fn closing_gives_up_the_process_s_locks() {
    let (play, fh) = play_with_file();
    assert_eq!(play.set(lock(fh, 1, WRITE, 0)), 0);
    let flush = FlushIn { fh, unused: Pad, lock_owner: 1 };
    assert_eq!(play.ask(opcode::FLUSH, 0, |out| flush.put(out)).0, 0);
    assert_eq!(play.set(lock(fh, 2, WRITE, 0)), 0);
}

#[test]
fn a_flush_that_fails_gives_them_up_too() {
    let fs = Scripted::new();
    fs.add("a", b"");
    let play = Play::new(fs.clone());
    let fh = play.open(play.lookup("a").nodeid, 2).unwrap().fh;
    assert_eq!(play.set(lock(fh, 1, WRITE, 0)), 0);
    fs.set_hook(|_, operation| if operation == "flush" { Err(Errno::NOSPC.into()) } else { Ok(()) });
    let flush = FlushIn { fh, unused: Pad, lock_owner: 1 };
    assert_eq!(play.ask(opcode::FLUSH, 0, |out| flush.put(out)).0, Errno::NOSPC.raw_os_error());
    assert_eq!(play.set(lock(fh, 2, WRITE, 0)), 0);
}

#[test]
fn locks_of_an_open_file_description_go_with_it_and_no_others() {
    let (play, first) = play_with_file();
    let nodeid = play.lookup("a").nodeid;
    let second = play.open(nodeid, 2).unwrap().fh;
    // Owner 7 is an open file description: it never flushes. Owner 8 is a process: it closes the first descriptor and
    // locks again through the second, before the release of the first comes.
    assert_eq!(play.set(lock(first, 7, READ, 0)), 0);
    assert_eq!(play.set(lock(first, 8, READ, 0)), 0);
    let flush = FlushIn { fh: first, unused: Pad, lock_owner: 8 };
    assert_eq!(play.ask(opcode::FLUSH, 0, |out| flush.put(out)).0, 0);
    assert_eq!(play.set(lock(second, 8, READ, 0)), 0);
    play.release(first);
    assert_eq!(play.holder(lock(second, 9, WRITE, 0)).pid, 8);
    assert_eq!(play.set(lock(second, 8, WRITE, 0)), 0, "7 holds nothing any more");
}

#[test]
fn flocks_go_with_their_open_and_do_not_meet_posix_locks() {
    let (play, first) = play_with_file();
    let second = play.open(play.lookup("a").nodeid, 2).unwrap().fh;
    assert_eq!(play.set(lock(first, 1, WRITE, LK_FLOCK)), 0);
    assert_eq!(play.set(lock(second, 2, WRITE, 0)), 0);
    assert_eq!(play.set(lock(second, 2, WRITE, LK_FLOCK)), EAGAIN);
    let waiting = play.wait_for_lock(lock(second, 2, WRITE, LK_FLOCK));
    let release =
        ReleaseIn { fh: first, release_flags: RELEASE_FLOCK_UNLOCK, lock_owner: 1, ..ReleaseIn::default() };
    assert_eq!(play.ask(opcode::RELEASE, 0, |out| release.put(out)).0, 0);
    assert_eq!(play.answer_to(waiting).0, 0);
}

#[test]
fn locks_span_the_epochs_of_a_file() {
    let fs = Scripted::new();
    let file = fs.add("a", b"");
    let play = Play::new(fs);
    let old = play.open(play.lookup("a").nodeid, 2).unwrap().fh;
    file.advance(b"", None);
    let new = play.open(play.lookup("a").nodeid, 2).unwrap().fh;
    assert_eq!(play.set(lock(old, 1, WRITE, 0)), 0);
    assert_eq!(play.set(lock(new, 2, WRITE, 0)), EAGAIN);
}
