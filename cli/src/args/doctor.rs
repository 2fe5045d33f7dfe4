//! `hither doctor`.

use std::path::PathBuf;

/// Find out what this machine can do, and what to do about each no.
///
/// Exits 1 if nothing can be mounted.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directories to look at as well: an origin, a store.
    #[arg(value_name = "DIR")]
    pub directories: Vec<PathBuf>,
    /// Switch on what root can switch on: FUSE over io_uring, until the next boot.
    #[arg(long)]
    pub fix: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
