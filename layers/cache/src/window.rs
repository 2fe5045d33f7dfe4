//! How far ahead of its readers a fill fetches: more while they read in order, less when they jump.

/// Chunks under way at most when readers are known to read in order.
const MAX: u64 = 16;

/// The readahead of one fill. Pure: it is told of reads and asked for the window.
#[derive(Debug)]
pub(crate) struct Window {
    /// The first chunk of the last read, and the one behind its last.
    first: u64,
    next: u64,
    width: u64,
}

impl Default for Window {
    fn default() -> Self {
        // A first read from the start counts as reading in order.
        Window { first: 0, next: 0, width: 2 }
    }
}

impl Window {
    /// A read touched the chunks `first..=last`.
    pub(crate) fn read(&mut self, first: u64, last: u64) {
        let in_order = first <= self.next && last + 1 >= self.next;
        if !in_order {
            self.width = 1;
        } else if last + 1 > self.next {
            self.width = (self.width * 2).min(MAX);
        }
        self.first = first;
        self.next = last + 1;
    }

    /// Where the last read began: what lies before it nobody is waiting for.
    pub(crate) fn behind(&self) -> u64 {
        self.first
    }

    /// Where to fetch next, and how many chunks may be under way.
    pub(crate) fn ahead(&self) -> (u64, u64) {
        (self.next, self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widens_in_order_and_narrows_on_jumps() {
        let mut window = Window::default();
        for chunk in 0..8 {
            window.read(chunk, chunk);
            window.read(chunk, chunk);
        }
        assert_eq!(window.ahead(), (8, MAX));
        window.read(100, 100);
        assert_eq!(window.ahead(), (101, 1));
        window.read(5, 6);
        assert_eq!(window.ahead(), (7, 1));
        window.read(7, 7);
        assert_eq!(window.ahead(), (8, 2));
    }
}
