//! The cache against the plain model, asking the origin each time and remembering its answers.

use std::sync::Arc;
use std::time::Duration;

use hither_cache::{Cache, Options};
use hither_mem::Mem;
use hither_testkit::model::{self, Check};
use hither_vfs::FileSystem;

use crate::kit::options;

const REGRESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/model.txt");

fn agrees(options: &Options) {
    let cache = || -> Arc<dyn FileSystem> {
        Cache::open(Arc::new(Mem::new()), Arc::new(Mem::new()), options.clone()).unwrap()
    };
    model::check(&Check::new(REGRESSIONS).cases(150), cache).assert_agreed();
}

#[test]
fn asking_each_time() {
    agrees(&options());
}

#[test]
fn remembering() {
    agrees(&Options { revalidate: Duration::from_secs(3600), ..options() });
}
