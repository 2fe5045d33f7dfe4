//! Everything that a tree shows, to compare two views of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

/// What one name shows. Inode numbers are compared as groups of names: `same_as` is the first name of the inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    kind: &'static str,
    mode: u32,
    uid: u32,
    gid: u32,
    nlink: u64,
    size: u64,
    rdev: u64,
    mtime: (i64, i64),
    same_as: PathBuf,
    content: Content,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    None,
    Link(PathBuf),
    Digest(u64),
}

/// A tree, by path below its root (the root itself is left out).
pub type Tree = BTreeMap<PathBuf, Seen>;

/// Looks at everything below `root`.
///
/// # Errors
/// Something cannot be read: the path is named.
pub fn look(root: &Path) -> io::Result<Tree> {
    let mut tree = Tree::new();
    let mut first_names = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let mut names: Vec<OsString> = Vec::new();
        for entry in fs::read_dir(root.join(&folder)).map_err(|error| named(error, &folder))? {
            names.push(entry.map_err(|error| named(error, &folder))?.file_name());
        }
        names.sort();
        for name in names {
            let path = folder.join(name);
            let full = root.join(&path);
            let metadata = fs::symlink_metadata(&full).map_err(|error| named(error, &path))?;
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            let first = first_names.entry(metadata.ino()).or_insert_with(|| path.clone()).clone();
            let seen = see(&full, &metadata, first).map_err(|error| named(error, &path))?;
            tree.insert(path, seen);
        }
    }
    Ok(tree)
}

fn named(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn see(path: &Path, metadata: &Metadata, same_as: PathBuf) -> io::Result<Seen> {
    let file_type = metadata.file_type();
    let (kind, content) = if file_type.is_dir() {
        ("directory", Content::None)
    } else if file_type.is_symlink() {
        ("link", Content::Link(fs::read_link(path)?))
    } else if file_type.is_file() {
        ("file", Content::Digest(digest(&mut File::open(path)?)?))
    } else if file_type.is_fifo() {
        ("fifo", Content::None)
    } else if file_type.is_socket() {
        ("socket", Content::None)
    } else {
        ("device", Content::None)
    };
    Ok(Seen {
        kind,
        mode: metadata.mode(),
        uid: metadata.uid(),
        gid: metadata.gid(),
        nlink: metadata.nlink(),
        size: metadata.size(),
        rdev: metadata.rdev(),
        mtime: (metadata.mtime(), metadata.mtime_nsec()),
        same_as,
        content,
        xattrs: xattrs(path)?,
    })
}

/// A checksum of what is left of a file.
///
/// # Errors
/// It cannot be read.
pub fn digest(file: &mut File) -> io::Result<u64> {
    let mut hasher = Xxh3::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.digest()),
            count => hasher.update(buffer.get(..count).unwrap_or_default()),
        }
    }
}

fn xattrs(path: &Path) -> io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut names = vec![0; 64 << 10];
    let count = rustix::fs::llistxattr(path, &mut names)?;
    names.truncate(count);
    let mut found = BTreeMap::new();
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 64 << 10];
        let count = rustix::fs::lgetxattr(path, OsString::from_vec(name.to_vec()).as_bytes(), &mut value)?;
        value.truncate(count);
        found.insert(name.to_vec(), value);
    }
    Ok(found)
}

/// What differs, a line each: at most `LINES_MAX` of them.
pub fn differences(one: &Tree, other: &Tree) -> Vec<String> {
    const LINES_MAX: usize = 20;
    let mut lines = Vec::new();
    let paths: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
    for path in paths {
        match (one.get(path), other.get(path)) {
            (Some(one), Some(other)) if one == other => {}
            (Some(one), Some(other)) => lines.push(format!("{}: {one:?}, but {other:?}", path.display())),
            (Some(_), None) => lines.push(format!("{}: only in the first", path.display())),
            (None, _) => lines.push(format!("{}: only in the second", path.display())),
        }
    }
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push(format!("and {more} more"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{differences, look};
    use std::fs;

    #[test]
    fn what_differs_is_named() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let time = std::time::SystemTime::UNIX_EPOCH;
        for folder in &folders {
            for name in ["same", "bytes", "link", "mode"] {
                let file = fs::File::create(folder.path().join(name)).unwrap();
                file.set_modified(time).unwrap();
            }
        }
        let trees = || folders.each_ref().map(|folder| look(folder.path()).unwrap());
        let [one, other] = trees();
        assert!(one.len() == 4 && differences(&one, &other).is_empty());

        let second = folders[1].path();
        fs::write(second.join("bytes"), "x").unwrap();
        fs::File::open(second.join("bytes")).unwrap().set_modified(time).unwrap();
        fs::remove_file(second.join("link")).unwrap();
        fs::hard_link(second.join("same"), second.join("link")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(second.join("mode"), mode).unwrap();
        let [one, other] = trees();
        let found = differences(&one, &other);
        let names: Vec<_> = found.iter().map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!(names, ["bytes", "link", "mode", "same"], "{found:#?}");
    }
}
