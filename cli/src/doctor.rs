//! `hither doctor`: what this machine can do, found out by trying, and what to do about each no.

use std::process::ExitCode;

use serde::Serialize;

use crate::args::doctor::Args;
use crate::failure::FAILED;
use crate::output;

mod directory;
mod mounting;
mod system;

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub name: &'static str,
    /// Of which directory, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Whether it is there.
    pub ok: bool,
    /// Whether nothing works without it.
    pub needed: bool,
    /// What was found.
    pub found: String,
    /// What it is good for and what to do about a no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    /// It is there.
    fn yes(name: &'static str, found: impl Into<String>) -> Self {
        Finding { name, directory: None, ok: true, needed: false, found: found.into(), advice: None }
    }

    /// It is not there, and what to do about it.
    fn no(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        let advice = Some(advice.into());
        Finding { name, directory: None, ok: false, needed: false, found: found.into(), advice }
    }

    /// The same, without which nothing works.
    fn needed(self) -> Self {
        Finding { needed: true, ..self }
    }
}

/// Tries everything and shows what was found. Fails if something is missing without which nothing works.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut findings = system::look();
    findings.extend(mounting::try_it());
    for path in &args.directories {
        findings.extend(directory::look(path));
    }
    if args.json {
        output::json(&findings)?;
    } else {
        for finding in &findings {
            show(finding)?;
        }
    }
    let hopeless = findings.iter().any(|finding| finding.needed && !finding.ok);
    Ok(if hopeless { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn show(finding: &Finding) -> anyhow::Result<()> {
    let mark = if finding.ok { "yes" } else { "no " };
    let subject = finding.directory.as_ref().map_or_else(String::new, |directory| format!("{directory}: "));
    output::line(format!("{mark}  {subject}{}: {}", finding.name, finding.found))?;
    if let Some(advice) = &finding.advice {
        output::line(format!("     -> {advice}"))?;
    }
    Ok(())
}
