//! Holes and promised space.

use hither_vfs::{Errno, FallocateFlags, Handle, OFlags, SeekTo};

use super::{Subject, Test, tests};
use crate::check::{Failure, Outcome, equal, holds, refused, refused_with_one_of};

pub(super) const TESTS: &[Test] = tests![
    holes_and_data_are_found [Sparse],
    a_seek_past_the_end_is_refused [Sparse],
    a_hole_takes_no_space [Sparse],
    space_can_be_allocated [Fallocate],
    allocation_keeps_what_is_there [Fallocate],
    a_punched_range_is_zero [Fallocate],
    a_punched_range_is_a_hole [Fallocate, Sparse],
    nonsense_is_not_allocated [Fallocate],
];

/// Holes and data here are whole multiples of it: no file system's unit is larger.
const UNIT: u64 = 1 << 20;

/// A file with data in the units 1 and 3 of 5.
fn striped(s: &Subject) -> Result<std::sync::Arc<dyn Handle>, Failure> {
    let created = s.client.create("f", OFlags::RDWR, 0o600)?;
    let data = vec![7; UNIT as usize];
    s.client.write_at(&*created.handle, &data, UNIT)?;
    s.client.write_at(&*created.handle, &data, 3 * UNIT)?;
    let set = hither_vfs::SetAttr { size: Some(5 * UNIT), ..Default::default() };
    created.entry.node.setattr(s.client.call(), &set, None)?;
    Ok(created.handle)
}

fn holes_and_data_are_found(s: &Subject) -> Outcome {
    let handle = striped(s)?;
    let seek = |offset, to| handle.seek(s.client.call(), offset, to);
    for (offset, data, hole) in [
        (0, Some(UNIT), 0),
        (UNIT - 1, Some(UNIT), UNIT - 1),
        (UNIT, Some(UNIT), 2 * UNIT),
        (UNIT + 5, Some(UNIT + 5), 2 * UNIT),
        (2 * UNIT, Some(3 * UNIT), 2 * UNIT),
        (4 * UNIT - 1, Some(4 * UNIT - 1), 4 * UNIT),
        (4 * UNIT, None, 4 * UNIT),
    ] {
        equal(seek(offset, SeekTo::Hole)?, hole)?;
        match data {
            Some(data) => equal(seek(offset, SeekTo::Data)?, data)?,
            None => refused(seek(offset, SeekTo::Data), Errno::NXIO)?,
        }
    }
    // The end of the last data is a hole even where no hole follows.
    s.client.write("full", &vec![1; UNIT as usize])?;
    let full = s.client.open("full", OFlags::RDONLY)?;
    equal(full.seek(s.client.call(), 0, SeekTo::Hole)?, UNIT)
}

fn a_seek_past_the_end_is_refused(s: &Subject) -> Outcome {
    let handle = striped(s)?;
    for offset in [5 * UNIT, 5 * UNIT + 1, 1 << 50] {
        refused(handle.seek(s.client.call(), offset, SeekTo::Data), Errno::NXIO)?;
        refused(handle.seek(s.client.call(), offset, SeekTo::Hole), Errno::NXIO)?;
    }
    Ok(())
}

fn a_hole_takes_no_space(s: &Subject) -> Outcome {
    let handle = s.client.create("f", OFlags::RDWR, 0o600)?.handle;
    s.client.write_at(&*handle, b"x", 1 << 32)?;
    handle.fsync(s.client.call(), false)?;
    let attr = s.client.attr("f")?;
    equal(attr.size, (1 << 32) + 1)?;
    holds(attr.blocks > 0 && attr.blocks * 512 < 8 * UNIT, "only what was written takes space")
}

fn space_can_be_allocated(s: &Subject) -> Outcome {
    let created = s.client.create("f", OFlags::RDWR, 0o600)?;
    let allocate = |flags, offset, length| created.handle.fallocate(s.client.call(), flags, offset, length);
    allocate(FallocateFlags::KEEP_SIZE, 0, 2 * UNIT)?;
    let attr = s.client.attr("f")?;
    equal(attr.size, 0)?;
    holds(attr.blocks * 512 >= 2 * UNIT, "space was taken")?;
    allocate(FallocateFlags::empty(), UNIT, 100)?;
    equal(s.client.attr("f")?.size, UNIT + 100)?;
    let bytes = s.client.read("f")?;
    holds(bytes.len() as u64 == UNIT + 100 && bytes.iter().all(|byte| *byte == 0), "allocated bytes are zero")
}

fn allocation_keeps_what_is_there(s: &Subject) -> Outcome {
    s.client.write("f", b"0123456789")?;
    let handle = s.client.open("f", OFlags::RDWR)?;
    handle.fallocate(s.client.call(), FallocateFlags::empty(), 5, 10)?;
    equal(s.client.read("f")?, b"0123456789\0\0\0\0\0")?;
    handle.fallocate(s.client.call(), FallocateFlags::empty(), 0, 3)?;
    equal(s.client.attr("f")?.size, 15)
}

const PUNCH: FallocateFlags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);

fn a_punched_range_is_zero(s: &Subject) -> Outcome {
    s.client.write("f", &vec![9; 200_000])?;
    let handle = s.client.open("f", OFlags::RDWR)?;
    for (offset, length) in [(10, 5), (4096, 4096), (60_000, 70_000), (199_990, 1000)] {
        handle.fallocate(s.client.call(), PUNCH, offset, length)?;
    }
    let bytes = s.client.read("f")?;
    equal(bytes.len(), 200_000)?;
    for (at, byte) in bytes.iter().enumerate() {
        let punched = matches!(at, 10..15 | 4096..8192 | 60_000..130_000 | 199_990..);
        holds(*byte == if punched { 0 } else { 9 }, "just the range is zero")?;
    }
    Ok(())
}

fn a_punched_range_is_a_hole(s: &Subject) -> Outcome {
    s.client.write("f", &vec![9; 4 * UNIT as usize])?;
    let handle = s.client.open("f", OFlags::RDWR)?;
    let before = s.client.attr("f")?.blocks;
    handle.fallocate(s.client.call(), PUNCH, UNIT, 2 * UNIT)?;
    holds(s.client.attr("f")?.blocks < before, "space was given back")?;
    equal(handle.seek(s.client.call(), 0, SeekTo::Hole)?, UNIT)?;
    equal(handle.seek(s.client.call(), UNIT, SeekTo::Data)?, 3 * UNIT)
}

fn nonsense_is_not_allocated(s: &Subject) -> Outcome {
    s.client.write("f", b"bytes")?;
    let handle = s.client.open("f", OFlags::RDWR)?;
    let allocate = |flags, offset, length| handle.fallocate(s.client.call(), flags, offset, length);
    refused(allocate(FallocateFlags::empty(), 0, 0), Errno::INVAL)?;
    refused(allocate(FallocateFlags::PUNCH_HOLE, 0, 10), Errno::OPNOTSUPP)?;
    refused(allocate(FallocateFlags::empty(), i64::MAX as u64, 10), Errno::FBIG)?;
    let reader = s.client.open("f", OFlags::RDONLY)?;
    let result = reader.fallocate(s.client.call(), FallocateFlags::empty(), 0, 10);
    refused_with_one_of(result, &[Errno::BADF])?;
    equal(s.client.read("f")?, b"bytes")
}
