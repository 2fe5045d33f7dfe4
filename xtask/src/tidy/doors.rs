//! The one door: product code above the core has clock, randomness, threads and locks from `hither-rt` only, so that a
//! simulator can stand in for them. Tests may do as they like.

use syn::spanned::Spanned as _;
use syn::visit::Visit;

use super::house::{self, House};
use super::source::is_for_tests;
use super::{File, Finding};

/// Finds what goes past the door in `file`, if it is product code that must not.
pub fn check(file: &File, house: &House) -> Vec<Finding> {
    let storey = file.path.split('/').next().unwrap_or_default();
    let is_product =
        file.path.ends_with(".rs") && file.path.contains("/src/") && !file.path.contains("/tests");
    if !is_product || !house.door.storeys.iter().any(|name| name == storey) {
        return Vec::new();
    }
    let Some(Ok(parsed)) = file.text.as_ref().map(|text| syn::parse_file(text)) else { return Vec::new() };
    let mut door = Door { path: &file.path, door: &house.door, findings: Vec::new() };
    door.visit_file(&parsed);
    door.findings
}

struct Door<'a> {
    path: &'a str,
    door: &'a house::Door,
    findings: Vec<Finding>,
}

impl Door<'_> {
    /// Looks at one whole path, as `std::thread::spawn`.
    fn check_path(&mut self, words: &[String], line: usize) {
        let whole = words.join("::");
        let is_closed = |closed: &&String| match whole.strip_suffix(closed.as_str()) {
            Some(before) => before.is_empty() || before.ends_with("::"),
            None => whole.strip_prefix(closed.as_str()).is_some_and(|after| after.starts_with("::")),
        };
        let closed = self.door.closed.iter().find(is_closed);
        if let Some(closed) = closed.filter(|_| !self.door.open.contains(&whole)) {
            let message =
                format!("{closed} goes past the one door to clock, chance, threads and locks; use hither_rt");
            self.findings.push(Finding::new(self.path, line, message));
        }
    }

    /// Looks at every path that `tree`, below `before`, brings in.
    fn check_use(&mut self, tree: &syn::UseTree, before: &mut Vec<String>) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.check_use(&path.tree, before);
                before.pop();
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.check_use(tree, before)),
            syn::UseTree::Name(syn::UseName { ident })
            | syn::UseTree::Rename(syn::UseRename { ident, .. }) => {
                // `use std::thread::{self}` brings in `std::thread`.
                let own = ident != "self";
                before.extend(own.then(|| ident.to_string()));
                self.check_path(before, ident.span().start().line);
                before.truncate(before.len() - usize::from(own));
            }
            syn::UseTree::Glob(glob) => self.check_path(before, glob.span().start().line),
        }
    }
}

impl<'ast> Visit<'ast> for Door<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !module.attrs.iter().any(is_for_tests) {
            syn::visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !item.attrs.iter().any(is_for_tests) {
            self.check_use(&item.tree, &mut Vec::new());
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.check_path(&words, path.span().start().line);
        syn::visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{File, house::House};

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = File { path: path.to_owned(), text: Some(text.to_owned()) };
        check(&file, &House::load().unwrap()).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn what_goes_past_the_door_is_found_in_uses_and_paths() {
        for code in [
            "use std::thread;",
            "use std::{fs, thread::{self, JoinHandle}};",
            "use parking_lot::Mutex;",
            "use std::sync::{Arc, RwLock};",
            "fn f() { std::thread::sleep(limit); }",
            "fn f() -> T { Instant::now() }",
            "struct S { lock: std::sync::Mutex<u8> }",
            "fn f() { let x = rand::random::<u8>(); }",
        ] {
            assert!(lines("layers/cache/src/a.rs", &format!("//! D.\n{code}\n")).starts_with(&[2]), "{code}");
        }
    }

    #[test]
    fn the_door_itself_tests_and_other_storeys_are_not_asked() {
        let none = [] as [usize; 0];
        let fine = "use hither_rt::{clock, sync::Mutex, thread};\nuse std::sync::Arc;\nuse std::{thread::JoinHandle, time::Instant};\n\
                    fn f(t: Instant) { thread::spawn(\"fill\", g); random::now(); }\n\
                    #[cfg(test)]\nmod tests {\n    use std::thread;\n}\n";
        assert_eq!(lines("layers/cache/src/a.rs", fine), none);
        let past = "use std::thread;\n";
        for path in
            ["core/rt/src/a.rs", "layers/cache/src/a/tests.rs", "layers/cache/tests/a.rs", "xtask/src/a.rs"]
        {
            assert_eq!(lines(path, past), none, "{path}");
        }
    }
}
