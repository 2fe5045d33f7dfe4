//! pjdfstest: what POSIX says of each call on names and attributes. Every case that passes on ext4 must pass on `dir`
//! and `cache`, as root; the exceptions are listed with their reasons in `pjdfstest/exceptions.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::timed;
use crate::place::Place;
use crate::report::Outcome;
use crate::scene::{Scene, View};
use crate::tools;

/// All that ext4 has; the users are of every Debian. Times are told apart by the clock's tick of 4 to 10 ms.
const CONFIG: &str = "\
[features]
posix_fallocate = {}
rename_ctime = {}
utimensat = {}
utime_now = {}
stat_st_birthtime = {}
[settings]
naptime = 0.02
allow_remount = true
[dummy_auth]
entries = [[\"nobody\", \"nogroup\"], [\"daemon\", \"daemon\"]]
";

/// mount(8) as the cases for read-only file systems call it; without helpers, since a change of flags needs none.
const MOUNT: &str = "#!/bin/sh\nPATH=${PATH#*:}; exec mount --internal-only \"$@\"\n";

/// Cases that need the disk to themselves, since nobody may write while it becomes read-only.
const REMOUNTING: &str = "erofs";

const EXCEPTIONS: &str = include_str!("pjdfstest/exceptions.txt");

/// What became of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    Skipped,
}

/// Runs it on all three views.
pub fn run() -> Vec<Outcome> {
    let mut on_ext4 = BTreeMap::new();
    let native = timed("pjdfstest", View::Native, |outcome| {
        on_ext4 = cases(View::Native, outcome)?.0;
        Ok(())
    });
    let mut outcomes = vec![native];
    for view in [View::Dir, View::Cache] {
        outcomes.push(timed("pjdfstest", view, |outcome| {
            let (verdicts, said) = cases(view, outcome)?;
            compare(&on_ext4, &verdicts, &said, view, outcome)
        }));
    }
    outcomes
}

/// The exceptions of a view: case and reason.
fn exceptions(view: View) -> Result<BTreeMap<&'static str, &'static str>> {
    let mut found = BTreeMap::new();
    for line in EXCEPTIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.splitn(3, char::is_whitespace);
        let (views, case, reason) = (words.next(), words.next(), words.next().map(str::trim));
        let (Some(views), Some(case), Some(reason)) = (views, case, reason.filter(|r| !r.is_empty())) else {
            anyhow::bail!("an exception is VIEWS CASE REASON: {line}");
        };
        if views.split(',').any(|name| name == view.name()) {
            found.insert(case, reason);
        }
    }
    Ok(found)
}

fn compare(
    on_ext4: &BTreeMap<String, Verdict>,
    here: &BTreeMap<String, Verdict>,
    said: &str,
    view: View,
    outcome: &mut Outcome,
) -> Result<()> {
    ensure!(on_ext4.len() > 300, "only {} cases ran on ext4: nothing to compare with", on_ext4.len());
    let exceptions = exceptions(view)?;
    for (case, _) in on_ext4.iter().filter(|(_, verdict)| **verdict == Verdict::Passed) {
        let verdict = here.get(case).copied();
        match (verdict, exceptions.get(case.as_str())) {
            (Some(Verdict::Passed), None) => outcome.add("as on ext4", 1),
            (Some(Verdict::Passed), Some(_)) => outcome.fail(format!("{case} passes: no exception")),
            (_, Some(_)) => outcome.add("exceptions", 1),
            (_, None) => outcome.fail(format!("{case}: {verdict:?}\n{}", said_of(case, said))),
        }
    }
    Ok(())
}

/// The lines about a case.
fn said_of(case: &str, said: &str) -> String {
    let mut lines = said.lines().skip_while(|line| line.split_whitespace().next() != Some(case)).skip(1);
    let own = lines.by_ref().take_while(|line| verdict(line).is_none()).take(8);
    own.collect::<Vec<_>>().join("\n")
}

/// Runs all cases on a view: verdicts, and all that was said.
fn cases(view: View, outcome: &mut Outcome) -> Result<(BTreeMap<String, Verdict>, String)> {
    let scene = Scene::new(view, &[])?;
    fs::set_permissions(scene.root(), fs::Permissions::from_mode(0o755))?;
    let secondary = Place::new()?;
    let config = secondary.path().join("config.toml");
    let programs = secondary.folder("bin")?;
    fs::write(&config, CONFIG)?;
    fs::write(programs.join("mount"), MOUNT)?;
    fs::set_permissions(programs.join("mount"), fs::Permissions::from_mode(0o755))?;
    let start = |patterns: &[&str], config: &Path| -> Result<String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(tools::PJDFSTEST.program()?);
        command.env("PATH", format!("{}:{path}", programs.display())).env("NO_COLOR", "1");
        command.arg("-c").arg(config).arg("-p").arg(scene.root()).arg("-s").arg(secondary.path());
        command.args(patterns).stdin(Stdio::null());
        let output = command.output().context("cannot start pjdfstest")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let still = secondary.path().join("still.toml");
    fs::write(&still, CONFIG.replace("allow_remount = true", "allow_remount = false"))?;
    let mut said = start(&[], &still)?;
    let mut verdicts: BTreeMap<String, Verdict> = said.lines().filter_map(verdict).collect();
    let remounting: Vec<String> = verdicts.keys().filter(|case| case.contains(REMOUNTING)).cloned().collect();
    for case in remounting {
        let more = start(&["--exact", &format!("pjdfstest::tests::{case}")], &config)?;
        verdicts.extend(more.lines().filter_map(verdict));
        said.push_str(&more);
    }
    for verdict in verdicts.values() {
        outcome.add(&format!("{verdict:?}").to_lowercase(), 1);
    }
    Ok((verdicts, said))
}

/// `module::case   ok`.
fn verdict(line: &str) -> Option<(String, Verdict)> {
    let mut words = line.split_whitespace();
    let (case, word, end) = (words.next()?, words.next()?, words.next());
    let verdict = match word {
        "ok" => Verdict::Passed,
        "FAILED" => Verdict::Failed,
        "skipped" => Verdict::Skipped,
        _ => return None,
    };
    (case.contains("::") && end.is_none()).then(|| (case.to_owned(), verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_have_reasons_and_verdicts_are_told_from_talk() {
        for view in View::ALL {
            assert!(exceptions(view).unwrap().values().all(|reason| reason.len() > 10));
        }
        assert_eq!(verdict("chmod::a   ok"), Some(("chmod::a".to_owned(), Verdict::Passed)));
        assert_eq!(verdict("a::b FAILED").unwrap().1, Verdict::Failed);
        assert_eq!(verdict("   1: core::panicking FAILED at x"), None);
        assert_eq!(verdict("Summary: 3 ok"), None);
    }

    #[test]
    fn a_case_that_fails_only_here_is_found_and_an_exception_that_passes_too() {
        let all = |verdict| (0..400).map(|n| (format!("m::{n}"), verdict)).collect::<BTreeMap<_, _>>();
        let mut here = all(Verdict::Passed);
        here.insert("m::7".to_owned(), Verdict::Failed);
        let mut outcome = Outcome::new("pjdfstest", "dir");
        compare(&all(Verdict::Passed), &here, "m::7 FAILED\n why\nm::8 ok\n", View::Dir, &mut outcome)
            .unwrap();
        assert_eq!(outcome.failures, ["m::7: Some(Failed)\n why"]);
        assert_eq!(outcome.count("as on ext4"), 399);
    }
}
