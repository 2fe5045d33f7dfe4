//! Without passthrough, as for an ordinary user or an older kernel: hits through the kernel's page cache and the daemon.

use std::path::Path;

use super::{Settings, Workbench};
use crate::clients::{open_read_close, random_reads, read_anew, sequential_read, write_file};
use crate::disk::settle;
use crate::report::{Goal, Row};
use crate::turns::{Client, Contender, Series, take};

const FILE_BYTES: u64 = 128 << 20;
/// Stays in the processor's cache: shows what the path costs, apart from how the kernel lays pages out.
const HOT_BYTES: u64 = 1 << 20;

pub fn files(source: &Path, _: &Settings) -> anyhow::Result<()> {
    write_file(&source.join("fall-back"), FILE_BYTES, 2)
}

pub fn rows(bench: &mut Workbench<'_>) -> anyhow::Result<Vec<Row>> {
    let cache = bench.cache("fall-back", &["--passthrough", "off"])?;
    let dir = bench.dir(&["--passthrough", "off"])?;
    let file = |tree: &Path| tree.join("fall-back");
    let cached = file(&cache.mountpoint);
    cache.warm(&cached)?;
    cache.ensure_cached(std::slice::from_ref(&cached))?;
    settle();
    for tree in [&bench.source, &cache.mountpoint, &dir.mountpoint] {
        read_anew(&file(tree))?;
    }
    let turns =
        |client, work: &dyn Fn(&Path) -> anyhow::Result<u64>, rounds| -> anyhow::Result<Vec<Series>> {
            let contender = |name, tree: &Path, pids: &[u32]| {
                let path = file(tree);
                let opened = path.clone();
                // What an open asks of the origin once a second is not in the figure.
                Contender::new(name, pids, move |_| work(&path))
                    .prepared(move |_| random_reads(&opened, FILE_BYTES, 1).map(drop))
            };
            let contenders = vec![
                contender("raw", &bench.source, &[]),
                contender("dir", &dir.mountpoint, &[dir.pid]),
                contender("cache", &cache.mountpoint, &[cache.pid, bench.origin.pid()]),
            ];
            take(client, rounds, contenders)
        };
    let (rounds, burst) = (bench.settings.rounds, bench.settings.long_burst);
    let mut rows = Vec::new();
    for client in Client::ALL {
        let series = turns(client, &|path| random_reads(path, FILE_BYTES, 20_000), rounds)?;
        let work = "no passthrough: 4 KiB random read, warm";
        rows.push(Row::ratio(work, client, &series, ("cache", "raw"), Goal::AtLeast(0.90))?);
        let series = turns(client, &|path| random_reads(path, HOT_BYTES, 20_000), rounds)?;
        let work = "no passthrough: 4 KiB random read within 1 MiB, warm";
        rows.push(Row::ratio(work, client, &series, ("cache", "raw"), Goal::AtLeast(0.90))?);
        let series = turns(client, &|path| sequential_read(path, 1 << 20, u64::MAX), rounds)?;
        let work = "no passthrough: 1 MiB sequential read, warm";
        rows.push(Row::ratio(work, client, &series, ("cache", "raw"), Goal::AtLeast(0.90))?);
        let series =
            turns(client, &|path| open_read_close(&[path.to_owned()], burst), bench.settings.long_rounds)?;
        let work = "no passthrough: open, read 4 KiB, close of a hit";
        rows.push(Row::ratio(work, client, &series, ("cache", "dir"), Goal::Measured)?);
    }
    Ok(rows)
}
