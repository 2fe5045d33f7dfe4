//! `[...]`: a set of bytes.

use std::fmt::{self, Write};

/// A set of bytes that never holds the slash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Class([u64; 4]);

impl Class {
    pub(super) fn contains(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte / 64)).is_some_and(|word| word >> (byte % 64) & 1 == 1)
    }

    pub(super) fn insert(&mut self, byte: u8) {
        if byte != b'/'
            && let Some(word) = self.0.get_mut(usize::from(byte / 64))
        {
            *word |= 1 << (byte % 64);
        }
    }

    /// Every byte that is not in the class, but the slash.
    pub(super) fn complement(&self) -> Class {
        let mut rest = Class::default();
        (0..=u8::MAX).filter(|&byte| !self.contains(byte)).for_each(|byte| rest.insert(byte));
        rest
    }

    /// The members, ascending.
    pub(super) fn bytes(&self) -> impl DoubleEndedIterator<Item = u8> + '_ {
        (0..=u8::MAX).filter(|&byte| self.contains(byte))
    }

    pub(super) fn len(&self) -> usize {
        self.bytes().count()
    }
}

impl fmt::Display for Class {
    /// Prints the members, or those that are missing if they are fewer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let complement = self.complement();
        let negated = complement.len() < self.len();
        f.write_str(if negated { "[!" } else { "[" })?;
        let listed = if negated { complement } else { *self };
        for run in listed.bytes().collect::<Vec<_>>().chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
            match run {
                [first, _, .., last] => {
                    write_member(f, *first)?;
                    f.write_char('-')?;
                    write_member(f, *last)?;
                }
                _ => run.iter().try_for_each(|&byte| write_member(f, byte))?,
            }
        }
        f.write_str("]")
    }
}

fn write_member(f: &mut fmt::Formatter<'_>, byte: u8) -> fmt::Result {
    match byte {
        b'\\' | b'"' | b'[' | b']' | b'!' | b'^' | b'-' => write!(f, "\\{}", char::from(byte)),
        b' '..=b'~' => f.write_char(char::from(byte)),
        _ => write!(f, "\\x{byte:02x}"),
    }
}
