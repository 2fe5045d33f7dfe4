//! A directory of the host keeps every promise of the trait, on a file system in memory and on that of the disk, with
//! few descriptors, without file handles, and without backings; and it does what the model and a bare directory do.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::path::Path;
use std::sync::Arc;

use hither_dir::{Dir, Handles, Options};
use hither_testkit::conformance::{Report, Suite};
use hither_testkit::differential;
use hither_testkit::model::{self, Check};
use hither_vfs::FileSystem;

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

/// Serves a new directory each time.
fn fresh(ground: &Path, options: &Options) -> Arc<dyn FileSystem> {
    let directory = tempfile::tempdir_in(ground).unwrap().keep();
    Dir::open(&directory, options.clone()).unwrap()
}

fn check() -> Check {
    Check::new(concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/model.txt")).cases(150)
}

#[test]
fn it_is_the_model() {
    let ground = tempfile::tempdir_in("/dev/shm").unwrap();
    for options in
        [Options::default(), Options { descriptors: 2, handles: Handles::Never, ..Options::default() }]
    {
        model::check(&check(), || fresh(ground.path(), &options)).assert_agreed();
    }
}

#[test]
fn it_is_a_bare_directory() {
    let ground = tempfile::tempdir_in(on_disk()).unwrap();
    for options in [Options::default(), Options { descriptors: 2, ..Options::default() }] {
        let factory = || fresh(ground.path(), &options);
        differential::check(&check(), ground.path(), factory).assert_agreed();
    }
}
