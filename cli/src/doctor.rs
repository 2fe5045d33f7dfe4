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
    /// Whether this version makes any use of it.
    pub used: bool,
    /// What was found.
    pub found: String,
    /// What it is good for and what to do about a no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    /// It is there.
    fn yes(name: &'static str, found: impl Into<String>) -> Self {
        Finding {
            name,
            directory: None,
            ok: true,
            needed: false,
            used: true,
            found: found.into(),
            advice: None,
        }
    }

    /// It is not there, and what to do about it.
    fn no(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        let advice = Some(advice.into());
        Finding { name, directory: None, ok: false, needed: false, used: true, found: found.into(), advice }
    }

    /// The same, without which nothing works.
    fn needed(self) -> Self {
        Finding { needed: true, ..self }
    }

    /// The same, of which nothing depends on so far.
    fn unused(self) -> Self {
        Finding { used: false, ..self }
    }

    /// What stands before it: what is amiss is seen at once, and what does not matter is not taken for it.
    fn mark(&self) -> &'static str {
        match self {
            Finding { ok: true, .. } => "yes",
            Finding { used: false, .. } => "-  ",
            Finding { needed: true, .. } => "NO ",
            _ => "no ",
        }
    }
}

/// Tries everything and shows what was found. Fails if something is missing without which nothing works.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.fix {
        system::fix()?;
    }
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
    let missing: Vec<&str> =
        findings.iter().filter(|finding| finding.needed && !finding.ok).map(|finding| finding.name).collect();
    if !args.json {
        output::line("")?;
        output::line(verdict(&missing))?;
    }
    Ok(if !missing.is_empty() { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn verdict(missing: &[&str]) -> String {
    match missing {
        [] => {
            "hither works here. What is marked `no` costs what stands below it; `-` costs nothing.".to_owned()
        }
        missing => format!("hither does not work here without what is marked `NO`: {}", missing.join(", ")),
    }
}

fn show(finding: &Finding) -> anyhow::Result<()> {
    let mark = finding.mark();
    let subject = finding.directory.as_ref().map_or_else(String::new, |directory| format!("{directory}: "));
    output::line(format!("{mark}  {subject}{}: {}", finding.name, finding.found))?;
    if let Some(advice) = &finding.advice {
        output::line(format!("     -> {advice}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_amiss_is_told_from_what_does_not_matter() {
        let no = || Finding::no("x", "", "");
        assert_eq!(Finding::yes("x", "").needed().mark(), "yes");
        assert_eq!(no().needed().mark(), "NO ");
        assert_eq!(no().mark(), "no ");
        assert_eq!(no().unused().mark(), "-  ");
        assert!(verdict(&["/dev/fuse", "mounting"]).ends_with("`NO`: /dev/fuse, mounting"));
        assert!(verdict(&[]).starts_with("hither works here"));
    }
}
