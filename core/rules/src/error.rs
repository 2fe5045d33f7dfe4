//! Errors, and the excerpt with a caret that shows where a rule went wrong.

use std::borrow::Cow;
use std::fmt;

use thiserror::Error;
use unicode_width::UnicodeWidthChar;

/// Columns shown on either side of the caret; with the ellipses an excerpt fits a terminal of 80.
const CONTEXT_COLUMNS: usize = 36;

/// A rule that is none: what was expected, and where.
///
/// Displayed as a message, the rule, and a caret under the place, on three lines.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct ParseError {
    text: String,
    offset: usize,
    expected: Cow<'static, str>,
    line: Option<usize>,
}

impl ParseError {
    /// `offset` counts bytes of `text` and lies on a character's first byte, or at the end.
    pub(crate) fn new(text: &str, offset: usize, expected: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.to_owned(), offset, expected: expected.into(), line: None }
    }

    /// The same error, known to be in line `line` (from 1) of a list of rules.
    pub(crate) fn in_line(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }

    /// The rule that could not be read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where in the rule, in bytes from its start.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// What would have been right there.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// The line (from 1) of a list of rules; `None` where a single rule was parsed.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        let (before, after) = self.text.split_at_checked(self.offset).unwrap_or((&self.text, ""));
        let (start, before_columns) = fitting(before.chars().rev());
        let (end, _) = fitting(after.chars());
        let skipped = before.chars().count().saturating_sub(start);
        let cut_left = if skipped > 0 { "…" } else { "" };
        let cut_right = if after.chars().count() > end { "…" } else { "" };
        let shown: String =
            before.chars().skip(skipped).chain(after.chars().take(end)).map(printable).collect();
        let indent = before_columns.saturating_add(cut_left.chars().count());
        write!(f, "expected {}\n  {cut_left}{shown}{cut_right}\n  {:indent$}^", self.expected, "")
    }
}

/// How many of `chars`, from the first, fit into the context, and how many columns they take.
fn fitting(chars: impl Iterator<Item = char>) -> (usize, usize) {
    chars
        .scan(0_usize, |columns, c| {
            *columns = columns.saturating_add(printable(c).width().unwrap_or(0));
            (*columns <= CONTEXT_COLUMNS).then_some(*columns)
        })
        .fold((0, 0), |(count, _), columns| (count + 1, columns))
}

/// `c` as an excerpt shows it: a tab or another control character is one blank, so that the caret stays true.
fn printable(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

/// A change to a list of rules that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EditError {
    /// Rules are told apart by name.
    #[error("there is already a rule named `{0}`")]
    NameTaken(String),
    /// The rule to remove, or to insert before, is not in the list.
    #[error("there is no rule named `{0}`")]
    NoSuchRule(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, offset: usize) -> (String, String) {
        let message = ParseError::new(text, offset, "more").to_string();
        let mut lines = message.lines();
        assert_eq!(lines.next(), Some("expected more"));
        (lines.next().unwrap().to_owned(), lines.next().unwrap().to_owned())
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        assert_eq!(shown("uid=x", 4), ("  uid=x".into(), "      ^".into()));
        assert_eq!(shown("", 0), ("  ".into(), "  ^".into()));
        assert_eq!(shown("uid=", 4), ("  uid=".into(), "      ^".into()));
    }

    #[test]
    fn columns_are_neither_bytes_nor_characters() {
        // Two bytes and one column; three bytes and two columns; a combining mark of none.
        assert_eq!(shown("é!", 2), ("  é!".into(), "   ^".into()));
        assert_eq!(shown("語!", 3), ("  語!".into(), "    ^".into()));
        assert_eq!(shown("e\u{301}!", 3), ("  e\u{301}!".into(), "   ^".into()));
    }

    #[test]
    fn tabs_and_escape_sequences_cannot_move_the_caret() {
        assert_eq!(shown("\t\u{1b}!", 2), ("    !".into(), "    ^".into()));
    }

    #[test]
    fn a_long_rule_is_cut_around_the_place() {
        let text = format!("{}!{}", "a".repeat(500), "b".repeat(500));
        let (rule, caret) = shown(&text, 500);
        assert_eq!(rule, format!("  …{}!{}…", "a".repeat(36), "b".repeat(35)));
        assert_eq!(caret, format!("  {}^", " ".repeat(37)));
    }

    #[test]
    fn an_offset_inside_a_character_does_no_harm() {
        assert_eq!(shown("é", 1), ("  é".into(), "   ^".into()));
    }
}
