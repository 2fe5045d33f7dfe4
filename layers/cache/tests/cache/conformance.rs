//! The cache is a file system like any other, whatever it remembers.

use std::sync::Arc;
use std::time::Duration;

use hither_cache::{Cache, Options};
use hither_mem::Mem;
use hither_testkit::conformance;
use hither_vfs::FileSystem;

use crate::kit::options;

fn cache(options: Options) -> Arc<dyn FileSystem> {
    Cache::open(Arc::new(Mem::new()), Arc::new(Mem::new()), options).unwrap()
}

#[test]
fn the_origin_asked_each_time() {
    conformance::run(|| cache(options())).assert_all_passed();
}

#[test]
fn answers_remembered() {
    conformance::run(|| cache(Options { revalidate: Duration::from_secs(3600), ..options() }))
        .assert_all_passed();
}

#[test]
fn nothing_is_ever_copied() {
    conformance::run(|| cache(Options { rules: "bypass all".parse().unwrap(), ..options() }))
        .assert_all_passed();
}
