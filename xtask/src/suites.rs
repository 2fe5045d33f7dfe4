//! `suites`: what the tests run for seconds, for minutes: POSIX cases, random work, unmodified programs, kills and power
//! cuts, each on real mounts. The suites themselves are the `suites` program of the `tests` crate.

use std::path::Path;

use crate::{cargo, process};

/// Run the suites on real mounts, as root: pjdfstest, fsx, stress, apps, kills, power-cuts.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Passed on; `--help` tells: --only SUITE,... --quick --json --seed N.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

/// Builds `hither` and the suites, then runs them; they exit 1 if anything failed.
pub fn run(args: &Args, root: &Path) -> anyhow::Result<()> {
    let packages = ["--package", "hither", "--package", "hither-tests"];
    process::run(cargo::command(root, &["build", "--bins"]).args(packages))?;
    let built = std::env::current_exe()?;
    let program = |name: &str| built.with_file_name(name);
    let mut suites = std::process::Command::new(program("suites"));
    suites.env("HITHER_BIN", program("hither")).env("HITHER_ACTOR_BIN", program("actor"));
    process::run(suites.args(&args.arguments))
}
