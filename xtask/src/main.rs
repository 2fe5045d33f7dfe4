//! The developer's commands, as `cargo xtask NAME` or, with the packages they need, `./dev NAME`.
//!
//! One module a command, each with its `Args` and a `run`. A new command is a module, a variant of [`Command`]
//! and an arm of [`Command::run`].

mod bench;
mod cargo;
mod ci;
mod process;
mod run;
mod stop;
mod suites;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;

/// Builds, tests and checks hither.
#[derive(Debug, Parser)]
#[command(name = "dev", bin_name = "./dev", disable_help_subcommand = true)]
enum Command {
    Run(run::Args),
    Stop(stop::Args),
    Bench(bench::Args),
    Suites(suites::Args),
    Test(test::Args),
    Ci(ci::Args),
    Tidy(tidy::Args),
}

impl Command {
    /// Runs the command on the repository at `root`.
    fn run(&self, root: &Path) -> anyhow::Result<()> {
        match self {
            Command::Run(args) => run::run(args, root),
            Command::Stop(args) => stop::run(args, root),
            Command::Bench(args) => bench::run(args, root),
            Command::Suites(args) => suites::run(args, root),
            Command::Test(args) => test::run(args, root),
            Command::Ci(args) => ci::run(args, root),
            Command::Tidy(args) => tidy::run(args, root),
        }
    }
}

fn main() -> ExitCode {
    let command = Command::parse();
    match repository().and_then(|root| command.run(&root)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dev: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository: the folder above this crate's, as `cargo run` tells it now. A repository that was
/// moved since the build is thus found where it is, and the caller may stand in any folder.
fn repository() -> anyhow::Result<PathBuf> {
    let krate = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let root = krate.parent().context("the xtask crate has no folder above it")?;
    anyhow::ensure!(
        root.join("Cargo.toml").is_file(),
        "{} is no repository of hither: run ./dev or `cargo xtask` inside one",
        root.display()
    );
    Ok(root.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::Command;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        Command::command().debug_assert();
    }
}
