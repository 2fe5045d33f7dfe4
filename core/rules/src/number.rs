//! Ids, sizes and ages: how they are written, and how they are compared.
//!
//! All three are whole numbers with a table of units, so they share one reader, one writer and one
//! comparison.

use std::fmt;

use crate::cursor::Cursor;
use crate::error::ParseError;
use crate::subject::Field;

/// How the numbers of a field are written.
pub(crate) struct Scale {
    /// Suffixes and what they multiply by, largest first and the preferred name of each factor first; ends
    /// with 1.
    units: &'static [(&'static str, u64)],
    /// The factor of a number without a suffix.
    bare: u64,
    any_case: bool,
    max: u64,
    expected: &'static str,
}

const ID: Scale = Scale {
    units: &[("", 1)],
    bare: 1,
    any_case: false,
    max: u32::MAX as u64,
    expected: "an id: a whole number up to 4294967295",
};

/// Powers of 1024, and MiB without a suffix, as Lustre has it. `MB` means a million to some, so it is not
/// taken.
const SIZE: Scale = Scale {
    units: &[
        ("P", 1 << 50),
        ("PiB", 1 << 50),
        ("T", 1 << 40),
        ("TiB", 1 << 40),
        ("G", 1 << 30),
        ("GiB", 1 << 30),
        ("M", 1 << 20),
        ("MiB", 1 << 20),
        ("K", 1 << 10),
        ("KiB", 1 << 10),
        ("B", 1),
    ],
    bare: 1 << 20,
    any_case: true,
    max: u64::MAX,
    expected: "a size: a whole number and B, K, M, G, T or P (of 1024; MiB if left out)",
};

/// Lustre's suffixes. A year has 52 weeks. `M` is no minute (nor a month), so the case counts.
const AGE: Scale = Scale {
    units: &[("y", 52 * 7 * 86_400), ("w", 7 * 86_400), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)],
    bare: 1,
    any_case: false,
    max: u64::MAX,
    expected: "an age: a whole number and s, m, h, d, w or y (seconds if left out)",
};

impl Scale {
    /// The scale of a field; `None` if its values are text.
    pub(crate) fn of(field: Field) -> Option<&'static Scale> {
        match field {
            Field::Uid | Field::Gid | Field::Projid => Some(&ID),
            Field::Size => Some(&SIZE),
            Field::Mtime => Some(&AGE),
            Field::Fname | Field::Path => None,
        }
    }

    /// Reads one number with its suffix.
    pub(crate) fn read(&self, cursor: &mut Cursor<'_>) -> Result<u64, ParseError> {
        let start = cursor.offset();
        let wrong = |cursor: &Cursor<'_>| cursor.error_at(start, self.expected);
        let digits = cursor.take_while(|c| c.is_ascii_digit());
        let suffix = cursor.take_while(char::is_alphanumeric);
        let named =
            |name: &str| if self.any_case { name.eq_ignore_ascii_case(suffix) } else { name == suffix };
        let factor = match suffix {
            "" => Some(self.bare),
            _ => self.units.iter().find(|(name, _)| named(name)).map(|&(_, factor)| factor),
        };
        let number =
            digits.parse::<u64>().ok().zip(factor).and_then(|(count, factor)| count.checked_mul(factor));
        number.filter(|&n| n <= self.max).ok_or_else(|| wrong(cursor))
    }

    /// Reads `a` or `a-b`.
    pub(crate) fn read_span(&self, cursor: &mut Cursor<'_>) -> Result<Span, ParseError> {
        let start = cursor.offset();
        let first = self.read(cursor)?;
        let last = if cursor.eat('-') { self.read(cursor)? } else { first };
        if first > last {
            return Err(cursor.error_at(start, "a range from low to high"));
        }
        Ok(Span { first, last })
    }

    /// Reads the value of a `<`; one that nothing is below would be a rule that never matches.
    pub(crate) fn read_upper(&self, cursor: &mut Cursor<'_>) -> Result<u64, ParseError> {
        let start = cursor.offset();
        match self.read(cursor)? {
            0 => Err(cursor.error_at(start, "a value above 0: nothing is below it")),
            bound => Ok(bound),
        }
    }

    /// Reads the value of a `>`; one that nothing is above would be a rule that never matches.
    pub(crate) fn read_lower(&self, cursor: &mut Cursor<'_>) -> Result<u64, ParseError> {
        let start = cursor.offset();
        match self.read(cursor)? {
            bound if bound == self.max => {
                Err(cursor.error_at(start, "a lower value: nothing is above this one"))
            }
            bound => Ok(bound),
        }
    }

    /// Writes a number in the largest unit that divides it.
    fn write(&self, f: &mut fmt::Formatter<'_>, number: u64) -> fmt::Result {
        let fits = |factor: u64| number >= factor && number.is_multiple_of(factor);
        let largest = self.units.iter().find(|&&(_, factor)| fits(factor));
        let &(name, factor) = largest.or(self.units.last()).unwrap_or(&("", 1));
        write!(f, "{}{name}", number.checked_div(factor).unwrap_or(number))
    }
}

/// The numbers from `first` to `last`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// What a number is held against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Compare {
    In(Vec<Span>),
    Below(u64),
    Above(u64),
}

impl Compare {
    pub(crate) fn holds(&self, number: u64) -> bool {
        match self {
            Compare::In(spans) => spans.iter().any(|span| (span.first..=span.last).contains(&number)),
            Compare::Below(bound) => number < *bound,
            Compare::Above(bound) => number > *bound,
        }
    }

    /// Writes operator and values: `={100 200-300}`.
    pub(crate) fn write(&self, f: &mut fmt::Formatter<'_>, scale: &Scale) -> fmt::Result {
        let spans = match self {
            Compare::In(spans) => spans.as_slice(),
            Compare::Below(bound) | Compare::Above(bound) => &[Span { first: *bound, last: *bound }],
        };
        f.write_str(match self {
            Compare::In(_) => "={",
            Compare::Below(_) => "<{",
            Compare::Above(_) => ">{",
        })?;
        for (at, span) in spans.iter().enumerate() {
            if at > 0 {
                f.write_str(" ")?;
            }
            scale.write(f, span.first)?;
            if span.last > span.first {
                f.write_str("-")?;
                scale.write(f, span.last)?;
            }
        }
        f.write_str("}")
    }
}
