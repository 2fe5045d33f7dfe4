//! The `hither` command: the storage that is there, put to better use.

use std::ffi::OsString;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

mod args;
mod commands;
mod control;
mod daemon;
mod doctor;
mod failure;
mod logging;
mod manual;
mod metrics;
mod mount_helper;
mod mountinfo;
mod output;
mod placement;
mod progress;
mod serve;

use args::{Cli, Command};

fn main() -> ExitCode {
    logging::tame_panics();
    // A bug is a failure like another to whoever called us; what it was has been said by then.
    catch_unwind(run).unwrap_or(ExitCode::from(failure::FAILED))
}

fn run() -> ExitCode {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let name = Path::new(&name).file_name().unwrap_or_default();
    let arguments: Vec<OsString> = if mount_helper::NAMES.iter().any(|helper| name == *helper) {
        match mount_helper::translate(words) {
            Ok(Some(arguments)) => arguments,
            Ok(None) => return ExitCode::SUCCESS,
            Err(error) => return failure::report(&error),
        }
    } else {
        words.collect()
    };
    let cli = match Cli::try_parse_from(std::iter::once(&OsString::from("hither")).chain(&arguments)) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && args::mount::is_unsaid(&arguments) => {
            return failure::report(&args::mount::unsaid());
        }
        Err(error) => {
            // Help goes to standard output and is no error; a reader that went away is none either.
            let _ = error.print();
            return u8::try_from(error.exit_code()).map_or(ExitCode::from(failure::USAGE), ExitCode::from);
        }
    };
    obey(cli.command, &arguments).unwrap_or_else(|error| failure::report(&error))
}

fn obey(command: Command, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    match command {
        Command::Mount(args) => commands::mount::run(*args, arguments),
        Command::Umount(args) => commands::umount::run(&args),
        Command::Status(args) => commands::status::run(&args),
        Command::Cache(command) => commands::cache::run(command),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completions(args) => commands::generate::completions(&args),
        Command::Man(args) => commands::generate::man(&args),
    }
}
