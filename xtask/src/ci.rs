//! `ci`: everything that a change must pass, cheapest first. All of it runs, so that one run shows all that is wrong.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::{cargo, process, test, tidy};

/// Checks licences, duplicates and sources (`deny.toml`). Built without optimisation this version takes 57 s on two
/// cores; the build its authors' profile asks for takes 5 min 41 s and is no quicker at a check of one second.
const CARGO_DENY: cargo::Tool = cargo::Tool { name: "cargo-deny", version: "0.20.2" };

/// Run all that a change must pass: formatting, tidy, cargo-deny, clippy, tests.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// A step: its name, and what it does in the repository.
type Step = (&'static str, fn(&Path) -> anyhow::Result<()>);

const STEPS: &[Step] = &[
    ("format", |root| process::run(&mut cargo::command(root, &["fmt", "--all", "--check"]))),
    ("tidy", |root| tidy::run(&tidy::Args {}, root)),
    ("deny", deny),
    ("clippy", |root| {
        let args = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
        process::run(&mut cargo::command(root, &args))
    }),
    ("test", |root| test::run(&test::Args { locked: true, ..test::Args::default() }, root)),
    ("rings", rings),
];

/// Whether daemons may have requests over io_uring.
const RINGS_SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";

/// What mounts is tested once more the other way round: over io_uring where that was off, as it is by default. Left to
/// those who may switch it.
fn rings(root: &Path) -> anyhow::Result<()> {
    let before = std::fs::read_to_string(RINGS_SWITCH).unwrap_or_default();
    if before.trim() != "N" || std::fs::write(RINGS_SWITCH, "Y").is_err() {
        eprintln!("skipped: {RINGS_SWITCH} is not ours to switch on");
        return Ok(());
    }
    let packages = ["hither-fuse", "hither-tests"].map(str::to_owned).to_vec();
    let result = test::run(&test::Args { locked: true, packages, ..test::Args::default() }, root);
    std::fs::write(RINGS_SWITCH, before.trim())?;
    result
}

/// Runs every step and prints what each took; fails with the names of those that failed.
pub fn run(_: &Args, root: &Path) -> anyhow::Result<()> {
    for component in ["fmt", "clippy"] {
        anyhow::ensure!(
            cargo::has_subcommand(root, component),
            "`cargo {component}` is not installed: run `rustup component add rustfmt clippy`"
        );
    }
    let start = Instant::now();
    let mut lines = Vec::new();
    let mut failed = Vec::new();
    for (name, step) in STEPS {
        eprintln!("==> {name}");
        let start = Instant::now();
        let result = step(root);
        if let Err(error) = &result {
            eprintln!("dev: {name}: {error:#}");
            failed.push(*name);
        }
        lines.push(line(name, start.elapsed(), result.is_ok()));
    }
    lines.push(line("ci", start.elapsed(), failed.is_empty()));
    eprintln!("{}", lines.join("\n"));
    anyhow::ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// One line of the closing table.
fn line(name: &str, took: Duration, passed: bool) -> String {
    format!("{name:<8} {:>7.1} s  {}", took.as_secs_f64(), if passed { "ok" } else { "FAILED" })
}

/// Advisories are not among the checks: their database is not a package of a registry, and a check that needs the
/// network would fail for reasons that are not the change's.
fn deny(root: &Path) -> anyhow::Result<()> {
    let mut deny = std::process::Command::new(CARGO_DENY.install(root)?);
    deny.current_dir(root).args(["--locked", "check", "licenses", "bans", "sources"]);
    process::run(&mut deny)
}

#[cfg(test)]
mod tests {
    use super::line;
    use std::time::Duration;

    #[test]
    fn a_line_tells_the_time_and_the_verdict() {
        assert_eq!(line("clippy", Duration::from_millis(61_250), true), "clippy      61.2 s  ok");
        assert_eq!(line("test", Duration::from_secs(5), false), "test         5.0 s  FAILED");
    }
}
