//! Names: which there are, and what is refused.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use hither_vfs::{Errno, OFlags, RenameFlags};

use super::{Subject, Test, tests};
use crate::check::{Outcome, equal, holds, refused, refused_with_one_of};

pub(super) const TESTS: &[Test] = tests![
    every_byte_but_slash_and_nul_is_allowed_in_names,
    names_of_255_bytes_are_allowed,
    names_of_256_bytes_are_refused,
    names_differ_by_case_and_by_unicode_form,
    directories_nest_deeply,
    a_missing_name_is_not_found,
    only_directories_have_names,
];

fn every_byte_but_slash_and_nul_is_allowed_in_names(s: &Subject) -> Outcome {
    let call = s.client.call();
    let root = s.client.root();
    let mut made = Vec::new();
    for byte in (1..=255u8).filter(|byte| *byte != b'/') {
        // Alone, and inside a name that is no UTF-8 either.
        for name in [vec![byte], vec![0xff, byte, 0xfe]] {
            let name = OsString::from_vec(name);
            if name == "." {
                continue;
            }
            let entry = root.create(call, &name, OFlags::WRONLY | OFlags::EXCL, 0o600)?.entry;
            equal(root.lookup(call, &name)?.node.identity(), entry.node.identity())?;
            made.push(name);
        }
    }
    let mut listed: Vec<OsString> = s.client.list("")?.into_iter().map(|listed| listed.name).collect();
    listed.sort();
    made.sort();
    equal(&listed, &made)?;
    for name in &made {
        root.unlink(call, name)?;
    }
    equal(s.client.list("")?.len(), 0)
}

fn names_of_255_bytes_are_allowed(s: &Subject) -> Outcome {
    let name = OsString::from_vec(vec![0xe9; 255]);
    let other = OsString::from_vec(vec![0xea; 255]);
    s.client.write(&name, b"long")?;
    s.client.rename(&name, &other, RenameFlags::empty())?;
    equal(s.client.read(&other)?, b"long")?;
    s.client.mkdir(&name, 0o700)?;
    let mut listed: Vec<OsString> = s.client.list("")?.into_iter().map(|listed| listed.name).collect();
    listed.sort();
    equal(listed, [name.clone(), other.clone()])?;
    s.client.rmdir(&name)?;
    Ok(s.client.unlink(&other)?)
}

fn names_of_256_bytes_are_refused(s: &Subject) -> Outcome {
    let long = &OsString::from("n".repeat(256));
    let (call, root, can) = (s.client.call(), s.client.root(), s.fs.capabilities());
    s.client.write("f", b"")?;
    let file = s.client.node("f")?;
    refused(root.lookup(call, long), Errno::NAMETOOLONG)?;
    refused(root.create(call, long, OFlags::WRONLY, 0o600), Errno::NAMETOOLONG)?;
    refused(root.mkdir(call, long, 0o700), Errno::NAMETOOLONG)?;
    refused(root.mknod(call, long, 0o100_600, 0), Errno::NAMETOOLONG)?;
    refused(root.unlink(call, long), Errno::NAMETOOLONG)?;
    refused(root.rmdir(call, long), Errno::NAMETOOLONG)?;
    if can.symlinks {
        refused(root.symlink(call, long, OsStr::new("t")), Errno::NAMETOOLONG)?;
    }
    if can.hard_links {
        refused(root.link(call, long, &*file), Errno::NAMETOOLONG)?;
    }
    let flags = RenameFlags::empty();
    refused(root.rename(call, long, &**root, OsStr::new("g"), flags), Errno::NAMETOOLONG)?;
    refused(root.rename(call, OsStr::new("f"), &**root, long, flags), Errno::NAMETOOLONG)?;
    equal(s.client.list("")?.len(), 1)
}

fn names_differ_by_case_and_by_unicode_form(s: &Subject) -> Outcome {
    // "é" in one code point and in two.
    let names = ["a", "A", "\u{e9}", "e\u{301}"];
    for name in names {
        let created = s.client.create(name, OFlags::WRONLY | OFlags::EXCL, 0o600)?;
        s.client.write_at(&*created.handle, name.as_bytes(), 0)?;
    }
    for name in names {
        equal(s.client.read(name)?, name.as_bytes())?;
    }
    Ok(())
}

fn directories_nest_deeply(s: &Subject) -> Outcome {
    const DEPTH: usize = 300;
    let mut client = s.client.clone();
    for _ in 0..DEPTH {
        client.mkdir("directory", 0o700)?;
        client = client.within("directory")?;
    }
    client.write("f", b"at the bottom")?;
    let path = "directory/".repeat(DEPTH) + "f";
    equal(s.client.read(path)?, b"at the bottom")?;
    refused_with_one_of(s.client.rmdir("directory"), &[Errno::NOTEMPTY, Errno::EXIST])
}

fn a_missing_name_is_not_found(s: &Subject) -> Outcome {
    refused(s.client.lookup("missing"), Errno::NOENT)?;
    refused(s.client.unlink("missing"), Errno::NOENT)?;
    refused(s.client.rmdir("missing"), Errno::NOENT)?;
    refused(s.client.rename("missing", "new", RenameFlags::empty()), Errno::NOENT)?;
    holds(s.client.list("")?.is_empty(), "nothing was made")
}

fn only_directories_have_names(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    s.client.write("g", b"")?;
    let (call, can) = (s.client.call(), s.fs.capabilities());
    let (file, other) = (s.client.node("f")?, s.client.node("g")?);
    let name = OsStr::from_bytes(b"x");
    refused(file.lookup(call, name), Errno::NOTDIR)?;
    refused(file.create(call, name, OFlags::WRONLY, 0o600), Errno::NOTDIR)?;
    refused(file.mkdir(call, name, 0o700), Errno::NOTDIR)?;
    refused(file.mknod(call, name, 0o100_600, 0), Errno::NOTDIR)?;
    refused(file.unlink(call, name), Errno::NOTDIR)?;
    refused(file.rmdir(call, name), Errno::NOTDIR)?;
    refused(file.opendir(call), Errno::NOTDIR)?;
    let root = s.client.root();
    refused(root.rename(call, OsStr::new("g"), &*file, name, RenameFlags::empty()), Errno::NOTDIR)?;
    refused(file.rename(call, name, &**root, OsStr::new("h"), RenameFlags::empty()), Errno::NOTDIR)?;
    if can.symlinks {
        refused(file.symlink(call, name, OsStr::new("t")), Errno::NOTDIR)?;
    }
    if can.hard_links {
        refused(file.link(call, name, &*other), Errno::NOTDIR)?;
    }
    Ok(())
}
