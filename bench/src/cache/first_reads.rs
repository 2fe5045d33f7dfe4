//! What is not cached yet: the first read of a file must not be slower for being cached on the way.

use std::path::Path;

use anyhow::Context as _;

use super::{Settings, Workbench};
use crate::clients::{first_byte, forget_pages, sequential_read, write_file};
use crate::mounts::Hither;
use crate::report::{Goal, Row};
use crate::turns::{Client, Contender, Series, median, take};

const FILE_BYTES: u64 = 64 << 20;
/// One of 4 GiB without any bytes takes no room, and the fill must not wait for its end all the same.
const HUGE_BYTES: u64 = 4 << 30;

/// Sequential reads, by the size of a read, and what the cache may take of the origin's time.
const BLOCKS: [(usize, &str, f64); 2] = [(1 << 20, "1 MiB", 1.05), (4096, "4 KiB", 1.09)];

/// A file for each burst, since a file is read first only once.
pub fn files(source: &Path, settings: &Settings) -> anyhow::Result<()> {
    let folder = source.join("first");
    std::fs::create_dir_all(&folder).context("cannot make a folder")?;
    for client in Client::ALL {
        for (block, ..) in BLOCKS {
            for round in 1..=settings.long_rounds {
                write_file(&folder.join(name(client, block, round)), FILE_BYTES, round as u64)?;
            }
        }
    }
    for round in 0..2 * settings.long_rounds {
        let file =
            std::fs::File::create(folder.join(format!("huge-{round}"))).context("cannot make a file")?;
        file.set_len(HUGE_BYTES).context("cannot make a huge file")?;
    }
    Ok(())
}

fn name(client: Client, block: usize, round: usize) -> String {
    format!("{}-{block}-{round}", client.name())
}

pub fn rows(bench: &mut Workbench<'_>) -> anyhow::Result<Vec<Row>> {
    let cache = bench.cache("first-reads", &[])?;
    let mut rows = Vec::new();
    for client in Client::ALL {
        for (block, called, most) in BLOCKS {
            let series = sequential(bench, &cache, client, block)?;
            let work = format!("first sequential read of {} MiB, {called} reads", FILE_BYTES >> 20);
            rows.push(Row::ratio(&work, client, &series, ("cache", "origin"), Goal::AtMost(most))?);
        }
    }
    rows.extend(first_bytes(bench, &cache)?);
    Ok(rows)
}

/// The same program at the origin and through the cache, the origin's pages forgotten before each.
fn sequential(
    bench: &Workbench<'_>,
    cache: &Hither,
    client: Client,
    block: usize,
) -> anyhow::Result<Vec<Series>> {
    let origin = bench.origin.pid();
    let path = move |tree: &Path, round| tree.join("first").join(name(client, block, round));
    let contender = |called: &'static str, tree: &Path, pids: &[u32]| {
        let (tree, below) = (tree.to_owned(), bench.origin.mountpoint.clone());
        Contender::new(called, pids, move |round| {
            sequential_read(&path(&tree, round), block, u64::MAX).map(|_| 1)
        })
        .prepared(move |round| forget_pages(&path(&below, round)))
        .cold()
    };
    // In odd rounds, which are most, the cache comes first: whatever its reading leaves behind at the origin beside
    // pages is to the origin's advantage.
    let contenders = vec![
        contender("origin", &bench.origin.mountpoint, &[origin]),
        contender("cache", &cache.mountpoint, &[cache.pid, origin]),
    ];
    take(client, bench.settings.long_rounds, contenders)
}

/// How many reads of the origin, and how much of the time of one, it takes to the first byte of a huge file.
fn first_bytes(bench: &mut Workbench<'_>, cache: &Hither) -> anyhow::Result<Vec<Row>> {
    let (mut reads, mut through_cache, mut at_origin) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..bench.settings.long_rounds {
        let file = |tree: &Path, at: usize| tree.join(format!("first/huge-{at}"));
        let (_, first_read) = first_byte(&file(&bench.origin.mountpoint, 2 * round + 1))?;
        at_origin.push(first_read.as_secs_f64());
        let before = reads_of(bench)?;
        let (_, first_read) = first_byte(&file(&cache.mountpoint, 2 * round))?;
        reads.push((reads_of(bench)? - before) as f64);
        through_cache.push(first_read.as_secs_f64());
    }
    let (origin, cache) = (median(at_origin.into_iter()), median(through_cache.into_iter()));
    Ok(vec![
        Row::figure(
            "first byte of an uncached 4 GiB file: reads that the origin has got by then",
            median(reads.into_iter()),
            "reads",
            Goal::Measured,
        ),
        Row::figure(
            "first byte of an uncached 4 GiB file: time of the read, in first reads at the origin",
            cache / origin,
            "times",
            Goal::AtMost(2.0),
        ),
    ])
}

fn reads_of(bench: &mut Workbench<'_>) -> anyhow::Result<u64> {
    Ok(bench.origin.requests()?.get("read").copied().unwrap_or(0))
}
