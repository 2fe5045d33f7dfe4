//! An answer in the making. Its memory is used again and again by one thread.

use std::cell::RefCell;
use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use hither_sys::fuse_ring::Held;
use hither_vfs::locks::LockRequest;

use crate::inflight::{Delivery, InFlight};
use crate::nodes::Known;
use crate::protocol::wire::Wire;
use crate::transport::buffer::PageBuffer;

/// What an answer gives the kernel to keep, to be taken back if it does not arrive.
#[derive(Default)]
pub(crate) struct Given {
    /// Node ids, each told once.
    pub(crate) lookups: Vec<u64>,
    /// An open file.
    pub(crate) file: Option<u64>,
    /// An open directory.
    pub(crate) dir: Option<u64>,
    /// A lock.
    pub(crate) lock: Option<(Arc<Known>, LockRequest)>,
}

/// An answer in the making.
pub(crate) struct Reply {
    head: Vec<u8>,
    /// Where in `head` timeouts lie.
    timeouts: Vec<Range<usize>>,
    data: PageBuffer,
    /// Memory of the transport, which is answered from without a copy; of the present request only.
    lent: Option<Held>,
    /// Whether the file data is in there.
    is_in_lent: bool,
    data_len: usize,
    changes: u64,
    pub(crate) given: Given,
}

impl Reply {
    /// Holds nothing yet.
    pub(crate) fn new() -> Self {
        Reply {
            head: Vec::with_capacity(512),
            timeouts: Vec::new(),
            data: PageBuffer::empty(),
            lent: None,
            is_in_lent: false,
            data_len: 0,
            changes: 0,
            given: Given::default(),
        }
    }

    /// Runs `act` with a reply that belongs to this thread.
    pub(crate) fn with_threads_own(act: impl FnOnce(&mut Reply)) {
        thread_local! {
            static OWN: RefCell<Option<Reply>> = const { RefCell::new(None) };
        }
        let mut reply = OWN.take().unwrap_or_else(Reply::new);
        act(&mut reply);
        OWN.set(Some(reply));
    }

    /// Begins an answer, when `changes` changes had been told.
    pub(crate) fn reset(&mut self, changes: u64) {
        self.head.clear();
        self.timeouts.clear();
        self.data_len = 0;
        self.changes = changes;
        self.given.lookups.clear();
        (self.given.file, self.given.dir, self.given.lock) = (None, None, None);
    }

    /// Appends a structure without timeouts.
    pub(crate) fn put(&mut self, structure: &impl Wire) {
        structure.put(&mut self.head);
    }

    /// Appends bytes.
    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) {
        self.head.extend_from_slice(bytes);
    }

    /// Appends a structure whose bytes in `timeouts` are timeouts.
    pub(crate) fn put_timed(&mut self, structure: &impl Wire, timeouts: Range<usize>) {
        let begin = self.head.len();
        structure.put(&mut self.head);
        self.timeouts.push(begin + timeouts.start..begin + timeouts.end);
    }

    /// For what is appended by others, entry by entry: bytes so far, and `timeouts` within what was appended last.
    pub(crate) fn head_mut(&mut self) -> &mut Vec<u8> {
        &mut self.head
    }

    /// Marks bytes of the head as timeouts.
    pub(crate) fn mark_timeouts(&mut self, timeouts: Range<usize>) {
        self.timeouts.push(timeouts);
    }

    /// Room for file data, page-aligned; see [`Reply::set_data_len`].
    pub(crate) fn data_mut(&mut self, size: usize) -> &mut [u8] {
        self.is_in_lent = self.lent.as_ref().is_some_and(|held| held.room().len() >= size);
        match &mut self.lent {
            Some(held) if self.is_in_lent => &mut held.room_mut()[..size],
            _ => self.data.at_least(size),
        }
    }

    /// Lends memory for file data, until [`Reply::end_loan`].
    pub(crate) fn lend(&mut self, held: Held) {
        self.lent = Some(held);
    }

    /// Gives back what was lent.
    pub(crate) fn end_loan(&mut self) {
        self.lent = None;
    }

    /// How many bytes of file data there are.
    pub(crate) fn set_data_len(&mut self, length: usize) {
        self.data_len = length;
    }

    /// What was learned while something changed may be old: it gets no timeout.
    pub(crate) fn settle(&mut self, changes: u64) {
        if changes != self.changes {
            for timeout in self.timeouts.drain(..) {
                self.head[timeout].fill(0);
            }
        }
    }

    /// Answers with it.
    pub(crate) fn send(&self, in_flight: &InFlight) -> Delivery {
        if self.data_len == 0 {
            return in_flight.answer(&[IoSlice::new(&self.head)]);
        }
        let data = match &self.lent {
            Some(held) if self.is_in_lent => &held.room()[..self.data_len],
            _ => &self.data.bytes()[..self.data_len],
        };
        in_flight.answer(&[IoSlice::new(&self.head), IoSlice::new(data)])
    }
}
