//! `bench`: measures side by side, with release builds; the measuring is done by the crate `bench`.

use std::path::Path;

use crate::{cargo, process};

/// Measure: `cache [--json] [--quick] [--write]`; `bench --help` tells more.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// What hither-bench is to do.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Builds the command and the benchmarks, then measures.
pub fn run(args: &Args, root: &Path) -> anyhow::Result<()> {
    let build = ["build", "--release", "--package", "hither", "--package", "hither-bench", "--bins"];
    process::run(&mut cargo::command(root, &build))?;
    let bench = ["run", "--release", "--quiet", "--package", "hither-bench", "--bin", "hither-bench", "--"];
    process::run(cargo::command(root, &bench).args(&args.args))
}
