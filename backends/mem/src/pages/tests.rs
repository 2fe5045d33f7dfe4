//! Pages against a plain array of bytes, and the count of blocks against the pages.

use proptest::prelude::*;

use super::*;

/// Bytes of the arrays compared: a few pages.
const SIZE: u64 = 5 * PAGE_BYTES;

#[derive(Clone, Debug)]
enum Op {
    Write { offset: u64, length: usize, fill: u8 },
    Truncate(u64),
    Punch { offset: u64, length: u64 },
    Allocate { offset: u64, length: u64 },
}

/// Offsets near the borders of pages are where mistakes live.
fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..SIZE,
        (0..5u64, 0..4u64).prop_map(|(page, near)| (page * PAGE_BYTES + near).saturating_sub(2)),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (offset(), 1..150_000usize, 1..255u8)
            .prop_map(|(offset, length, fill)| Op::Write { offset, length, fill }),
        1 => offset().prop_map(Op::Truncate),
        2 => (offset(), 1..200_000u64).prop_map(|(offset, length)| Op::Punch { offset, length }),
        1 => (offset(), 1..100_000u64).prop_map(|(offset, length)| Op::Allocate { offset, length }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn pages_are_bytes(ops in prop::collection::vec(op(), 1..30), capacity in 1..90u64) {
        let space = Space::new(capacity * BLOCK_BYTES, 1);
        let mut pages = Pages::default();
        let mut bytes = vec![0u8; (SIZE + 200_000) as usize];
        for op in ops {
            match op {
                Op::Write { offset, length, fill } => {
                    let written = pages.write(&vec![fill; length], offset, &space).unwrap_or(0);
                    bytes[offset as usize..offset as usize + written].fill(fill);
                    if written < length {
                        // A full space is the only reason, and less than a page is left of it.
                        prop_assert!(space.statfs().blocks_free < PAGE_BYTES / BLOCK_BYTES);
                    }
                }
                Op::Truncate(size) => {
                    pages.truncate(size, &space);
                    bytes[size as usize..].fill(0);
                }
                Op::Punch { offset, length } => {
                    pages.punch(offset, length, &space);
                    bytes[offset as usize..(offset + length) as usize].fill(0);
                }
                Op::Allocate { offset, length } => {
                    let free = space.statfs().blocks_free;
                    if pages.allocate(offset, length, &space).is_err() {
                        prop_assert_eq!(space.statfs().blocks_free, free);
                    } else {
                        // What was promised can be written, whoever takes the rest.
                        let rest = space.statfs().blocks_free;
                        space.take_blocks(rest).unwrap();
                        let mut now = vec![0; length as usize];
                        pages.read(&mut now, offset);
                        prop_assert_eq!(pages.write(&now, offset, &space).unwrap(), length as usize);
                        space.give_blocks(rest);
                    }
                }
            }
            let mut read = vec![1; bytes.len()];
            pages.read(&mut read, 0);
            prop_assert!(read == bytes);
            let summed: u64 = pages.pages.values().map(Page::blocks).sum();
            prop_assert_eq!(pages.blocks, summed);
            prop_assert_eq!(space.statfs().blocks - space.statfs().blocks_free, summed);
            check_seek(&pages, &bytes)?;
        }
        pages.clear(&space);
        prop_assert_eq!(space.statfs().blocks_free, capacity);
    }
}

/// All that differs from zero is data, and what is called a hole is zero.
fn check_seek(pages: &Pages, bytes: &[u8]) -> std::result::Result<(), TestCaseError> {
    let size = bytes.len() as u64;
    let mut at = 0;
    while let Some(data) = pages.seek(at, SeekTo::Data, size) {
        prop_assert!(bytes[at as usize..data as usize].iter().all(|byte| *byte == 0));
        let hole = pages.seek(data, SeekTo::Hole, size);
        prop_assert!(hole.is_some_and(|hole| hole > data));
        at = hole.unwrap_or(size);
    }
    prop_assert!(bytes[at as usize..].iter().all(|byte| *byte == 0));
    prop_assert_eq!(pages.seek(size, SeekTo::Hole, size), None);
    Ok(())
}
