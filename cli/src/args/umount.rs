//! `hither umount`.

use std::path::PathBuf;

/// Unmount, and wait until the daemon has made everything safe and ended.
///
/// Also clears the mount point that a killed daemon left behind.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The mount points.
    #[arg(value_name = "MNT", required = true)]
    pub mountpoints: Vec<PathBuf>,
    /// Take the mount away even if programs still use it, and do not wait: the daemon ends with the last of them.
    #[arg(long)]
    pub lazy: bool,
}
