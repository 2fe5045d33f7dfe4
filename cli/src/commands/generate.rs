//! `hither completions` and `hither man`: made from the flag definitions.

use std::fs;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;

use crate::args::Cli;
use crate::args::generate::{CompletionsArgs, ManArgs};
use crate::failure::usage;
use crate::{manual, output};

/// Prints a completion script.
pub fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hither", &mut script);
    output::raw(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page, or writes all.
pub fn man(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let pages = manual::pages(Cli::command()).context("cannot write the manual")?;
    match &args.directory {
        Some(directory) => {
            let place = directory.display();
            if directory.exists() && !directory.is_dir() {
                return Err(usage(format!("{place} is not a directory")));
            }
            fs::create_dir_all(directory).with_context(|| format!("cannot make the directory {place}"))?;
            for page in pages {
                let file = directory.join(&page.file);
                fs::write(&file, page.text).with_context(|| format!("cannot write {}", file.display()))?;
            }
        }
        None => {
            let main = pages.into_iter().find(|page| page.file == manual::MAIN);
            output::raw(&main.map(|page| page.text).unwrap_or_default())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
