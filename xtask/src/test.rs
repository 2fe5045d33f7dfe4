//! `test`: every test of the workspace, by cargo-nextest where it is installed and by `cargo test` elsewhere.
//!
//! The documentation's tests come first, because nextest has none of them and a reader looks for the verdict on the
//! last lines.

use std::path::Path;

use anyhow::Context as _;

use crate::{cargo, process};

/// Where `cargo test` runs the tests, at most this many at a time: it knows no groups, and too many mounts at once
/// only wait for each other. (cargo-nextest's limits are in `.config/nextest.toml`.)
const THREADS_MAX: usize = 4;

/// Run the tests: all of them, or those of some packages, or those whose names match.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Only this package; may be given again.
    #[arg(short, long = "package", value_name = "PACKAGE")]
    pub packages: Vec<String>,
    /// Only tests whose names contain this.
    pub filter: Option<String>,
    /// Fail if Cargo.lock would have to change.
    #[arg(long)]
    pub locked: bool,
}

/// Builds the programs that tests start, then runs the tests.
pub fn run(args: &Args, root: &Path) -> anyhow::Result<()> {
    let locked: &[&str] = if args.locked { &["--locked"] } else { &[] };
    // The tests that mount run the `hither` command; cargo would not build it for a test of another package.
    process::run(cargo::command(root, &["build", "--workspace", "--bins"]).args(locked))?;
    let own = std::env::current_exe().context("where is this program?")?;
    let hither = own.with_file_name("hither");

    // A package or a name given: that is what is wanted, and quickly.
    if args.packages.is_empty() && args.filter.is_none() {
        process::run(cargo::command(root, &["test", "--workspace", "--doc", "--quiet"]).args(locked))?;
    }
    let mut tests = if cargo::has_subcommand(root, "nextest") {
        cargo::command(root, &["nextest", "run", "--no-fail-fast"])
    } else {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut tests = cargo::command(root, &["test", "--no-fail-fast", "--lib", "--bins", "--tests"]);
        tests.env("RUST_TEST_THREADS", cores.min(THREADS_MAX).to_string());
        tests
    };
    tests.args(locked).env("HITHER_BIN", hither);
    if args.packages.is_empty() {
        tests.arg("--workspace");
    }
    for package in &args.packages {
        tests.args(["--package", package]);
    }
    tests.args(&args.filter);
    process::run(&mut tests)
}
