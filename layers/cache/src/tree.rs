//! Finding files by path, and all files below a path.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use hither_vfs::{Attr, Call, DirEntry, DirSink, Entry, Errno, Error, FileKind, Node, Result};

use crate::cache::Cache;
use crate::node::CacheNode;

/// What `access` asks of a directory. No kernel has checked it here, and what is remembered of names knows no callers.
const READ: u32 = 4;
const SEARCH: u32 = 1;

impl Cache {
    /// The node at a path below the root, found as the caller; symbolic links are not followed.
    pub(crate) fn at(&self, call: &Call, path: &Path) -> Result<(Arc<CacheNode>, Attr)> {
        let mut found = (self.root.clone(), self.root.getattr(call)?);
        for component in path.components() {
            let name = match component {
                Component::RootDir | Component::CurDir => continue,
                Component::Normal(name) => name,
                Component::ParentDir | Component::Prefix(_) => {
                    return Err(Error::with_cause(Errno::INVAL, "the path must not contain `..`"));
                }
            };
            found.0.access(call, SEARCH)?;
            let (node, attr, _) = found.0.find(call, name)?;
            found = (node, attr);
        }
        Ok(found)
    }

    /// Calls `visit` for each regular file at or below a path, in no order; directories that cannot be read go to `failed`.
    /// Ends when `visit` says `false`.
    pub(crate) fn each_file(
        &self,
        call: &Call,
        path: &Path,
        visit: &mut dyn FnMut(PathBuf, Arc<CacheNode>, Attr) -> bool,
        failed: &mut dyn FnMut(PathBuf, Error),
    ) -> Result<()> {
        let (node, attr) = self.at(call, path)?;
        let mut pending = vec![(path.to_owned(), node, attr)];
        while let Some((path, node, attr)) = pending.pop() {
            match attr.kind() {
                FileKind::Regular if visit(path.clone(), node.clone(), attr) => {}
                FileKind::Regular => return Ok(()),
                FileKind::Directory => match names(call, &node) {
                    Ok(names) => {
                        for name in names {
                            match node.find(call, &name) {
                                Ok((child, attr, _)) => pending.push((path.join(&name), child, attr)),
                                Err(error) if error == Errno::NOENT => {}
                                Err(error) => failed(path.join(&name), error),
                            }
                        }
                    }
                    Err(error) => failed(path, error),
                },
                _ => {}
            }
        }
        Ok(())
    }
}

fn names(call: &Call, directory: &CacheNode) -> Result<Vec<OsString>> {
    directory.access(call, READ | SEARCH)?;
    let mut names = Names(Vec::new());
    directory.opendir(call)?.read(call, 0, true, &mut names)?;
    Ok(names.0)
}

/// Collects directories and regular files.
struct Names(Vec<OsString>);

impl DirSink for Names {
    fn entry(&mut self, entry: DirEntry<'_>, _found: Option<Entry>) -> bool {
        let is_self = entry.name == OsStr::new(".") || entry.name == OsStr::new("..");
        if !is_self && matches!(entry.kind, FileKind::Regular | FileKind::Directory) {
            self.0.push(entry.name.to_owned());
        }
        true
    }
}
