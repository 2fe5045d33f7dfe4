//! Links of a Markdown file to files: each leads to one that is in the tree.

use super::{File, Finding};

/// Finds the links of `file` that lead nowhere in `files`.
pub fn check(file: &File, files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(text) = file.text.as_ref().filter(|_| file.path.ends_with(".md")) else { return findings };
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for target in targets(line) {
            if !resolve(&file.path, target).is_some_and(|path| exists(&path, files)) {
                let message = format!("the link to {target} leads nowhere; name a file of this tree");
                findings.push(Finding::new(&file.path, index + 1, message));
            }
        }
    }
    findings
}

/// The targets in `[text](target)` that are paths: no addresses, no places in the same file.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).filter_map(|(target, _)| {
        let path = target.split(['#', ' ']).next().unwrap_or(target);
        (!path.is_empty() && !path.contains(':')).then_some(path)
    })
}

/// `target` as a path from the root, when read in the file `from`; none if it leaves the tree.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => from.split('/').rev().skip(1).collect::<Vec<_>>().into_iter().rev().collect(),
    };
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Whether `path` is a file, or a folder with a file below it.
fn exists(path: &str, files: &[File]) -> bool {
    path.is_empty()
        || files.iter().any(|file| {
            file.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
}

#[cfg(test)]
mod tests {
    use super::{check, resolve};
    use crate::tidy::File;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: Some(text.to_owned()) };
        let tree = [file("README.md", ""), file("docs/formats/store.md", ""), file(path, text)];
        check(&tree[2], &tree).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_link_to_nothing_is_found() {
        assert_eq!(lines("docs/a.md", "ok\n[x](formats/index.md) and [y](gone)\n"), [2, 2]);
        assert_eq!(lines("docs/a.md", "[x](../../shared/plan.md)\n"), [1]);
        assert_eq!(lines("docs/a.md", "[x](docs/formats/store.md)\n"), [1]);
    }

    #[test]
    fn links_to_files_folders_addresses_and_places_are_fine() {
        let text = "[a](formats/store.md#magic) [b](../README.md) [c](formats/) [d](https://example.org/x) [e](#here)";
        assert_eq!(lines("docs/a.md", text), [] as [usize; 0]);
        assert_eq!(lines("docs/a.md", "```\n[x](gone)\n```\n"), [] as [usize; 0]);
        assert_eq!(lines("docs/a.txt", "[x](gone)"), [] as [usize; 0]);
    }

    #[test]
    fn a_target_is_read_from_its_file() {
        assert_eq!(resolve("docs/a.md", "./b/../c.md").as_deref(), Some("docs/c.md"));
        assert_eq!(resolve("docs/a.md", "/c.md").as_deref(), Some("c.md"));
        assert_eq!(resolve("a.md", "../b.md"), None);
    }
}
