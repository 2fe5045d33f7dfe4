//! What `run` leaves behind and `stop` takes away: a mounted cache, its store, and the slow origin below it.
//!
//! It is written down in the target folder, so that a run that was interrupted can be stopped as well.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::process;

/// A mounted cache.
#[derive(Debug, Serialize, Deserialize)]
pub struct View {
    /// What is shown.
    pub source: PathBuf,
    /// Where it is shown.
    pub mountpoint: PathBuf,
    /// What the cache has as its origin: the source, or the slow mount of it.
    pub origin: PathBuf,
    /// The round trip of the slow origin, if there is one.
    pub rtt_us: Option<u32>,
    /// The mount point was made by us.
    made_mountpoint: bool,
    /// Ours alone: the store, the slow origin's mount point and log.
    folder: PathBuf,
    /// Where the release build puts programs.
    programs: PathBuf,
}

impl View {
    /// Mounts the slow origin, if it is to be slow, and the cache above it.
    pub fn begin(
        root: &Path,
        source: &Path,
        mountpoint: Option<&Path>,
        rtt_us: Option<u32>,
    ) -> anyhow::Result<View> {
        let folder = std::env::temp_dir().join(format!("hither-run-{}", std::process::id()));
        let mountpoint = match mountpoint {
            Some(path) => std::path::absolute(path).context("where is this folder?")?,
            None => folder.join("view"),
        };
        let view = View {
            source: source.to_owned(),
            origin: if rtt_us.is_some() { folder.join("origin") } else { source.to_owned() },
            made_mountpoint: !mountpoint.exists(),
            mountpoint,
            rtt_us,
            programs: target(root).join("release"),
            folder,
        };
        fs::create_dir_all(target(root))?;
        fs::write(record(root), toml::to_string(&view)?).context("cannot note what is mounted")?;
        match view.mount() {
            Ok(()) => Ok(view),
            Err(error) => {
                let _ = view.end(root);
                Err(error)
            }
        }
    }

    fn mount(&self) -> anyhow::Result<()> {
        let cannot = || format!("cannot make a folder in {}", self.folder.display());
        let private = |path: &Path| fs::DirBuilder::new().mode(0o700).create(path).with_context(cannot);
        private(&self.folder)?;
        if self.made_mountpoint {
            fs::create_dir_all(&self.mountpoint)
                .with_context(|| format!("cannot make {}", self.mountpoint.display()))?;
        }
        if let Some(rtt_us) = self.rtt_us {
            private(&self.origin)?;
            self.start_origin(rtt_us)?;
        }
        let mut mount = self.hither();
        mount.args(["mount", "cache", "--origin"]).arg(&self.origin);
        mount.arg("--store").arg(self.folder.join("store"));
        if self.rtt_us.is_some() {
            // What a program writes there would land in a tree of the machine that nobody named.
            mount.args(["--read-only", "--revalidate", "60s"]);
        }
        process::run(mount.arg(&self.mountpoint))
    }

    /// Starts the slow origin; it outlives us.
    fn start_origin(&self, rtt_us: u32) -> anyhow::Result<()> {
        let log = fs::File::create(self.origin_log()).context("cannot make a log")?;
        let mut origin = Command::new(self.programs.join("slow-origin"));
        origin.args(["--stay", "--read-only", "--rtt-us"]).arg(rtt_us.to_string());
        origin.arg(&self.source).arg(&self.origin);
        origin.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).process_group(0);
        let mut origin = origin.spawn().context("cannot start the slow origin")?;
        let mut line = String::new();
        let stdout = origin.stdout.take().context("no pipe")?;
        BufReader::new(stdout).read_line(&mut line).context("the slow origin says nothing")?;
        if line != "ready\n" {
            let log = fs::read_to_string(self.origin_log()).unwrap_or_default();
            anyhow::bail!("the slow origin does not start: {}", log.trim());
        }
        Ok(())
    }

    /// The `hither` command that belongs to it.
    pub fn hither(&self) -> Command {
        Command::new(self.programs.join("hither"))
    }

    /// Takes all of it away: the cache, its copies, the slow origin.
    pub fn end(&self, root: &Path) -> anyhow::Result<()> {
        if is_mounted(&self.mountpoint)? {
            process::run(self.hither().arg("umount").arg(&self.mountpoint))?;
        }
        if self.rtt_us.is_some() && is_mounted(&self.origin)? {
            // It ends when it is unmounted.
            process::run(Command::new("fusermount3").arg("-u").arg(&self.origin))?;
        }
        // What may have been a mount point is removed as an empty directory only: nothing below it was ours.
        let store = self.folder.join("store");
        if store.exists() {
            fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
        }
        let _ = fs::remove_file(self.origin_log());
        if self.rtt_us.is_some() {
            let _ = fs::remove_dir(&self.origin);
        }
        if self.made_mountpoint {
            let _ = fs::remove_dir(&self.mountpoint);
        }
        let _ = fs::remove_dir(&self.folder);
        fs::remove_file(record(root)).context("cannot forget what was mounted")
    }

    fn origin_log(&self) -> PathBuf {
        self.folder.join("origin.log")
    }
}

/// An error if a view is there already.
pub fn refuse_second(root: &Path) -> anyhow::Result<()> {
    let Some(view) = recorded(root)? else { return Ok(()) };
    anyhow::bail!(
        "{} is still shown at {}: run ./dev stop first",
        view.source.display(),
        view.mountpoint.display()
    )
}

/// The view that was left behind, if there is one.
pub fn recorded(root: &Path) -> anyhow::Result<Option<View>> {
    let record = record(root);
    match fs::read_to_string(&record) {
        Ok(text) => {
            toml::from_str(&text).map(Some).with_context(|| format!("cannot read {}", record.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", record.display())),
    }
}

fn record(root: &Path) -> PathBuf {
    target(root).join("dev-run.toml")
}

/// Where cargo builds.
fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target))
}

/// Whether something is mounted just there. Does not touch the mount, which may be dead.
fn is_mounted(path: &Path) -> anyhow::Result<bool> {
    let mounts = fs::read("/proc/self/mountinfo").context("cannot read /proc/self/mountinfo")?;
    Ok(mounts.split(|&byte| byte == b'\n').any(|line| mountpoint(line).as_deref() == Some(path)))
}

/// The mount point in a line of mountinfo: its fifth word, with some bytes in octal.
fn mountpoint(line: &[u8]) -> Option<PathBuf> {
    let word = line.split(|&byte| byte == b' ').nth(4)?;
    let mut path = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.filter(|_| byte == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) => {
                path.push(escaped);
                rest = &after[3..];
            }
            None => {
                path.push(byte);
                rest = after;
            }
        }
    }
    Some(PathBuf::from(std::ffi::OsString::from_vec(path)))
}

#[cfg(test)]
mod tests {
    use super::{View, is_mounted, mountpoint, recorded, refuse_second};
    use std::fs;
    use std::path::Path;

    #[test]
    fn mount_points_with_spaces_are_recognised() {
        let line = br"36 25 0:31 / /mnt/a\040b\134c rw,nosuid - fuse.hither src rw";
        assert_eq!(mountpoint(line).unwrap(), Path::new(r"/mnt/a b\c"));
        assert!(is_mounted(Path::new("/proc")).unwrap());
        assert!(!is_mounted(Path::new("/proc/self")).unwrap());
    }

    #[test]
    fn stopping_removes_the_copies_and_never_what_is_below_a_mount_point() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("run");
        fs::create_dir_all(folder.join("store/copies")).unwrap();
        // As if the cache were still mounted there.
        fs::create_dir_all(folder.join("view/precious")).unwrap();
        let view = View {
            source: "/src".into(),
            mountpoint: folder.join("view"),
            origin: "/src".into(),
            rtt_us: None,
            made_mountpoint: true,
            folder: folder.clone(),
            programs: "/nowhere".into(),
        };
        fs::create_dir_all(root.path().join("target")).unwrap();
        assert!(recorded(root.path()).unwrap().is_none());
        fs::write(super::record(root.path()), toml::to_string(&view).unwrap()).unwrap();
        let error = refuse_second(root.path()).unwrap_err().to_string();
        assert!(error.contains("./dev stop"), "{error}");
        recorded(root.path()).unwrap().unwrap().end(root.path()).unwrap();
        assert!(!folder.join("store").exists());
        assert!(folder.join("view/precious").exists());
        assert!(recorded(root.path()).unwrap().is_none());
    }
}
