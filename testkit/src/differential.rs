//! The operations of the [model](crate::model) on a file system and on a real directory, by system calls: Linux is the
//! judge.
//!
//! ```no_run
//! # fn file_system() -> std::sync::Arc<dyn hither_vfs::FileSystem> { unimplemented!() }
//! use hither_testkit::{differential, model::Check};
//! let regressions = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/differential.txt");
//! let check = Check::new(regressions).cases(200);
//! differential::check(&check, "/dev/shm".as_ref(), file_system).assert_agreed();
//! ```

use std::path::Path;
use std::sync::Arc;

use hither_vfs::{Capabilities, FileSystem};

use crate::model::tree::Tree;
use crate::model::{Check, Subject, Target, Verdict};

mod host;

use host::Host;

/// Checks file systems from the factory, each empty, against empty directories made in `below`.
pub fn check(check: &Check, below: &Path, factory: impl Fn() -> Arc<dyn FileSystem>) -> Verdict {
    let can = factory().capabilities();
    check.run(&can, ("the directory", "the file system"), || {
        let subject = Subject::new(factory()).map_err(|error| error.to_string())?;
        Ok((host(below)?, Box::new(subject)))
    })
}

/// Checks the model itself against empty directories made in `below`, with all that `can` names.
pub fn check_model(check: &Check, below: &Path, can: &Capabilities) -> Verdict {
    check.run(can, ("the directory", "the model"), || Ok((host(below)?, Box::new(Tree::default()))))
}

fn host(below: &Path) -> Result<Box<dyn Target>, String> {
    Ok(Box::new(Host::new(below)?))
}
