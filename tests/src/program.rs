//! The programs under test and of the tests: `hither`, and the tests' own `actor`, as cargo built them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, ensure};

/// The `hither` command: `HITHER_BIN`, or the one in the folder that these tests were built into, which is brought up
/// to date first.
pub fn hither() -> Result<&'static Path> {
    built("hither", "hither", "HITHER_BIN")
}

/// The tests' own program that acts as others say ([`crate::actor`]).
pub fn actor() -> Result<&'static Path> {
    built("hither-tests", "actor", "HITHER_ACTOR_BIN")
}

fn built(package: &str, name: &'static str, variable: &str) -> Result<&'static Path> {
    static BUILT: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    let slot = &BUILT[usize::from(name == "actor")];
    if let Some(path) = slot.get() {
        return Ok(path);
    }
    let path = match std::env::var_os(variable) {
        Some(path) => PathBuf::from(path),
        None => build(package, name)?,
    };
    ensure!(path.is_file(), "no program {}", path.display());
    Ok(slot.get_or_init(|| path))
}

fn build(package: &str, name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().context("where is this program?")?;
    // Either `PROFILE/NAME` or `PROFILE/deps/NAME-HASH`.
    let mut folder = own.parent().context("this program lies in no folder")?;
    if folder.file_name() == Some(OsStr::new("deps")) {
        folder = folder.parent().context("deps lies in no folder")?;
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    cargo.args(["build", "--quiet", "--package", package, "--bin", name]);
    if folder.file_name() == Some(OsStr::new("release")) {
        cargo.arg("--release");
    }
    output(&mut cargo)?;
    Ok(folder.join(name))
}

/// Runs a program without input; what it printed. An exit other than 0 is an error that holds all it said.
pub fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{line}`"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{line}`: {}\n{}\n{}", output.status, stdout.trim(), stderr.trim());
    Ok(stdout)
}

/// `sh -c SCRIPT` in a folder, with `set -e`; what it printed.
pub fn shell(folder: &Path, script: &str) -> Result<String> {
    output(Command::new("/bin/sh").args(["-ec", script]).current_dir(folder))
}

/// The command line, to read.
pub fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
