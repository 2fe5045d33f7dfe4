//! `hither mount`: in the foreground, or by a daemon that it waits for.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context;

use crate::args::mount::Args;
use crate::daemon::{self, Readiness};
use crate::serve;

/// Mounts. `arguments` are those of the command line, for the daemon to be started with.
pub fn run(args: Args, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let (config, run) = args.resolve()?;
    if run.detached {
        let readiness = Readiness::take().context("cannot leave the terminal")?;
        serve::run(&config, Some(readiness))?;
        return Ok(ExitCode::SUCCESS);
    }
    if run.foreground {
        serve::run(&config, None)?;
        return Ok(ExitCode::SUCCESS);
    }
    daemon::start(arguments)
}
