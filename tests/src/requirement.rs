//! What a test needs of its machine. One that cannot run says so and is counted: it never passes in silence.
//!
//! With `HITHER_SKIPS=FILE` each skip is a line of that file; with `HITHER_NO_SKIPS=1` (a machine that is meant to
//! run all) it is a failure.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// Why mounts cannot be tested here; `None` if they can.
pub fn missing_for_mounts() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("not root: loop devices and passthrough need it".to_owned());
    }
    let fuse = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    if let Err(error) = fuse {
        return Some(format!("/dev/fuse cannot be opened: {error}"));
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("no loop devices (/dev/loop-control)".to_owned());
    }
    missing_program(&["mkfs.ext4", "mount", "umount"])
}

/// Why these programs cannot be run; `None` if all are there.
pub fn missing_program(names: &[&str]) -> Option<String> {
    let missing: Vec<_> = names.iter().copied().filter(|name| find_program(name).is_none()).collect();
    (!missing.is_empty()).then(|| format!("not installed: {}", missing.join(", ")))
}

/// Where a program lies, on PATH or where Debian keeps root's.
pub fn find_program(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<_> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(Into::into));
    folders.into_iter().map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Counts a test that cannot run here.
///
/// # Panics
/// With `HITHER_NO_SKIPS=1`.
pub fn skip(test: &str, reason: &str) {
    assert!(std::env::var_os("HITHER_NO_SKIPS").is_none(), "{test} cannot run here: {reason}");
    eprintln!("skipped: {test}: {reason}");
    if let Some(file) = std::env::var_os("HITHER_SKIPS") {
        let line = format!("{test}: {reason}\n");
        let written = OpenOptions::new().append(true).create(true).open(&file);
        if let Err(error) = written.and_then(|mut file| file.write_all(line.as_bytes())) {
            eprintln!("the skip is not counted: {}: {error}", Path::new(&file).display());
        }
    }
}

/// Returns from a test that cannot mount, or lacks one of the programs named, having counted it.
#[macro_export]
macro_rules! needs_mounts {
    ($($program:expr),* $(,)?) => {{
        fn here() {}
        let test = std::any::type_name_of_val(&here).trim_end_matches("::here");
        let programs: &[&str] = &[$($program),*];
        let missing = $crate::requirement::missing_for_mounts()
            .or_else(|| $crate::requirement::missing_program(programs));
        if let Some(reason) = missing {
            $crate::requirement::skip(test, &reason);
            return;
        }
    }};
}
