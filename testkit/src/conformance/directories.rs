//! Making and removing directories.

use std::ffi::OsStr;

use hither_vfs::{Errno, FileKind, OFlags};

use super::{Subject, Test, tests};
use crate::check::{Outcome, equal, holds, refused, refused_with_one_of};

pub(super) const TESTS: &[Test] = tests![
    a_new_directory_is_empty,
    what_is_there_is_not_made_again,
    only_empty_directories_are_removed,
    unlink_and_rmdir_do_not_do_each_others_work,
    subdirectories_are_counted_as_links,
    nothing_is_made_in_a_removed_directory,
    a_removed_directory_lists_nothing,
    mknod_makes_files_and_no_directories,
];

fn a_new_directory_is_empty(s: &Subject) -> Outcome {
    let entry = s.client.mkdir("d", 0o750)?;
    equal((entry.attr.kind(), entry.attr.permissions()), (FileKind::Directory, 0o750))?;
    equal(s.client.list("d")?.len(), 0)?;
    equal(s.client.node("d")?.identity(), entry.node.identity())
}

fn what_is_there_is_not_made_again(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    s.client.write("f", b"")?;
    for name in ["d", "f"] {
        refused(s.client.mkdir(name, 0o755), Errno::EXIST)?;
        refused(s.client.root().mknod(s.client.call(), OsStr::new(name), 0o100_600, 0), Errno::EXIST)?;
    }
    Ok(())
}

fn only_empty_directories_are_removed(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    s.client.write("d/f", b"")?;
    refused_with_one_of(s.client.rmdir("d"), &[Errno::NOTEMPTY, Errno::EXIST])?;
    s.client.unlink("d/f")?;
    s.client.mkdir("d/sub", 0o755)?;
    refused_with_one_of(s.client.rmdir("d"), &[Errno::NOTEMPTY, Errno::EXIST])?;
    s.client.rmdir("d/sub")?;
    s.client.rmdir("d")?;
    refused(s.client.lookup("d"), Errno::NOENT)
}

fn unlink_and_rmdir_do_not_do_each_others_work(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    s.client.write("f", b"")?;
    refused(s.client.unlink("d"), Errno::ISDIR)?;
    refused(s.client.rmdir("f"), Errno::NOTDIR)?;
    equal(s.client.list("")?.len(), 2)
}

fn subdirectories_are_counted_as_links(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    let nlink = || s.client.attr("d").map(|attr| attr.nlink);
    if nlink()? == 1 {
        return Err(crate::check::Failure::Skipped("directories do not count their links".to_owned()));
    }
    equal(nlink()?, 2)?;
    s.client.mkdir("d/one", 0o755)?;
    s.client.mkdir("d/two", 0o755)?;
    s.client.write("d/f", b"")?;
    equal(nlink()?, 4)?;
    s.client.rename("d/one", "one", hither_vfs::RenameFlags::empty())?;
    equal(nlink()?, 3)?;
    s.client.rmdir("d/two")?;
    equal(nlink()?, 2)
}

fn nothing_is_made_in_a_removed_directory(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    s.client.write("f", b"")?;
    let (directory, file) = (s.client.node("d")?, s.client.node("f")?);
    s.client.rmdir("d")?;
    let (call, name, can) = (s.client.call(), OsStr::new("x"), s.fs.capabilities());
    refused(directory.lookup(call, name), Errno::NOENT)?;
    refused(directory.create(call, name, OFlags::WRONLY, 0o600), Errno::NOENT)?;
    refused(directory.mkdir(call, name, 0o700), Errno::NOENT)?;
    refused(directory.mknod(call, name, 0o100_600, 0), Errno::NOENT)?;
    if can.symlinks {
        refused(directory.symlink(call, name, OsStr::new("t")), Errno::NOENT)?;
    }
    if can.hard_links {
        refused(directory.link(call, name, &*file), Errno::NOENT)?;
    }
    let flags = hither_vfs::RenameFlags::empty();
    refused(s.client.root().rename(call, OsStr::new("f"), &*directory, name, flags), Errno::NOENT)?;
    equal(directory.getattr(call)?.nlink, 0)
}

fn a_removed_directory_lists_nothing(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    let directory = s.client.node("d")?;
    let open = directory.opendir(s.client.call())?;
    s.client.rmdir("d")?;
    let mut sink = crate::client::Collect { listed: Vec::new(), most: usize::MAX };
    // Linux answers ENOENT here; an empty listing says the same.
    if let Err(error) = open.read(s.client.call(), 0, false, &mut sink) {
        refused::<()>(Err(error), Errno::NOENT)?;
    }
    let left = sink.listed.iter().filter(|listed| listed.name != "." && listed.name != "..");
    equal(left.count(), 0)
}

fn mknod_makes_files_and_no_directories(s: &Subject) -> Outcome {
    let mknod = |name: &str, mode| s.client.root().mknod(s.client.call(), OsStr::new(name), mode, 0);
    for (name, mode) in [("typed", 0o100_640), ("untyped", 0o640)] {
        let entry = mknod(name, mode)?;
        equal((entry.attr.mode, entry.attr.size, entry.attr.nlink), (0o100_640, 0, 1))?;
        s.client.write(name, b"bytes")?;
        equal(s.client.read(name)?, b"bytes")?;
    }
    refused(mknod("d", 0o040_755), Errno::PERM)?;
    holds(s.client.lookup("d").is_err(), "no directory was made")
}
