//! A directory of the host keeps every promise of the trait, on a file system in memory and on that of the disk, with
//! few descriptors, without file handles, and without backings.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::path::Path;

use hither_dir::{Dir, Handles, Options};
use hither_testkit::conformance::Report;
use hither_testkit::conformance::Suite;

/// What no option may take away.
const ALWAYS: [&str; 3] =
    ["a_node_is_one_object_while_it_is_held", "hard_links_are_one_file", "all_names_are_listed"];

fn run_on(below: &Path, options: &Options) -> Report {
    let ground = tempfile::tempdir_in(below).unwrap();
    let report = Suite::default().run(|| Dir::open(ground.path(), options.clone()).unwrap());
    report.assert_all_passed();
    for name in ALWAYS {
        assert!(report.passed.contains(&name), "{name} did not run");
    }
    report
}

/// Where a build leaves its files: on a disk, most likely.
fn on_disk() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

#[test]
fn on_the_disk() {
    run_on(on_disk(), &Options::default());
}

#[test]
fn in_memory() {
    run_on(Path::new("/dev/shm"), &Options::default());
}

#[test]
fn with_few_descriptors() {
    run_on(on_disk(), &Options { descriptors: 4, ..Options::default() });
}

#[test]
fn without_file_handles() {
    run_on(on_disk(), &Options { handles: Handles::Never, descriptors: 4, ..Options::default() });
}

#[test]
fn without_backings_on_a_far_disk() {
    run_on(on_disk(), &Options { backings: false, may_block: true, ..Options::default() });
}
