//! Programs of others that the suites run, each at one version, built by cargo into the same folder as xtask's tools.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::program::output;

/// A program, as a package of the registry that cargo uses.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// The package, and the program's file name.
    pub name: &'static str,
    /// The exact version, so that a new release changes nothing by itself.
    pub version: &'static str,
}

/// The POSIX test suite of FreeBSD, in Rust.
pub const PJDFSTEST: Tool = Tool { name: "pjdfstest", version: "0.2.2" };

/// The file system exerciser, in Rust.
pub const FSX: Tool = Tool { name: "fsx", version: "0.3.2" };

impl Tool {
    /// The program's path; it is built if this user does not have that version yet.
    ///
    /// # Errors
    /// cargo could not install it.
    pub fn program(&self) -> Result<PathBuf> {
        let folder = cache().join(format!("{}-{}", self.name, self.version));
        let program = folder.join("bin").join(self.name);
        if program.is_file() {
            return Ok(program);
        }
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["install", self.name, "--locked", "--version", self.version, "--root"]).arg(&folder);
        // Minutes of optimisation are not worth it for programs that mostly wait for the file system.
        let settings = [("LTO", "off"), ("OPT_LEVEL", "1"), ("CODEGEN_UNITS", "64"), ("DEBUG", "0")];
        for (setting, value) in settings {
            cargo.env(format!("CARGO_PROFILE_RELEASE_{setting}"), value);
        }
        cargo.env_remove("CARGO_TARGET_DIR");
        eprintln!("building {} {}, this once", self.name, self.version);
        output(&mut cargo)?;
        ensure!(program.is_file(), "the package {} installed no program of its name", self.name);
        Ok(program)
    }
}

/// This user's cache, which outlives a clone, or the target folder of one who has no home.
fn cache() -> PathBuf {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache"))).map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/tools")),
        |cache| cache.join("hither/tools"),
    )
}
