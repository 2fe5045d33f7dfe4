//! A file system with faults is, while nothing is wrong, just the file system; and one that is slow keeps its promises
//! to those who must not wait.

use std::sync::Arc;
use std::time::Duration;

use hither_mem::Mem;
use hither_testkit::conformance::{self, Suite};
use hither_testkit::faults::{Faulty, Kinds, Script};
use hither_testkit::model::{self, Check};

#[test]
fn without_faults() {
    conformance::run(|| Faulty::new(Arc::new(Mem::new()), Arc::default())).assert_all_passed();
    let regressions = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/transparent.txt");
    let check = Check::new(regressions).cases(50);
    model::check(&check, || Faulty::new(Arc::new(Mem::new()), Arc::default())).assert_agreed();
}

#[test]
fn slow() {
    let slow = || {
        let script = Arc::new(Script::default());
        script.delay(Kinds::ALL, Duration::from_micros(100));
        Faulty::new(Arc::new(Mem::new()), script) as Arc<_>
    };
    for part in ["patience", "must_not_wait", "many", "rename", "list"] {
        Suite::default().only(part).run(slow).assert_all_passed();
    }
}
