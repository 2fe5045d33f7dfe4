//! Which files are read: all of a tree, or, of one that would take too long, some of its directories.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// How much to read at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Files and whatever else has a name.
    pub files: u64,
    /// Of regular files.
    pub bytes: u64,
}

/// A part of a tree.
#[derive(Debug, PartialEq, Eq)]
pub struct Sample {
    /// Relative to the tree's root; what is below them belongs to it.
    pub paths: Vec<PathBuf>,
    /// Names in it.
    pub files: u64,
    /// Of regular files.
    pub bytes: u64,
    is_whole: bool,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (files, mib) = (self.files, self.bytes as f64 / (1 << 20) as f64);
        write!(f, "{} {files} files ({mib:.0} MiB)", if self.is_whole { "all" } else { "some" })
    }
}

impl Sample {
    /// As much of the tree at `root` as the budget allows: whole directories, in the order of their names.
    pub fn of(root: &Path, limit: Budget) -> anyhow::Result<Sample> {
        let mut left = limit;
        let mut sample = Sample { paths: Vec::new(), files: 0, bytes: 0, is_whole: true };
        if let Some(used) = count(root, limit)? {
            sample.take(PathBuf::from("."), used);
            return Ok(sample);
        }
        sample.is_whole = false;
        sample.pick(root, Path::new(""), &mut left)?;
        Ok(sample)
    }

    /// Takes what fits of the directory at `root/below`; goes into those that do not fit while there is much left.
    fn pick(&mut self, root: &Path, below: &Path, left: &mut Budget) -> anyhow::Result<()> {
        let much = left.files / 2;
        let mut too_big = Vec::new();
        for (path, is_dir) in children(&root.join(below))? {
            let Some(name) = path.file_name() else { continue };
            match count(&path, *left)? {
                Some(used) => {
                    left.files -= used.files;
                    left.bytes -= used.bytes;
                    self.take(below.join(name), used);
                }
                None if is_dir => too_big.push(below.join(name)),
                None => {}
            }
        }
        for path in too_big {
            if left.files > much {
                self.pick(root, &path, left)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, path: PathBuf, used: Budget) {
        self.paths.push(path);
        self.files += used.files;
        self.bytes += used.bytes;
    }
}

/// A tree of this machine with at least so many files: the sources that cargo has fetched, or what Debian installs.
pub fn tree_of_this_machine(files_min: u64) -> anyhow::Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let sources = home.map(|home| home.join("registry/src"));
    let candidates = sources.into_iter().chain(["/usr/share", "/usr/include", "/usr/lib"].map(PathBuf::from));
    let enough = Budget { files: files_min, bytes: u64::MAX };
    for tree in candidates.filter(|tree| tree.is_dir()) {
        if count(&tree, enough)?.is_none() {
            return tree.canonicalize().with_context(|| format!("cannot reach {}", tree.display()));
        }
    }
    anyhow::bail!("found no tree of {files_min} files on this machine: name one, as in ./dev run ORIGIN")
}

/// What is at `path`, if it is within the budget.
fn count(path: &Path, limit: Budget) -> anyhow::Result<Option<Budget>> {
    let mut used = Budget { files: 0, bytes: 0 };
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        let metadata =
            fs::symlink_metadata(&path).with_context(|| format!("cannot see {}", path.display()))?;
        used.files += 1;
        if metadata.is_file() {
            used.bytes += metadata.len();
        }
        if used.files > limit.files || used.bytes > limit.bytes {
            return Ok(None);
        }
        if metadata.is_dir() {
            pending.extend(children(&path)?.into_iter().map(|(path, _)| path));
        }
    }
    Ok(Some(used))
}

/// What is in a directory, by name, and which of it are directories.
fn children(dir: &Path) -> anyhow::Result<Vec<(PathBuf, bool)>> {
    let list = || -> std::io::Result<Vec<(PathBuf, bool)>> {
        fs::read_dir(dir)?
            .map(|entry| entry.and_then(|entry| Ok((entry.path(), entry.file_type()?.is_dir()))))
            .collect()
    };
    let mut children = list().with_context(|| format!("cannot list {}", dir.display()))?;
    children.sort();
    Ok(children)
}

#[cfg(test)]
mod tests {
    use super::{Budget, Sample, count};
    use std::fs;
    use std::path::PathBuf;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (sub, files) in [("a", 3), ("b", 10), ("c/d", 2)] {
            fs::create_dir_all(dir.path().join(sub)).unwrap();
            for file in 0..files {
                fs::write(dir.path().join(sub).join(file.to_string()), [0; 10]).unwrap();
            }
        }
        dir
    }

    #[test]
    fn a_tree_within_the_budget_is_taken_whole() {
        let sample = Sample::of(tree().path(), Budget { files: 20, bytes: 150 }).unwrap();
        assert_eq!(
            (sample.paths.as_slice(), sample.files, sample.bytes),
            (&[PathBuf::from(".")][..], 20, 150)
        );
        assert_eq!(sample.to_string(), "all 20 files (0 MiB)");
    }

    #[test]
    fn of_a_larger_one_whole_directories_are_taken() {
        let sample = Sample::of(tree().path(), Budget { files: 9, bytes: 1000 }).unwrap();
        assert_eq!((sample.paths.as_slice(), sample.files), (&["a".into(), "c".into()][..], 8));
        // By bytes: `a` would be 30.
        let sample = Sample::of(tree().path(), Budget { files: 9, bytes: 29 }).unwrap();
        assert_eq!((sample.paths.as_slice(), sample.bytes), (&["c".into()][..], 20));
        // No directory fits: some files of the first.
        let sample = Sample::of(tree().path(), Budget { files: 2, bytes: 1000 }).unwrap();
        assert_eq!(sample.paths, [PathBuf::from("a/0"), "a/1".into()]);
    }

    #[test]
    fn counting_stops_at_the_budget() {
        let tree = tree();
        assert_eq!(count(tree.path(), Budget { files: 19, bytes: 1000 }).unwrap(), None);
        assert_eq!(count(tree.path(), Budget { files: 20, bytes: 149 }).unwrap(), None);
    }
}
