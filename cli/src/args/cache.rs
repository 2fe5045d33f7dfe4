//! `hither cache ...`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hither_rules::Rule;
use hither_stack::units::Size;

/// Look at and steer what a cache holds.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what the cache has of files; never fetches anything.
    State(StateArgs),
    /// Fetch files in the background.
    Attach(AttachArgs),
    /// Drop the copies of files.
    Detach(DetachArgs),
    /// Fetch files and whole trees, and wait for it.
    ///
    /// Files that no rule or limit lets in are skipped. Interrupting it stops it; what was fetched stays.
    Warm(PathsArgs),
    /// Keep these files from being evicted until they change; fetches them first.
    ///
    /// Directories mean all files in them. A file that changes at the origin loses its copy and with it the pin; a rule
    /// that begins with `pin` lasts.
    Pin(PathsArgs),
    /// Let files be evicted again.
    Unpin(PathsArgs),
    /// Make room in the store: the copies unused for longest go first.
    ///
    /// Copies that are pinned, open or being fetched stay. Exits 1 if more remains than was to.
    Evict(EvictArgs),
    /// Read every copy and compare it with its checksums; damaged ones are fetched again.
    ///
    /// Exits 1 if any was damaged.
    Verify(MountArgs),
    /// The rules that choose files.
    #[command(subcommand)]
    Rules(RulesCommand),
}

/// `state`.
#[derive(Debug, Args)]
pub struct StateArgs {
    /// Files on a mount.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Print JSON: a list.
    #[arg(long)]
    pub json: bool,
}

/// `attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// Files on a mount.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Wait until they are there.
    #[arg(long)]
    pub wait: bool,
}

/// `detach`.
#[derive(Debug, Args)]
pub struct DetachArgs {
    /// Files on a mount.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Stop using the copy, but keep it: the next open takes it up again if the file has not changed.
    #[arg(long)]
    pub keep: bool,
}

/// Files and trees.
#[derive(Debug, Args)]
pub struct PathsArgs {
    /// Files and directories on a mount.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
}

/// `evict`.
#[derive(Debug, Args)]
pub struct EvictArgs {
    /// Evict until copies take at most this much [default: the low-water mark of the capacity].
    #[arg(long, value_name = "SIZE")]
    pub to: Option<Size>,
    #[command(flatten)]
    pub mount: MountArgs,
}

/// Which mount.
#[derive(Debug, Args)]
pub struct MountArgs {
    /// The mount point; may be left out if only one cache is mounted.
    #[arg(value_name = "MNT")]
    pub mountpoint: Option<PathBuf>,
}

/// Which mount, where the arguments have another meaning.
#[derive(Debug, Args)]
pub struct MountOption {
    /// The mount point; may be left out if only one cache is mounted.
    #[arg(long = "mount", value_name = "MNT")]
    pub mountpoint: Option<PathBuf>,
}

/// The rules that choose files.
#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// Show the rules, in the order in which they are asked.
    List {
        /// Print JSON: a list.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        mount: MountArgs,
    },
    /// Add a rule, until unmounting. (Write it into the configuration to keep it.)
    Add {
        /// The rule, for example `big: bypass size>{10G}`.
        #[arg(value_name = "RULE")]
        rule: Rule,
        /// Before the rule of this name instead of behind the last one.
        #[arg(long, value_name = "NAME")]
        before: Option<String>,
        #[command(flatten)]
        mount: MountOption,
    },
    /// Remove a rule, until unmounting.
    Del {
        /// Its name, as `list` shows it.
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        mount: MountOption,
    },
}
