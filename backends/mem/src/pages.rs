//! The bytes of a file: pages of up to 64 KiB where there are bytes, nothing where there are holes.

use std::collections::BTreeMap;

use hither_vfs::{Result, SeekTo};

use crate::space::{BLOCK_BYTES, Space};

/// Bytes of a page: also the unit in which holes are seen.
pub(crate) const PAGE_BYTES: u64 = 64 * 1024;

/// The bytes of a file. What no page holds is zero.
///
/// Blocks are taken from and given back to the space that every changing call is handed; whoever owns the pages calls
/// [`Pages::clear`] in the end.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pages: BTreeMap<u64, Page>,
    /// Blocks of all pages together.
    blocks: u64,
}

/// Bytes of one page: those behind the end of `bytes` are zero.
#[derive(Debug, Default)]
struct Page {
    bytes: Vec<u8>,
    /// Blocks that `fallocate` has promised, whether there are bytes or not.
    promised: u64,
}

impl Page {
    fn blocks(&self) -> u64 {
        self.promised.max((self.bytes.len() as u64).div_ceil(BLOCK_BYTES))
    }
}

/// A part of a page: which page, and from where to where in it.
struct Piece {
    index: u64,
    from: usize,
    to: usize,
}

/// The range cut at the borders of pages.
fn pieces(offset: u64, length: u64) -> impl Iterator<Item = Piece> {
    let end = offset.saturating_add(length);
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let index = at / PAGE_BYTES;
        let start = index * PAGE_BYTES;
        let stop = end.min(start.saturating_add(PAGE_BYTES));
        let piece = Piece { index, from: (at - start) as usize, to: (stop - start) as usize };
        at = stop;
        Some(piece)
    })
}

impl Pages {
    /// Units of 512 bytes, for `st_blocks`.
    pub(crate) fn sectors(&self) -> u64 {
        self.blocks * (BLOCK_BYTES / 512)
    }

    /// Fills `buf` with the bytes from `offset` on.
    pub(crate) fn read(&self, buf: &mut [u8], offset: u64) {
        let mut rest = buf;
        for piece in pieces(offset, rest.len() as u64) {
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(piece.to - piece.from);
            let bytes = self.pages.get(&piece.index).map_or(&[][..], |page| &page.bytes);
            let there = bytes.get(piece.from..piece.to.min(bytes.len())).unwrap_or_default();
            part[..there.len()].copy_from_slice(there);
            part[there.len()..].fill(0);
            rest = behind;
        }
    }

    /// Writes `data` at `offset`; fewer bytes, or ENOSPC if not one, when the space is full.
    pub(crate) fn write(&mut self, data: &[u8], offset: u64, space: &Space) -> Result<usize> {
        let mut rest = data;
        for piece in pieces(offset, data.len() as u64) {
            let (part, behind) = rest.split_at(piece.to - piece.from);
            if let Err(full) = self.write_piece(&piece, part, space) {
                let written = data.len() - rest.len();
                return if written > 0 { Ok(written) } else { Err(full) };
            }
            rest = behind;
        }
        Ok(data.len())
    }

    fn write_piece(&mut self, piece: &Piece, part: &[u8], space: &Space) -> Result<()> {
        let before = self.pages.get(&piece.index).map_or(0, Page::blocks);
        let more = (piece.to as u64).div_ceil(BLOCK_BYTES).saturating_sub(before);
        space.take_blocks(more)?;
        self.blocks += more;
        let page = self.pages.entry(piece.index).or_default();
        if page.bytes.len() < piece.from {
            page.bytes.resize(piece.from, 0);
        }
        let inside = page.bytes.len().min(piece.to) - piece.from;
        page.bytes[piece.from..piece.from + inside].copy_from_slice(&part[..inside]);
        page.bytes.extend_from_slice(&part[inside..]);
        Ok(())
    }

    /// Drops all that lies at or behind `size`.
    pub(crate) fn truncate(&mut self, size: u64, space: &Space) {
        let (last, keep) = (size / PAGE_BYTES, (size % PAGE_BYTES) as usize);
        let behind = self.pages.split_off(&last);
        let mut freed: u64 = behind.values().map(Page::blocks).sum();
        if keep > 0 {
            let cut = behind.into_iter().next().filter(|(index, _)| *index == last);
            if let Some((index, mut page)) = cut {
                page.bytes.truncate(keep);
                page.promised = page.promised.min((keep as u64).div_ceil(BLOCK_BYTES));
                freed -= page.blocks();
                self.pages.insert(index, page);
            }
        }
        self.blocks -= freed;
        space.give_blocks(freed);
    }

    /// Makes the range zero; whole pages become holes.
    pub(crate) fn punch(&mut self, offset: u64, length: u64, space: &Space) {
        let end = offset.saturating_add(length);
        let met = self.pages.range(offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES));
        // Only pages that exist are visited: a hole of exabytes costs nothing.
        let met: Vec<u64> = met.map(|(index, _)| *index).collect();
        for index in met {
            let start = index * PAGE_BYTES;
            let from = offset.saturating_sub(start).min(PAGE_BYTES) as usize;
            let to = (end - start).min(PAGE_BYTES) as usize;
            if from == 0 && to == PAGE_BYTES as usize {
                let freed = self.pages.remove(&index).map_or(0, |page| page.blocks());
                self.blocks -= freed;
                space.give_blocks(freed);
            } else if let Some(page) = self.pages.get_mut(&index) {
                let to = to.min(page.bytes.len());
                page.bytes[from.min(to)..to].fill(0);
            }
        }
    }

    /// Promises room for the range: later writes to it do not fail for want of space. All of it or nothing.
    pub(crate) fn allocate(&mut self, offset: u64, length: u64, space: &Space) -> Result<()> {
        let wanted = |piece: &Piece| (piece.to as u64).div_ceil(BLOCK_BYTES);
        // The range may be far larger than the space: refuse it before walking it.
        let all: u64 = length / BLOCK_BYTES;
        if all.saturating_sub(self.blocks) > space.statfs().blocks_free {
            return Err(hither_vfs::Errno::NOSPC.into());
        }
        let more: u64 = pieces(offset, length)
            .map(|piece| wanted(&piece).saturating_sub(self.pages.get(&piece.index).map_or(0, Page::blocks)))
            .sum();
        space.take_blocks(more)?;
        self.blocks += more;
        for piece in pieces(offset, length) {
            let page = self.pages.entry(piece.index).or_default();
            page.promised = page.promised.max(wanted(&piece));
        }
        Ok(())
    }

    /// The next byte at or behind `offset` that lies in a page, or in a hole, of a file of `size` bytes (its end is a
    /// hole); `None` if there is none before `size`.
    pub(crate) fn seek(&self, offset: u64, to: SeekTo, size: u64) -> Option<u64> {
        if offset >= size {
            return None;
        }
        let first = offset / PAGE_BYTES;
        match to {
            SeekTo::Data => {
                let (index, _) = self.pages.range(first..).next()?;
                Some(offset.max(index * PAGE_BYTES)).filter(|found| *found < size)
            }
            SeekTo::Hole => {
                let run =
                    self.pages.range(first..).zip(first..).take_while(|((index, _), next)| *index == next);
                let behind = first + run.count() as u64;
                Some(offset.max(behind * PAGE_BYTES).min(size))
            }
        }
    }

    /// Gives everything back.
    pub(crate) fn clear(&mut self, space: &Space) {
        self.truncate(0, space);
    }
}

#[cfg(test)]
mod tests;
