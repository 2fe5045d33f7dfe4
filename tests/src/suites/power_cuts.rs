//! Power cuts of the store's disk: its image is copied in one instant of a run, and the copy, which a journal must mend
//! as after a crash, is the store from then on. No copy that is used may differ from the origin's version.
//!
//! The instant is one because the image lies on XFS, whose FICLONE lets no write happen meanwhile. What a disk with a
//! volatile cache loses beyond that, writes that were issued and not flushed, is not in this model.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::load::{self, Load};
use super::{Extent, kills, timed};
use crate::disk::{self, Disk, Format};
use crate::mount::Mount;
use crate::place::Place;
use crate::report::Outcome;
use crate::scene::View;

/// Cuts the power of a cache's store again and again.
pub fn run(extent: Extent, seed: u64) -> Outcome {
    timed("power cuts", View::Cache, |outcome| {
        outcome.add("seed", seed);
        let mut bench = Bench::new(seed)?;
        for round in 0..extent.of(5, 50) {
            bench.cut(seed.wrapping_add(round), outcome).with_context(|| {
                let log = std::fs::read_to_string(bench.place.path().join("mnt.log")).unwrap_or_default();
                format!("cut {round} of seed {seed}; the log ends:\n{}", kills::last_lines(&log))
            })?;
            outcome.add("power cuts", 1);
        }
        let survived = outcome.count("copies that survived");
        anyhow::ensure!(survived > 0, "no copy survived any cut: nothing was shown");
        Ok(())
    })
}

/// An origin, and the images of the store. Fields are dropped in this order.
struct Bench {
    origin: Disk,
    /// The XFS on which the images lie.
    shelf: Disk,
    /// The store's image now.
    image: PathBuf,
    place: Place,
}

impl Bench {
    fn new(seed: u64) -> Result<Self> {
        let origin = Disk::new(Format::Ext4, 1 << 30)?;
        load::make_tree(&origin.folder("tree")?, seed)?;
        let shelf = Disk::new(Format::Xfs, 4 << 30)?;
        let image = shelf.path().join("store-0");
        disk::make(&image, Format::Ext4, 256 << 20)?;
        let place = Place::new()?;
        place.folder("mnt")?;
        place.folder("store")?;
        Ok(Bench { origin, shelf, image, place })
    }

    fn mount(&self) -> Result<(Disk, Mount)> {
        let disk = Disk::of(&self.image, &self.place.path().join("store"))?;
        let options = ["--capacity", load::CAPACITY, "--settle", "30ms", "--sync-every", "150ms"];
        let mountpoint = self.place.path().join("mnt");
        let mount = Mount::cache(&self.tree(), &disk.path().join("store"), &mountpoint, &options)?;
        Ok((disk, mount))
    }

    fn tree(&self) -> PathBuf {
        self.origin.path().join("tree")
    }

    fn cut(&mut self, seed: u64, outcome: &mut Outcome) -> Result<()> {
        let mut random = StdRng::seed_from_u64(seed);
        let (mut disk, mut mount) = self.mount()?;
        let load = Load::start(mount.path(), seed);
        std::thread::sleep(Duration::from_millis(random.random_range(50..900)));
        let after = self.shelf.path().join(format!("store-{seed}"));
        clone(&self.image, &after)?;
        load.stop(outcome)?;
        mount.unmount()?;
        disk.unmount()?;
        drop((mount, disk));
        std::fs::remove_file(&self.image)?;
        self.image = after;

        let (disk, mut mount) = self.mount().context("mounting after the cut")?;
        mount.wait_until_scanned()?;
        outcome.add("copies that survived", mount.count("/caches/0/copies")?);
        load::check(&mount, &self.tree(), &disk.path().join("store"), outcome)?;
        load::mend_tree(mount.path(), &mut random)?;
        mount.unmount()
    }
}

/// A copy of a file as it is in one instant.
fn clone(from: &Path, to: &Path) -> Result<()> {
    let (from, to) = (File::open(from)?, File::create_new(to)?);
    rustix::fs::ioctl_ficlone(to, from).context("FICLONE")
}
