//! Bytes of files: reading, writing, appending, cutting, copying.

use hither_vfs::{Call, Errno, Handle, Node, OFlags, SetAttr, WriteAt};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{Subject, Test, tests};
use crate::check::{Failure, Outcome, equal, holds, refused};

pub(super) const TESTS: &[Test] = tests![
    a_new_file_is_empty,
    what_is_written_is_read,
    random_writes_and_cuts_are_what_an_array_would_be,
    reads_end_at_the_end,
    a_gap_reads_as_zeros,
    empty_writes_change_nothing,
    opens_share_the_bytes,
    an_open_allows_what_it_was_opened_for,
    create_opens_what_is_there_unless_exclusive,
    create_and_open_can_truncate,
    create_over_a_directory_is_refused,
    a_directory_is_not_opened_as_a_file,
    cut_and_extended_files_have_no_old_bytes,
    a_size_is_set_through_an_open,
    what_has_no_size_cannot_be_cut,
    appends_go_to_the_end,
    appends_of_many_writers_do_not_overlap,
    an_unlinked_file_lives_while_it_is_open,
    a_replaced_file_lives_while_it_is_open,
    offsets_beyond_4_gib_work,
    what_is_synced_is_there,
    a_range_is_copied,
    a_copied_hole_is_zero,
    a_copy_ends_at_the_end,
    a_copy_onto_itself_is_refused,
];

const RW: OFlags = OFlags::RDWR;

fn resize(s: &Subject, node: &dyn Node, size: u64) -> Result<u64, Failure> {
    let set = SetAttr { size: Some(size), ..SetAttr::default() };
    Ok(node.setattr(s.client.call(), &set, None)?.size)
}

/// `length` bytes that differ from their neighbours.
fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|at| ((at + seed) * 31 + (at >> 8) * 7) as u8).collect()
}

fn a_new_file_is_empty(s: &Subject) -> Outcome {
    let created = s.client.create("f", RW | OFlags::EXCL, 0o640)?;
    let attr = created.entry.attr;
    equal((attr.mode, attr.size, attr.nlink, attr.blocks), (0o100_640, 0, 1, 0))?;
    equal(s.client.read_open(&*created.handle)?, b"")?;
    equal(s.client.attr("f")?.ino, attr.ino)
}

fn what_is_written_is_read(s: &Subject) -> Outcome {
    for (index, length) in [1, 4095, 4096, 4097, 65_536, 1_000_000, (1 << 20) + 1].into_iter().enumerate() {
        let name = format!("f{index}");
        let bytes = pattern(length, index);
        let handle = s.client.create(&name, RW, 0o600)?.handle;
        s.client.write_at(&*handle, &bytes, 0)?;
        handle.flush(s.client.call())?;
        holds(s.client.read_open(&*handle)? == bytes, "the open that wrote reads the bytes")?;
        drop(handle);
        holds(s.client.read(&name)? == bytes, "a new open reads the bytes")?;
        equal(s.client.attr(&name)?.size, length as u64)?;
    }
    Ok(())
}

fn random_writes_and_cuts_are_what_an_array_would_be(s: &Subject) -> Outcome {
    const SIZE: usize = 300_000;
    let mut random = StdRng::seed_from_u64(7);
    let mut bytes: Vec<u8> = Vec::new();
    let created = s.client.create("f", RW, 0o600)?;
    for round in 0..300 {
        if random.random_range(0..8) == 0 {
            let size = random.random_range(0..SIZE);
            equal(resize(s, &*created.entry.node, size as u64)?, size as u64)?;
            bytes.resize(size, 0);
        } else {
            let (offset, length) = (random.random_range(0..SIZE), random.random_range(1..20_000));
            let data = pattern(length, round);
            s.client.write_at(&*created.handle, &data, offset as u64)?;
            bytes.resize(bytes.len().max(offset + length), 0);
            bytes[offset..offset + length].copy_from_slice(&data);
        }
        let from = random.random_range(0..SIZE);
        let expected = &bytes[from.min(bytes.len())..(from + 9000).min(bytes.len())];
        holds(s.client.read_at(&*created.handle, from as u64, 9000)? == expected, "a piece is right")?;
    }
    holds(s.client.read("f")? == bytes, "all bytes are right in the end")
}

fn reads_end_at_the_end(s: &Subject) -> Outcome {
    s.client.write("f", b"0123456789")?;
    let handle = s.client.open("f", OFlags::RDONLY)?;
    equal(s.client.read_at(&*handle, 0, 100)?, b"0123456789")?;
    equal(s.client.read_at(&*handle, 7, 100)?, b"789")?;
    equal(s.client.read_at(&*handle, 7, 2)?, b"78")?;
    for offset in [10, 11, 4096, 1 << 40] {
        equal(s.client.read_at(&*handle, offset, 100)?, b"")?;
    }
    equal(s.client.read_at(&*handle, 3, 0)?, b"")
}

fn a_gap_reads_as_zeros(s: &Subject) -> Outcome {
    let handle = s.client.create("f", RW, 0o600)?.handle;
    s.client.write_at(&*handle, b"end", 200_000)?;
    let bytes = s.client.read_open(&*handle)?;
    equal(bytes.len(), 200_003)?;
    holds(bytes[..200_000].iter().all(|byte| *byte == 0), "the gap is zero")?;
    equal(&bytes[200_000..], b"end")
}

fn empty_writes_change_nothing(s: &Subject) -> Outcome {
    let created = s.client.create("f", RW, 0o600)?;
    s.client.write_at(&*created.handle, b"abc", 0)?;
    equal(created.handle.write(s.client.call(), b"", WriteAt::Offset(100))?, 0)?;
    equal(created.handle.write(s.client.call(), b"", WriteAt::End)?, 0)?;
    equal(s.client.attr("f")?.size, 3)
}

fn opens_share_the_bytes(s: &Subject) -> Outcome {
    s.client.write("f", b"old bytes")?;
    let reader = s.client.open("f", OFlags::RDONLY)?;
    let writer = s.client.open("f", OFlags::WRONLY)?;
    s.client.write_at(&*writer, b"new", 0)?;
    equal(s.client.read("f")?, b"new bytes")?;
    // An open with a backing may go on with the version that it was opened on: a layer with copies says so.
    if reader.backing().is_none() {
        equal(s.client.read_open(&*reader)?, b"new bytes")?;
        resize(s, &*s.client.node("f")?, 2)?;
        equal(s.client.read_open(&*reader)?, b"ne")?;
    }
    Ok(())
}

fn an_open_allows_what_it_was_opened_for(s: &Subject) -> Outcome {
    s.client.write("f", b"bytes")?;
    let (reader, writer) = (s.client.open("f", OFlags::RDONLY)?, s.client.open("f", OFlags::WRONLY)?);
    refused(reader.write(s.client.call(), b"x", WriteAt::Offset(0)), Errno::BADF)?;
    refused(reader.write(s.client.call(), b"x", WriteAt::End), Errno::BADF)?;
    refused(s.client.read_at(&*writer, 0, 1), Errno::BADF)?;
    equal(s.client.read("f")?, b"bytes")
}

fn create_opens_what_is_there_unless_exclusive(s: &Subject) -> Outcome {
    s.client.write("f", b"there")?;
    let before = s.client.lookup("f")?;
    let created = s.client.create("f", RW, 0o000)?;
    equal(created.entry.node.identity(), before.node.identity())?;
    equal(created.entry.attr.mode, before.attr.mode)?;
    equal(s.client.read_open(&*created.handle)?, b"there")?;
    refused(s.client.create("f", RW | OFlags::EXCL, 0o600), Errno::EXIST)
}

fn create_and_open_can_truncate(s: &Subject) -> Outcome {
    s.client.write("f", b"there")?;
    drop(s.client.create("f", OFlags::WRONLY | OFlags::TRUNC, 0o600)?);
    equal(s.client.attr("f")?.size, 0)?;
    s.client.write("f", b"again")?;
    let handle = s.client.open("f", RW | OFlags::TRUNC)?;
    equal(s.client.attr("f")?.size, 0)?;
    s.client.write_at(&*handle, b"x", 0)?;
    equal(s.client.read("f")?, b"x")
}

fn create_over_a_directory_is_refused(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    refused(s.client.create("d", OFlags::WRONLY, 0o600), Errno::ISDIR)?;
    refused(s.client.create("d", OFlags::WRONLY | OFlags::EXCL, 0o600), Errno::EXIST)
}

fn a_directory_is_not_opened_as_a_file(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    refused(s.client.open("d", OFlags::WRONLY), Errno::ISDIR)?;
    refused(s.client.open("d", RW), Errno::ISDIR)
}

fn cut_and_extended_files_have_no_old_bytes(s: &Subject) -> Outcome {
    let created = s.client.create("f", RW, 0o600)?;
    let node = &*created.entry.node;
    for (cut, grown) in [(100, 200), (5000, 70_000), (65_536, 131_072), (0, 10)] {
        s.client.write_at(&*created.handle, &pattern(140_000, 1), 0)?;
        equal(resize(s, node, cut)?, cut)?;
        equal(resize(s, node, grown)?, grown)?;
        let bytes = s.client.read_open(&*created.handle)?;
        let cut = cut as usize;
        holds(bytes[..cut] == pattern(140_000, 1)[..cut], "what was kept is as it was")?;
        equal(bytes.len() as u64, grown)?;
        holds(bytes[cut..].iter().all(|byte| *byte == 0), "what was cut is zero")?;
    }
    Ok(())
}

fn a_size_is_set_through_an_open(s: &Subject) -> Outcome {
    s.client.write("f", b"0123456789")?;
    let (node, set) = (s.client.node("f")?, SetAttr { size: Some(4), ..SetAttr::default() });
    let reader = s.client.open("f", OFlags::RDONLY)?;
    refused(node.setattr(s.client.call(), &set, Some(&*reader)), Errno::INVAL)?;
    drop(reader);
    let writer = s.client.open("f", OFlags::WRONLY)?;
    s.client.unlink("f")?;
    equal(node.setattr(s.client.call(), &set, Some(&*writer))?.size, 4)
}

fn what_has_no_size_cannot_be_cut(s: &Subject) -> Outcome {
    s.client.mkdir("d", 0o755)?;
    let set = SetAttr { size: Some(0), ..SetAttr::default() };
    refused(s.client.node("d")?.setattr(s.client.call(), &set, None), Errno::ISDIR)
}

fn appends_go_to_the_end(s: &Subject) -> Outcome {
    let flags = OFlags::WRONLY | OFlags::APPEND;
    let (one, two) = (s.client.create("f", flags, 0o600)?.handle, s.client.open("f", flags)?);
    for (handle, bytes) in [(&one, "1"), (&two, "22"), (&one, "333"), (&two, "4444")] {
        equal(handle.write(s.client.call(), bytes.as_bytes(), WriteAt::End)?, bytes.len())?;
    }
    resize(s, &*s.client.node("f")?, 3)?;
    one.write(s.client.call(), b"end", WriteAt::End)?;
    equal(s.client.read("f")?, b"122end")
}

fn appends_of_many_writers_do_not_overlap(s: &Subject) -> Outcome {
    const WRITERS: u8 = 4;
    const RECORDS: usize = 250;
    const LENGTH: usize = 99;
    s.client.write("f", b"")?;
    std::thread::scope(|scope| {
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || append(s, writer, RECORDS, LENGTH))).collect();
        writers
            .into_iter()
            .try_for_each(|writer| writer.join().unwrap_or_else(|panic| Err(Failure::from_panic(&*panic))))
    })?;
    let bytes = s.client.read("f")?;
    equal(bytes.len(), usize::from(WRITERS) * RECORDS * LENGTH)?;
    let mut counts = [0; WRITERS as usize];
    for record in bytes.chunks(LENGTH) {
        holds(record.iter().all(|byte| *byte == record[0]), "each record is whole")?;
        counts[usize::from(record[0])] += 1;
    }
    equal(counts, [RECORDS; WRITERS as usize])
}

fn append(s: &Subject, writer: u8, records: usize, length: usize) -> Outcome {
    let handle = s.client.open("f", OFlags::WRONLY | OFlags::APPEND)?;
    for _ in 0..records {
        equal(handle.write(s.client.call(), &vec![writer; length], WriteAt::End)?, length)?;
    }
    Ok(handle.flush(s.client.call())?)
}

fn an_unlinked_file_lives_while_it_is_open(s: &Subject) -> Outcome {
    let created = s.client.create("f", RW, 0o600)?;
    s.client.write_at(&*created.handle, b"still", 0)?;
    let node = created.entry.node;
    s.client.unlink("f")?;
    refused(s.client.lookup("f"), Errno::NOENT)?;
    equal(node.getattr(s.client.call())?.nlink, 0)?;
    s.client.write_at(&*created.handle, b" here", 5)?;
    equal(s.client.read_open(&*created.handle)?, b"still here")?;
    // The name is free for another file, which is another inode.
    s.client.write("f", b"other")?;
    holds(s.client.node("f")?.identity() != node.identity(), "the new file is another inode")?;
    equal(s.client.read_open(&*created.handle)?, b"still here")?;
    created.handle.fsync(s.client.call(), false)?;
    equal(node.getattr(s.client.call())?.size, 10)
}

fn a_replaced_file_lives_while_it_is_open(s: &Subject) -> Outcome {
    s.client.write("f", b"old")?;
    s.client.write("new", b"new bytes")?;
    let old = s.client.open("f", OFlags::RDONLY)?;
    s.client.rename("new", "f", hither_vfs::RenameFlags::empty())?;
    equal(s.client.read_open(&*old)?, b"old")?;
    equal(s.client.read("f")?, b"new bytes")
}

fn offsets_beyond_4_gib_work(s: &Subject) -> Outcome {
    const FAR: u64 = 5 << 30;
    let created = s.client.create("f", RW, 0o600)?;
    s.client.write_at(&*created.handle, b"near", 0)?;
    s.client.write_at(&*created.handle, b"far away", FAR)?;
    equal(s.client.attr("f")?.size, FAR + 8)?;
    equal(s.client.read_at(&*created.handle, FAR - 2, 20)?, b"\0\0far away")?;
    equal(s.client.read_at(&*created.handle, FAR % (1 << 32), 8)?, [0; 8])?;
    equal(resize(s, &*created.entry.node, (1 << 33) + 1)?, (1 << 33) + 1)?;
    equal(s.client.read_at(&*created.handle, 1 << 33, 20)?, [0])?;
    equal(resize(s, &*created.entry.node, FAR + 3)?, FAR + 3)?;
    equal(s.client.read_at(&*created.handle, FAR, 20)?, b"far")
}

fn what_is_synced_is_there(s: &Subject) -> Outcome {
    let handle = s.client.create("f", RW, 0o600)?.handle;
    s.client.write_at(&*handle, b"bytes", 0)?;
    for datasync in [true, false] {
        handle.fsync(s.client.call(), datasync)?;
    }
    handle.flush(s.client.call())?;
    s.client.root().opendir(s.client.call())?.fsync(s.client.call(), false)?;
    s.fs.sync(s.client.call())?;
    equal(s.client.read("f")?, b"bytes")
}

fn copy(
    s: &Subject,
    from: &dyn Handle,
    at: u64,
    to: &dyn Handle,
    to_at: u64,
    length: u64,
) -> Result<u64, Failure> {
    let call: &Call = s.client.call();
    let mut done = 0;
    while done < length {
        match from.copy_range(call, at + done, to, to_at + done, length - done)? {
            0 => break,
            copied => done += copied,
        }
    }
    Ok(done)
}

fn a_range_is_copied(s: &Subject) -> Outcome {
    let bytes = pattern(300_000, 3);
    s.client.write("from", &bytes)?;
    let from = s.client.open("from", OFlags::RDONLY)?;
    let to = s.client.create("to", RW, 0o600)?.handle;
    s.client.write_at(&*to, b"0123456789", 0)?;
    equal(copy(s, &*from, 777, &*to, 5, 200_000)?, 200_000)?;
    let copied = s.client.read("to")?;
    equal(&copied[..5], b"01234")?;
    holds(copied[5..] == bytes[777..200_777], "the range arrived")?;
    // Within one file, apart from each other.
    equal(copy(s, &*to, 5, &*to, 300_000, 100)?, 100)?;
    equal(s.client.read_at(&*to, 300_000, 1000)?, &bytes[777..877])
}

fn a_copied_hole_is_zero(s: &Subject) -> Outcome {
    const HOLE: usize = 1 << 20;
    let from = s.client.create("from", RW, 0o600)?;
    resize(s, &*from.entry.node, HOLE as u64)?;
    s.client.write_at(&*from.handle, b"end", HOLE as u64)?;
    let bytes = pattern(2 * HOLE, 5);
    s.client.write("to", &bytes)?;
    let to = s.client.open("to", RW)?;
    equal(copy(s, &*from.handle, 0, &*to, 1000, HOLE as u64 + 3)?, HOLE as u64 + 3)?;
    let copied = s.client.read("to")?;
    holds(copied[..1000] == bytes[..1000], "what lies before is as it was")?;
    holds(copied[1000..1000 + HOLE].iter().all(|byte| *byte == 0), "the hole is zero there, too")?;
    equal(&copied[1000 + HOLE..1003 + HOLE], b"end")?;
    holds(copied[1003 + HOLE..] == bytes[1003 + HOLE..], "what lies behind is as it was")
}

fn a_copy_ends_at_the_end(s: &Subject) -> Outcome {
    s.client.write("from", b"0123456789")?;
    let from = s.client.open("from", OFlags::RDONLY)?;
    let to = s.client.create("to", RW, 0o600)?.handle;
    equal(copy(s, &*from, 6, &*to, 0, 100)?, 4)?;
    equal(from.copy_range(s.client.call(), 10, &*to, 0, 5)?, 0)?;
    equal(from.copy_range(s.client.call(), 1000, &*to, 0, 5)?, 0)?;
    equal(s.client.read("to")?, b"6789")?;
    refused(from.copy_range(s.client.call(), 0, &*from, 20, 5), Errno::BADF)
}

fn a_copy_onto_itself_is_refused(s: &Subject) -> Outcome {
    s.client.write("f", b"0123456789")?;
    let handle = s.client.open("f", RW)?;
    refused(handle.copy_range(s.client.call(), 0, &*handle, 3, 5), Errno::INVAL)?;
    equal(s.client.read("f")?, b"0123456789")
}
