//! A request where it arrived, and kept beyond that.

use super::buffer::PageBuffer;
use crate::protocol::decode::Message;

/// Requests up to this size are copied when they are kept; of larger ones the buffer goes along.
const COPY_MAX: usize = 64 << 10;

/// A request in memory that is needed again once its handler has returned.
pub(crate) trait Arrived {
    /// What it says.
    fn message(&self) -> Message<'_>;

    /// The same, to be kept for as long as is wanted. Afterwards what arrived may be gone.
    fn keep(&mut self) -> Kept;
}

/// A request in memory of its own.
pub(crate) enum Kept {
    /// A copy of a message in one piece.
    Copy(Vec<u8>),
    /// A message in one piece, and its length.
    Buffer(PageBuffer, usize),
    /// A copy of a message whose fixed part came apart.
    Apart(Box<Head>, Vec<u8>),
}

impl Kept {
    pub(crate) fn message(&self) -> Message<'_> {
        match self {
            Kept::Copy(bytes) => Message::whole(bytes),
            Kept::Buffer(buffer, length) => Message::whole(&buffer.bytes()[..*length]),
            Kept::Apart(head, rest) => head.message(rest),
        }
    }
}

/// The parts of fixed size of a message that came apart.
#[derive(Clone)]
pub(crate) struct Head {
    pub(crate) header: [u8; 40],
    pub(crate) fixed: [u8; 128],
}

impl Head {
    /// The message of this head and what follows.
    pub(crate) fn message<'a>(&'a self, rest: &'a [u8]) -> Message<'a> {
        Message::apart(&self.header, &self.fixed, rest)
    }
}

/// A message in one piece, in a buffer for such.
pub(crate) struct InBuffer<'a> {
    pub(crate) buffer: &'a mut PageBuffer,
    pub(crate) length: usize,
    /// Which byte of a buffer lies on a page boundary.
    pub(crate) aligned_at: usize,
}

impl Arrived for InBuffer<'_> {
    fn message(&self) -> Message<'_> {
        Message::whole(&self.buffer.bytes()[..self.length])
    }

    fn keep(&mut self) -> Kept {
        if self.length <= COPY_MAX {
            return Kept::Copy(self.buffer.bytes()[..self.length].to_vec());
        }
        let fresh = PageBuffer::new(self.buffer.bytes().len(), self.aligned_at);
        Kept::Buffer(std::mem::replace(self.buffer, fresh), self.length)
    }
}
