//! The set of places in a pattern that a match has reached: a bit each, on the stack.

/// Places from 0 to [`States::LAST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct States<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> States<WORDS> {
    /// The highest place that can be a member.
    pub(super) const LAST: usize = WORDS * 64 - 1;

    pub(super) fn none() -> Self {
        Self([0; WORDS])
    }

    /// Adds `at`, at most [`States::LAST`].
    pub(super) fn insert(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    pub(super) fn contains(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// The members, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(index, &word)| {
            std::iter::successors(Some(word), |&left| Some(left & left.wrapping_sub(1)))
                .take_while(|&left| left != 0)
                .map(move |left| index * 64 + left.trailing_zeros() as usize)
        })
    }
}
