//! kill -9 of the daemon at random moments of fills, evictions, rewrites and renames: after each, `hither mount` alone
//! must bring everything back, and nothing that is served may differ from the origin.

use std::time::Duration;

use anyhow::{Context as _, Result};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::load::{self, Load};
use super::{Extent, timed};
use crate::report::Outcome;
use crate::scene::{Scene, View};

/// Kills the daemon of a cache again and again.
pub fn run(extent: Extent, seed: u64) -> Outcome {
    let kills = extent.of(12, 200);
    timed("kills", View::Cache, |outcome| {
        outcome.add("seed", seed);
        let options = ["--capacity", load::CAPACITY, "--settle", "30ms", "--sync-every", "100ms"];
        let mut scene = Scene::new(View::Cache, &options)?;
        load::make_tree(&scene.origin(), seed)?;
        for round in 0..kills {
            one(&mut scene, seed.wrapping_add(round), outcome).with_context(|| {
                let log = scene.mount().map(|mount| mount.log()).unwrap_or_default();
                format!("kill {round} of seed {seed}; the log ends:\n{}", last_lines(&log))
            })?;
            outcome.add("kills", 1);
        }
        scene.unmount()
    })
}

fn one(scene: &mut Scene, seed: u64, outcome: &mut Outcome) -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed);
    let root = scene.root();
    let load = Load::start(&root, seed);
    std::thread::sleep(Duration::from_millis(random.random_range(0..400)));
    load.expect_errors();
    let killed = scene.mount()?.kill();
    load.stop(outcome)?;
    killed?;
    // Nobody repairs anything by hand: the same command as before.
    scene.mount()?.again().context("mounting again")?;
    let (origin, store) = (scene.origin(), scene.store());
    load::check(scene.mount()?, &origin, &store, outcome)?;
    load::mend_tree(&root, &mut random)
}

/// The end of a log.
pub fn last_lines(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}
