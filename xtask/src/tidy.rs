//! `tidy`: the rules of the house that no compiler knows, each a module below with a test that breaks it.
//!
//! A rule looks at one file (the arrows at all manifests) and reports findings. The tables that rules read, which are
//! what a change of the architecture changes, are in `tidy/house.toml`.

mod arrows;
mod doors;
mod house;
mod links;
mod names;
mod source;
mod text;
mod tree;

use std::fmt;
use std::path::Path;

/// Check the rules of the house: arrows between crates, names, sizes, where unsafe may be, leftovers.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// A file of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// From the root of the repository, with slashes.
    pub path: String,
    /// What is in it; none if that is not UTF-8.
    pub text: Option<String>,
}

/// A place where a rule is broken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    path: String,
    /// Counted from 1.
    line: usize,
    /// What is wrong; what to do instead.
    message: String,
}

impl Finding {
    /// In the file at `path`, at `line`.
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Prints every finding; fails if there is one.
pub fn run(_: &Args, root: &Path) -> anyhow::Result<()> {
    let files = tree::files(root)?;
    let findings = check(&files, &house::House::load()?);
    for finding in &findings {
        println!("{finding}");
    }
    anyhow::ensure!(findings.is_empty(), "tidy: {} findings in {} files", findings.len(), files.len());
    println!("tidy: {} files, no finding", files.len());
    Ok(())
}

/// What every rule finds in `files`, in the order of paths and lines.
fn check(files: &[File], house: &house::House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        findings.extend(names::check(file));
        findings.extend(text::check(file));
        findings.extend(links::check(file, files));
        findings.extend(source::check(file, house));
        findings.extend(doors::check(file, house));
    }
    findings.extend(arrows::check(files, house));
    findings.sort();
    findings
}

/// The line, counted from 1, of the byte at `offset`.
fn line_at(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::{File, Finding, check, house::House};

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: Some(text.to_owned()) }
    }

    #[test]
    fn findings_of_all_rules_come_in_the_order_of_the_tree() {
        let files = [
            file("README.md", "see [it](gone.md)\n"),
            file("layers/cache/Cargo.toml", "[package]\nname = \"hither-cache\"\n"),
            file("layers/cache/src/utils.rs", "//! One job.\n\n// TO\u{44}O: all\n"),
            file("layers/cache/src/fill.rs", "pub fn f() {}\n"),
            File { path: "docs/logo.png".to_owned(), text: None },
        ];
        let found = check(&files, &House::load().unwrap());
        let places: Vec<_> = found.iter().map(|finding| (finding.path.as_str(), finding.line)).collect();
        assert_eq!(
            places,
            [
                ("README.md", 1),
                ("layers/cache/Cargo.toml", 1),
                ("layers/cache/src/fill.rs", 1),
                ("layers/cache/src/utils.rs", 1),
                ("layers/cache/src/utils.rs", 3),
            ]
        );
    }

    #[test]
    fn a_finding_is_a_line_that_editors_understand() {
        assert_eq!(Finding::new("a/b.rs", 7, "wrong; right").to_string(), "a/b.rs:7: wrong; right");
    }
}
