//! Renaming: every kind over every kind, the flags, and what moves along.

use hither_vfs::{Errno, Identity, OFlags, RenameFlags};

use super::{Subject, Test, tests};
use crate::check::{Failure, Outcome, equal, holds, refused, refused_with_one_of};

pub(super) const TESTS: &[Test] = tests![
    every_kind_over_every_kind_in_one_directory,
    every_kind_over_every_kind_from_one_directory_to_another,
    a_directory_does_not_move_into_itself,
    a_directory_does_not_replace_its_ancestor,
    names_of_one_file_are_left_alone[HardLinks],
    a_name_renamed_to_itself_stays,
    noreplace_replaces_nothing,
    exchange_swaps_any_two[RenameExchange],
    exchange_needs_both[RenameExchange],
    exchange_does_not_make_a_circle[RenameExchange],
    contradicting_flags_are_refused,
    a_subtree_moves_along,
    opens_survive_a_rename,
    a_replaced_file_loses_one_name[HardLinks],
];

const NONE: RenameFlags = RenameFlags::empty();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thing {
    Nothing,
    File,
    EmptyDirectory,
    FullDirectory,
    Symlink,
    Fifo,
}

impl Thing {
    fn is_directory(self) -> bool {
        matches!(self, Thing::EmptyDirectory | Thing::FullDirectory)
    }

    /// Those that the file system can make.
    fn all(s: &Subject) -> Vec<Thing> {
        let can = s.fs.capabilities();
        let mut things = vec![Thing::Nothing, Thing::File, Thing::EmptyDirectory, Thing::FullDirectory];
        things.extend(can.symlinks.then_some(Thing::Symlink));
        things.extend(can.special_files.then_some(Thing::Fifo));
        things
    }

    fn make(self, s: &Subject, path: &str) -> Result<Option<Identity>, Failure> {
        let client = &s.client;
        match self {
            Thing::Nothing => return Ok(None),
            Thing::File => client.write(path, b"bytes")?,
            Thing::EmptyDirectory => drop(client.mkdir(path, 0o755)?),
            Thing::FullDirectory => {
                client.mkdir(path, 0o755)?;
                client.write(format!("{path}/inside"), b"")?;
            }
            Thing::Symlink => drop(client.symlink("target", path)?),
            Thing::Fifo => {
                let (parent, name) = client.parent(path)?;
                parent.mknod(client.call(), name, 0o010_600, 0)?;
            }
        }
        identity(s, path)
    }
}

fn identity(s: &Subject, path: &str) -> Result<Option<Identity>, Failure> {
    match s.client.lookup(path) {
        Ok(entry) => Ok(Some(entry.node.identity())),
        Err(error) if error == Errno::NOENT => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What `rename(2)` says to `old` over `new`; empty if it does it.
fn expected(old: Thing, new: Thing) -> &'static [Errno] {
    match (old, new) {
        (Thing::Nothing, _) => &[Errno::NOENT],
        (_, Thing::Nothing) => &[],
        (old, Thing::FullDirectory) if old.is_directory() => &[Errno::NOTEMPTY, Errno::EXIST],
        (old, new) if old.is_directory() && !new.is_directory() => &[Errno::NOTDIR],
        (old, new) if !old.is_directory() && new.is_directory() => &[Errno::ISDIR],
        _ => &[],
    }
}

fn matrix(s: &Subject, old_dir: &str, new_dir: &str) -> Outcome {
    for old in Thing::all(s) {
        for new in Thing::all(s) {
            let at = |dir: &str, name: &str| format!("{dir}/{name}.{old:?}.{new:?}");
            let (from, to) = (at(old_dir, "old"), at(new_dir, "new"));
            let (moving, there) = (old.make(s, &from)?, new.make(s, &to)?);
            let result = s.client.rename(&from, &to, NONE);
            let errnos = expected(old, new);
            let what = |failure: Failure| Failure::new(format!("{old:?} over {new:?}: {failure}"));
            if errnos.is_empty() {
                result.map_err(|error| what(error.into()))?;
                equal((identity(s, &from)?, identity(s, &to)?), (None, moving)).map_err(what)?;
            } else {
                refused_with_one_of(result, errnos).map_err(what)?;
                equal((identity(s, &from)?, identity(s, &to)?), (moving, there)).map_err(what)?;
            }
        }
    }
    Ok(())
}

fn every_kind_over_every_kind_in_one_directory(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    matrix(s, "d", "d")
}

fn every_kind_over_every_kind_from_one_directory_to_another(s: &Subject) -> Outcome {
    s.client.mkdir("a", 0o755)?;
    s.client.mkdir("a/b", 0o755)?;
    s.client.mkdir("c", 0o755)?;
    matrix(s, "a", "c")?;
    matrix(s, "a/b", "a")
}

fn a_directory_does_not_move_into_itself(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    s.client.mkdir("d/e", 0o755)?;
    s.client.mkdir("d/e/f", 0o755)?;
    for to in ["d/x", "d/e/x", "d/e/f/x"] {
        refused(s.client.rename("d", to, NONE), Errno::INVAL)?;
    }
    s.client.rename("d/e/f", "d/f", NONE)?;
    holds(identity(s, "d/f")?.is_some(), "out of itself it may move")
}

fn a_directory_does_not_replace_its_ancestor(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    s.client.mkdir("d/e", 0o755)?;
    s.client.mkdir("d/e/f", 0o755)?;
    for to in ["d", "d/e"] {
        refused_with_one_of(s.client.rename("d/e/f", to, NONE), &[Errno::NOTEMPTY, Errno::EXIST])?;
    }
    holds(identity(s, "d/e/f")?.is_some(), "it is where it was")
}

fn names_of_one_file_are_left_alone(s: &Subject) -> Outcome {
    s.client.write("f", b"bytes")?;
    s.client.mkdir("d", 0o755)?;
    s.client.link("f", "g")?;
    s.client.link("f", "d/h")?;
    s.client.rename("f", "g", NONE)?;
    s.client.rename("f", "d/h", NONE)?;
    equal(s.client.attr("f")?.nlink, 3)?;
    equal(identity(s, "g")?, identity(s, "d/h")?)?;
    refused(s.client.rename("f", "g", RenameFlags::NOREPLACE), Errno::EXIST)
}

fn a_name_renamed_to_itself_stays(s: &Subject) -> Outcome {
    s.client.write("f", b"bytes")?;
    s.client.mkdir("d", 0o755)?;
    s.client.write("d/f", b"")?;
    s.client.rename("f", "f", NONE)?;
    s.client.rename("d", "d", NONE)?;
    equal(s.client.read("f")?, b"bytes")?;
    equal(s.client.list("d")?.len(), 1)
}

fn noreplace_replaces_nothing(s: &Subject) -> Outcome {
    for (index, new) in Thing::all(s).into_iter().enumerate() {
        let (from, to) = (format!("f{index}"), format!("t{index}"));
        let moving = Thing::File.make(s, &from)?;
        let there = new.make(s, &to)?;
        let result = s.client.rename(&from, &to, RenameFlags::NOREPLACE);
        if new == Thing::Nothing {
            result?;
            equal(identity(s, &to)?, moving)?;
        } else {
            refused(result, Errno::EXIST)?;
            equal((identity(s, &from)?, identity(s, &to)?), (moving, there))?;
        }
    }
    refused(s.client.rename("missing", "new", RenameFlags::NOREPLACE), Errno::NOENT)
}

fn exchange_swaps_any_two(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    for old in Thing::all(s).into_iter().skip(1) {
        for new in Thing::all(s).into_iter().skip(1) {
            for dir in ["", "d/"] {
                let (from, to) =
                    (format!("a.{old:?}.{new:?}{}", dir.len()), format!("{dir}b.{old:?}.{new:?}"));
                let (one, two) = (old.make(s, &from)?, new.make(s, &to)?);
                s.client.rename(&from, &to, RenameFlags::EXCHANGE)?;
                equal((identity(s, &from)?, identity(s, &to)?), (two, one))?;
            }
        }
    }
    let subdirectories = |path: &str| -> Result<u32, Failure> {
        let listed = s.client.list(path)?;
        Ok(listed.iter().filter(|listed| listed.kind == hither_vfs::FileKind::Directory).count() as u32)
    };
    let nlink = s.client.attr("d")?.nlink;
    holds(nlink == 1 || nlink == 2 + subdirectories("d")?, "links of directories are counted")
}

fn exchange_needs_both(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    refused(s.client.rename("f", "missing", RenameFlags::EXCHANGE), Errno::NOENT)?;
    refused(s.client.rename("missing", "f", RenameFlags::EXCHANGE), Errno::NOENT)?;
    s.client.rename("f", "f", RenameFlags::EXCHANGE)?;
    equal(s.client.list("")?.len(), 1)
}

fn exchange_does_not_make_a_circle(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    s.client.mkdir("d/e", 0o755)?;
    s.client.write("d/e/f", b"")?;
    refused(s.client.rename("d", "d/e", RenameFlags::EXCHANGE), Errno::INVAL)?;
    refused(s.client.rename("d/e", "d", RenameFlags::EXCHANGE), Errno::INVAL)?;
    refused(s.client.rename("d/e/f", "d", RenameFlags::EXCHANGE), Errno::INVAL)?;
    holds(identity(s, "d/e/f")?.is_some(), "all is where it was")
}

fn contradicting_flags_are_refused(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    s.client.write("g", b"")?;
    refused(s.client.rename("f", "g", RenameFlags::NOREPLACE | RenameFlags::EXCHANGE), Errno::INVAL)
}

fn a_subtree_moves_along(s: &Subject) -> Outcome {
    s.client.mkdir("a", 0o755)?;
    s.client.mkdir("a/b", 0o755)?;
    s.client.write("a/b/f", b"bytes")?;
    s.client.mkdir("x", 0o755)?;
    let inner = s.client.node("a/b")?;
    s.client.rename("a", "x/y", NONE)?;
    refused(s.client.lookup("a/b/f"), Errno::NOENT)?;
    equal(s.client.read("x/y/b/f")?, b"bytes")?;
    holds(std::sync::Arc::ptr_eq(&inner, &s.client.node("x/y/b")?), "nodes are the same at the new place")?;
    // A node that is held works on under its new path.
    inner.create(s.client.call(), "g".as_ref(), OFlags::WRONLY, 0o600)?;
    equal(s.client.list("x/y/b")?.len(), 2)
}

fn opens_survive_a_rename(s: &Subject) -> Outcome {
    let handle = s.client.create("f", OFlags::RDWR, 0o600)?.handle;
    s.client.mkdir("d", 0o755)?;
    s.client.write_at(&*handle, b"before", 0)?;
    s.client.rename("f", "d/g", NONE)?;
    s.client.write_at(&*handle, b" after", 6)?;
    equal(s.client.read_open(&*handle)?, b"before after")?;
    equal(s.client.read("d/g")?, b"before after")
}

fn a_replaced_file_loses_one_name(s: &Subject) -> Outcome {
    s.client.write("f", b"old")?;
    s.client.link("f", "other")?;
    s.client.write("new", b"new")?;
    let replaced = s.client.node("f")?;
    s.client.rename("new", "f", NONE)?;
    equal(replaced.getattr(s.client.call())?.nlink, 1)?;
    equal(s.client.read("other")?, b"old")?;
    s.client.rename("f", "other", NONE)?;
    equal(replaced.getattr(s.client.call())?.nlink, 0)?;
    equal(s.client.read("other")?, b"new")
}
