//! What must not be left in any text: markers of unfinished work, paths of one machine, hosts of package registries.
//!
//! The words are put together from pieces here, so that this file does not find itself.

use super::{File, Finding};

/// Marks of unfinished work, as words.
const MARKERS: &[&str] =
    &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX"), concat!("HA", "CK")];
/// Where some machine keeps things; as the start of a path.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];
/// Where packages come from is a setting of each machine, not of the tree.
const REGISTRIES: &[&str] = &[
    concat!("crates", ".io"),
    concat!("deb.debian", ".org"),
    concat!("security.debian", ".org"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("registry.npmjs", ".org"),
];

/// Finds leftovers in `file`. Cargo's lock file names registries by cargo's rules, not by ours.
pub fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(text) = file.text.as_ref().filter(|_| file.path != "Cargo.lock") else { return findings };
    for (index, line) in text.lines().enumerate() {
        let mut find = |message| findings.push(Finding::new(&file.path, index + 1, message));
        for marker in MARKERS.iter().filter(|marker| has_word(line, marker)) {
            find(format!(
                "{marker} left in the tree; do it now, or file an issue and say here what holds today"
            ));
        }
        for path in MACHINE_PATHS.iter().filter(|path| has_path(line, path)) {
            find(format!("{path} is a path of one machine; make it relative, or an argument"));
        }
        for host in REGISTRIES.iter().filter(|host| line.contains(**host)) {
            find(format!(
                "{host} is a package registry; name the package and leave the host to each machine"
            ));
        }
    }
    findings
}

/// Whether `word` is in `line` with no letter, digit or underscore at either side.
fn has_word(line: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(inside) && !line[at + word.len()..].starts_with(inside))
}

/// Whether a path starts with `path` in `line`: what stands before it is no part of a longer path.
fn has_path(line: &str, path: &str) -> bool {
    let longer = |c: char| c.is_alphanumeric() || "_-./~}*)$".contains(c);
    line.match_indices(path).any(|(at, _)| !line[..at].ends_with(longer))
}

#[cfg(test)]
mod tests {
    use super::{MACHINE_PATHS, MARKERS, REGISTRIES, check};
    use crate::tidy::File;

    fn count(path: &str, text: &str) -> usize {
        check(&File { path: path.to_owned(), text: Some(text.to_owned()) }).len()
    }

    #[test]
    fn every_marker_is_found_as_a_word_only() {
        for marker in MARKERS {
            assert_eq!(count("a.rs", &format!("fn f() {{}} // {marker}: later\n")), 1, "{marker}");
            assert_eq!(count("a.rs", &format!("// {marker}S {marker}_LIST a{marker}\n")), 0, "{marker}");
        }
        assert_eq!(count("a.sh", "mktemp -d /tmp/x.XXXXXX\n"), 0);
    }

    #[test]
    fn every_machine_path_is_found_at_the_start_of_a_path_only() {
        for path in MACHINE_PATHS {
            assert_eq!(count("a.md", &format!("see `{path}notes`\n")), 1, "{path}");
            assert_eq!(count("a.md", &format!("$HOME{path}x target{path}x ${{dir}}{path}x\n")), 0, "{path}");
        }
    }

    #[test]
    fn every_registry_is_found_but_in_the_lock_file() {
        for host in REGISTRIES {
            assert_eq!(count("a.md", &format!("https://{host}/x\n")), 1, "{host}");
            assert_eq!(count("Cargo.lock", &format!("source = \"{host}\"\n")), 0, "{host}");
        }
    }

    #[test]
    fn a_finding_has_the_line() {
        let text = format!("one\ntwo {}\n", MARKERS[0]);
        let findings = check(&File { path: "a".to_owned(), text: Some(text) });
        assert_eq!(findings[0].line, 2);
    }
}
