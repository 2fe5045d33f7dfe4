//! The files of the tree: those that git has or would add, so that what `.gitignore` names is nobody's business.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use super::File;
use crate::process;

/// Every file below `root`, in the order of paths.
pub fn files(root: &Path) -> anyhow::Result<Vec<File>> {
    let mut git = Command::new("git");
    // The tree may be another user's, as in a container: it is only read.
    git.args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listed = process::output(git.current_dir(root))?;
    let mut paths: Vec<&str> = listed.split_terminator('\0').collect();
    paths.sort_unstable();
    paths.dedup();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let full = root.join(path);
        // A deleted file is still listed until the deletion is committed; a link is judged by its target.
        if full.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            let bytes = std::fs::read(&full).with_context(|| format!("cannot read {path}"))?;
            files.push(File { path: path.to_owned(), text: String::from_utf8(bytes).ok() });
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::files;
    use std::process::Command;

    #[test]
    fn files_are_those_that_git_has_or_would_add() {
        let root = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| {
            assert!(Command::new("git").current_dir(&root).args(args).status().unwrap().success())
        };
        let write = |name: &str, bytes: &[u8]| std::fs::write(root.path().join(name), bytes).unwrap();
        git(&["init", "--quiet"]);
        write(".gitignore", b"built\n");
        write("built", b"");
        write("gone", b"");
        write("kept", b"text\n");
        write("logo.png", b"\x89PNG\xff");
        git(&["add", "gone", "kept"]);
        std::fs::remove_file(root.path().join("gone")).unwrap();
        std::os::unix::fs::symlink("kept", root.path().join("link")).unwrap();
        let files = files(root.path()).unwrap();
        let seen: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.text.as_deref())).collect();
        assert_eq!(seen, [(".gitignore", Some("built\n")), ("kept", Some("text\n")), ("logo.png", None)]);
    }

    #[test]
    fn a_folder_without_git_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        assert!(files(root.path()).is_err());
    }
}
