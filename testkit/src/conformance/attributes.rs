//! Times and modes, and what moves them.

use std::time::Duration;

use hither_vfs::{Attr, Errno, OFlags, RenameFlags, SetAttr, SetTime, Timestamp};

use super::{Subject, Test, tests};
use crate::check::{Failure, Outcome, equal, holds, refused};

pub(super) const TESTS: &[Test] = tests![
    times_are_set_to_the_nanosecond,
    times_may_be_early_or_late,
    a_time_that_is_not_given_stays,
    now_is_now,
    setting_nothing_changes_nothing,
    a_write_moves_the_times_of_change,
    a_read_moves_no_time_of_change,
    an_attribute_moves_only_the_time_of_status,
    a_name_moves_its_directorys_times,
    a_link_or_rename_moves_the_files_status[HardLinks],
    the_time_of_birth_stays,
    permission_bits_are_kept,
    a_symlinks_times_are_its_own[Symlinks],
    sizes_and_blocks_are_told,
];

/// Longer than a tick of any clock that stamps files.
const TICK: Duration = Duration::from_millis(25);

fn pause() {
    std::thread::sleep(TICK);
}

fn set_times(
    s: &Subject,
    path: &str,
    atime: Option<SetTime>,
    mtime: Option<SetTime>,
) -> Result<Attr, Failure> {
    let set = SetAttr { atime, mtime, ..SetAttr::default() };
    let node = s.client.node(path)?;
    let told = node.setattr(s.client.call(), &set, None)?;
    equal(told, node.getattr(s.client.call())?)?;
    Ok(told)
}

fn at(sec: i64, nsec: u32) -> Timestamp {
    Timestamp { sec, nsec }
}

fn times_are_set_to_the_nanosecond(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    s.client.mkdir("d", 0o755)?;
    for path in ["f", "d"] {
        let (atime, mtime) = (at(1_000_000_000, 123_456_789), at(1_500_000_000, 999_999_999));
        let attr = set_times(s, path, Some(SetTime::At(atime)), Some(SetTime::At(mtime)))?;
        equal((attr.atime, attr.mtime), (atime, mtime))?;
        let again = s.client.lookup(path)?.attr;
        equal((again.atime, again.mtime), (atime, mtime))?;
    }
    Ok(())
}

fn times_may_be_early_or_late(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    for time in [at(0, 0), at(-5, 7), at(-2_000_000_000, 999_999_999), at(4_500_000_000, 1)] {
        let attr = set_times(s, "f", Some(SetTime::At(time)), Some(SetTime::At(time)))?;
        equal((attr.atime, attr.mtime), (time, time))?;
    }
    Ok(())
}

fn a_time_that_is_not_given_stays(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    let (one, two) = (at(1_000, 1), at(2_000, 2));
    set_times(s, "f", Some(SetTime::At(one)), Some(SetTime::At(one)))?;
    let attr = set_times(s, "f", None, Some(SetTime::At(two)))?;
    equal((attr.atime, attr.mtime), (one, two))?;
    let attr = set_times(s, "f", Some(SetTime::At(two)), None)?;
    equal((attr.atime, attr.mtime), (two, two))
}

fn now_is_now(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    set_times(s, "f", Some(SetTime::At(at(1, 0))), Some(SetTime::At(at(1, 0))))?;
    let before = Timestamp::now().as_nanos() - TICK.as_nanos() as i128;
    let attr = set_times(s, "f", Some(SetTime::Now), Some(SetTime::Now))?;
    let after = Timestamp::now().as_nanos() + TICK.as_nanos() as i128;
    for time in [attr.atime, attr.mtime, attr.ctime] {
        holds((before..=after).contains(&time.as_nanos()), "the time is that of the call")?;
    }
    Ok(())
}

fn setting_nothing_changes_nothing(s: &Subject) -> Outcome {
    s.client.write("f", b"bytes")?;
    let before = s.client.attr("f")?;
    pause();
    let told = s.client.node("f")?.setattr(s.client.call(), &SetAttr::default(), None)?;
    equal(told, before)?;
    equal(s.client.attr("f")?, before)
}

/// Attributes of `path` before and after `act`, more than a tick apart.
fn around(s: &Subject, path: &str, act: impl FnOnce() -> Outcome) -> Result<(Attr, Attr), Failure> {
    pause();
    let before = s.client.attr(path)?;
    pause();
    act()?;
    Ok((before, s.client.attr(path)?))
}

fn a_write_moves_the_times_of_change(s: &Subject) -> Outcome {
    s.client.write("f", b"bytes")?;
    let handle = s.client.open("f", OFlags::RDWR)?;
    let (before, after) = around(s, "f", || Ok(s.client.write_at(&*handle, b"B", 0)?))?;
    holds(after.mtime > before.mtime && after.ctime > before.ctime, "a write moves mtime and ctime")?;
    let set = SetAttr { size: Some(2), ..SetAttr::default() };
    let node = s.client.node("f")?;
    let (before, after) = around(s, "f", || Ok(node.setattr(s.client.call(), &set, None).map(drop)?))?;
    holds(after.mtime > before.mtime && after.ctime > before.ctime, "a cut moves mtime and ctime")?;
    let (before, after) =
        around(s, "f", || Ok(s.client.open("f", OFlags::WRONLY | OFlags::TRUNC).map(drop)?))?;
    holds(after.mtime > before.mtime && after.ctime > before.ctime, "O_TRUNC moves mtime and ctime")
}

fn a_read_moves_no_time_of_change(s: &Subject) -> Outcome {
    s.client.write("f", b"bytes")?;
    let (before, after) = around(s, "f", || equal(s.client.read("f")?, b"bytes"))?;
    equal((after.mtime, after.ctime), (before.mtime, before.ctime))?;
    holds(after.atime >= before.atime, "atime does not go back")
}

fn an_attribute_moves_only_the_time_of_status(s: &Subject) -> Outcome {
    s.client.write("f", b"bytes")?;
    let node = s.client.node("f")?;
    let changes = [
        SetAttr { mode: Some(0o600), ..SetAttr::default() },
        SetAttr { atime: Some(SetTime::At(at(5, 5))), ..SetAttr::default() },
    ];
    for set in changes {
        let (before, after) = around(s, "f", || Ok(node.setattr(s.client.call(), &set, None).map(drop)?))?;
        holds(after.ctime > before.ctime, "ctime moves")?;
        equal(after.mtime, before.mtime)?;
    }
    Ok(())
}

fn a_name_moves_its_directorys_times(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    s.client.mkdir("e", 0o755)?;
    let changes: [(&str, &dyn Fn() -> hither_vfs::Result<()>); 6] = [
        ("create", &|| s.client.create("d/f", OFlags::WRONLY, 0o600).map(drop)),
        ("mkdir", &|| s.client.mkdir("d/sub", 0o700).map(drop)),
        ("rename", &|| s.client.rename("d/f", "d/g", RenameFlags::empty())),
        ("rename away", &|| s.client.rename("d/g", "e/g", RenameFlags::empty())),
        ("rename back", &|| s.client.rename("e/g", "d/g", RenameFlags::empty())),
        ("rmdir", &|| s.client.rmdir("d/sub")),
    ];
    for (what, change) in changes {
        let (before, after) = around(s, "d", || Ok(change()?))?;
        holds(after.mtime > before.mtime && after.ctime > before.ctime, what)?;
    }
    let (before, after) = around(s, "d", || Ok(s.client.unlink("d/g")?))?;
    holds(after.mtime > before.mtime && after.ctime > before.ctime, "unlink")
}

fn a_link_or_rename_moves_the_files_status(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    let node = s.client.node("f")?;
    let ctime = || node.getattr(s.client.call()).map(|attr| attr.ctime);
    let changes: [(&str, &dyn Fn() -> hither_vfs::Result<()>); 3] = [
        ("link", &|| s.client.link("f", "g").map(drop)),
        ("rename", &|| s.client.rename("g", "h", RenameFlags::empty())),
        ("unlink", &|| s.client.unlink("h")),
    ];
    for (what, change) in changes {
        let before = ctime()?;
        pause();
        change()?;
        holds(ctime()? > before, what)?;
    }
    Ok(())
}

fn the_time_of_birth_stays(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    let born = s.client.attr("f")?.btime;
    pause();
    s.client.write("f", b"more")?;
    set_times(s, "f", Some(SetTime::At(at(1, 1))), Some(SetTime::At(at(1, 1))))?;
    s.client.rename("f", "g", RenameFlags::empty())?;
    equal(s.client.attr("g")?.btime, born)
}

fn permission_bits_are_kept(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    s.client.mkdir("d", 0o755)?;
    for (path, kind) in [("f", 0o100_000), ("d", 0o040_000)] {
        let node = s.client.node(path)?;
        for mode in [0o000, 0o111, 0o421, 0o644, 0o777, 0o1755, 0o4711, 0o6755, 0o7777] {
            let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
            equal(node.setattr(s.client.call(), &set, None)?.mode, kind | mode)?;
            equal(s.client.lookup(path)?.attr.mode, kind | mode)?;
        }
    }
    Ok(())
}

fn a_symlinks_times_are_its_own(s: &Subject) -> Outcome {
    s.client.write("f", b"")?;
    s.client.symlink("f", "l")?;
    let file = s.client.attr("f")?;
    let attr = set_times(s, "l", Some(SetTime::At(at(10, 1))), Some(SetTime::At(at(20, 2))))?;
    equal((attr.atime, attr.mtime), (at(10, 1), at(20, 2)))?;
    equal(s.client.attr("f")?.mtime, file.mtime)?;
    let chmod = SetAttr { mode: Some(0o600), ..SetAttr::default() };
    refused(s.client.node("l")?.setattr(s.client.call(), &chmod, None), Errno::OPNOTSUPP)?;
    equal(s.client.attr("f")?.mode, file.mode)
}

fn sizes_and_blocks_are_told(s: &Subject) -> Outcome {
    let handle = s.client.create("f", OFlags::RDWR, 0o600)?.handle;
    s.client.write_at(&*handle, &vec![1; 1 << 20], 0)?;
    handle.fsync(s.client.call(), false)?;
    let attr = s.client.attr("f")?;
    equal(attr.size, 1 << 20)?;
    holds((2048..4096).contains(&attr.blocks), "blocks are units of 512 bytes")?;
    holds(attr.blksize >= 512, "a block size is told")
}
