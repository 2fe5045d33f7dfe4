//! The suites in their short form; `cargo xtask suites` runs them long.

use hither_tests::needs_mounts;
use hither_tests::suites::{Extent, apps::App, fsx, kills, pjdfstest, power_cuts, stress};

/// Of the random ones. What another seed finds becomes a test of its own.
const SEED: u64 = 20;

#[test]
fn pjdfstest_passes_what_ext4_passes() {
    needs_mounts!();
    pjdfstest::run().iter().for_each(|outcome| outcome.assert_passed());
}

#[test]
fn fsx_reads_what_it_wrote() {
    needs_mounts!();
    fsx::run(Extent::Quick, SEED).iter().for_each(|outcome| outcome.assert_passed());
}

#[test]
fn stress_of_several_processes_leaves_one_tree() {
    needs_mounts!();
    stress::run(Extent::Quick, SEED).iter().for_each(|outcome| outcome.assert_passed());
}

fn app(name: &str) {
    let app = App::named(name).expect("an app of that name");
    app.run_on_all().iter().for_each(|outcome| outcome.assert_passed());
}

#[test]
fn app_git_clones_and_checks() {
    needs_mounts!("git");
    app("git");
}

#[test]
fn app_sqlite_under_load_keeps_its_integrity() {
    needs_mounts!("sqlite3");
    app("sqlite");
}

#[test]
fn app_tar_round_trips_attributes_lists_and_holes() {
    needs_mounts!("tar", "setfattr", "setfacl");
    app("tar");
}

#[test]
fn app_build_makes_what_it_makes_elsewhere() {
    needs_mounts!("make", "gcc");
    app("build");
}

#[test]
fn app_python_compiles_and_imports() {
    needs_mounts!("python3");
    app("python");
}

#[test]
fn app_rsync_finds_no_difference() {
    needs_mounts!("rsync", "setfattr", "setfacl");
    app("rsync");
}

#[test]
fn kills_at_random_moments_leave_nothing_to_repair() {
    needs_mounts!("mkfs.ext4");
    kills::run(Extent::Quick, SEED).assert_passed();
}

#[test]
fn power_cuts_leave_no_copy_that_differs() {
    needs_mounts!("mkfs.xfs");
    power_cuts::run(Extent::Quick, SEED).assert_passed();
}
