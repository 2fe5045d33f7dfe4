//! The file system in memory against the model.

use std::sync::Arc;

use hither_mem::Mem;
use hither_testkit::model::{self, Check};

#[test]
fn model() {
    let regressions = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/model.txt");
    model::check(&Check::new(regressions).cases(400), || Arc::new(Mem::new())).assert_agreed();
}
