//! One chunk on its way from the origin to the store: in one piece, or in two if somebody waits for its first bytes.

use std::ops::Range;

use hither_vfs::{Call, Errno, Handle, Result};

use crate::record::{CHUNK, checksum};
use crate::shared::{Buffers, Shared};

/// The first piece of two, in bytes: what a client of a network file system reads ahead by default, so that it costs the origin
/// one request and not several in a row.
const FIRST: usize = 128 << 10;
/// Holes of a copy are made of blocks of this many bytes that are all zero.
const BLOCK: usize = 4096;

/// A chunk under way.
pub(crate) struct Piece {
    chunk: u64,
    bytes: Vec<u8>,
    length: usize,
    done: usize,
    /// Where the first piece ends. Pieces cost: the kernel keeps a file in larger folios if it is written in one go.
    first_end: usize,
}

/// What a step brought.
pub(crate) enum Fetched {
    /// So many bytes of the chunk are in the store.
    Piece(u64),
    /// All of it is, and this is its checksum.
    All(u64),
    /// The file cannot be fetched, for this reason.
    Never(&'static str),
}

impl Piece {
    /// Nothing yet of a chunk of a file of `size` bytes, of which somebody waits for the first `upto`.
    pub(crate) fn first(buffers: &Buffers, chunk: u64, size: u64, upto: u64) -> Self {
        let length = CHUNK.min(size.saturating_sub(chunk * CHUNK)) as usize;
        let first_end = if upto <= FIRST as u64 { FIRST.min(length) } else { length };
        Piece { chunk, bytes: buffers.take(length), length, done: 0, first_end }
    }

    /// Which chunk.
    pub(crate) fn chunk(&self) -> u64 {
        self.chunk
    }

    /// Brings the next piece from the origin to the store.
    pub(crate) fn fetch(
        &mut self,
        shared: &Shared,
        call: &Call,
        origin: &dyn Handle,
        data: &dyn Handle,
    ) -> Result<Fetched> {
        let offset = self.chunk * CHUNK;
        let from = self.done;
        let to = if from == 0 { self.first_end } else { self.length };
        while self.done < to {
            match origin.read(call, &mut self.bytes[self.done..to], offset + self.done as u64) {
                Ok(0) => return Ok(Fetched::Never("the file became shorter while it was fetched")),
                Ok(read) => self.done += read,
                Err(error) => {
                    if !error.is_would_block() && error != Errno::INTR {
                        shared.counters.origin_errors.add(1);
                    }
                    return Err(error);
                }
            }
        }
        shared.counters.fetches.add(1);
        shared.counters.fetched_bytes.add((to - from) as u64);
        for run in runs(&self.bytes[from..to]) {
            let bytes = &self.bytes[from..to][run.clone()];
            if let Err(error) = shared.store.write_data(data, bytes, offset + (from + run.start) as u64) {
                shared.store_failed(&error);
                return Ok(Fetched::Never("the store cannot take it"));
            }
        }
        if to < self.length {
            return Ok(Fetched::Piece(to as u64));
        }
        let sum = checksum(&self.bytes[..self.length]);
        shared.buffers.give(std::mem::take(&mut self.bytes));
        Ok(Fetched::All(sum))
    }
}

/// The parts of a piece that are not all zeros, in blocks; what lies between stays a hole of the data file.
fn runs(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    const ZEROS: [u8; BLOCK] = [0; BLOCK];
    let mut start = 0;
    std::iter::from_fn(move || {
        let is_zero = |at: usize| {
            let block = &bytes[at..(at + BLOCK).min(bytes.len())];
            *block == ZEROS[..block.len()]
        };
        while start < bytes.len() && is_zero(start) {
            start += BLOCK;
        }
        let from = start;
        while start < bytes.len() && !is_zero(start) {
            start += BLOCK;
        }
        (from < bytes.len()).then(|| from..start.min(bytes.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_leave_out_whole_blocks_of_zeros() {
        let mut bytes = vec![0; 5 * BLOCK + 7];
        assert_eq!(runs(&bytes).count(), 0);
        bytes[BLOCK] = 1;
        bytes[3 * BLOCK - 1] = 1;
        bytes[5 * BLOCK + 6] = 1;
        let found: Vec<_> = runs(&bytes).collect();
        assert_eq!(found, [BLOCK..3 * BLOCK, 5 * BLOCK..5 * BLOCK + 7]);
        assert_eq!(runs(&[1; 10]).collect::<Vec<_>>(), vec![Range { start: 0, end: 10 }]);
        assert_eq!(runs(&[]).count(), 0);
    }
}
