//! The parser: recursive descent, one function a line of the grammar, with a bound on nesting.
//!
//! ```text
//! rule   = [name ':'] ['cache' | 'pin' | 'bypass'] expr
//! expr   = conj (',' conj)*
//! conj   = term ('&' term)*
//! term   = ('!' | 'not') term | '(' expr ')' | 'all' | field op values
//! values = '{' value ((blank | ',') value)* '}' | value
//! ```

use crate::cursor::{Cursor, is_blank};
use crate::error::ParseError;
use crate::expr::{Expr, Node};
use crate::glob::{Glob, ends_value};
use crate::number::{Compare, Scale};
use crate::rule::{Action, Rule};
use crate::subject::Field;

/// Parentheses inside parentheses. The parser, and everything that walks the tree, recurses no deeper.
const MAX_NESTING: usize = 32;

const TERM: &str = "a field (uid, gid, projid, size, mtime, fname, path), `all`, `!` or `(`";
const LIST: &str = "a field; a list of values needs braces, as in uid={500 1000}";
const OPERATOR: &str = "`=`, `<` or `>` (for not equal: !uid={0})";
const VALUE: &str = "a value";
const VALUE_NOT_OPERATOR: &str = "a value: the operators are `=`, `<` and `>`";

/// Parses a rule with its name and action.
pub(crate) fn rule(text: &str) -> Result<Rule, ParseError> {
    let mut parser = Parser { cursor: Cursor::new(text), nesting: 0 };
    parser.cursor.skip_blanks();
    let name = parser.name();
    parser.cursor.skip_blanks();
    let action = parser.action().unwrap_or(Action::Cache);
    Ok(Rule::new(name, action, parser.whole_expr()?))
}

/// Parses an expression alone.
pub(crate) fn expr(text: &str) -> Result<Expr, ParseError> {
    Parser { cursor: Cursor::new(text), nesting: 0 }.whole_expr()
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    nesting: usize,
}

/// Reads one value; `true` where it stands between braces.
type ReadValue<'a, T> = &'a dyn Fn(&mut Cursor<'_>, bool) -> Result<T, ParseError>;

impl Parser<'_> {
    /// Takes `word:` if it is there.
    fn name(&mut self) -> Option<String> {
        let mut ahead = self.cursor.clone();
        let word = ahead.take_while(is_name_char);
        (!word.is_empty() && ahead.eat(':')).then(|| {
            self.cursor = ahead;
            word.to_owned()
        })
    }

    /// Takes an action's word if it is there.
    fn action(&mut self) -> Option<Action> {
        let mut ahead = self.cursor.clone();
        let action = Action::named(ahead.take_while(is_name_char))?;
        self.cursor = ahead;
        Some(action)
    }

    fn whole_expr(mut self) -> Result<Expr, ParseError> {
        let node = self.expr()?;
        match self.cursor.peek() {
            None => Ok(Expr(node)),
            Some(_) => Err(self.cursor.error("`&` (and), `,` (or) or the end of the rule")),
        }
    }

    fn expr(&mut self) -> Result<Node, ParseError> {
        let mut nodes = vec![self.conj()?];
        while self.cursor.eat(',') {
            nodes.push(self.conj()?);
        }
        Ok(Node::or(nodes))
    }

    fn conj(&mut self) -> Result<Node, ParseError> {
        let mut nodes = vec![self.term()?];
        while self.cursor.eat('&') {
            nodes.push(self.term()?);
        }
        Ok(Node::and(nodes))
    }

    /// Reads a term and the blanks around it. Its negations are counted rather than recursed into.
    fn term(&mut self) -> Result<Node, ParseError> {
        let mut negated = false;
        loop {
            self.cursor.skip_blanks();
            let start = self.cursor.clone();
            if self.cursor.eat('!') || self.cursor.take_while(is_name_char) == "not" {
                negated = !negated;
                continue;
            }
            self.cursor = start;
            let node = self.primary()?;
            self.cursor.skip_blanks();
            return Ok(if negated { node.negate() } else { node });
        }
    }

    fn primary(&mut self) -> Result<Node, ParseError> {
        if self.cursor.peek() == Some('(') {
            return self.parentheses();
        }
        let start = self.cursor.clone();
        let word = self.cursor.take_while(is_name_char);
        match Field::named(word) {
            Some(field) => self.test(field),
            None if word == "all" => Ok(Node::All),
            None if word.starts_with(|c: char| c.is_ascii_digit()) => Err(start.error(LIST)),
            None => Err(start.error(TERM)),
        }
    }

    fn parentheses(&mut self) -> Result<Node, ParseError> {
        if self.nesting == MAX_NESTING {
            return Err(self.cursor.error(format!("at most {MAX_NESTING} parentheses inside each other")));
        }
        self.cursor.bump();
        self.nesting += 1;
        let node = self.expr()?;
        self.nesting -= 1;
        match self.cursor.eat(')') {
            true => Ok(node),
            false => Err(self.cursor.error("`&` (and), `,` (or) or `)`")),
        }
    }

    /// Reads operator and values behind a field's name.
    fn test(&mut self, field: Field) -> Result<Node, ParseError> {
        self.cursor.skip_blanks();
        let start = self.cursor.clone();
        let operator = self.cursor.bump();
        match (operator, Scale::of(field)) {
            (Some('='), _) if field == Field::Mtime => {
                Err(start.error("`<` or `>`: an age goes on growing, so it is never equal"))
            }
            (Some('='), Some(scale)) => {
                let spans = self.values(&|cursor, _| scale.read_span(cursor))?;
                Ok(Node::Number(field, Compare::In(spans)))
            }
            (Some('<'), Some(scale)) => {
                let bound = self.value(&|cursor, _| scale.read_upper(cursor))?;
                Ok(Node::Number(field, Compare::Below(bound)))
            }
            (Some('>'), Some(scale)) => {
                let bound = self.value(&|cursor, _| scale.read_lower(cursor))?;
                Ok(Node::Number(field, Compare::Above(bound)))
            }
            (Some('='), None) if field == Field::Path => {
                Ok(Node::Text(field, self.values(&Glob::read_path)?))
            }
            (Some('='), None) => Ok(Node::Text(field, self.values(&Glob::read_name)?)),
            (Some('<' | '>'), None) => Err(start.error("`=`: names and paths have no order")),
            _ => Err(start.error(OPERATOR)),
        }
    }

    /// Reads one value, bare or alone in braces.
    fn value<T>(&mut self, read: ReadValue<'_, T>) -> Result<T, ParseError> {
        self.cursor.skip_blanks();
        if !self.cursor.eat('{') {
            return self.bare(read);
        }
        self.cursor.skip_blanks();
        let value = self.braced(read)?;
        self.cursor.skip_blanks();
        match self.cursor.eat('}') {
            true => Ok(value),
            false => Err(self.cursor.error("`}`: `<` and `>` take one value")),
        }
    }

    /// Reads one bare value, or any number of values in braces.
    fn values<T>(&mut self, read: ReadValue<'_, T>) -> Result<Vec<T>, ParseError> {
        self.cursor.skip_blanks();
        if !self.cursor.eat('{') {
            return Ok(vec![self.bare(read)?]);
        }
        let mut values = Vec::new();
        loop {
            self.cursor.take_while(|c| is_blank(c) || c == ',');
            if !values.is_empty() && self.cursor.eat('}') {
                return Ok(values);
            }
            values.push(self.braced(read)?);
        }
    }

    fn bare<T>(&mut self, read: ReadValue<'_, T>) -> Result<T, ParseError> {
        let value = self.complete(read, false)?;
        match self.cursor.peek() {
            Some(c) if !ends_value(c, false) => Err(self.cursor.error("the end of the value")),
            _ => Ok(value),
        }
    }

    fn braced<T>(&mut self, read: ReadValue<'_, T>) -> Result<T, ParseError> {
        let value = self.complete(read, true)?;
        match self.cursor.peek() {
            Some(c) if ends_value(c, true) => Ok(value),
            _ => Err(self.cursor.error("a blank, `,` or `}` after the value")),
        }
    }

    /// Reads a value that must not be missing.
    fn complete<T>(&mut self, read: ReadValue<'_, T>, in_braces: bool) -> Result<T, ParseError> {
        match self.cursor.peek() {
            Some('=') if !in_braces => Err(self.cursor.error(VALUE_NOT_OPERATOR)),
            Some(c) if !ends_value(c, in_braces) => read(&mut self.cursor, in_braces),
            _ => Err(self.cursor.error(VALUE)),
        }
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

#[cfg(test)]
mod tests;
