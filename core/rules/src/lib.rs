//! The language that chooses files: Lustre's grammar and a little more.
//!
//! An [`Expr`] says which files are meant, a [`Rule`] says what to do with them, and a [`RuleSet`] is an
//! ordered list of rules of which the first that matches decides. `docs/RULES.md` is the reference for the
//! people who write them; the grammar grew out of the rules of Lustre's persistent client cache (`lctl pcc
//! add`).
//!
//! ```
//! use hither_rules::{Action, RuleSet, Subject};
//!
//! let rules: RuleSet = "bypass path={tmp/**}\nprojid={100 200}&fname={*.h5},uid={1001}".parse()?;
//! let file = Subject { projid: 200, name: b"field.h5", path: Some(b"run/field.h5"), ..Subject::default() };
//! assert_eq!(rules.decide(&file).action, Action::Cache);
//! # Ok::<(), hither_rules::ParseError>(())
//! ```
//!
//! Text is judged once, when it is parsed. After that a rule is data, and asking it about a file neither
//! allocates nor fails; the lints below keep the ways to panic out of both halves.

#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::string_slice, clippy::expect_used, clippy::unreachable)
)]

mod cursor;
mod error;
mod expr;
mod glob;
mod number;
mod parse;
mod rule;
mod set;
mod subject;

pub use error::{EditError, ParseError};
pub use expr::Expr;
pub use rule::{Action, Rule};
pub use set::{Decision, RuleSet};
pub use subject::{Field, Subject};
