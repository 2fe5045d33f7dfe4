//! A tree of small files, walked and read by unmodified programs once it is known and cached.

use std::path::Path;

use anyhow::Context as _;

use super::{Settings, Workbench};
use crate::clients::{Scatter, find, tar, write_file};
use crate::report::{Goal, Row};
use crate::turns::{Client, Contender, take};

const FILES_A_FOLDER: u64 = 50;

/// Files of 1 to 31 KiB.
pub fn files(source: &Path, settings: &Settings) -> anyhow::Result<()> {
    let mut scatter = Scatter::new(3);
    for at in 0..settings.tree_files {
        let folder = source.join("tree").join((at / FILES_A_FOLDER).to_string());
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        write_file(&folder.join(at.to_string()), 1024 + scatter.below(30 << 10), at)?;
    }
    Ok(())
}

pub fn rows(bench: &mut Workbench<'_>) -> anyhow::Result<Vec<Row>> {
    let dir = bench.dir(&[])?;
    let cache = bench.cache("trees", &["--revalidate", "60s"])?;
    cache.warm(&cache.mountpoint.join("tree"))?;
    let rclone = bench.rclone()?;
    let (files, origin) = (bench.settings.tree_files, bench.origin.pid());
    // Each with the rounds that it takes part in: a pass over the origin takes half a minute.
    let mut trees = vec![
        ("raw", bench.source.clone(), vec![], usize::MAX),
        ("dir", dir.mountpoint.clone(), vec![dir.pid], usize::MAX),
        ("cache", cache.mountpoint.clone(), vec![cache.pid, origin], usize::MAX),
        ("origin", bench.origin.mountpoint.clone(), vec![origin], 1),
    ];
    if let Some(rclone) = &rclone {
        let tree = rclone.mountpoint.clone();
        crate::clients::tar(&tree.join("tree"), files)?;
        trees.push(("rclone", tree, vec![rclone.pid(), origin], 2));
    }
    let contenders = |work: fn(&Path, u64) -> anyhow::Result<u64>| {
        let contender = |(name, tree, pids, rounds): &(&'static str, std::path::PathBuf, Vec<u32>, usize)| {
            let tree = tree.join("tree");
            let contender = Contender::new(name, pids, move |_| work(&tree, files)).at_most(*rounds);
            if *name == "origin" { contender.cold() } else { contender }
        };
        trees.iter().map(contender).collect::<Vec<_>>()
    };
    let mut rows = Vec::new();
    for client in Client::ALL {
        let series = take(client, bench.settings.long_rounds + 2, contenders(find))?;
        let work = format!("warm `find` of {files} files, `--revalidate 60`");
        rows.push(Row::ratio(&work, client, &series, ("cache", "dir"), Goal::AtMost(1.3))?);
        // Each file holds 1 KiB or more.
        let series =
            take(client, bench.settings.long_rounds + 2, contenders(|tree, files| tar(tree, files << 10)))?;
        let work = format!("warm `tar` of {files} files, `--revalidate 60`");
        rows.push(Row::ratio(&work, client, &series, ("cache", "dir"), Goal::AtMost(1.3))?);
    }
    Ok(rows)
}
