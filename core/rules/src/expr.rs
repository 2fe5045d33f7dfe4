//! Which files a rule means: tests of fields, joined by and, or and not.

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;
use crate::glob::Glob;
use crate::number::{Compare, Scale};
use crate::parse;
use crate::subject::{Field, Fields, Subject};

/// An expression that is true or false of a file, as in `projid={100 200}&fname={*.h5},uid={1001}`.
///
/// It is displayed in one canonical form, which is Lustre's wherever Lustre can say the same, and which
/// parses to an equal expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expr(pub(crate) Node);

impl Expr {
    /// Is the expression true of this file? A name or path costs at most its length times that of each
    /// pattern.
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        self.0.matches(subject)
    }

    /// May the value of `field` decide what [`Expr::matches`] says?
    pub fn needs(&self, field: Field) -> bool {
        self.fields().contains(field)
    }

    pub(crate) fn fields(&self) -> Fields {
        self.0.fields()
    }
}

impl FromStr for Expr {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse::expr(text)
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, Binding::Loosest)
    }
}

/// A node of the tree.
///
/// Invariant, kept by the constructors below and by the parser's bound on nesting: `And` holds no `And`, `Or`
/// no `Or` and `Not` no `Not`, the lists have two members or more, and the tree is shallow enough to recurse
/// into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    All,
    Number(Field, Compare),
    Text(Field, Vec<Glob>),
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
}

/// How tightly what surrounds a node binds it: an operator that binds less needs parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Loosest,
    And,
    Not,
}

impl Node {
    pub(crate) fn negate(self) -> Node {
        match self {
            Node::Not(inner) => *inner,
            other => Node::Not(Box::new(other)),
        }
    }

    pub(crate) fn and(nodes: Vec<Node>) -> Node {
        let split = |node| match node {
            Node::And(inner) => inner,
            other => vec![other],
        };
        single_or(nodes.into_iter().flat_map(split).collect(), Node::And)
    }

    pub(crate) fn or(nodes: Vec<Node>) -> Node {
        let split = |node| match node {
            Node::Or(inner) => inner,
            other => vec![other],
        };
        single_or(nodes.into_iter().flat_map(split).collect(), Node::Or)
    }

    fn matches(&self, subject: &Subject<'_>) -> bool {
        match self {
            Node::All => true,
            Node::Number(field, compare) => {
                subject.number(*field).is_some_and(|number| compare.holds(number))
            }
            Node::Text(field, globs) => {
                subject.text(*field).is_some_and(|text| globs.iter().any(|glob| glob.matches(text)))
            }
            Node::Not(inner) => !inner.matches(subject),
            Node::And(nodes) => nodes.iter().all(|node| node.matches(subject)),
            Node::Or(nodes) => nodes.iter().any(|node| node.matches(subject)),
        }
    }

    fn fields(&self) -> Fields {
        match self {
            Node::All => Fields::default(),
            Node::Number(field, _) | Node::Text(field, _) => Fields::only(*field),
            Node::Not(inner) => inner.fields(),
            Node::And(nodes) | Node::Or(nodes) => {
                nodes.iter().map(Node::fields).fold(Fields::default(), Fields::union)
            }
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, around: Binding) -> fmt::Result {
        match self {
            Node::All => f.write_str("all"),
            Node::Number(field, compare) => {
                f.write_str(field.name())?;
                Scale::of(*field).map_or(Ok(()), |scale| compare.write(f, scale))
            }
            Node::Text(field, globs) => {
                write!(f, "{}={{", field.name())?;
                write_joined(f, globs, " ", |glob, f| write!(f, "{glob}"))?;
                f.write_str("}")
            }
            Node::Not(inner) => {
                f.write_str("!")?;
                inner.write(f, Binding::Not)
            }
            Node::And(nodes) => parenthesised(f, around > Binding::And, |f| {
                write_joined(f, nodes, "&", |node, f| node.write(f, Binding::And))
            }),
            Node::Or(nodes) => parenthesised(f, around > Binding::Loosest, |f| {
                write_joined(f, nodes, ",", |node, f| node.write(f, Binding::Loosest))
            }),
        }
    }
}

fn single_or(mut nodes: Vec<Node>, many: fn(Vec<Node>) -> Node) -> Node {
    match nodes.pop() {
        Some(only) if nodes.is_empty() => only,
        last => {
            nodes.extend(last);
            many(nodes)
        }
    }
}

fn write_joined<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    separator: &str,
    mut write: impl FnMut(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(separator)?;
        }
        write(item, f)?;
    }
    Ok(())
}

fn parenthesised(
    f: &mut fmt::Formatter<'_>,
    needed: bool,
    body: impl FnOnce(&mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    if !needed {
        return body(f);
    }
    f.write_str("(")?;
    body(f)?;
    f.write_str(")")
}

#[cfg(test)]
mod tests;
