//! The lock table against a naive model of one flag a byte, and the rules that a model of one table cannot show.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::*;

mod model;

/// Owners and pids that no other test uses, since the registry spans the process.
fn fresh_ids(count: u64) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(count, Ordering::Relaxed)
}

fn posix(owner: u64, range: RangeInclusive<u64>, kind: LockKind) -> LockRequest {
    LockRequest { class: LockClass::Posix, owner, pid: owner as u32, range, kind }
}

fn flock(owner: u64, kind: LockKind) -> LockRequest {
    LockRequest { class: LockClass::Flock, owner, pid: owner as u32, range: 0..=0, kind }
}

/// A waker that counts, and the count.
fn counting() -> (Waker, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let shared = count.clone();
    let waker = Box::new(move |result: Result<()>| {
        result.unwrap();
        shared.fetch_add(1, Ordering::SeqCst);
    });
    (waker, count)
}

fn ignore() -> Waker {
    Box::new(|_| {})
}

fn park(table: &LockTable, request: LockRequest) -> (Ticket, Arc<AtomicUsize>) {
    let (waker, count) = counting();
    match table.set(request, Some(waker)).unwrap() {
        Outcome::Parked(ticket) => (ticket, count),
        Outcome::Granted => panic!("granted"),
    }
}

#[test]
fn an_unused_table_is_two_words_and_becomes_so_again() {
    assert!(size_of::<LockTable>() <= 16);
    let table = LockTable::default();
    let owner = fresh_ids(1);
    table.release(LockClass::Posix, owner);
    assert!(table.is_empty());
    table.set(posix(owner, 3..=7, LockKind::Write), None).unwrap();
    assert!(!table.is_empty());
    table.set(posix(owner, 0..=u64::MAX, LockKind::Unlock), None).unwrap();
    assert!(table.is_empty());
}

#[test]
fn a_conflict_is_told_with_its_owner_and_span() {
    let table = LockTable::default();
    let owner = fresh_ids(2);
    table.set(posix(owner, 10..=u64::MAX, LockKind::Write), None).unwrap();
    table.set(posix(owner, 20..=29, LockKind::Read), None).unwrap();
    let other = owner + 1;
    assert_eq!(table.set(posix(other, 0..=10, LockKind::Read), None).unwrap_err().errno(), Errno::AGAIN);
    let held = table.get(LockClass::Posix, other, 15..=100, LockKind::Write);
    let expected = Held { owner, pid: owner as u32, range: 10..=19, kind: LockKind::Write };
    assert_eq!(held, Some(expected));
    assert_eq!(table.get(LockClass::Posix, other, 20..=29, LockKind::Read), None);
    assert_eq!(table.get(LockClass::Posix, owner, 0..=u64::MAX, LockKind::Write), None);
    assert_eq!(table.get(LockClass::Flock, other, 0..=u64::MAX, LockKind::Write), None);
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
fn an_empty_range_is_refused() {
    let refused = LockTable::default().set(posix(fresh_ids(1), 5..=4, LockKind::Read), None);
    assert_eq!(refused.unwrap_err().errno(), Errno::INVAL);
}

#[test]
fn two_readers_that_both_want_to_write_are_a_deadlock() {
    let table = LockTable::default();
    let (one, two) = (fresh_ids(2), fresh_ids(2));
    table.set(posix(one, 0..=9, LockKind::Read), None).unwrap();
    table.set(posix(two, 0..=9, LockKind::Read), None).unwrap();
    let (_, granted) = park(&table, posix(one, 0..=9, LockKind::Write));
    let refused = table.set(posix(two, 0..=9, LockKind::Write), Some(ignore()));
    assert_eq!(refused.unwrap_err().errno(), Errno::DEADLK);
    table.release(LockClass::Posix, two);
    assert_eq!(granted.load(Ordering::SeqCst), 1);
}

#[test]
fn a_circle_over_three_files_is_a_deadlock() {
    let tables = [LockTable::default(), LockTable::default(), LockTable::default()];
    let base = fresh_ids(3);
    let owner = |index: usize| base + index as u64;
    for (index, table) in tables.iter().enumerate() {
        table.set(posix(owner(index), 0..=0, LockKind::Write), None).unwrap();
    }
    park(&tables[1], posix(owner(0), 0..=0, LockKind::Write));
    park(&tables[2], posix(owner(1), 0..=0, LockKind::Read));
    let closes = || posix(owner(2), 0..=0, LockKind::Write);
    assert_eq!(tables[0].set(closes(), Some(ignore())).unwrap_err().errno(), Errno::DEADLK);
    assert_eq!(tables[0].set(closes(), None).unwrap_err().errno(), Errno::AGAIN);
    tables[1].release(LockClass::Posix, owner(1));
    let (ticket, _) = park(&tables[0], closes());
    assert!(tables[0].cancel(ticket));
}

#[test]
fn a_dropped_table_leaves_nothing_in_the_registry() {
    let table = LockTable::default();
    let (one, two) = (fresh_ids(1), fresh_ids(1));
    table.set(posix(one, 0..=0, LockKind::Write), None).unwrap();
    park(&table, posix(two, 0..=0, LockKind::Write));
    assert_eq!(registry::waiting(two), 1);
    assert!(registry::is_holder(one as u32));
    drop(table);
    assert_eq!(registry::waiting(two), 0);
    assert!(!registry::is_holder(one as u32));
}

#[test]
fn a_stream_of_readers_does_not_starve_a_writer() {
    for request in [|owner, kind| posix(owner, 0..=9, kind), flock] {
        let table = LockTable::default();
        let class = request(0, LockKind::Read).class;
        let mut reader = fresh_ids(1);
        let writer = fresh_ids(1);
        table.set(request(reader, LockKind::Read), Some(ignore())).unwrap();
        let (_, granted) = park(&table, request(writer, LockKind::Write));
        let mut overtook = 0;
        let waiting = loop {
            // The next reader comes before the last one goes.
            let next = fresh_ids(1);
            let (waker, waiting) = counting();
            let outcome = table.set(request(next, LockKind::Read), Some(waker)).unwrap();
            table.release(class, reader);
            if outcome != Outcome::Granted {
                break waiting;
            }
            (reader, overtook) = (next, overtook + 1);
        };
        assert_eq!(overtook, side::OVERTAKEN_MAX);
        assert_eq!((granted.load(Ordering::SeqCst), waiting.load(Ordering::SeqCst)), (1, 0));
        table.release(class, writer);
        assert_eq!(waiting.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_process_that_holds_something_is_never_made_to_queue() {
    let (file, other_file) = (LockTable::default(), LockTable::default());
    let (reader, writer, holder) = (fresh_ids(1), fresh_ids(1), fresh_ids(1));
    file.set(posix(reader, 0..=0, LockKind::Read), None).unwrap();
    park(&file, posix(writer, 0..=0, LockKind::Write));
    let try_once = || {
        let outcome = file.set(posix(holder, 0..=0, LockKind::Read), Some(ignore())).unwrap();
        match outcome {
            Outcome::Granted => file.release(LockClass::Posix, holder),
            Outcome::Parked(ticket) => assert!(file.cancel(ticket)),
        }
        outcome
    };
    for _ in 0..side::OVERTAKEN_MAX {
        assert_eq!(try_once(), Outcome::Granted);
    }
    assert!(matches!(try_once(), Outcome::Parked(_)));
    other_file.set(posix(holder, 0..=0, LockKind::Write), None).unwrap();
    assert_eq!(try_once(), Outcome::Granted);
}

#[test]
fn a_flock_is_given_up_before_it_is_converted() {
    let table = LockTable::default();
    let (one, two, three) = (fresh_ids(1), fresh_ids(1), fresh_ids(1));
    table.set(flock(one, LockKind::Read), None).unwrap();
    table.set(flock(two, LockKind::Read), None).unwrap();
    // As flock(2) warns: the failed conversion has cost the lock that was held.
    assert_eq!(table.set(flock(one, LockKind::Write), None).unwrap_err().errno(), Errno::AGAIN);
    assert_eq!(table.set(flock(two, LockKind::Write), None).unwrap(), Outcome::Granted);
    // Two that convert at once do not block each other for ever, since each has let go.
    table.set(flock(two, LockKind::Read), None).unwrap();
    table.set(flock(three, LockKind::Read), None).unwrap();
    let (_, first) = park(&table, flock(two, LockKind::Write));
    let (_, second) = park(&table, flock(three, LockKind::Write));
    assert_eq!((first.load(Ordering::SeqCst), second.load(Ordering::SeqCst)), (1, 0));
    table.release(LockClass::Flock, two);
    assert_eq!(second.load(Ordering::SeqCst), 1);
}

#[test]
fn closing_a_descriptor_leaves_another_threads_wait_alone_and_forget_ends_it() {
    let table = LockTable::default();
    let (one, two) = (fresh_ids(1), fresh_ids(1));
    table.set(posix(one, 0..=0, LockKind::Write), None).unwrap();
    let (ticket, _) = park(&table, posix(two, 0..=0, LockKind::Write));
    table.release(LockClass::Posix, two);
    assert!(table.cancel(ticket));
    assert!(!table.cancel(ticket));
    let (told, hears) = std::sync::mpsc::channel();
    let waker: Waker = Box::new(move |result| told.send(result.map_err(|error| error.errno())).unwrap());
    assert!(matches!(table.set(posix(two, 0..=0, LockKind::Read), Some(waker)).unwrap(), Outcome::Parked(_)));
    table.forget(LockClass::Posix, two);
    assert_eq!(hears.try_recv(), Ok(Err(Errno::INTR)));
    table.forget(LockClass::Posix, one);
    assert!(table.is_empty());
}

#[test]
fn a_waker_may_come_back_to_the_table() {
    let table = Arc::new(LockTable::default());
    let (one, two) = (fresh_ids(1), fresh_ids(1));
    table.set(posix(one, 0..=0, LockKind::Write), None).unwrap();
    let shared = table.clone();
    let waker: Waker = Box::new(move |result| {
        result.unwrap();
        shared.release(LockClass::Posix, two);
    });
    table.set(posix(two, 0..=0, LockKind::Write), Some(waker)).unwrap();
    table.release(LockClass::Posix, one);
    assert!(table.is_empty());
}

#[test]
fn threads_exclude_each_other_and_none_is_forgotten() {
    const THREADS: u64 = 8;
    const ROUNDS: usize = 500;
    let table = Arc::new(LockTable::default());
    let base = fresh_ids(THREADS);
    let inside = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|index| {
            let (table, inside) = (table.clone(), inside.clone());
            std::thread::spawn(move || {
                for round in 0..ROUNDS {
                    let make = if round % 2 == 0 {
                        |o| posix(o, 5..=9, LockKind::Write)
                    } else {
                        |o| posix(o, 9..=12, LockKind::Write)
                    };
                    let (told, hears) = std::sync::mpsc::channel();
                    let waker: Waker = Box::new(move |result| told.send(result).unwrap());
                    if table.set(make(base + index), Some(waker)).unwrap() != Outcome::Granted {
                        hears.recv().unwrap().unwrap();
                    }
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two owners hold byte 9");
                    inside.fetch_sub(1, Ordering::SeqCst);
                    table.release(LockClass::Posix, base + index);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(table.is_empty());
}
