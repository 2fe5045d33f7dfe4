//! The command line as data: help, man pages and completions are all made from these definitions.

use clap::{Parser, Subcommand};

pub mod cache;
pub mod doctor;
pub mod generate;
pub mod mount;
pub mod status;
pub mod umount;

/// Shown first, to somebody who has a slow file system and a deadline.
pub const EXAMPLE: &str = "\
Is a shared file system slowing you down? Read it once, then from your own disk:

  hither mount cache --origin /lustre/proj --store /nvme/hither /mnt/proj
  hither cache warm /mnt/proj/dataset     # optional: fetch it before the job starts
  hither umount /mnt/proj                 # the copies stay for the next mount";

const AFTER: &str = "\
Programs use the mount like any directory and need no change. `hither doctor` tells what this machine can do.
Exit codes: 0 done, 1 failed, 2 wrong usage or a configuration that cannot be.";

/// The same for the manual: code and meaning.
pub const EXIT_CODES: [(&str, &str); 3] = [
    ("0", "Done."),
    ("1", "It failed, or what was looked for is wrong."),
    ("2", "Wrong usage, or a configuration that cannot be."),
];

/// Puts a fast local disk in front of a slow file system.
#[derive(Debug, Parser)]
#[command(name = "hither", version, before_help = EXAMPLE, after_help = AFTER)]
#[command(disable_help_subcommand = true, max_term_width = 100, infer_long_args = false)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Mount a cached (or plain) view of a directory.
    Mount(Box<mount::Args>),
    /// Unmount, and wait until everything is safe on disk.
    Umount(umount::Args),
    /// Show what is mounted and how it is doing.
    Status(status::Args),
    /// Look at and steer what a cache holds.
    #[command(subcommand)]
    Cache(cache::Command),
    /// Find out what this machine can do, and what to do about each no.
    Doctor(doctor::Args),
    /// Print a completion script for a shell.
    Completions(generate::CompletionsArgs),
    /// Print the manual page, or write all pages into a directory.
    Man(generate::ManArgs),
}

#[cfg(test)]
mod tests;
