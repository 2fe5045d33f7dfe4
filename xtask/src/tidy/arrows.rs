//! The arrows between crates: each manifest uses only what the table allows its storey, takes every version from the
//! root manifest, and has the workspace's lints.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::house::House;
use super::{File, Finding, line_at};

/// Finds broken arrows among all manifests in `files`.
pub fn check(files: &[File], house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut manifests = Vec::new();
    for file in files {
        let Some(text) = file.text.as_ref().filter(|_| file.path.ends_with("/Cargo.toml")) else { continue };
        match Manifest::parse(&file.path, text) {
            Ok(manifest) => manifests.push(manifest),
            Err(error) => findings.push(Finding::new(&file.path, 1, error)),
        }
    }
    let storeys: BTreeMap<&str, &str> = manifests.iter().map(|m| (m.name.as_str(), m.storey())).collect();
    for manifest in &manifests {
        manifest.check_workspace(&mut findings);
        manifest.check_arrows(&storeys, house, &mut findings);
    }
    findings
}

/// A crate's manifest.
struct Manifest<'a> {
    path: &'a str,
    /// The package's name.
    name: String,
    /// Whether `[lints]` is the workspace's.
    has_lints: bool,
    dependencies: Vec<Dependency>,
}

/// An entry under `[dependencies]` or one of its kin.
struct Dependency {
    /// The package's name, whatever the crate calls it.
    name: String,
    line: usize,
    /// Whether only tests, examples and benches see it.
    for_tests: bool,
    /// Whether its version is the root manifest's.
    inherits: bool,
}

impl<'a> Manifest<'a> {
    fn parse(path: &'a str, text: &str) -> Result<Manifest<'a>, String> {
        let table = DeTable::parse(text).map_err(|error| format!("not TOML: {error}"))?.into_inner();
        let name = table.get("package").and_then(|package| text_at(package, "name"));
        let name = name.ok_or("no package name; a manifest below the root is a package's")?.to_owned();
        let has_lints = table.get("lints").is_some_and(|lints| is_true_at(lints, "workspace"));
        let mut dependencies = Vec::new();
        collect(text, &table, &mut dependencies);
        if let Some(targets) = table.get("target").and_then(|target| target.get_ref().as_table()) {
            for target in targets.values().filter_map(|target| target.get_ref().as_table()) {
                collect(text, target, &mut dependencies);
            }
        }
        Ok(Manifest { path, name, has_lints, dependencies })
    }

    /// The folder at the root that the crate is in.
    fn storey(&self) -> &'a str {
        self.path.split('/').next().unwrap_or(self.path)
    }

    /// What every crate takes from the root manifest.
    fn check_workspace(&self, findings: &mut Vec<Finding>) {
        if !self.has_lints {
            let message = "without the workspace's lints; add `[lints]` with `workspace = true`";
            findings.push(Finding::new(self.path, 1, message));
        }
        for dependency in self.dependencies.iter().filter(|dependency| !dependency.inherits) {
            let message = format!(
                "{} has a version of its own; put it into the root manifest and write `workspace = true`",
                dependency.name
            );
            findings.push(Finding::new(self.path, dependency.line, message));
        }
    }

    /// What the table says; `storeys` is the storey of each crate of ours.
    fn check_arrows(&self, storeys: &BTreeMap<&str, &str>, house: &House, findings: &mut Vec<Finding>) {
        let Some(rule) = house.storey.get(self.storey()) else {
            let message = format!("{} is no storey; move the crate, or add it to house.toml", self.storey());
            findings.push(Finding::new(self.path, 1, message));
            return;
        };
        for dependency in &self.dependencies {
            let Some(storey) = storeys.get(dependency.name.as_str()) else { continue };
            let tests_use = if dependency.for_tests { rule.tests_use.as_slice() } else { &[] };
            let mut allowed = rule.uses.iter().chain(tests_use);
            if !allowed.any(|name| name == storey || *name == dependency.name) {
                let kind = if dependency.for_tests { "tests in" } else { "crates in" };
                let message = format!(
                    "{kind} {}/ may not use {} of {storey}/; have it handed in by who is above both (house.toml)",
                    self.storey(),
                    dependency.name
                );
                findings.push(Finding::new(self.path, dependency.line, message));
            }
        }
    }
}

/// Adds the dependencies that `table` (a manifest, or one target's part of it) has.
fn collect(text: &str, table: &DeTable<'_>, dependencies: &mut Vec<Dependency>) {
    for (section, for_tests) in
        [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
    {
        let Some(entries) = table.get(section).and_then(|entries| entries.get_ref().as_table()) else {
            continue;
        };
        for (key, value) in entries {
            let Range { start, .. } = key.span();
            dependencies.push(Dependency {
                name: text_at(value, "package").unwrap_or(key.get_ref()).to_owned(),
                line: line_at(text, start),
                for_tests,
                inherits: is_true_at(value, "workspace"),
            });
        }
    }
}

/// The string under `key` in the table `value`.
fn text_at<'v>(value: &'v Spanned<DeValue<'_>>, key: &str) -> Option<&'v str> {
    value.get_ref().get(key)?.get_ref().as_str()
}

/// Whether `true` is under `key` in the table `value`.
fn is_true_at(value: &Spanned<DeValue<'_>>, key: &str) -> bool {
    value.get_ref().get(key).and_then(|value| value.get_ref().as_bool()) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{File, Finding, house::House};

    /// A crate at `path` whose manifest ends in `rest`.
    fn krate(path: &str, name: &str, rest: &str) -> File {
        let text = format!("[package]\nname = \"{name}\"\n[lints]\nworkspace = true\n{rest}");
        File { path: format!("{path}/Cargo.toml"), text: Some(text) }
    }

    /// What is found in the house of some crates and `krate`.
    fn found(krate: File) -> Vec<Finding> {
        let files = [
            self::krate("core/vfs", "hither-vfs", ""),
            self::krate("backends/mem", "hither-mem", ""),
            self::krate("layers/mirror", "hither-mirror", ""),
            self::krate("testkit", "hither-testkit", ""),
            krate,
        ];
        check(&files, &House::load().unwrap())
    }

    #[test]
    fn a_layer_uses_the_core_and_its_tests_what_is_below() {
        let rest = "[dependencies]\nhither-vfs = { workspace = true }\nlibc.workspace = true\n\
                    [dev-dependencies]\nhither-mem = { workspace = true }\nhither-testkit = { workspace = true }\n";
        assert_eq!(found(krate("layers/cache", "hither-cache", rest)), []);
    }

    #[test]
    fn a_layer_that_names_a_backend_or_a_layer_is_found() {
        let rest =
            "[dependencies]\nhither-mem = { workspace = true }\nhither-mirror = { workspace = true }\n";
        let found = found(krate("layers/cache", "hither-cache", rest));
        let lines: Vec<usize> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [6, 7]);
        assert!(found[0].message.starts_with("crates in layers/ may not use hither-mem of backends/"));
    }

    #[test]
    fn an_arrow_hidden_in_a_target_a_table_or_a_rename_is_found() {
        for rest in [
            "[target.'cfg(unix)'.dependencies]\nhither-mem = { workspace = true }\n",
            "[dependencies.hither-mem]\nworkspace = true\n",
            "[build-dependencies]\ninner = { workspace = true, package = \"hither-mem\" }\n",
        ] {
            assert_eq!(found(krate("core/rt", "hither-rt", rest)).len(), 1, "{rest}");
        }
    }

    #[test]
    fn the_core_may_not_use_the_testkit_even_in_tests() {
        let rest = "[dev-dependencies]\nhither-testkit = { workspace = true }\n";
        assert_eq!(found(krate("core/rt", "hither-rt", rest)).len(), 1);
    }

    #[test]
    fn a_version_of_its_own_missing_lints_and_an_unknown_storey_are_found() {
        assert_eq!(found(krate("core/rt", "hither-rt", "[dependencies]\nlibc = \"0.2\"\n")).len(), 1);
        assert_eq!(found(krate("extras/x", "x", "")).len(), 1);
        let text = "[package]\nname = \"hither-rt\"\n";
        let bare = File { path: "core/rt/Cargo.toml".to_owned(), text: Some(text.to_owned()) };
        assert_eq!(found(bare).len(), 1);
        let broken = File { path: "core/rt/Cargo.toml".to_owned(), text: Some("[package".to_owned()) };
        assert_eq!(found(broken).len(), 1);
    }
}
