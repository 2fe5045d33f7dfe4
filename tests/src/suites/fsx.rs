//! fsx: random reads, writes, mappings, truncations, holes and copies of one file, each read compared with memory.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use super::{Extent, timed};
use crate::report::Outcome;
use crate::scene::{Scene, View};
use crate::tools;

/// Every kind of operation that ext4 has. The file is large enough for several chunks of a fill.
const CONFIG: &str = "\
flen = 2621440
[opsize]
min = 1
max = 65536
[weights]
close_open = 2
read = 10
write = 10
mapread = 10
mapwrite = 10
invalidate = 1
truncate = 5
fsync = 0.05
fdatasync = 0.05
posix_fallocate = 1
punch_hole = 2
sendfile = 2
posix_fadvise = 1
copy_file_range = 3
";

/// Runs fsx with one seed: on ext4, to know that it can pass, on `dir` and on `cache`.
pub fn run(extent: Extent, seed: u64) -> Vec<Outcome> {
    View::ALL.into_iter().map(|view| run_on(view, extent, seed)).collect()
}

/// Runs it on one view.
pub fn run_on(view: View, extent: Extent, seed: u64) -> Outcome {
    timed("fsx", view, |outcome| exercise(view, extent.of(4_000, 200_000), seed, outcome))
}

fn exercise(view: View, operations: u64, seed: u64, outcome: &mut Outcome) -> Result<()> {
    // A settled version at once, so that its reads go through fills and copies between the writes.
    let options: &[&str] = if view == View::Cache { &["--settle", "0s"] } else { &[] };
    let mut scene = Scene::new(view, options)?;
    let config = scene.beside().join("fsx.toml");
    fs::write(&config, CONFIG)?;
    let artifacts = scene.beside().join("artifacts");
    fs::create_dir(&artifacts)?;
    let file = scene.root().join("file");
    let mut fsx = Command::new(tools::FSX.program()?);
    fsx.arg("-q").arg("-f").arg(&config).arg("-P").arg(&artifacts);
    fsx.args(["-N", &operations.to_string(), "-S", &seed.to_string()]).arg(&file);
    let output = fsx.stdin(Stdio::null()).output().context("cannot start fsx")?;
    outcome.add("operations", operations);
    outcome.add("seed", seed);
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        let begin = said.char_indices().rev().nth(6_000).map_or(0, |(at, _)| at);
        outcome.fail(format!("fsx -N {operations} -S {seed}: {}\n{}", output.status, &said[begin..]));
    }
    // The bytes that programs saw are those that the directory has.
    let through = fs::read(&file).context("cannot read the file again")?;
    scene.unmount()?;
    if through != fs::read(scene.origin().join("file"))? {
        outcome.fail("the directory beneath has other bytes than the mount showed");
    }
    Ok(())
}
