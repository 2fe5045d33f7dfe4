//! Patterns for names and paths: what they are, how they match, how they are printed.
//!
//! Names are bytes, so patterns are too: `?` is one byte, whatever character it may belong to. `*`, `?` and
//! `[...]` never match a slash, which makes one kind of pattern do for names (that hold none) and for paths.

mod class;
mod compile;
mod states;
mod value;

use std::fmt::{self, Write};

use self::class::Class;
use self::states::States;

pub(crate) use self::value::ends_value;

/// Words of states for the longest pattern.
const WORDS: usize = 16;

/// Elements that a pattern may have. Names have at most 255 bytes; longer paths are matched, but nobody
/// writes them.
const MAX_ELEMENTS: usize = States::<WORDS>::LAST;

/// One element of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Element {
    /// This byte.
    Byte(u8),
    /// `?`: any byte but a slash.
    One,
    /// `[...]`: a byte of the class.
    Class(Class),
    /// `*`: any number of bytes but slashes.
    Star,
    /// `**`: any number of bytes.
    Globstar,
    /// `**/` where a component begins: any number of whole directories.
    Dirs,
}

impl Element {
    /// Can the element match nothing at all?
    fn may_be_empty(&self) -> bool {
        matches!(self, Element::Star | Element::Globstar | Element::Dirs)
    }
}

/// A compiled pattern. Equal patterns print alike, and what is printed compiles to an equal pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    elements: Vec<Element>,
}

impl Glob {
    /// Does the pattern match all of `text`?
    ///
    /// Every way to match is followed at once, a state for each element, so the time is bounded by the
    /// product of the lengths of text and pattern. Trying one way after another takes exponential time on
    /// `*a*a*a*b`.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        // Most files fail here: their names do not end in `.h5`.
        let literal = self.elements.iter().rev().map_while(|element| match element {
            Element::Byte(byte) => Some(byte),
            _ => None,
        });
        let mut end = text.iter().rev();
        if literal.into_iter().any(|byte| end.next() != Some(byte)) {
            return false;
        }
        // Few patterns need more than one word of states, and a word lives in a register.
        if self.elements.len() <= States::<1>::LAST {
            self.matches_with::<1>(text)
        } else {
            self.matches_with::<WORDS>(text)
        }
    }

    fn matches_with<const WORDS: usize>(&self, text: &[u8]) -> bool {
        let mut live = States::<WORDS>::none();
        self.enter(&mut live, 0);
        for &byte in text {
            let mut next = States::none();
            for at in live.iter() {
                // No element: the pattern is used up, and this byte is left over.
                let Some(element) = self.elements.get(at) else { continue };
                let slash = byte == b'/';
                match element {
                    Element::Byte(wanted) if *wanted == byte => self.enter(&mut next, at + 1),
                    Element::One if !slash => self.enter(&mut next, at + 1),
                    Element::Class(class) if class.contains(byte) => self.enter(&mut next, at + 1),
                    Element::Star if !slash => self.enter(&mut next, at),
                    Element::Globstar => self.enter(&mut next, at),
                    Element::Dirs => {
                        next.insert(at);
                        if slash {
                            self.enter(&mut next, at + 1);
                        }
                    }
                    Element::Byte(_) | Element::One | Element::Class(_) | Element::Star => {}
                }
            }
            if next.is_empty() {
                return false;
            }
            live = next;
        }
        live.contains(self.elements.len())
    }

    /// Makes `at` live, and what follows it for as long as elements may match nothing.
    fn enter<const WORDS: usize>(&self, states: &mut States<WORDS>, mut at: usize) {
        states.insert(at);
        while self.elements.get(at).is_some_and(Element::may_be_empty) {
            at += 1;
            states.insert(at);
        }
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut body = String::new();
        let mut elements = self.elements.iter().peekable();
        let mut literal = Vec::new();
        while let Some(element) = elements.next() {
            match element {
                Element::Byte(byte) => literal.push(*byte),
                Element::One => body.push('?'),
                Element::Class(class) => write!(body, "{class}")?,
                Element::Star => body.push('*'),
                Element::Globstar => body.push_str("**"),
                Element::Dirs => body.push_str("**/"),
            }
            // Bytes are printed in runs, as the characters that they make up.
            if !matches!(elements.peek(), Some(Element::Byte(_))) {
                write_bytes(&mut body, &literal)?;
                literal.clear();
            }
        }
        if body.contains(|c| !value::bare_in_braces(c)) {
            write!(f, "\"{body}\"")
        } else {
            f.write_str(&body)
        }
    }
}

/// Writes literal bytes so that they are read back as such.
fn write_bytes(out: &mut String, bytes: &[u8]) -> fmt::Result {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            write_char(out, c)?;
        }
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}")?;
        }
    }
    Ok(())
}

/// Writes a literal character, behind a backslash if it has a meaning, and by its bytes if it cannot be seen.
fn write_char(out: &mut String, c: char) -> fmt::Result {
    if c.is_control() {
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            write!(out, "\\x{byte:02x}")?;
        }
        return Ok(());
    }
    if value::is_special(c) {
        out.push('\\');
    }
    out.push(c);
    Ok(())
}

#[cfg(test)]
mod tests;
