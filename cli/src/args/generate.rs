//! `hither completions`, `hither man`.

use std::path::PathBuf;

use clap_complete::Shell;

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: Shell,
}

/// Print the manual page, or write all pages into a directory.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Write hither.1, hither-mount.1 and so on into this directory, which is made if it is missing.
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
}
