//! What goes wrong around a cache: an origin that hangs, vanishes or fails, a store that is full, a copy that rots.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hither_testkit::faults::{Kind, When};
use hither_tests::disk::Format;
use hither_tests::failing::FailingOrigin;
use hither_tests::mount::Mount;
use hither_tests::needs_mounts;
use hither_tests::place::Place;
use hither_tests::scene::{Scene, View};
use hither_vfs::Errno;
use rustix::process::{Pid, Signal, kill_process};

const OPTIONS: [&str; 4] = ["--settle", "100ms", "--origin-timeout", "1s"];
const SETTLED: Duration = Duration::from_millis(150);

/// A cache whose origin is a mount of its own: it can be stopped and killed. Dropped in this order.
struct Chain {
    cache: Mount,
    origin: Mount,
    place: Place,
}

impl Chain {
    fn new() -> Self {
        let place = Place::new().unwrap();
        let folder = |name| place.folder(name).unwrap();
        let (beneath, between, store, mnt) =
            (folder("beneath"), folder("between"), folder("store"), folder("mnt"));
        for n in 0..8 {
            fs::write(beneath.join(format!("f{n}")), vec![b'0' + n; 2 << 20]).unwrap();
        }
        std::thread::sleep(SETTLED);
        let origin = Mount::dir(&beneath, &between, &[]).unwrap();
        let cache = Mount::cache(&between, &store, &mnt, &OPTIONS).unwrap();
        Chain { cache, origin, place }
    }

    fn file(&self, n: u8) -> PathBuf {
        self.cache.path().join(format!("f{n}"))
    }

    fn fill(&self, n: u8) {
        fs::read(self.file(n)).unwrap();
        self.cache.wait_for_state(format!("f{n}"), "cached").unwrap();
    }

    fn signal_origin(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.origin.pid().cast_signed()).unwrap(), signal).unwrap();
    }
}

/// Runs it on a thread: its result, and that it took no longer than `limit`.
fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(limit).expect("nothing may block for longer than the deadline")
}

fn fails_in_time(path: &Path) -> io::Error {
    let path = path.to_owned();
    let begin = Instant::now();
    let result = within(Duration::from_secs(8), move || fs::read(path).map(|bytes| bytes.len()));
    let error = result.expect_err("there is nobody who could have said so");
    assert!(begin.elapsed() < Duration::from_secs(5), "{error} after {:?}", begin.elapsed());
    error
}

#[test]
fn a_hung_origin_costs_its_readers_an_error_in_time_and_nobody_else_anything() {
    needs_mounts!();
    let chain = Chain::new();
    chain.fill(1);
    let backed = File::open(chain.file(1)).unwrap();
    assert_eq!(chain.cache.count("/front_end/opens_passthrough").unwrap(), 1);
    chain.signal_origin(Signal::STOP);

    let error = fails_in_time(&chain.file(2));
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    let mut page = [0; 4096];
    let read = within(Duration::from_millis(500), move || backed.read_at(&mut page, 1 << 20).map(|_| page));
    assert_eq!(read.unwrap(), [b'1'; 4096], "a backing needs no origin");
    // The daemon itself is alive, and says how it is.
    chain.cache.status().unwrap();

    chain.signal_origin(Signal::CONT);
    let path = chain.file(2);
    let end = Instant::now() + Duration::from_secs(20);
    while fs::read(&path).map_or(true, |bytes| bytes != [b'2'; 2 << 20]) {
        assert!(Instant::now() < end, "the origin is back, and {} cannot be read", path.display());
        std::thread::sleep(Duration::from_millis(100));
    }
    chain.fill(3);
}

#[test]
fn a_hung_origin_does_not_keep_the_mount_from_going() {
    needs_mounts!();
    let mut chain = Chain::new();
    chain.fill(1);
    chain.signal_origin(Signal::STOP);
    fails_in_time(&chain.file(2));
    // With a thread stuck in the origin's disk: SIGKILL ends it only when the origin does.
    let begin = Instant::now();
    let unmounted = chain.cache.unmount();
    let took = begin.elapsed();
    chain.signal_origin(Signal::CONT);
    assert!(took < Duration::from_secs(30), "{took:?}");
    unmounted.unwrap();
}

#[test]
fn a_vanished_origin_is_an_error_at_once_and_copies_that_are_open_go_on() {
    needs_mounts!();
    let mut chain = Chain::new();
    chain.fill(1);
    let backed = File::open(chain.file(1)).unwrap();
    chain.origin.kill().unwrap();
    let begin = Instant::now();
    for n in 2..6 {
        fails_in_time(&chain.file(n));
    }
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
    let mut page = [0; 4096];
    backed.read_exact_at(&mut page, 1 << 20).unwrap();
    assert_eq!(page, [b'1'; 4096]);
    // The origin returns, and the cache is mounted anew: the copies are there.
    drop(backed);
    chain.cache.unmount().unwrap();
    chain.origin.again().unwrap();
    chain.cache.again().unwrap();
    for n in 0..8 {
        assert_eq!(fs::read(chain.file(n)).unwrap(), vec![b'0' + n; 2 << 20]);
    }
    assert!(chain.place.path().exists());
}

#[test]
fn an_origin_whose_reads_fail_now_and_then_gives_errors_and_never_wrong_bytes() {
    needs_mounts!();
    let origin = FailingOrigin::new().unwrap();
    let place = Place::new().unwrap();
    let content = |n: u32| (0..1_500_000 + n).map(|at| (at / 1000 + n) as u8).collect::<Vec<_>>();
    for n in 0..12 {
        fs::write(origin.beneath().join(format!("f{n}")), content(n)).unwrap();
    }
    std::thread::sleep(SETTLED);
    let mnt = place.folder("mnt").unwrap();
    let mut cache = Mount::cache(&origin.path(), &place.folder("store").unwrap(), &mnt, &OPTIONS).unwrap();
    // The kernel, between us and this origin, asks once more when its readahead fails: two in a row must fail, too.
    origin.script().fail(Kind::Read, When::Every(5), Errno::IO);
    origin.script().fail(Kind::Read, When::Every(7), Errno::IO);
    let (mut errors, mut good) = (0, 0);
    for n in (0..12).cycle().take(120) {
        let mut bytes = Vec::new();
        match File::open(mnt.join(format!("f{n}"))).unwrap().read_to_end(&mut bytes) {
            Ok(_) => {
                assert!(bytes == content(n), "f{n}: wrong bytes");
                good += 1;
            }
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
                assert!(content(n).starts_with(&bytes), "f{n}: wrong bytes before the error");
                errors += 1;
            }
        }
    }
    // Whether a failure reaches a program depends on who asked again: the kernel, or a fetch ahead of it. That reads
    // failed is for sure.
    assert!(good > 60, "{good} good, {errors} errors");
    assert!(origin.script().count(Kind::Read) > 7, "no read has failed");
    origin.script().heal();
    for n in 0..12 {
        assert!(fs::read(mnt.join(format!("f{n}"))).unwrap() == content(n));
    }
    Mount::cache_command(&["verify"], &mnt).unwrap();
    cache.unmount().unwrap();
}

#[test]
fn a_full_store_is_never_an_error_to_a_program() {
    needs_mounts!();
    for format in [Format::Ext4, Format::Xfs] {
        if format == Format::Xfs && hither_tests::requirement::missing_program(&["mkfs.xfs"]).is_some() {
            hither_tests::requirement::skip("a full store on XFS", "no mkfs.xfs");
            continue;
        }
        // XFS makes no file system under 300 MB.
        let bytes = if format == Format::Xfs { 320 << 20 } else { 64 << 20 };
        let mut scene = Scene::with_disks(View::Cache, format, bytes, &["--settle", "100ms"]).unwrap();
        // The disk is filled by others until there is next to nothing left.
        let store = scene.store();
        let disk = store.parent().unwrap();
        let free = rustix::fs::statvfs(disk).unwrap();
        let leave = 12 << 20;
        let hog = File::create(disk.join("hog")).unwrap();
        let size = (free.f_bavail * free.f_frsize).saturating_sub(leave);
        rustix::fs::fallocate(&hog, rustix::fs::FallocateFlags::empty(), 0, size).unwrap();
        for n in 0..20_u8 {
            fs::write(scene.origin().join(format!("f{n}")), vec![n; 2 << 20]).unwrap();
        }
        std::thread::sleep(SETTLED);
        for pass in 0..2 {
            for n in 0..20_u8 {
                let bytes = fs::read(scene.root().join(format!("f{n}"))).unwrap();
                assert!(bytes == vec![n; 2 << 20], "{format:?} pass {pass}: f{n}");
            }
        }
        // Now entirely: the rest is taken while the cache is at work.
        let left = rustix::fs::statvfs(disk).unwrap();
        let rest = left.f_bavail * left.f_frsize;
        let more = File::create(disk.join("more")).unwrap();
        let _ = rustix::fs::fallocate(
            &more,
            rustix::fs::FallocateFlags::empty(),
            0,
            rest.saturating_sub(8192).max(1),
        );
        for n in 0..20_u8 {
            let bytes = fs::read(scene.root().join(format!("f{n}"))).unwrap();
            assert!(bytes == vec![n; 2 << 20], "{format:?} full: f{n}");
        }
        let mount = scene.mount().unwrap();
        let given_up = mount.count("/caches/0/bypassed_full").unwrap()
            + mount.count("/caches/0/fills_abandoned").unwrap()
            + mount.count("/caches/0/evicted").unwrap();
        assert!(given_up > 0, "{format:?}: the store was never full: {:#}", mount.status().unwrap());
        // Space again: it caches again.
        drop((hog, more));
        fs::remove_file(disk.join("hog")).unwrap();
        fs::remove_file(disk.join("more")).unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let said = Mount::cache_command(&["state"], scene.root().join("f0")).unwrap();
            if said.contains(": cached") {
                break;
            }
            assert!(Instant::now() < end, "{format:?}: with space again: {said}");
            fs::read(scene.root().join("f0")).unwrap();
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn a_rotten_copy_is_found_by_verify_and_fetched_again() {
    needs_mounts!();
    let mut scene = Scene::new(View::Cache, &["--settle", "100ms"]).unwrap();
    for n in 0..4_u8 {
        fs::write(scene.origin().join(format!("f{n}")), vec![n; 3 << 20]).unwrap();
    }
    std::thread::sleep(SETTLED);
    for n in 0..4 {
        fs::read(scene.root().join(format!("f{n}"))).unwrap();
        scene.mount().unwrap().wait_for_state(format!("f{n}"), "cached").unwrap();
    }
    Mount::cache_command(&["verify"], scene.root()).unwrap();
    // One bit of one copy.
    let rotten = copies(&scene.store()).into_iter().find(|path| first_byte(path) == 2).unwrap();
    let file = File::options().write(true).open(&rotten).unwrap();
    file.write_all_at(&[2 ^ 0x10], 1_700_000).unwrap();
    drop(file);

    let said = Mount::cache_command(&["verify"], scene.root()).unwrap_err().to_string();
    let damaged: Vec<_> = said.lines().filter(|line| line.starts_with("damaged: ")).collect();
    assert!(damaged.len() == 1 && damaged[0].ends_with("f2") && said.contains("exit status: 1"), "{said}");
    for n in 0..4_u8 {
        assert!(fs::read(scene.root().join(format!("f{n}"))).unwrap() == vec![n; 3 << 20], "f{n}");
    }
    scene.mount().unwrap().wait_for_state("f2", "cached").unwrap();
    Mount::cache_command(&["verify"], scene.root()).unwrap();
}

fn first_byte(path: &Path) -> u8 {
    let mut byte = [0];
    File::open(path).unwrap().read_exact(&mut byte).unwrap();
    byte[0]
}

fn copies(store: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in fs::read_dir(store.join("copies")).unwrap() {
        for entry in fs::read_dir(folder.unwrap().path()).unwrap() {
            found.push(entry.unwrap().path());
        }
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "data"));
    found
}
