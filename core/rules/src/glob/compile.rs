//! From the text of a value to a pattern. A pattern that could never match is an error, not a rule that
//! sleeps.

use std::slice::Iter;

use super::class::Class;
use super::value::{self, Placed, Unit};
use super::{Element, Glob, MAX_ELEMENTS};
use crate::cursor::Cursor;
use crate::error::ParseError;

impl Glob {
    /// Reads one pattern for a name.
    pub(crate) fn read_name(cursor: &mut Cursor<'_>, in_braces: bool) -> Result<Glob, ParseError> {
        let start = cursor.offset();
        let units = value::read(cursor, in_braces)?;
        if let Some((at, _)) = units.iter().find(|(_, unit)| is_slash(unit)) {
            return Err(cursor.error_at(*at, "a name, which has no `/` (for paths, see path={...})"));
        }
        let mut elements = elements(cursor, &units)?;
        // In a name there is no slash to cross, so every run of stars is one star.
        for element in &mut elements {
            if *element == Element::Globstar {
                *element = Element::Star;
            }
        }
        finish(cursor, start, elements)
    }

    /// Reads one pattern for a path.
    pub(crate) fn read_path(cursor: &mut Cursor<'_>, in_braces: bool) -> Result<Glob, ParseError> {
        let start = cursor.offset();
        let units = value::read(cursor, in_braces)?;
        // Paths are relative to the root of the mount, and a leading slash says no more than that.
        let relative = match units.as_slice() {
            [(_, first), rest @ ..] if is_slash(first) => rest,
            all => all,
        };
        let elements = whole_directories(elements(cursor, relative)?);
        if elements.split(|element| *element == Element::Byte(b'/')).any(never_a_component) {
            let expected = "a path below the root of the mount, without empty, `.` or `..` components \
                            (all files below a directory: dir/**)";
            return Err(cursor.error_at(start, expected));
        }
        finish(cursor, start, elements)
    }
}

fn finish(cursor: &Cursor<'_>, start: usize, elements: Vec<Element>) -> Result<Glob, ParseError> {
    match elements.len() {
        0 => Err(cursor.error_at(start, "a pattern, which is not empty")),
        1..=MAX_ELEMENTS => Ok(Glob { elements }),
        _ => Err(cursor.error_at(start, format!("a pattern of at most {MAX_ELEMENTS} characters"))),
    }
}

fn is_slash(unit: &Unit) -> bool {
    matches!(unit, Unit::Char('/') | Unit::Literal('/') | Unit::Byte(b'/'))
}

/// Is this, what stands between two slashes, something that no path has there?
fn never_a_component(component: &[Element]) -> bool {
    const DOT: Element = Element::Byte(b'.');
    let dirs = component.iter().take_while(|element| **element == Element::Dirs).count();
    matches!(component.split_at_checked(dirs), Some((_, [] | [DOT] | [DOT, DOT])))
}

/// Turns units into elements, with every run of two and more stars a [`Element::Globstar`].
fn elements(cursor: &Cursor<'_>, units: &[Placed]) -> Result<Vec<Element>, ParseError> {
    let mut elements = Vec::with_capacity(units.len());
    let mut units = units.iter();
    while let Some(&(at, unit)) = units.next() {
        match unit {
            Unit::Char('*') => match elements.last_mut() {
                Some(last @ (Element::Star | Element::Globstar)) => *last = Element::Globstar,
                _ => elements.push(Element::Star),
            },
            Unit::Char('?') => elements.push(Element::One),
            Unit::Char('[') => elements.push(class(cursor, at, &mut units)?),
            Unit::Char(c) | Unit::Literal(c) => {
                elements.extend(c.encode_utf8(&mut [0; 4]).bytes().map(Element::Byte));
            }
            Unit::Byte(byte) => elements.push(Element::Byte(byte)),
        }
    }
    Ok(elements)
}

/// Reads a class behind its `[`, which stands at `start`.
fn class(cursor: &Cursor<'_>, start: usize, units: &mut Iter<'_, Placed>) -> Result<Element, ParseError> {
    let unclosed =
        || cursor.error_at(start, "a `]` that closes this `[` (for the character itself, write `\\[`)");
    let negated = matches!(units.as_slice(), [(_, Unit::Char('!' | '^')), ..]);
    if negated {
        units.next();
    }
    let mut listed = Class::default();
    let mut first = true;
    loop {
        let &(at, unit) = units.next().ok_or_else(unclosed)?;
        if unit == Unit::Char(']') && !first {
            break;
        }
        first = false;
        if unit == Unit::Char('[') && matches!(units.as_slice(), [(_, Unit::Char(':')), ..]) {
            return Err(
                cursor.error_at(at, "characters and ranges; classes by name, as [:digit:], are not known")
            );
        }
        let low = member(cursor, at, unit)?;
        let high = match units.as_slice() {
            [(_, Unit::Char('-')), (end, high), ..] if *high != Unit::Char(']') => {
                units.nth(1);
                member(cursor, *end, *high)?
            }
            _ => low,
        };
        if low > high {
            return Err(cursor.error_at(at, "a range from low to high"));
        }
        (low..=high).for_each(|byte| listed.insert(byte));
    }
    let class = if negated { listed.complement() } else { listed };
    // The classes of one byte and of every byte have a simpler form; every pattern has one form only.
    let mut members = class.bytes();
    match (members.next(), members.next_back()) {
        (None, _) => Err(cursor.error_at(start, "a class that some byte of a name belongs to")),
        (Some(only), None) => Ok(Element::Byte(only)),
        _ if class.complement() == Class::default() => Ok(Element::One),
        _ => Ok(Element::Class(class)),
    }
}

/// The byte that a member of a class stands for.
fn member(cursor: &Cursor<'_>, at: usize, unit: Unit) -> Result<u8, ParseError> {
    match unit {
        Unit::Byte(byte) => Ok(byte),
        Unit::Char(c) | Unit::Literal(c) => u8::try_from(c).ok().filter(u8::is_ascii).ok_or_else(|| {
            cursor.error_at(at, "an ASCII character, or \\xHH, inside [...]: a class is of bytes")
        }),
    }
}

/// Makes `**` and a slash, where a component begins, one element that also matches no directory at all.
fn whole_directories(elements: Vec<Element>) -> Vec<Element> {
    let mut out = Vec::with_capacity(elements.len());
    let mut elements = elements.into_iter().peekable();
    while let Some(element) = elements.next() {
        let begins = matches!(out.last(), None | Some(Element::Byte(b'/') | Element::Dirs));
        let dirs =
            begins && element == Element::Globstar && elements.next_if_eq(&Element::Byte(b'/')).is_some();
        match dirs {
            // Directories after directories are directories.
            true if out.last() == Some(&Element::Dirs) => {}
            true => out.push(Element::Dirs),
            false => out.push(element),
        }
    }
    out
}
