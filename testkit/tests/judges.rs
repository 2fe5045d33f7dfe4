//! The model is judged by Linux before it judges others.

use std::path::Path;

use hither_mem::Mem;
use hither_testkit::differential;
use hither_testkit::model::Check;
use hither_vfs::FileSystem;

#[test]
fn the_model_is_linux() {
    let regressions = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/judges.txt");
    let check = Check::new(regressions).cases(300);
    // Whatever can be drawn: the file system in memory can all of it.
    let can = Mem::new().capabilities();
    for below in [Path::new("/dev/shm"), Path::new(env!("CARGO_TARGET_TMPDIR"))] {
        differential::check_model(&check, below, &can).assert_agreed();
    }
}
