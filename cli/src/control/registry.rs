//! Which mounts there are: a small file beside each mount's control socket, in a directory of its owner.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::protocol::WirePath;

/// The directory of root's mounts.
const SYSTEM: &str = "/run/hither";

/// More than an entry takes; files of other people are read only so far.
const MAX_ENTRY: u64 = 32 << 10;

/// What is known of a running mount without asking it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its daemon.
    pub pid: u32,
    /// Where it is.
    pub mountpoint: WirePath,
    /// `major:minor` of the mounted file system.
    pub device: String,
    /// Where it listens.
    pub socket: WirePath,
    /// `cache` or `dir`.
    pub kind: String,
    /// Who owns the file that says so.
    #[serde(skip)]
    pub owner: u32,
}

/// The entry of this process; it is taken back when dropped.
#[derive(Debug)]
pub struct Registration {
    entry: PathBuf,
    socket: PathBuf,
}

impl Registration {
    /// Where this process is to listen; the directory is made.
    pub fn socket_path() -> anyhow::Result<PathBuf> {
        Ok(own_directory()?.join(format!("{}.socket", std::process::id())))
    }

    /// Publishes a mount whose socket listens already; clears away what killed daemons left.
    pub fn publish(entry: &Entry) -> anyhow::Result<Self> {
        let directory = own_directory()?;
        let left = children(&directory).into_iter().filter_map(|path| read(&path));
        left.filter(|left| !is_heard(left)).for_each(|left| forget(&left));
        let path = directory.join(format!("{}.json", std::process::id()));
        let new = directory.join(format!("{}.new", std::process::id()));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o644).open(&new)?;
        file.write_all(&serde_json::to_vec(entry)?)?;
        fs::rename(&new, &path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Registration { entry: path, socket: entry.socket.0.clone() })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        for path in [&self.entry, &self.socket] {
            // What stays behind is recognised by its dead socket.
            let _ = fs::remove_file(path);
        }
    }
}

/// The directory in which this user's mounts are listed, made if it is missing and refused if it is somebody else's.
pub fn own_directory() -> anyhow::Result<PathBuf> {
    let (path, mode) = match geteuid().as_raw() {
        0 => (PathBuf::from(SYSTEM), 0o755),
        uid => (user_directory(uid), 0o700),
    };
    match DirBuilder::new().mode(mode).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| format!("cannot make {}", path.display()));
        }
        _ => {}
    }
    let found = fs::symlink_metadata(&path).with_context(|| format!("cannot look at {}", path.display()))?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
        bail!("{} is not a directory that only you can write to: remove it", path.display());
    }
    Ok(path)
}

fn user_directory(uid: u32) -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute()) {
        Some(runtime) => runtime.join("hither"),
        None => PathBuf::from(format!("/tmp/hither-{uid}")),
    }
}

/// Every mount that this user may know of. What cannot be read or understood is none.
pub fn list() -> Vec<Entry> {
    let mut directories = vec![PathBuf::from(SYSTEM)];
    match geteuid().as_raw() {
        0 => {
            directories.extend(children(Path::new("/run/user")).into_iter().map(|path| path.join("hither")));
            directories.extend(children(Path::new("/tmp")).into_iter().filter(|path| {
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("hither-"))
            }));
        }
        uid => directories.push(user_directory(uid)),
    }
    let files = directories.iter().flat_map(|directory| children(directory));
    let mut entries: Vec<Entry> = files.filter_map(|path| read(&path)).collect();
    entries.sort_by(|a, b| a.mountpoint.0.cmp(&b.mountpoint.0));
    entries
}

fn children(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn read(path: &Path) -> Option<Entry> {
    if path.extension()? != "json" {
        return None;
    }
    // It may be in a directory of somebody else: no link is followed, no FIFO waited for.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let found = file.metadata().ok().filter(fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    File::take(file, MAX_ENTRY).read_to_end(&mut bytes).ok()?;
    let entry: Entry = serde_json::from_slice(&bytes).ok()?;
    Some(Entry { owner: found.uid(), ..entry })
}

/// Whether somebody listens at a socket. (A published one listens until its process ends.)
fn is_heard(entry: &Entry) -> bool {
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    !UnixStream::connect(&entry.socket.0).is_err_and(refused)
}

/// Removes what a killed daemon left: the entry and the socket of `entry`, where they are ours to remove.
pub fn forget(entry: &Entry) {
    let socket = &entry.socket.0;
    let of_pid = socket.file_stem().is_some_and(|stem| stem == entry.pid.to_string().as_str());
    let ours = own_directory().is_ok_and(|own| socket.parent() == Some(&own));
    if of_pid && ours {
        drop(Registration { entry: socket.with_extension("json"), socket: socket.clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_of_the_right_form_are_entries() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let entry = Entry {
            pid: 7,
            mountpoint: WirePath("/m".into()),
            device: "0:1".into(),
            socket: WirePath("/s".into()),
            kind: "dir".into(),
            owner: geteuid().as_raw(),
        };
        fs::write(path("7.json"), serde_json::to_vec(&entry).unwrap()).unwrap();
        assert_eq!(read(&path("7.json")), Some(entry));
        fs::write(path("8.json"), "{\"pid\":8}").unwrap();
        fs::write(path("9.socket"), "").unwrap();
        std::os::unix::fs::symlink(path("7.json"), path("10.json")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("11.json"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        for name in ["8.json", "9.socket", "10.json", "11.json", "12.json"] {
            assert_eq!(read(&path(name)), None, "{name}");
        }
    }
}
