//! The language that chooses files: Lustre's grammar and a little more.
