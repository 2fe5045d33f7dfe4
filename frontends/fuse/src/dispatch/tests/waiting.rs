//! Calls that wait, that hang, that are interrupted, that come too late, that panic.

use super::*;

#[test]
fn what_would_block_is_asked_again_with_patience_and_answered_once() {
    let fs = Scripted::new();
    fs.add("a", b"");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    fs.set_hook(move |call, _| {
        let waits = cancel_of(&call.patience).is_some();
        log.lock().push(waits);
        if waits { Ok(()) } else { Err(Error::WOULD_BLOCK) }
    });
    let play = Play::new(fs);
    assert!(play.lookup("a").nodeid > 1);
    assert_eq!(*seen.lock(), [false, true]);
    play.is_quiet();
    assert_eq!(play.dispatcher.counters.posted.get(), 1);
}

#[test]
fn large_writes_keep_their_bytes_when_they_are_posted() {
    let fs = Scripted::new();
    let file = fs.add("a", b"");
    let play = Play::new(fs.clone());
    let open = play.open(play.lookup("a").nodeid, 1).unwrap();
    fs.set_hook(|call, _| if cancel_of(&call.patience).is_some() { Ok(()) } else { Err(Error::WOULD_BLOCK) });
    let data: Vec<u8> = (0..500_000_u32).map(|at| (at % 251) as u8).collect();
    let args = WriteIn { fh: open.fh, size: data.len() as u32, ..WriteIn::default() };
    let (errno, _) = play.ask(opcode::WRITE, 0, |out| {
        args.put(out);
        out.extend_from_slice(&data);
    });
    assert_eq!(errno, 0);
    assert!(*file.version.lock().bytes.lock() == data);
}

#[test]
fn one_that_hangs_holds_up_nobody_else() {
    let fs = Scripted::new();
    fs.add("a", b"");
    let door = Door::default();
    let waits = door.clone();
    fs.set_hook(move |call, operation| {
        if operation == "lookup" {
            match cancel_of(&call.patience) {
                Some(_) => waits.wait(),
                None => return Err(Error::WOULD_BLOCK),
            }
        }
        Ok(())
    });
    let play = Play::new(fs);
    let hanging: Vec<u64> = (0..64).map(|_| play.send(opcode::LOOKUP, 1, |out| put_name(out, "a"))).collect();
    play.until(|_| door.waiting() == 64);
    assert_eq!(play.ask(opcode::STATFS, 1, |_| {}).0, 0);
    assert!(hanging.iter().all(|unique| !play.has_answer(*unique)));
    door.open();
    for unique in hanging {
        assert_eq!(play.answer_to(unique).0, 0);
    }
}

#[test]
fn a_handler_that_heeds_its_cancel_answers_itself() {
    let fs = Scripted::new();
    fs.set_hook(|call, _| {
        let Some(cancel) = cancel_of(&call.patience) else { return Err(Error::WOULD_BLOCK) };
        while !cancel.is_cancelled() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(Errno::INTR.into())
    });
    let play = Play::with(fs, None, PATIENT);
    let unique = play.send(opcode::STATFS, 1, |_| {});
    play.until(|dispatcher| dispatcher.counters.posted.get() == 1);
    play.interrupt(unique);
    assert_eq!(play.answer_to(unique).0, Errno::INTR.raw_os_error());
    play.is_quiet();
    assert_eq!(play.dispatcher.counters.interrupted.get(), 0, "the watchdog had nothing to do");
}

#[test]
fn for_one_that_does_not_the_watchdog_answers_and_its_late_result_is_undone() {
    let fs = Scripted::new();
    fs.add("a", b"");
    let play = Play::new(fs.clone());
    let nodeid = play.lookup("a").nodeid;
    let door = Door::default();
    let waits = door.clone();
    fs.set_hook(move |call, _| {
        if cancel_of(&call.patience).is_none() {
            return Err(Error::WOULD_BLOCK);
        }
        waits.wait();
        Ok(())
    });
    let created = play.send(opcode::CREATE, 1, |out| {
        CreateIn { flags: 1, mode: 0o600, umask: 0, open_flags: 0 }.put(out);
        put_name(out, "b");
    });
    let listed = play.send(opcode::LOOKUP, 1, |out| put_name(out, "a"));
    play.until(|_| door.waiting() == 2);
    play.interrupt(created);
    play.interrupt(listed);
    assert_eq!(play.answer_to(created).0, Errno::INTR.raw_os_error());
    assert_eq!(play.answer_to(listed).0, Errno::INTR.raw_os_error());
    door.open();
    play.is_quiet();
    assert_eq!(play.dispatcher.counters.interrupted.get(), 2);
    play.until(|dispatcher| dispatcher.counters.late.get() == 2);
    play.until(|dispatcher| fs.open_handles() == 0 && dispatcher.files.len() == 0);
    play.send(opcode::FORGET, nodeid, |out| 1_u64.put(out));
    play.until(|dispatcher| dispatcher.nodes.len() == 1);
}

#[test]
fn a_signal_that_does_not_kill_lets_the_call_go_on() {
    let fs = Scripted::new();
    let door = Door::default();
    let waits = door.clone();
    fs.set_hook(move |call, _| {
        if cancel_of(&call.patience).is_none() {
            return Err(Error::WOULD_BLOCK);
        }
        waits.wait();
        call.patience.check()
    });
    let play = Play::new(fs);
    let unique = play.send_as(std::process::id(), opcode::STATFS, 1, |_| {});
    play.until(|_| door.waiting() == 1);
    play.interrupt(unique);
    std::thread::sleep(5 * QUICK.interrupt);
    assert!(!play.has_answer(unique));
    door.open();
    assert_eq!(play.answer_to(unique).0, 0);
}

#[test]
fn a_program_killed_after_its_first_signal_is_let_go() {
    let fs = Scripted::new();
    let door = Door::default();
    let waits = door.clone();
    fs.set_hook(move |_, _| {
        waits.wait();
        Ok(())
    });
    let play = Play::new(fs);
    let mut program = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let unique = play.send_as(program.id(), opcode::STATFS, 1, |_| {});
    play.until(|_| door.waiting() == 1);
    play.interrupt(unique);
    std::thread::sleep(3 * QUICK.interrupt);
    assert!(!play.has_answer(unique));
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(play.answer_to(unique).0, Errno::INTR.raw_os_error());
    door.open();
}

#[test]
fn an_interrupt_may_be_read_before_its_request() {
    let fs = Scripted::new();
    fs.set_hook(|call, _| match cancel_of(&call.patience) {
        Some(cancel) if cancel.is_cancelled() => Err(Errno::INTR.into()),
        Some(_) => Ok(()),
        None => Err(Error::WOULD_BLOCK),
    });
    let play = Play::new(fs);
    let next = 2 * (play.next.load(Ordering::SeqCst) as u64 + 1);
    play.interrupt(next);
    play.until(|dispatcher| dispatcher.in_flight.early() == 1);
    let unique = play.send(opcode::STATFS, 1, |_| {});
    assert_eq!(unique, next);
    assert_eq!(play.answer_to(unique).0, Errno::INTR.raw_os_error());
}

#[test]
fn past_its_deadline_a_program_gets_an_error() {
    let fs = Scripted::new();
    let door = Door::default();
    let waits = door.clone();
    fs.set_hook(move |call, _| {
        if cancel_of(&call.patience).is_none() {
            return Err(Error::WOULD_BLOCK);
        }
        waits.wait();
        Ok(())
    });
    let play = Play::with(fs, Some(Duration::from_millis(50)), QUICK);
    let begin = Instant::now();
    assert_eq!(play.ask(opcode::STATFS, 1, |_| {}).0, Errno::IO.raw_os_error());
    assert!(begin.elapsed() >= Duration::from_millis(50));
    play.until(|dispatcher| dispatcher.counters.timed_out.get() == 1);
    door.open();
    play.until(|dispatcher| dispatcher.counters.late.get() == 1);
    assert_eq!((play.dispatcher.counters.timed_out.get(), errors_of(&play, "statfs")), (1, 1));
}

/// Errors of one operation so far.
fn errors_of(play: &Play, name: &str) -> u64 {
    let operations = play.dispatcher.counters.snapshot().operations;
    operations.into_iter().find(|operation| operation.name == name).map_or(0, |operation| operation.errors)
}

#[test]
fn a_handler_that_gives_up_at_its_deadline_has_timed_out() {
    let fs = Scripted::new();
    fs.set_hook(move |call, _| {
        if cancel_of(&call.patience).is_none() {
            return Err(Error::WOULD_BLOCK);
        }
        while call.patience.check().is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
        call.patience.check()
    });
    // The watchdog leaves it time to give up by itself.
    let patient = Limits { deadline: Duration::from_secs(60), ..QUICK };
    let play = Play::with(fs, Some(Duration::from_millis(50)), patient);
    assert_eq!(play.ask(opcode::STATFS, 1, |_| {}).0, Errno::IO.raw_os_error());
    play.is_quiet();
    assert_eq!((play.dispatcher.counters.timed_out.get(), errors_of(&play, "statfs")), (1, 1));
}

#[test]
fn only_what_broke_is_counted_as_an_error() {
    let fs = Scripted::new();
    let answer = Arc::new(Mutex::new(Errno::IO));
    let told = answer.clone();
    fs.set_hook(move |_, _| Err((*told.lock()).into()));
    let play = Play::new(fs);
    for (errno, errors) in [
        (Errno::ACCESS, 0),
        (Errno::NOTTY, 0),
        (Errno::NOENT, 0),
        (Errno::NODATA, 0),
        (Errno::NOSPC, 0),
        (Errno::IO, 1),
        (Errno::TIMEDOUT, 2),
        (Errno::MFILE, 3),
    ] {
        *answer.lock() = errno;
        assert_eq!(play.ask(opcode::STATFS, 1, |_| {}).0, errno.raw_os_error());
        play.is_quiet();
        assert_eq!(errors_of(&play, "statfs"), errors, "{errno:?}");
    }
    assert_eq!(play.ask(opcode::IOCTL, 1, |out| Pad::<32>.put(out)).0, Errno::NOTTY.raw_os_error());
    play.is_quiet();
    assert_eq!(errors_of(&play, "ioctl"), 0, "a program that asks whether a file is a terminal");
    assert_eq!(play.dispatcher.counters.timed_out.get(), 0);
}

#[test]
fn a_queue_whose_thread_is_stuck_gets_another_once() {
    let fs = Scripted::new();
    let door = Door::default();
    let waits = door.clone();
    fs.set_hook(move |_, _| {
        waits.wait();
        Ok(())
    });
    let play = Play::new(fs);
    let header = InHeader { len: 40, opcode: opcode::STATFS, unique: 2, nodeid: 1, ..InHeader::default() };
    let mut bytes = Vec::new();
    header.put(&mut bytes);
    let thread = play.deliver_bytes(&bytes);
    play.until(|dispatcher| dispatcher.counters.stuck.get() == 1);
    std::thread::sleep(3 * QUICK.inline);
    assert_eq!(play.kernel.replaced.load(Ordering::SeqCst), 1);
    door.open();
    assert!(!thread.join().unwrap(), "the thread that was replaced ends");
    assert_eq!(play.answer_to(2).0, 0, "its answer is as good as ever");
}

#[test]
fn a_panic_is_one_programs_io_error() {
    let fs = Scripted::new();
    fs.set_hook(|_, operation| if operation == "statfs" { panic!("on purpose") } else { Ok(()) });
    let play = Play::new(fs);
    assert_eq!(play.ask(opcode::STATFS, 1, |_| {}).0, Errno::IO.raw_os_error());
    assert_eq!(play.ask(opcode::GETATTR, 1, |out| Pad::<16>.put(out)).0, 0);
    assert_eq!(play.dispatcher.counters.panics.get(), 1);
    play.is_quiet();
}
