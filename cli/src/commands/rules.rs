//! `hither cache rules ...`.

use std::process::ExitCode;

use anyhow::bail;

use super::cache::one_mount;
use crate::args::cache::RulesCommand;
use crate::control::protocol::{Operation, Outcome};
use crate::output;

/// Lists, adds or removes rules.
pub fn run(command: RulesCommand) -> anyhow::Result<ExitCode> {
    let (mountpoint, operation, print, json) = match command {
        RulesCommand::List { json, mount } => (mount.mountpoint, Operation::Rules, true, json),
        RulesCommand::Add { rule, before, mount } => {
            (mount.mountpoint, Operation::AddRule { rule: rule.to_string(), before }, false, false)
        }
        RulesCommand::Del { name, mount } => (mount.mountpoint, Operation::RemoveRule { name }, false, false),
    };
    let mut client = one_mount(mountpoint.as_deref())?.connect()?;
    let Outcome::Rules(rules) = client.request(operation, &mut |_| ())? else {
        bail!("the daemon answers another question");
    };
    if json {
        output::json(&rules)?;
    } else if print && rules.is_empty() {
        output::line("no rules: every file is cached")?;
    } else if print {
        for rule in rules {
            output::line(rule)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
