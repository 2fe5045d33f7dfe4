//! Cargo: the one that runs us, its installed subcommands, and the tools it builds for us.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::process;

/// `cargo ARGS...` in the repository at `root`: the cargo that started us, so that the toolchain is one.
pub fn command(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args(args);
    command
}

/// Whether `cargo NAME` works here.
pub fn has_subcommand(root: &Path, name: &str) -> bool {
    process::output(&mut command(root, &[name, "--version"])).is_ok()
}

/// A program that cargo builds for us, at one version.
pub struct Tool {
    /// The package, and the program's file name.
    pub name: &'static str,
    /// The exact version, so that a new release changes nothing by itself.
    pub version: &'static str,
}

impl Tool {
    /// The program's path: built if this user's cache does not have this version yet. The build is without
    /// optimisation, since a tool that runs for a second is not worth minutes of build.
    pub fn install(&self, root: &Path) -> anyhow::Result<PathBuf> {
        let folder = cache(root).join(format!("{}-{}", self.name, self.version));
        let program = folder.join("bin").join(self.name);
        if program.is_file() {
            return Ok(program);
        }
        let mut install = command(root, &["install", self.name, "--locked", "--version", self.version]);
        install.arg("--root").arg(&folder);
        for (setting, value) in [("LTO", "off"), ("OPT_LEVEL", "0"), ("CODEGEN_UNITS", "64"), ("DEBUG", "0")]
        {
            install.env(format!("CARGO_PROFILE_RELEASE_{setting}"), value);
        }
        // Its own target folder, one that cargo removes: the repository's stays the repository's.
        install.env_remove("CARGO_TARGET_DIR");
        process::run(&mut install)
            .with_context(|| format!("cannot install {} {}", self.name, self.version))?;
        anyhow::ensure!(program.is_file(), "the package {} installed no program of its name", self.name);
        Ok(program)
    }
}

/// Where tools are kept: this user's cache, which outlives a clone, or the target folder of one who has no home.
fn cache(root: &Path) -> PathBuf {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    of("XDG_CACHE_HOME")
        .or_else(|| of("HOME").map(|home| home.join(".cache")))
        .map_or_else(|| root.join("target/tools"), |cache| cache.join("hither/tools"))
}
