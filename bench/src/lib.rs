//! Side by side measurements: raw, ours, peers.
//!
//! What is compared runs in turns, burst by burst ([`turns`]), so that what else the machine does falls on all alike;
//! each figure is the median of its bursts. The subjects are programs that were built before: the `hither` command,
//! the slow origin of this crate, rclone. The clients are our own ([`clients`]) or unmodified programs.

pub mod cache;
pub mod clients;
pub mod disk;
pub mod fuse;
pub mod machine;
pub mod mounts;
pub mod report;
pub mod turns;
