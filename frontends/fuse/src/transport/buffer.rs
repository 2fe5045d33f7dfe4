//! Buffers for requests and file data: allocated once, and placed so that file data begins on a page, as direct I/O
//! wants it.

const PAGE: usize = 4096;

/// Bytes at a fixed distance before a page boundary; the memory does not move when the buffer does.
pub(crate) struct PageBuffer {
    memory: Vec<u8>,
    begin: usize,
}

impl PageBuffer {
    /// No bytes yet; see [`PageBuffer::at_least`].
    pub(crate) const fn empty() -> Self {
        PageBuffer { memory: Vec::new(), begin: 0 }
    }

    /// `size` bytes, of which the one at `aligned_at` lies on a page boundary.
    pub(crate) fn new(size: usize, aligned_at: usize) -> Self {
        // A request for zeroed memory of this size is served by fresh pages, which are touched when first used.
        let memory = vec![0; size + 2 * PAGE];
        let to_page = memory.as_ptr().align_offset(PAGE);
        let begin = if to_page > 2 * PAGE { 0 } else { (to_page + PAGE - aligned_at % PAGE) % PAGE };
        PageBuffer { memory, begin }
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.begin..]
    }

    /// The bytes, to be filled.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..]
    }

    /// The first `size` bytes, page-aligned, whatever they hold from earlier use; the buffer grows if it has fewer.
    pub(crate) fn at_least(&mut self, size: usize) -> &mut [u8] {
        if self.bytes().len() < size {
            *self = PageBuffer::new(size.next_power_of_two(), 0);
        }
        &mut self.bytes_mut()[..size]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_byte_lies_on_a_page() {
        for aligned_at in [0, 1, 80, 4095, 4096, 5000] {
            let buffer = PageBuffer::new(10_000, aligned_at);
            assert!(buffer.bytes().len() >= 10_000);
            assert_eq!((buffer.bytes().as_ptr() as usize + aligned_at) % PAGE, 0, "{aligned_at}");
        }
    }

    #[test]
    fn grows_and_keeps_its_memory() {
        let mut buffer = PageBuffer::empty();
        assert_eq!(buffer.at_least(100).len(), 100);
        let before = buffer.at_least(10).as_ptr();
        assert_eq!(buffer.at_least(100).as_ptr(), before);
        assert_eq!(buffer.at_least(1 << 20).len(), 1 << 20);
    }
}
