//! The file system in memory against Linux's.

use std::path::Path;
use std::sync::Arc;

use hither_mem::Mem;
use hither_testkit::differential;
use hither_testkit::model::Check;

#[test]
fn differential() {
    let regressions = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/differential.txt");
    let check = Check::new(regressions).cases(150);
    differential::check(&check, Path::new("/dev/shm"), || Arc::new(Mem::new())).assert_agreed();
}
