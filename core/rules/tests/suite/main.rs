//! The language as its users meet it: Lustre's own cases, the reference page, and texts of every kind.

mod any_text;
mod lustre;
mod page;
