//! What the tests on real mounts are made of: disks of their own, mounts by the real `hither`, programs as actors,
//! comparisons of trees, and the suites, which `cargo xtask suites` runs long and `./dev test` short.
//!
//! Everything is cleaned up when dropped, by process id and path; what a killed test run left behind is swept by the
//! next one ([`place`]).

pub mod actor;
pub mod disk;
pub mod failing;
pub mod mount;
pub mod place;
pub mod program;
pub mod report;
pub mod requirement;
pub mod scene;
pub mod suites;
pub mod tools;
pub mod tree;
