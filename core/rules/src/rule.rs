//! A rule: an expression, what to do with the files it means, and a name to speak of it.

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;
use crate::expr::Expr;
use crate::parse;
use crate::subject::Subject;

/// What to do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Keep a copy in the cache.
    Cache,
    /// Keep a copy in the cache and never evict it.
    Pin,
    /// Keep no copy: every read goes to the origin.
    Bypass,
}

impl Action {
    const ALL: [Action; 3] = [Action::Cache, Action::Pin, Action::Bypass];

    /// The word that stands for the action in a rule.
    pub const fn name(self) -> &'static str {
        match self {
            Action::Cache => "cache",
            Action::Pin => "pin",
            Action::Bypass => "bypass",
        }
    }

    pub(crate) fn named(word: &str) -> Option<Action> {
        Action::ALL.into_iter().find(|action| action.name() == word)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One rule, as in `tables: cache projid={100}&fname={*.h5}`.
///
/// Name and action may be left out; an expression alone means `cache`, as in Lustre. What is displayed parses
/// to an equal rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub(crate) name: Option<String>,
    action: Action,
    expr: Expr,
}

impl Rule {
    pub(crate) fn new(name: Option<String>, action: Action, expr: Expr) -> Self {
        Self { name, action, expr }
    }

    /// The rule's name. Every rule in a [`RuleSet`](crate::RuleSet) has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// What to do with the files that the rule means.
    pub fn action(&self) -> Action {
        self.action
    }

    /// Which files the rule means.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// Does the rule mean this file?
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        self.expr.matches(subject)
    }
}

impl FromStr for Rule {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse::rule(text)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}: ")?;
        }
        write!(f, "{} {}", self.action, self.expr)
    }
}
