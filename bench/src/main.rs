//! `hither-bench`: measures side by side.

fn main() {}
