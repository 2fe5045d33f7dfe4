//! One value of a list, taken apart into characters: where it ends, what is quoted, what is escaped.

use crate::cursor::{Cursor, is_blank};
use crate::error::ParseError;

/// A character of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// As written: `*`, `?` and `[` have their meaning.
    Char(char),
    /// Escaped: it stands for itself.
    Literal(char),
    /// `\xHH`: a byte that need not be a character.
    Byte(u8),
}

/// A unit and its offset in the rule.
pub(super) type Placed = (usize, Unit);

/// Does `c` end a value without quotes?
pub(crate) fn ends_value(c: char, in_braces: bool) -> bool {
    is_blank(c) || matches!(c, ',' | '}') || (!in_braces && matches!(c, '&' | '(' | ')'))
}

/// May `c` stand between braces without quotes (some only behind a backslash)?
pub(super) fn bare_in_braces(c: char) -> bool {
    !ends_value(c, true) && c != '{'
}

/// Does `c` have a meaning inside a value, quoted or not?
pub(super) fn is_special(c: char) -> bool {
    matches!(c, '\\' | '"' | '*' | '?' | '[')
}

/// Reads a value, in double quotes or bare.
pub(super) fn read(cursor: &mut Cursor<'_>, in_braces: bool) -> Result<Vec<Placed>, ParseError> {
    let mut units = Vec::new();
    let quoted = cursor.eat('"');
    while let Some(c) = cursor.peek() {
        let at = cursor.offset();
        let ends = if quoted { c == '"' } else { ends_value(c, in_braces) };
        if ends {
            break;
        }
        if !quoted && matches!(c, '{' | '"') {
            let expected = "a value; one with spaces, commas, braces or quotes is written \"in quotes\", \
                            and alternatives as {*.h5 *.nc}";
            return Err(cursor.error(expected));
        }
        cursor.bump();
        units.push((at, if c == '\\' { escape(cursor)? } else { Unit::Char(c) }));
    }
    if quoted && !cursor.eat('"') {
        return Err(cursor.error("a closing `\"`"));
    }
    Ok(units)
}

/// Reads what follows a backslash.
fn escape(cursor: &mut Cursor<'_>) -> Result<Unit, ParseError> {
    let expected = "a character with a meaning, or xHH (a byte in hexadecimal), after `\\`";
    let start = cursor.clone();
    match cursor.bump() {
        Some('x') => {
            let digit = |c: Option<char>| c.and_then(|c| c.to_digit(16)).and_then(|n| u8::try_from(n).ok());
            match (digit(cursor.bump()), digit(cursor.bump())) {
                (Some(high), Some(low)) => Ok(Unit::Byte(high << 4 | low)),
                _ => Err(start.error(expected)),
            }
        }
        Some(c) if c.is_ascii_punctuation() || c == ' ' => Ok(Unit::Literal(c)),
        _ => Err(start.error(expected)),
    }
}
