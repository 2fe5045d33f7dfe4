//! Owners, umask, set-id bits. Most of it needs a process that may act as others.

use hither_vfs::{Errno, OFlags, SetAttr, WriteAt};

use super::{Subject, Test, tests};
use crate::Client;
use crate::check::{Failure, Outcome, equal, refused};

pub(super) const TESTS: &[Test] = tests![
    the_umask_applies_to_what_is_made,
    mkdir_keeps_only_the_bits_of_directories,
    what_is_made_belongs_to_the_caller [Root],
    owners_are_changed [Root],
    a_set_group_id_directory_hands_its_group_down [Root],
    a_symlink_in_a_set_group_id_directory_has_its_group [Root, Symlinks],
    a_new_owner_ends_set_id_bits [Root],
    a_write_by_others_ends_set_id_bits [Root],
    a_cut_by_others_ends_set_id_bits [Root],
    access_is_told_by_mode [Root],
];

const USER: u32 = 4_001;
const GROUP: u32 = 4_002;

fn chmod(s: &Subject, path: &str, mode: u32) -> Outcome {
    let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
    equal(s.client.node(path)?.setattr(s.client.call(), &set, None)?.permissions(), mode)
}

fn chown(s: &Subject, path: &str, uid: Option<u32>, gid: Option<u32>) -> Result<u32, Failure> {
    let set = SetAttr { uid, gid, ..SetAttr::default() };
    Ok(s.client.node(path)?.setattr(s.client.call(), &set, None)?.mode & 0o7777)
}

fn the_umask_applies_to_what_is_made(s: &Subject) -> Outcome {
    for (index, umask) in [0o000, 0o022, 0o077, 0o777].into_iter().enumerate() {
        let client = s.with_umask(umask);
        let name = |what: &str| format!("{what}{index}");
        let mode = client.create(name("f"), OFlags::WRONLY, 0o666)?.entry.attr.mode;
        equal(mode, 0o100_000 | (0o666 & !umask))?;
        equal(client.mkdir(name("d"), 0o777)?.attr.mode, 0o040_000 | (0o777 & !umask))?;
        let made = client.root().mknod(client.call(), name("n").as_ref(), 0o100_666, 0)?;
        equal(made.attr.mode, 0o100_000 | (0o666 & !umask))?;
        equal(s.client.attr(name("f"))?.permissions(), 0o666 & !umask)?;
    }
    // What is opened and not made keeps its mode.
    s.client.write("old", b"")?;
    chmod(s, "old", 0o606)?;
    equal(s.with_umask(0o077).create("old", OFlags::RDWR, 0o777)?.entry.attr.permissions(), 0o606)
}

fn mkdir_keeps_only_the_bits_of_directories(s: &Subject) -> Outcome {
    equal(s.client.mkdir("d", 0o1777)?.attr.permissions(), 0o1777)?;
    equal(s.client.mkdir("e", 0o700)?.attr.permissions(), 0o700)
}

/// A directory in which everybody may make things.
fn open_to_all(s: &Subject) -> Result<(), Failure> {
    s.client.mkdir("d", 0o755)?;
    chmod(s, "d", 0o777)
}

fn what_is_made_belongs_to_the_caller(s: &Subject) -> Outcome {
    open_to_all(s)?;
    let user = s.as_user(USER).within("d")?;
    let can = s.fs.capabilities();
    let mut made = vec![
        user.create("f", OFlags::WRONLY, 0o600)?.entry,
        user.mkdir("sub", 0o700)?,
        user.root().mknod(user.call(), "n".as_ref(), 0o100_600, 0)?,
    ];
    if can.symlinks {
        made.push(user.symlink("target", "l")?);
    }
    if can.tmpfile {
        made.push(user.root().tmpfile(user.call(), OFlags::RDWR, 0o600)?.entry);
    }
    for entry in made {
        let attr = entry.node.getattr(s.client.call())?;
        equal((attr.uid, attr.gid), (USER, USER))?;
        equal((entry.attr.uid, entry.attr.gid), (USER, USER))?;
    }
    Ok(())
}

fn owners_are_changed(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    s.client.mkdir("d", 0o755)?;
    for path in ["f", "d"] {
        let owners = || s.client.attr(path).map(|attr| (attr.uid, attr.gid));
        chown(s, path, Some(USER), None)?;
        equal(owners()?, (USER, 0))?;
        chown(s, path, None, Some(GROUP))?;
        equal(owners()?, (USER, GROUP))?;
        chown(s, path, Some(u32::MAX - 2), Some(0))?;
        equal(owners()?, (u32::MAX - 2, 0))?;
    }
    Ok(())
}

fn set_group_id_directory(s: &Subject) -> Result<Client, Failure> {
    open_to_all(s)?;
    chown(s, "d", None, Some(GROUP))?;
    chmod(s, "d", 0o2777)?;
    Ok(s.as_user(USER).within("d")?)
}

fn a_set_group_id_directory_hands_its_group_down(s: &Subject) -> Outcome {
    let user = set_group_id_directory(s)?;
    let file = user.create("f", OFlags::WRONLY, 0o664)?.entry.attr;
    equal((file.uid, file.gid, file.permissions()), (USER, GROUP, 0o664))?;
    let directory = user.mkdir("sub", 0o755)?.attr;
    equal((directory.uid, directory.gid, directory.permissions()), (USER, GROUP, 0o2755))?;
    let deeper = user.mkdir("sub/sub", 0o700)?.attr;
    equal((deeper.gid, deeper.permissions()), (GROUP, 0o2700))?;
    // A set-group-id program of a group that its maker is not in would be a gift of rights.
    let program = user.create("g", OFlags::WRONLY, 0o2755)?.entry.attr;
    equal((program.gid, program.permissions()), (GROUP, 0o755))
}

fn a_symlink_in_a_set_group_id_directory_has_its_group(s: &Subject) -> Outcome {
    let user = set_group_id_directory(s)?;
    equal(user.symlink("target", "l")?.attr.gid, GROUP)
}

fn a_new_owner_ends_set_id_bits(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    chmod(s, "f", 0o6755)?;
    equal(chown(s, "f", Some(USER), None)?, 0o755)?;
    chmod(s, "f", 0o6755)?;
    equal(chown(s, "f", None, Some(GROUP))?, 0o755)?;
    s.client.mkdir("d", 0o755)?;
    chmod(s, "d", 0o3755)?;
    equal(chown(s, "d", Some(USER), Some(GROUP))?, 0o3755)
}

/// A file of the user's with set-id bits, which are there again each time it is asked for.
fn with_set_ids(s: &Subject) -> Outcome {
    if s.client.lookup("f").is_err() {
        s.client.write("f", b"bytes")?;
        chown(s, "f", Some(USER), Some(USER))?;
    }
    chmod(s, "f", 0o6777)
}

fn a_write_by_others_ends_set_id_bits(s: &Subject) -> Outcome {
    with_set_ids(s)?;
    let user = s.as_user(USER);
    let handle = user.open("f", OFlags::WRONLY)?;
    handle.write(user.call(), b"x", WriteAt::Offset(0))?;
    equal(s.client.attr("f")?.permissions(), 0o777)?;
    // Root keeps them.
    with_set_ids(s)?;
    let handle = s.client.open("f", OFlags::WRONLY)?;
    handle.write(s.client.call(), b"x", WriteAt::Offset(0))?;
    equal(s.client.attr("f")?.permissions(), 0o6777)
}

fn a_cut_by_others_ends_set_id_bits(s: &Subject) -> Outcome {
    let user = s.as_user(USER);
    with_set_ids(s)?;
    let set = SetAttr { size: Some(1), ..SetAttr::default() };
    user.node("f")?.setattr(user.call(), &set, None)?;
    equal(s.client.attr("f")?.permissions(), 0o777)?;
    with_set_ids(s)?;
    drop(user.open("f", OFlags::WRONLY | OFlags::TRUNC)?);
    equal(s.client.attr("f")?.permissions(), 0o777)
}

fn access_is_told_by_mode(s: &Subject) -> Outcome {
    const READ: u32 = 4;
    const WRITE: u32 = 2;
    const EXEC: u32 = 1;
    s.client.write("f", b"")?;
    chown(s, "f", Some(USER), Some(GROUP))?;
    chmod(s, "f", 0o640)?;
    let node = s.client.node("f")?;
    let (owner, other) = (s.as_user(USER), s.as_user(USER + 7));
    let member = s.client.as_caller(hither_vfs::Caller::new(USER + 8, USER + 8, 0, 0).with_groups([GROUP]));
    for client in [&owner, &other, &member] {
        node.access(client.call(), 0)?;
    }
    node.access(owner.call(), READ | WRITE)?;
    node.access(member.call(), READ)?;
    refused(node.access(member.call(), WRITE), Errno::ACCESS)?;
    refused(node.access(other.call(), READ), Errno::ACCESS)?;
    refused(node.access(owner.call(), EXEC), Errno::ACCESS)?;
    node.access(s.client.call(), READ | WRITE)?;
    refused(node.access(s.client.call(), EXEC), Errno::ACCESS)
}
