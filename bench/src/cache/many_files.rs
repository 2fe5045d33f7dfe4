//! A store of a hundred thousand copies: how soon it serves after a restart, and what it costs in memory.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::{Settings, Workbench, write_files};
use crate::clients::{find, first_byte};
use crate::mounts::Hither;
use crate::report::{Goal, Row};
use crate::turns::median;

const FILES_A_FOLDER: u64 = 1000;
const FILE_BYTES: u64 = 512;
const RESTARTS: usize = 3;

pub fn files(source: &Path, settings: &Settings) -> anyhow::Result<()> {
    let many = source.join("many");
    (0..settings.many_files / FILES_A_FOLDER)
        .try_for_each(|folder| write_files(&many.join(folder.to_string()), FILES_A_FOLDER, FILE_BYTES))
}

pub fn rows(bench: &mut Workbench<'_>) -> anyhow::Result<Vec<Row>> {
    let (files, many) = (bench.settings.many_files, bench.source.join("many"));
    let (store, mountpoint) = (bench.disk.folder("store-many")?, bench.disk.mountpoint("cache-many")?);
    // Straight over the disk: it is not the fetching that is measured here.
    let mount = || Hither::cache(&many, &store, &mountpoint, &[]);
    let empty = mount()?.resident()?;
    {
        let cache = mount()?;
        cache.warm(&cache.mountpoint)?;
        let copies = cache.cache_count("copies")?;
        anyhow::ensure!(copies == files, "{copies} copies of {files} files");
    }
    let mut restarts = Vec::new();
    let mut resident = 0;
    for restart in 0..RESTARTS {
        let start = Instant::now();
        let cache = mount()?;
        first_byte(&cache.mountpoint.join(format!("{restart}/{}", restart * 7)))?;
        restarts.push(start.elapsed().as_secs_f64());
        let (hits, misses) = (cache.cache_count("hits")?, cache.cache_count("misses")?);
        anyhow::ensure!(
            (hits, misses) == (1, 0),
            "the first open after a restart: {hits} hits, {misses} misses"
        );
        wait_for_scan(&cache)?;
        resident = cache.resident()?;
    }
    let cache = mount()?;
    wait_for_scan(&cache)?;
    find(&cache.mountpoint, files)?;
    let a_file = |resident: u64| resident.saturating_sub(empty) as f64 / files as f64;
    let known = cache.resident()?;
    Ok(vec![
        Row::figure(
            &format!("restart with {files} cached files to the first hit"),
            median(restarts.into_iter()),
            "s",
            Goal::AtMost(0.5),
        ),
        Row::figure(
            &format!("memory with {files} cached files, listed"),
            a_file(resident),
            "bytes a file",
            Goal::AtMost(1024.0),
        ),
        Row::figure(
            &format!("memory with {files} cached files, after a `find`: all of them known to the kernel"),
            a_file(known),
            "bytes a file",
            Goal::Measured,
        ),
    ])
}

fn wait_for_scan(cache: &Hither) -> anyhow::Result<()> {
    let start = Instant::now();
    while cache.status()?["caches"][0]["scanning"].as_bool().context("the status does not say if it scans")? {
        anyhow::ensure!(start.elapsed() < Duration::from_secs(60), "the store is being listed for a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
