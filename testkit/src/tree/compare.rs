//! Comparing two trees, completely.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes compared at a time.
const BLOCK_BYTES: usize = 256 * 1024;

/// Longest list of names or value of an extended attribute.
const XATTR_MAX: usize = 64 * 1024;

/// What of two trees is to be equal, besides names, types, bytes and targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aspects {
    /// Permission bits.
    pub modes: bool,
    /// Owner and group.
    pub owners: bool,
    /// Times of the last change of files (in nanoseconds), links and special files.
    pub times: bool,
    /// The same of directories.
    pub directory_times: bool,
    /// Extended attributes of the `user` namespace, and access lists.
    pub xattrs: bool,
    /// Which names are of one file.
    pub hard_links: bool,
}

impl Default for Aspects {
    fn default() -> Self {
        let all = true;
        Aspects { modes: all, owners: all, times: all, directory_times: all, xattrs: all, hard_links: all }
    }
}

/// How two trees differ in anything, a line a difference.
pub fn differences(one: &Path, other: &Path) -> io::Result<Vec<String>> {
    differences_in(one, other, Aspects::default())
}

/// How two trees differ in some aspects, a line a difference.
pub fn differences_in(one: &Path, other: &Path, aspects: Aspects) -> io::Result<Vec<String>> {
    let mut comparison = Comparison { one, other, aspects, lines: Vec::new(), links: BTreeMap::new() };
    comparison.directories(Path::new(""))?;
    Ok(comparison.lines)
}

struct Comparison<'a> {
    one: &'a Path,
    other: &'a Path,
    aspects: Aspects,
    lines: Vec<String>,
    /// For each inode with several names, of the one tree, which it is in the other.
    links: BTreeMap<(u64, u64), (u64, u64)>,
}

impl Comparison<'_> {
    fn differ(&mut self, path: &Path, what: &str) {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        self.lines.push(format!("{}: {what}", path.display()));
    }

    fn directories(&mut self, path: &Path) -> io::Result<()> {
        let (one, other) = (self.one.join(path), self.other.join(path));
        self.attributes(path, &fs::symlink_metadata(&one)?, &fs::symlink_metadata(&other)?)?;
        let (ours, theirs) = (names(&one)?, names(&other)?);
        for name in ours.difference(&theirs) {
            self.differ(&path.join(name), &format!("only in {}", self.one.display()));
        }
        for name in theirs.difference(&ours) {
            self.differ(&path.join(name), &format!("only in {}", self.other.display()));
        }
        for name in ours.intersection(&theirs) {
            self.entries(path.join(name))?;
        }
        Ok(())
    }

    fn entries(&mut self, path: PathBuf) -> io::Result<()> {
        let (one, other) = (self.one.join(&path), self.other.join(&path));
        let (ours, theirs) = (fs::symlink_metadata(&one)?, fs::symlink_metadata(&other)?);
        if ours.file_type() != theirs.file_type() {
            self.differ(&path, &format!("{} and {}", kind(&ours), kind(&theirs)));
            return Ok(());
        }
        if ours.is_dir() {
            return self.directories(&path);
        }
        self.attributes(&path, &ours, &theirs)?;
        if ours.is_symlink() {
            let (ours, theirs) = (fs::read_link(&one)?, fs::read_link(&other)?);
            if ours != theirs {
                self.differ(&path, &format!("leads to {} and {}", ours.display(), theirs.display()));
            }
        } else if ours.is_file() {
            self.bytes(&path, &ours, &theirs)?;
        } else if ours.rdev() != theirs.rdev() {
            self.differ(&path, &format!("device {} and {}", ours.rdev(), theirs.rdev()));
        }
        Ok(())
    }

    fn attributes(&mut self, path: &Path, ours: &Metadata, theirs: &Metadata) -> io::Result<()> {
        let aspects = self.aspects;
        let times = if ours.is_dir() { aspects.directory_times } else { aspects.times };
        if aspects.modes && ours.mode() != theirs.mode() {
            self.differ(path, &format!("mode {:o} and {:o}", ours.mode(), theirs.mode()));
        }
        if aspects.owners && (ours.uid(), ours.gid()) != (theirs.uid(), theirs.gid()) {
            let owners = (ours.uid(), ours.gid(), theirs.uid(), theirs.gid());
            self.differ(path, &format!("owner {}:{} and {}:{}", owners.0, owners.1, owners.2, owners.3));
        }
        let time = |metadata: &Metadata| (metadata.mtime(), metadata.mtime_nsec());
        if times && time(ours) != time(theirs) {
            self.differ(path, &format!("mtime {:?} and {:?}", time(ours), time(theirs)));
        }
        if aspects.hard_links && !ours.is_dir() {
            self.names_of_one_file(path, ours, theirs);
        }
        if aspects.xattrs {
            let (ours, theirs) = (xattrs(&self.one.join(path))?, xattrs(&self.other.join(path))?);
            if ours != theirs {
                let keys = |xattrs: &BTreeMap<Vec<u8>, Vec<u8>>| -> Vec<String> {
                    xattrs.keys().map(|key| String::from_utf8_lossy(key).into_owned()).collect()
                };
                self.differ(path, &format!("xattrs {:?} and {:?}", keys(&ours), keys(&theirs)));
            }
        }
        Ok(())
    }

    fn names_of_one_file(&mut self, path: &Path, ours: &Metadata, theirs: &Metadata) {
        if ours.nlink() != theirs.nlink() {
            self.differ(path, &format!("{} and {} links", ours.nlink(), theirs.nlink()));
        }
        if ours.nlink() > 1 {
            let (inode, there) = ((ours.dev(), ours.ino()), (theirs.dev(), theirs.ino()));
            if *self.links.entry(inode).or_insert(there) != there {
                self.differ(path, "is another file than its other links are");
            }
        }
    }

    fn bytes(&mut self, path: &Path, ours: &Metadata, theirs: &Metadata) -> io::Result<()> {
        if ours.len() != theirs.len() {
            self.differ(path, &format!("{} and {} bytes", ours.len(), theirs.len()));
            return Ok(());
        }
        let (mut one, mut other) = (File::open(self.one.join(path))?, File::open(self.other.join(path))?);
        let (mut mine, mut yours) = (vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]);
        let mut at = 0;
        loop {
            let got = read_full(&mut one, &mut mine)?;
            let there = read_full(&mut other, &mut yours)?;
            if got != there || mine[..got] != yours[..there] {
                let same = mine[..got].iter().zip(&yours[..there]).take_while(|(one, other)| one == other);
                self.differ(path, &format!("bytes differ from {}", at + same.count()));
                return Ok(());
            }
            if got == 0 {
                return Ok(());
            }
            at += got;
        }
    }
}

fn read_full(file: &mut File, buf: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match file.read(&mut buf[done..])? {
            0 => break,
            got => done += got,
        }
    }
    Ok(done)
}

fn names(directory: &Path) -> io::Result<BTreeSet<OsString>> {
    fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
}

fn kind(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_file() => "a file",
        () if kind.is_symlink() => "a symbolic link",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

fn xattrs(path: &Path) -> io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut buf = vec![0; XATTR_MAX];
    let length = match rustix::fs::llistxattr(path, &mut buf[..]) {
        Ok(length) => length,
        Err(rustix::io::Errno::OPNOTSUPP) => 0,
        Err(errno) => return Err(errno.into()),
    };
    let names: Vec<Vec<u8>> = buf[..length].split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
    let wanted = |name: &Vec<u8>| name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_");
    let mut found = BTreeMap::new();
    for name in names.into_iter().filter(wanted) {
        let length = rustix::fs::lgetxattr(path, name.as_slice(), &mut buf[..])?;
        found.insert(name, buf[..length].to_vec());
    }
    Ok(found)
}
