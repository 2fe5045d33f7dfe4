//! What is cached, read again: the kernel serves it from the copy.

use std::path::{Path, PathBuf};

use super::{Settings, Workbench, write_files};
use crate::clients::{
    forget_pages, open_read_close, random_reads, read_anew, sequential_read, stat, write_file,
};
use crate::disk::settle;
use crate::mounts::Hither;
use crate::report::{Goal, Row};
use crate::turns::{Client, Contender, take};

/// Read at random and in sequence.
const FILE_BYTES: u64 = 256 << 20;
const LARGE: &str = "large";
/// *raw* has a file of its own: whoever reads the same pages as another just did finds them in the processor's cache.
const LARGE_OF_RAW: &str = "large-of-raw";
/// Opened in turn, so few that asking the origin for each of them once a second does not show.
const SMALL_FILES: u64 = 8;
const SMALL_BYTES: u64 = 64 << 10;

pub fn files(source: &Path, _: &Settings) -> anyhow::Result<()> {
    write_file(&source.join(LARGE), FILE_BYTES, 1)?;
    write_file(&source.join(LARGE_OF_RAW), FILE_BYTES, 1)?;
    write_files(&source.join("small"), SMALL_FILES, SMALL_BYTES)
}

fn small(tree: &Path) -> Vec<PathBuf> {
    (0..SMALL_FILES).map(|at| tree.join("small").join(at.to_string())).collect()
}

/// A tree that is compared: what the table calls it, where it is, who serves it, in how many rounds it takes part.
struct Subject {
    name: &'static str,
    tree: PathBuf,
    pids: Vec<u32>,
    rounds: usize,
}

impl Subject {
    /// A contender that reads its large file. What an open asks of the origin once a second is asked just before: it is in
    /// the rows of opens.
    fn reads<'a>(&self, work: impl Fn() -> anyhow::Result<u64> + 'a) -> Contender<'a> {
        let large = self.large();
        self.does(move |_| work()).prepared(move |_| random_reads(&large, FILE_BYTES, 1).map(drop))
    }

    /// Its large file.
    fn large(&self) -> PathBuf {
        self.tree.join(if self.name == "raw" { LARGE_OF_RAW } else { LARGE })
    }

    /// A contender that does the same as the others with another tree.
    fn does<'a>(&self, work: impl Fn(&Path) -> anyhow::Result<u64> + 'a) -> Contender<'a> {
        let tree = self.tree.clone();
        Contender::new(self.name, &self.pids, move |_| work(&tree)).at_most(self.rounds)
    }
}

pub fn rows(bench: &mut Workbench<'_>) -> anyhow::Result<Vec<Row>> {
    let dir = bench.dir(&[])?;
    let cache = bench.cache("hits", &["--revalidate", "1s"])?;
    warm(bench, &cache)?;
    let rclone = bench.rclone()?;
    let mut subjects = vec![
        Subject { name: "raw", tree: bench.source.clone(), pids: vec![], rounds: usize::MAX },
        Subject { name: "dir", tree: dir.mountpoint.clone(), pids: vec![dir.pid], rounds: usize::MAX },
        Subject {
            name: "cache",
            tree: cache.mountpoint.clone(),
            pids: vec![cache.pid, bench.origin.pid()],
            rounds: usize::MAX,
        },
    ];
    if let Some(rclone) = &rclone {
        let tree = rclone.mountpoint.clone();
        sequential_read(&tree.join(LARGE), 1 << 20, u64::MAX)?;
        subjects.push(Subject {
            name: "rclone",
            tree,
            pids: vec![rclone.pid(), bench.origin.pid()],
            rounds: 3,
        });
    }
    let mut rows = Vec::new();
    for client in Client::ALL {
        data(bench, client, &subjects, &mut rows)?;
        names(bench, client, &subjects, &mut rows)?;
    }
    // It was the copies that were measured, and nothing else.
    cache.ensure_cached(&small(&cache.mountpoint))?;
    Ok(rows)
}

fn warm(bench: &Workbench<'_>, cache: &Hither) -> anyhow::Result<()> {
    cache.warm(&cache.mountpoint.join(LARGE))?;
    cache.warm(&cache.mountpoint.join("small"))?;
    cache.ensure_cached(&small(&cache.mountpoint))?;
    settle();
    read_anew(&bench.source.join(LARGE_OF_RAW))?;
    read_anew(&bench.source.join(LARGE))?;
    read_anew(&bench.store("hits").join(cache.copy_of(&cache.mountpoint.join(LARGE))?))
}

/// The origin with nothing in the kernel's page cache.
fn cold_origin<'a>(bench: &Workbench<'_>, work: impl Fn(&Path) -> anyhow::Result<u64> + 'a) -> Contender<'a> {
    let file = bench.origin.mountpoint.join(LARGE);
    let cold = file.clone();
    Contender::new("origin", &[bench.origin.pid()], move |_| work(&file))
        .prepared(move |_| forget_pages(&cold))
        .at_most(3)
        .cold()
}

fn data(
    bench: &Workbench<'_>,
    client: Client,
    subjects: &[Subject],
    rows: &mut Vec<Row>,
) -> anyhow::Result<()> {
    let reads_of = |name: &str| if name == "rclone" { 1000 } else { 20_000 };
    let mut contenders: Vec<Contender<'_>> = subjects
        .iter()
        .map(|subject| {
            let (reads, large) = (reads_of(subject.name), subject.large());
            subject.reads(move || random_reads(&large, FILE_BYTES, reads))
        })
        .collect();
    contenders.push(cold_origin(bench, |file| random_reads(file, FILE_BYTES, 64)));
    let series = take(client, bench.settings.rounds, contenders)?;
    rows.push(Row::ratio("hit, 4 KiB random read", client, &series, ("cache", "raw"), Goal::AtLeast(0.90))?);

    let mut contenders: Vec<Contender<'_>> = subjects
        .iter()
        .map(|subject| {
            let large = subject.large();
            subject.reads(move || sequential_read(&large, 1 << 20, u64::MAX))
        })
        .collect();
    contenders.push(cold_origin(bench, |file| sequential_read(file, 1 << 20, 32)));
    let series = take(client, bench.settings.rounds, contenders)?;
    rows.push(Row::ratio(
        "hit, 1 MiB sequential read",
        client,
        &series,
        ("cache", "raw"),
        Goal::AtLeast(0.90),
    )?);
    Ok(())
}

fn names(
    bench: &Workbench<'_>,
    client: Client,
    subjects: &[Subject],
    rows: &mut Vec<Row>,
) -> anyhow::Result<()> {
    let burst = bench.settings.long_burst;
    let stats = subjects.iter().map(|subject| subject.does(move |tree| stat(&tree.join("small/0"), burst)));
    let series = take(client, bench.settings.long_rounds, stats.collect())?;
    rows.push(Row::ratio(
        "stat of a known file, `--revalidate 1`",
        client,
        &series,
        ("cache", "raw"),
        Goal::AtMost(1.4),
    )?);

    let opens = subjects.iter().map(|subject| subject.does(move |tree| open_read_close(&small(tree), burst)));
    let series = take(client, bench.settings.long_rounds, opens.collect())?;
    let work = "open, read 4 KiB, close of a hit, `--revalidate 1`";
    rows.push(Row::ratio(work, client, &series, ("cache", "dir"), Goal::AtMost(1.2))?);
    Ok(())
}
