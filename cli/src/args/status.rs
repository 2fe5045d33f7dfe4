//! `hither status`.

use std::path::PathBuf;

/// Show what is mounted and how it is doing.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A mount point; without one, all mounts are listed.
    #[arg(value_name = "MNT")]
    pub mountpoint: Option<PathBuf>,
    /// Print JSON: an object, or a list without MNT.
    #[arg(long)]
    pub json: bool,
}
