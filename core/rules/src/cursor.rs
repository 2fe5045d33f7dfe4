//! A place in a rule's text, moved forward character by character.

use std::borrow::Cow;

use crate::error::ParseError;

#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, rest: text }
    }

    /// Bytes before the cursor.
    pub(crate) fn offset(&self) -> usize {
        self.text.len().saturating_sub(self.rest.len())
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(crate) fn bump(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Steps over `wanted` if it comes next.
    pub(crate) fn eat(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        if there {
            self.bump();
        }
        there
    }

    /// Steps over the longest run of characters that are `wanted`, and returns it.
    pub(crate) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (run, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        run
    }

    pub(crate) fn skip_blanks(&mut self) {
        self.take_while(is_blank);
    }

    /// Something else was expected here.
    pub(crate) fn error(&self, expected: impl Into<Cow<'static, str>>) -> ParseError {
        self.error_at(self.offset(), expected)
    }

    /// Something else was expected at `offset`.
    pub(crate) fn error_at(&self, offset: usize, expected: impl Into<Cow<'static, str>>) -> ParseError {
        ParseError::new(self.text, offset, expected)
    }
}

/// What separates words and values. Other blanks of Unicode may be part of a file's name.
pub(crate) fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace()
}
