//! Programs that are killed, that hang, that are not root.

use super::*;

/// A file system in which statfs waits until it is cancelled, or if it `is_deaf` until the flag is set.
fn hanging(is_deaf: bool) -> (Arc<Scripted>, Arc<AtomicBool>) {
    let fs = Scripted::new();
    fs.add("hang", b"bytes");
    fs.add("fine", b"bytes");
    let let_go = Arc::new(AtomicBool::new(false));
    let waits = let_go.clone();
    fs.set_hook(move |call, operation| {
        if operation != "statfs" {
            return Ok(());
        }
        let Patience::Until { cancel, .. } = &call.patience else {
            return Err(hither_vfs::Error::WOULD_BLOCK);
        };
        while !waits.load(Ordering::SeqCst) {
            if cancel.is_cancelled() && !is_deaf {
                return Err(Errno::INTR.into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });
    (fs, let_go)
}

/// A file system in which statfs does not say that it would block: it just does, until the flag is set.
fn blocking() -> (Arc<Scripted>, Arc<AtomicBool>) {
    let fs = Scripted::new();
    fs.add("fine", b"bytes");
    let let_go = Arc::new(AtomicBool::new(false));
    let waits = let_go.clone();
    fs.set_hook(move |_, operation| {
        while operation == "statfs" && !waits.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });
    (fs, let_go)
}

/// How many requests of an operation came, if they are all that is under way.
fn hanging_in(mounted: &Mounted, operation: &str) -> u64 {
    let stats = mounted.session.stats();
    let came = stats.operations.iter().find(|known| known.name == operation).map_or(0, |known| known.count);
    if stats.in_flight as u64 == came { came } else { 0 }
}

fn waiting(path: &Path) -> Child {
    let mut command = Command::new("df");
    command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_killed_program_dies_within_a_second_whether_its_handler_listens_or_not() {
    if !can_mount() {
        return;
    }
    for is_deaf in [false, true] {
        let (fs, let_go) = hanging(is_deaf);
        let mounted = Mounted::new(fs);
        let mut programs: Vec<Child> = (0..64).map(|_| waiting(&mounted.path("hang"))).collect();
        until("64 programs hang", || hanging_in(&mounted, "statfs") == 64);
        let begin = Instant::now();
        assert_eq!(fs::read(mounted.path("fine")).unwrap(), b"bytes");
        assert!(
            begin.elapsed() < Duration::from_millis(500),
            "others are served meanwhile: {:?}",
            begin.elapsed()
        );
        let begin = Instant::now();
        for program in &mut programs {
            program.kill().unwrap();
        }
        for program in &mut programs {
            program.wait().unwrap();
        }
        assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
        let_go.store(true, Ordering::SeqCst);
        until("everything has ended", || mounted.session.stats().in_flight == 0);
        assert_eq!(mounted.session.stats().interrupted, if is_deaf { 64 } else { 0 });
    }
}

#[test]
fn a_mount_whose_threads_are_all_stuck_gets_others_and_can_end_without_them() {
    if !can_mount() {
        return;
    }
    let (fs, let_go) = blocking();
    let mounted = Mounted::with(fs, &Options { transport: options::Transport::Dev, ..Options::default() });
    let mut programs: Vec<Child> = (0..4).map(|_| waiting(&mounted.path("fine"))).collect();
    until("4 programs hang", || mounted.session.stats().stuck == 4);
    assert_eq!(fs::read(mounted.path("fine")).unwrap(), b"bytes");
    assert_eq!(mounted.session.stats().threads, 2);
    for program in &mut programs {
        program.kill().unwrap();
        program.wait().unwrap();
    }
    mounted.session.unmount(Unmount::Lazily).unwrap();
    mounted.session.join();
    assert_eq!(mounted.session.stats().in_flight, 4);
    let_go.store(true, Ordering::SeqCst);
    until("they come back", || mounted.session.stats().in_flight == 0);
}

#[test]
fn a_stuck_ring_gets_another_beside_it() {
    if !can_mount() {
        return;
    }
    let (fs, let_go) = blocking();
    let mounted = Mounted::new(fs);
    let RequestPath::Ring { queues } = mounted.session.stats().requests else {
        eprintln!("skipped: no FUSE over io_uring here");
        return;
    };
    let mut program = waiting(&mounted.path("fine"));
    until("a ring is stuck", || mounted.session.stats().stuck == 1);
    until("another serves", || mounted.session.stats().threads == queues + 2);
    // On every processor, many at once.
    for _ in 0..100 {
        let readers: Vec<_> = (0..8)
            .map(|_| {
                let path = mounted.path("fine");
                std::thread::spawn(move || fs::read(path).unwrap())
            })
            .collect();
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() == b"bytes"));
    }
    let_go.store(true, Ordering::SeqCst);
    assert!(program.wait().is_ok());
    until("it has ended", || mounted.session.stats().in_flight == 0);
}

/// Runs a shell command as an ordinary user.
fn as_nobody(script: &str) -> std::process::Output {
    Command::new("sh").args(["-c", script]).uid(65_534).gid(65_534).current_dir("/").output().unwrap()
}

#[test]
fn set_ids_do_not_survive_a_write_by_another_user_with_a_backing_or_without() {
    if !can_mount() {
        return;
    }
    for backings in [true, false] {
        let (_source, fs) = host_dir(backings);
        let mounted = Mounted::new(fs);
        let path = mounted.path("file");
        fs::write(&path, b"program").unwrap();
        for change in ["echo x >> ", "dd status=none conv=notrunc if=/dev/zero bs=1 count=1 of=", ": > "] {
            fs::set_permissions(&path, Permissions::from_mode(0o6777)).unwrap();
            let output = as_nobody(&format!("{change}{}", path.display()));
            assert!(output.status.success(), "{change}: {}", String::from_utf8_lossy(&output.stderr));
            let mode = fs::metadata(&path).unwrap().mode();
            assert_eq!(mode, 0o100_777, "{change} with backings {backings}");
        }
        assert_eq!(mounted.session.stats().opens_passthrough > 0, backings);
    }
}

#[test]
fn permissions_are_those_of_the_caller() {
    if !can_mount() {
        return;
    }
    let (_source, fs) = host_dir(true);
    let mounted = Mounted::new(fs);
    fs::write(mounted.path("secret"), b"").unwrap();
    fs::set_permissions(mounted.path("secret"), Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(mounted.path("open")).unwrap();
    fs::set_permissions(mounted.path("open"), Permissions::from_mode(0o1777)).unwrap();
    let root = mounted.dir.path().display();
    assert!(!as_nobody(&format!("cat {root}/secret")).status.success());
    assert!(!as_nobody(&format!("touch {root}/file")).status.success());
    let made = as_nobody(&format!("umask 027; cd {root}/open && touch f && mkdir d && ln -s f s"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for (name, mode) in [("open/f", 0o100_640), ("open/d", 0o040_750)] {
        let attr = fs::metadata(mounted.path(name)).unwrap();
        assert_eq!((attr.mode(), attr.uid(), attr.gid()), (mode, 65_534, 65_534), "{name}");
    }
}
