//! A persistent cache of an origin on a local store: the read-only mode of NVMM-LPCC (ToS 2021) for one node.
//!
//! An origin (any file system) keeps names and attributes; a store (a file system on a local disk that gives backings)
//! keeps copies of files that were read. See `docs/decisions/0003-read-cache.md` for the states of a file, and
//! `docs/formats/store.md` for what is in a store.

mod admission;
mod background;
mod cache;
mod changes;
mod chunks;
mod control;
mod counters;
mod directory;
mod evict;
mod file;
mod fill;
mod handles;
mod index;
mod listing;
mod node;
mod open_copies;
mod opens;
mod options;
mod piece;
mod record;
mod refused;
mod report;
mod shared;
mod store;
mod tree;
mod version;
mod window;
mod xattrs;

pub use cache::Cache;
pub use options::Options;
pub use report::{Evicted, FileReport, FileState, Progress, Stats, Verified};
