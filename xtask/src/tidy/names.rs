//! Names that say nothing about what is inside: no folder, file or module has one. Nor is a file called `mod.rs`.

use syn::visit::Visit;

use super::{File, Finding};

/// As a whole name, or as the last word of one.
const BANNED: &[&str] = &["common", "util", "utils", "helpers", "misc", "manager", "managers"];
/// As a whole name only: `flock_base` is a base of something.
const BANNED_WHOLE: &[&str] = &["base"];

/// Finds banned names in the path of `file` and among the modules inside it.
pub fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for part in file.path.split('/') {
        let name = part.split_once('.').map_or(part, |(stem, _)| stem);
        if is_banned(name) {
            findings.push(Finding::new(&file.path, 1, advice(name)));
        }
    }
    if file.path.ends_with("/mod.rs") {
        findings.push(Finding::new(&file.path, 1, "a file called mod.rs; make it `foo.rs` beside `foo/`"));
    }
    if let Some(text) = file.text.as_ref().filter(|_| file.path.ends_with(".rs"))
        && let Ok(parsed) = syn::parse_file(text)
    {
        let mut modules = Modules { path: &file.path, findings: &mut findings };
        modules.visit_file(&parsed);
    }
    findings
}

/// Collects the modules with a body: one without is a file, whose path was looked at.
struct Modules<'a> {
    path: &'a str,
    findings: &'a mut Vec<Finding>,
}

impl<'ast> Visit<'ast> for Modules<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let name = module.ident.to_string();
        if module.content.is_some() && is_banned(&name) {
            let line = module.ident.span().start().line;
            self.findings.push(Finding::new(self.path, line, advice(&name)));
        }
        syn::visit::visit_item_mod(self, module);
    }
}

fn is_banned(name: &str) -> bool {
    let last = name.rsplit(['_', '-']).next().unwrap_or(name);
    BANNED.contains(&last) || BANNED_WHOLE.contains(&name)
}

fn advice(name: &str) -> String {
    format!("the name `{name}` says nothing about what is inside; name it after its one job")
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::File;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = File { path: path.to_owned(), text: Some(text.to_owned()) };
        check(&file).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn banned_names_are_found_in_folders_files_and_modules() {
        assert_eq!(lines("core/common/src/lib.rs", ""), [1]);
        assert_eq!(lines("docs/misc.md", ""), [1]);
        assert_eq!(lines("layers/cache/src/test_utils.rs", ""), [1]);
        assert_eq!(lines("layers/cache/src/base.rs", ""), [1]);
        assert_eq!(lines("a/b.rs", "fn f() {}\nmod inner {\n    pub mod lease_manager {}\n}\n"), [3]);
    }

    #[test]
    fn a_name_that_only_contains_one_is_fine() {
        assert_eq!(lines("a/base_version.rs", "mod commonality {}\nmod database {}"), [] as [usize; 0]);
        assert_eq!(lines("docs/utility.md", "mod utils {}"), [] as [usize; 0]);
    }

    #[test]
    fn mod_rs_is_found() {
        assert_eq!(lines("core/vfs/src/node/mod.rs", ""), [1]);
    }
}
