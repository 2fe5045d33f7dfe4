//! The real `hither`, run as a person runs it.

mod config;
mod control;
mod harness;
mod helper;
mod mounts;
mod plain;
mod rights;
