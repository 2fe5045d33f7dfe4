//! The read cache over an origin with a round trip of 2 ms, against the plain passthrough, the raw disk, the origin
//! itself, and rclone.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

use crate::clients::write_file;
use crate::disk::{Disk, settle};
use crate::machine::Watch;
use crate::mounts::{Hither, Rclone, SlowOrigin, cpu_of_ended_daemons};
use crate::report::{Report, Row};
use crate::turns::cpu;

mod fall_back;
mod first_reads;
mod hits;
mod many_files;
mod trees;

/// The origin's.
const ROUND_TRIP: Duration = Duration::from_millis(2);
/// What the disk in memory may grow to.
const DISK_BYTES: u64 = 14 << 30;
/// A file is cached only when its last change is 2 s old.
const SETTLED: Duration = Duration::from_millis(2500);

/// How much to measure.
#[derive(Debug, Clone)]
pub struct Settings {
    quick: bool,
    only: Option<String>,
    /// Short bursts, of some ten milliseconds.
    rounds: usize,
    /// Long bursts, of seconds.
    long_rounds: usize,
    /// Of what runs for a time: longer than what is believed for a second.
    long_burst: Duration,
    /// In the tree.
    tree_files: u64,
    /// In the store whose size is measured.
    many_files: u64,
}

impl Settings {
    /// All sections, or those whose name contains `only`; in full or quick.
    pub fn new(quick: bool, only: Option<String>) -> Settings {
        let full = Settings {
            quick,
            only,
            rounds: 21,
            long_rounds: 5,
            long_burst: Duration::from_millis(2200),
            tree_files: 3000,
            many_files: 100_000,
        };
        if quick {
            Settings { rounds: 5, long_rounds: 3, tree_files: 600, many_files: 10_000, ..full }
        } else {
            full
        }
    }
}

/// What every section works with.
struct Workbench<'a> {
    settings: &'a Settings,
    origin: SlowOrigin,
    source: PathBuf,
    disk: &'a Disk,
    missing: &'a mut Vec<String>,
}

/// A part of the measurement.
struct Section {
    name: &'static str,
    /// Makes its files.
    files: fn(&Path, &Settings) -> anyhow::Result<()>,
    rows: fn(&mut Workbench<'_>) -> anyhow::Result<Vec<Row>>,
}

const SECTIONS: [Section; 5] = [
    Section { name: "hits", files: hits::files, rows: hits::rows },
    Section { name: "trees", files: trees::files, rows: trees::rows },
    Section { name: "first-reads", files: first_reads::files, rows: first_reads::rows },
    Section { name: "fall-back", files: fall_back::files, rows: fall_back::rows },
    Section { name: "many-files", files: many_files::files, rows: many_files::rows },
];

/// Measures all sections that are wanted. A section that fails is a part of the report that is missing.
pub fn measure(settings: &Settings) -> anyhow::Result<Report> {
    let is_wanted =
        |section: &&Section| settings.only.as_ref().is_none_or(|only| section.name.contains(only));
    let sections: Vec<&Section> = SECTIONS.iter().filter(is_wanted).collect();
    anyhow::ensure!(!sections.is_empty(), "no section of that name");
    let disk = Disk::new(DISK_BYTES)?;
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    let watch = Watch::begin()?;
    let cpu_before = cpu(&[])?;
    for section in sections {
        match section.measure(&disk, settings, &mut missing) {
            Ok(measured) => rows.extend(measured),
            Err(error) => {
                eprintln!("bench: {}: {error:#}", section.name);
                missing.push(format!("{} ({error:#})", section.name));
            }
        }
        // The next one is to have all of the memory.
        disk.clear().with_context(|| format!("cannot remove the files of {}", section.name))?;
    }
    let ours = (cpu(&[])? + cpu_of_ended_daemons()).saturating_sub(cpu_before);
    let machine = watch.end(ours)?;
    Ok(Report {
        machine,
        columns: &["raw", "dir", "cache", "origin", "rclone"],
        below: format!(
            "data on {}, origin's round trip {} ms",
            disk.describe(),
            ROUND_TRIP.as_secs_f64() * 1e3
        ),
        quick: settings.quick,
        missing,
        rows,
    })
}

impl Section {
    /// Makes the files, lets them settle, shows them slowly, measures.
    fn measure(
        &self,
        disk: &Disk,
        settings: &Settings,
        missing: &mut Vec<String>,
    ) -> anyhow::Result<Vec<Row>> {
        eprintln!("bench: {}: making its files", self.name);
        let source = disk.folder("source")?;
        (self.files)(&source, settings).context("cannot make the files")?;
        settle();
        std::thread::sleep(SETTLED);
        eprintln!("bench: {}: measuring", self.name);
        let origin = SlowOrigin::mount(&source, &disk.mountpoint("origin")?, ROUND_TRIP)?;
        let mut bench = Workbench { settings, origin, source, disk, missing };
        (self.rows)(&mut bench)
    }
}

impl Workbench<'_> {
    /// A cached view of the slow origin, with an empty store.
    fn cache(&self, name: &str, more: &[&str]) -> anyhow::Result<Hither> {
        self.disk.folder(&store_name(name))?;
        Hither::cache(
            &self.origin.mountpoint,
            &self.store(name),
            &self.disk.mountpoint(&format!("cache-{name}"))?,
            more,
        )
    }

    /// The store of that view.
    fn store(&self, name: &str) -> PathBuf {
        self.disk.root().join(store_name(name))
    }

    /// The plain view of the raw source.
    fn dir(&self, more: &[&str]) -> anyhow::Result<Hither> {
        let mut args: Vec<&OsStr> = vec!["dir".as_ref(), self.source.as_os_str()];
        args.extend(more.iter().map(OsStr::new));
        Hither::mount(&args, &self.disk.mountpoint("dir")?)
    }

    /// rclone over the slow origin. Where there is none, that is noted.
    fn rclone(&mut self) -> anyhow::Result<Option<Rclone>> {
        let (cache, mountpoint) = (self.disk.folder("rclone-cache")?, self.disk.mountpoint("rclone")?);
        let rclone = Rclone::mount(&self.origin.mountpoint, &cache, &mountpoint)?;
        let note = "rclone (not installed)".to_owned();
        if rclone.is_none() && !self.missing.contains(&note) {
            self.missing.push(note);
        }
        Ok(rclone)
    }
}

fn store_name(of: &str) -> String {
    format!("store-{of}")
}

/// Makes `count` files of `bytes` each, called 0, 1, ..., in a new folder.
fn write_files(folder: &Path, count: u64, bytes: u64) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    (0..count).try_for_each(|at| write_file(&folder.join(at.to_string()), bytes, at))
}

#[cfg(test)]
mod tests {
    use super::{SECTIONS, Settings};

    #[test]
    fn the_names_in_the_help_are_those_of_the_sections() {
        assert_eq!(
            SECTIONS.map(|section| section.name),
            ["hits", "trees", "first-reads", "fall-back", "many-files"]
        );
        assert!(super::measure(&Settings::new(true, Some("no such".into()))).is_err());
    }
}
