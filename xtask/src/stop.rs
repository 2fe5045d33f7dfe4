//! `stop`: takes away what `run` left mounted.

use std::path::Path;

use crate::run::view;

/// Unmount what `run` left, end its slow origin, and remove its store.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Says so if there is nothing to stop; that is no failure.
pub fn run(_: &Args, root: &Path) -> anyhow::Result<()> {
    match view::recorded(root)? {
        Some(view) => view.end(root),
        None => {
            eprintln!("dev: nothing is mounted by ./dev run");
            Ok(())
        }
    }
}
