//! Mounts a directory (or, with `mem` instead of one, an empty file system in memory) until it is unmounted; then
//! prints what was served. For trying out the front end alone: the product is `hither mount`.
//!
//! `mount_dir SOURCE MOUNTPOINT [long] [plain] [threads=N]`: `long` keeps names and attributes for a day, `plain` gives
//! no backings.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hither_fuse::{Options, Passthrough};
use hither_vfs::{FileSystem, Timeouts};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    hither_sys::umask::clear();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, mountpoint, flags @ ..] = arguments.as_slice() else {
        return Err("usage: mount_dir SOURCE|mem MOUNTPOINT [long] [plain] [threads=N]".into());
    };
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    let mut options = Options { fs_name: source.clone(), ..Options::default() };
    if has("plain") {
        options.passthrough = Passthrough::Off;
    }
    if let Some(threads) = flags.iter().find_map(|flag| flag.strip_prefix("threads=")) {
        options.threads = threads.parse()?;
    }
    let fs: Arc<dyn FileSystem> = if source == "mem" {
        Arc::new(hither_mem::Mem::new())
    } else {
        let mut options = hither_dir::Options::default();
        if has("long") {
            let day = Duration::from_secs(86_400);
            options.timeouts = Timeouts { entry: day, attr: day };
        }
        hither_dir::Dir::open(Path::new(source), options)?
    };
    hither_fuse::clear_stale(Path::new(mountpoint))?;
    let session = hither_fuse::mount(fs, Path::new(mountpoint), &options)?;
    session.join();
    println!("{:#?}", session.stats());
    Ok(())
}
