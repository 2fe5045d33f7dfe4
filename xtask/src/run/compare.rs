//! Whether two trees are the same: names, types, modes, owners, sizes, modification times, targets and every byte.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

/// What was found equal.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Compared {
    files: u64,
    bytes: u64,
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} names with {} bytes", self.files, self.bytes)
    }
}

/// Compares what is at `paths` below `left` and `right`; the first difference is an error.
pub fn trees(left: &Path, right: &Path, paths: &[PathBuf]) -> anyhow::Result<Compared> {
    let mut compared = Compared::default();
    let mut pending = paths.to_vec();
    while let Some(path) = pending.pop() {
        let differs = || path.display().to_string();
        let (left, right) = (left.join(&path), right.join(&path));
        let (one, other) = (metadata(&left)?, metadata(&right)?);
        ensure!(attributes(&one) == attributes(&other), "{}: attributes differ", differs());
        compared.files += 1;
        if one.is_symlink() {
            ensure!(fs::read_link(&left)? == fs::read_link(&right)?, "{}: targets differ", differs());
        } else if one.is_dir() {
            let names = names(&left)?;
            ensure!(names == self::names(&right)?, "{}: names in it differ", differs());
            pending.extend(names.into_iter().map(|name| path.join(name)));
        } else if one.is_file() {
            let bytes = contents(&left, &right).with_context(differs)?;
            ensure!(bytes == one.len(), "{}: {bytes} bytes read, of {}", differs(), one.len());
            compared.bytes += bytes;
        }
    }
    Ok(compared)
}

fn metadata(path: &Path) -> anyhow::Result<Metadata> {
    fs::symlink_metadata(path).with_context(|| format!("cannot see {}", path.display()))
}

/// What must be equal of any file. (A directory's size and links are its file system's own affair.)
fn attributes(of: &Metadata) -> ([u32; 3], [i64; 2], Option<[u64; 2]>) {
    let of_file = (!of.is_dir()).then(|| [of.len(), of.nlink()]);
    ([of.mode(), of.uid(), of.gid()], [of.mtime(), of.mtime_nsec()], of_file)
}

fn names(dir: &Path) -> anyhow::Result<BTreeSet<std::ffi::OsString>> {
    let list = || fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<_>>();
    list().with_context(|| format!("cannot list {}", dir.display()))
}

/// Reads both and gives how many bytes are equal; an error at the first that is not.
fn contents(left: &Path, right: &Path) -> anyhow::Result<u64> {
    let open = |path: &Path| File::open(path).with_context(|| format!("cannot open {}", path.display()));
    let (mut left, mut right) = (open(left)?, open(right)?);
    let (mut one, mut other) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    let mut at = 0;
    loop {
        let (got_one, got_other) = (fill(&mut left, &mut one)?, fill(&mut right, &mut other)?);
        ensure!(one[..got_one] == other[..got_other], "bytes from {at} on differ");
        if got_one == 0 {
            return Ok(at);
        }
        at += got_one as u64;
    }
}

/// Reads until the buffer is full or the file ends.
pub fn fill(from: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::{Compared, trees};
    use std::fs::{self, File};
    use std::path::Path;
    use std::time::SystemTime;

    const OLD: SystemTime = SystemTime::UNIX_EPOCH;

    fn write(path: &Path, bytes: &[u8]) {
        fs::write(path, bytes).unwrap();
        File::options().append(true).open(path).unwrap().set_modified(OLD).unwrap();
    }

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("d")).unwrap();
        write(&dir.path().join("d/f"), &[7; 3 << 20]);
        std::os::unix::fs::symlink("f", dir.path().join("d/l")).unwrap();
        fs::remove_file(dir.path().join("d/l")).unwrap();
        File::open(dir.path().join("d")).unwrap().set_modified(OLD).unwrap();
        dir
    }

    #[test]
    fn equal_trees_are_counted_and_each_difference_is_named() {
        let (left, right) = (tree(), tree());
        let compare =
            || trees(left.path(), right.path(), &["d".into()]).map_err(|error| format!("{error:#}"));
        assert_eq!(compare(), Ok(Compared { files: 2, bytes: 3 << 20 }));
        let file = right.path().join("d/f");
        let mut bytes = vec![7; 3 << 20];
        bytes[2 << 20] = 8;
        write(&file, &bytes);
        assert_eq!(compare(), Err("d/f: bytes from 2097152 on differ".to_owned()));
        write(&file, &bytes[..5]);
        assert_eq!(compare(), Err("d/f: attributes differ".to_owned()));
        fs::rename(&file, right.path().join("d/g")).unwrap();
        File::open(right.path().join("d")).unwrap().set_modified(OLD).unwrap();
        assert_eq!(compare(), Err("d: names in it differ".to_owned()));
    }
}
