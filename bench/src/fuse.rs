//! The front end by itself: a file system in memory behind each of its transports, beside tmpfs, and a real tree
//! unpacked through `dir`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use rustix::fs::{CWD, Mode, OFlags};

use crate::clients::write_file;
use crate::disk::{Disk, run};
use crate::machine::Watch;
use crate::mounts::{Hither, MemMount, cpu_of_ended_daemons};
use crate::report::{Goal, Report, Row};
use crate::turns::{Client, Contender, cpu, take};

const COLUMNS: &[&str] = &["raw", "dev", "uring"];
/// Files of a burst.
const FILES: u64 = 2000;
/// Files of the tree that is unpacked, in folders of 50.
const TREE_FILES: u64 = 3456;

/// How much to measure.
#[derive(Debug, Clone)]
pub struct Settings {
    quick: bool,
    rounds: usize,
}

impl Settings {
    /// In full or quick.
    pub fn new(quick: bool) -> Settings {
        Settings { quick, rounds: if quick { 3 } else { 11 } }
    }
}

/// Measures both transports.
pub fn measure(settings: &Settings) -> anyhow::Result<Report> {
    let disk = Disk::new(4 << 30)?;
    let watch = Watch::begin()?;
    let cpu_before = cpu(&[])?;
    let raw = tempfile::Builder::new().prefix("hither-bench-").tempdir_in("/dev/shm")?;
    let mut rows = Vec::new();
    {
        let dev = MemMount::new("dev", &disk.mountpoint("dev")?)?;
        let ring = MemMount::new("uring", &disk.mountpoint("uring")?)?;
        let subjects = [
            ("raw", raw.path().to_owned(), vec![]),
            ("dev", dev.mountpoint.clone(), vec![dev.pid()]),
            ("uring", ring.mountpoint.clone(), vec![ring.pid()]),
        ];
        for client in Client::ALL {
            names(settings, client, &subjects, &mut rows)?;
        }
        two_clients(settings, &subjects, &mut rows)?;
    }
    let archive = archive(&disk)?;
    for client in Client::ALL {
        rows.push(unpacking(settings, &disk, &archive, client)?);
    }
    let ours = (cpu(&[])? + cpu_of_ended_daemons()).saturating_sub(cpu_before);
    Ok(Report {
        machine: watch.end(ours)?,
        columns: COLUMNS,
        below: "files in memory; raw is tmpfs".to_owned(),
        quick: settings.quick,
        missing: Vec::new(),
        rows,
    })
}

/// What is done in a folder; how many operations that was.
type Work = fn(&Path) -> anyhow::Result<u64>;
type Subject = (&'static str, PathBuf, Vec<u32>);

fn create(folder: &Path) -> anyhow::Result<u64> {
    std::fs::create_dir_all(folder).context("cannot make a folder")?;
    for at in 0..FILES {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, folder.join(at.to_string()), flags, Mode::from_raw_mode(0o644))
            .context("cannot create")?;
    }
    Ok(FILES)
}

fn open(folder: &Path) -> anyhow::Result<u64> {
    for at in 0..FILES {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, folder.join(at.to_string()), flags, Mode::empty()).context("cannot open")?;
    }
    Ok(FILES)
}

fn unlink(folder: &Path) -> anyhow::Result<u64> {
    for at in 0..FILES {
        rustix::fs::unlink(folder.join(at.to_string())).context("cannot unlink")?;
    }
    Ok(FILES)
}

/// Creates files, opens them, unlinks them, each in turns.
fn names(
    settings: &Settings,
    client: Client,
    subjects: &[Subject],
    rows: &mut Vec<Row>,
) -> anyhow::Result<()> {
    let goal = |free, pinned| Goal::AtMost(if client == Client::Free { free } else { pinned });
    let folder = move |tree: &Path, round: usize| tree.join(format!("{}-{round}", client.name()));
    let contenders = |work: Work| {
        let contender = |(name, tree, pids): &Subject| {
            let tree = tree.clone();
            Contender::new(name, pids, move |round| work(&folder(&tree, round)))
        };
        subjects.iter().map(contender).collect::<Vec<_>>()
    };
    let works: [(&str, Work, Goal); 3] = [
        ("create and close", create, goal(50.0, 30.0)),
        ("open and close, no backing", open, goal(20.0, 12.0)),
        ("unlink", unlink, goal(32.0, 22.0)),
    ];
    for (work, act, goal) in works {
        let series = take(client, settings.rounds, contenders(act))?;
        rows.push(Row::microseconds(work, client, &series, "uring", goal)?);
    }
    Ok(())
}

/// Two clients at once, each in a folder of its own; the figure is what an operation takes each of them.
fn two_clients(settings: &Settings, subjects: &[Subject], rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let contender = |(name, tree, pids): &Subject| {
        let tree = tree.clone();
        Contender::new(name, pids, move |round| {
            let folder = |number: u32| tree.join(format!("two-{round}-{number}"));
            std::thread::scope(|scope| {
                let other = scope.spawn(|| create(&folder(1)));
                create(&folder(0))?;
                other.join().map_err(|_| anyhow::anyhow!("a client panicked"))?
            })
        })
    };
    let series = take(Client::Free, settings.rounds, subjects.iter().map(contender).collect())?;
    let work = "two clients at once, each: create and close";
    rows.push(Row::microseconds(work, Client::Free, &series, "uring", Goal::AtMost(32.0))?);
    Ok(())
}

/// A tree of small files, packed.
fn archive(disk: &Disk) -> anyhow::Result<PathBuf> {
    let tree = disk.folder("tree")?;
    for at in 0..TREE_FILES {
        let folder = tree.join((at / 50).to_string());
        std::fs::create_dir_all(&folder).context("cannot make a folder")?;
        write_file(&folder.join(at.to_string()), 1024 + at * 37 % 16_384, at)?;
    }
    let archive = disk.root().join("tree.tar");
    run(Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(&tree).arg("."))?;
    Ok(archive)
}

/// That tree unpacked by `tar` through `dir`, over either transport.
fn unpacking(settings: &Settings, disk: &Disk, archive: &Path, client: Client) -> anyhow::Result<Row> {
    let below = tempfile::Builder::new().prefix("hither-bench-").tempdir_in("/dev/shm")?;
    let mount = |transport: &str, more: &[&str]| -> anyhow::Result<Hither> {
        let source = below.path().join(transport);
        std::fs::create_dir(&source).context("cannot make a folder")?;
        let mut args = vec!["dir".as_ref(), source.as_os_str(), "--transport".as_ref(), transport.as_ref()];
        args.extend(more.iter().map(std::ffi::OsStr::new));
        Hither::mount(&args, &disk.mountpoint(&format!("dir-{transport}-{}", client.name()))?)
    };
    let (dev, ring) = (mount("dev", &["--threads", "2"])?, mount("uring", &[])?);
    let raw = below.path().join("raw");
    std::fs::create_dir(&raw).context("cannot make a folder")?;
    let contender = |name, tree: &Path, pids: &[u32]| {
        let (tree, archive) = (tree.to_owned(), archive.to_owned());
        Contender::new(name, pids, move |round| {
            let folder = tree.join(round.to_string());
            std::fs::create_dir(&folder).context("cannot make a folder")?;
            run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&folder))?;
            Ok(1)
        })
    };
    let contenders = vec![
        contender("raw", &raw, &[]),
        contender("dev", &dev.mountpoint, &[dev.pid]),
        contender("uring", &ring.mountpoint, &[ring.pid]),
    ];
    let series = take(client, settings.rounds.min(5), contenders)?;
    let work = format!("`tar -x` of {TREE_FILES} files through `dir`");
    Row::ratio(&work, client, &series, ("uring", "dev"), Goal::AtMost(0.8))
}
