//! `hither completions` and `hither man`: made from the flag definitions.

use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;

use crate::args::Cli;
use crate::args::generate::{CompletionsArgs, ManArgs};
use crate::failure::usage;
use crate::output;

/// Prints a completion script.
pub fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hither", &mut script);
    output::raw(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page, or writes all.
pub fn man(args: &ManArgs) -> anyhow::Result<ExitCode> {
    match &args.directory {
        Some(directory) if directory.is_dir() => {
            clap_mangen::generate_to(Cli::command(), directory)
                .with_context(|| format!("cannot write manual pages into {}", directory.display()))?;
        }
        Some(directory) => return Err(usage(format!("{} is not a directory", directory.display()))),
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command())
                .render(&mut page)
                .context("cannot write the manual page")?;
            output::raw(&page)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
