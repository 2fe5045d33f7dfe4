//! The real `hither`, run as a person runs it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod config;
mod control;
mod harness;
mod helper;
mod mounts;
mod plain;
mod rights;
