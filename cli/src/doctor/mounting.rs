//! A mount for a moment: whether it works, and how the data of a file travels through it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use hither_fuse::{DataPath, Session, Unmount};
use hither_stack::{DirConfig, FsConfig, MountConfig, MountOptions};

use super::Finding;
use crate::failure::of_mounting;

const MOUNTING: &str = "mounting";
const PASSTHROUGH: &str = "passthrough";

/// Mounts a directory with one file, reads that, and looks which way the bytes came.
pub fn try_it() -> Vec<Finding> {
    let scratch = match Scratch::new() {
        Ok(scratch) => scratch,
        Err(error) => {
            return vec![Finding::no(
                MOUNTING,
                format!("{error:#}"),
                "make room in $TMPDIR, or name another",
            )];
        }
    };
    match probe(&scratch) {
        Ok(path) => vec![Finding::yes(MOUNTING, "works").needed(), passthrough(path)],
        Err(error) => {
            vec![Finding::no(MOUNTING, format!("{error:#}"), "see /dev/fuse and fusermount3 above").needed()]
        }
    }
}

fn passthrough(path: DataPath) -> Finding {
    match path {
        DataPath::Passthrough { why_not } if why_not.is_empty() => {
            Finding::yes(PASSTHROUGH, "works: the kernel reads cached files by itself")
        }
        DataPath::Passthrough { why_not: why } | DataPath::PageCache { why } => Finding::no(
            PASSTHROUGH,
            why,
            "cached files are served by the daemon and the page cache: slower where they are read for the first time",
        ),
    }
}

fn probe(scratch: &Scratch) -> anyhow::Result<DataPath> {
    let fs = FsConfig::Dir(DirConfig { source: scratch.path("source") });
    let config = MountConfig { mountpoint: scratch.path("mount"), options: MountOptions::default(), fs };
    let built = hither_stack::build(&config)?;
    let session = hither_fuse::mount(built.fs.clone(), &built.mountpoint, &hither_fuse::Options::default())
        .map_err(of_mounting)?;
    let read = fs::read(scratch.path("mount/file")).context("cannot read a file through the mount");
    let stats = session.stats();
    end(&session)?;
    if read? != CONTENT {
        bail!("a file read through the mount has other bytes");
    }
    match stats.data_path {
        DataPath::Passthrough { why_not } if why_not.is_empty() && stats.opens_passthrough == 0 => {
            Ok(DataPath::Passthrough { why_not: "the kernel agreed to it and did not do it".to_owned() })
        }
        path => Ok(path),
    }
}

fn end(session: &Session) -> anyhow::Result<()> {
    if session.unmount(Unmount::IfUnused).is_err() {
        // Something indexes new mounts, perhaps.
        session.unmount(Unmount::Lazily).map_err(of_mounting)?;
    }
    session.join();
    Ok(())
}

const CONTENT: &[u8] = b"hither doctor";

/// A directory of our own with a source and a mount point; removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> anyhow::Result<Self> {
        let name = format!("hither-doctor-{}-{:x}", std::process::id(), hither_rt::random::u64());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let scratch = Scratch(path);
        fs::create_dir(scratch.path("source"))?;
        fs::create_dir(scratch.path("mount"))?;
        fs::write(scratch.path("source/file"), CONTENT)?;
        Ok(scratch)
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.join(below)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // One by one: a mount that could not be taken away must not be emptied.
        let _ = fs::remove_file(self.path("source/file"));
        for directory in ["source", "mount", ""] {
            let _ = fs::remove_dir(Path::new(&self.0).join(directory));
        }
    }
}
