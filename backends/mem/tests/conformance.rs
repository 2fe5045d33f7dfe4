//! The file system in memory keeps every promise of the trait.

use std::sync::Arc;

use hither_mem::Mem;
use hither_testkit::conformance;

#[test]
fn conformance() {
    let report = conformance::run(|| Arc::new(Mem::new()));
    report.assert_all_passed();
    // It can all there is: nothing but what the user of the machine lacks may be left out.
    let skipped = report.skipped.iter().filter(|(_, reason)| !reason.contains("not root"));
    assert_eq!(skipped.count(), 0);
}
