//! One suite that every file system of ours passes: the trait's promises, method by method, in process.
//!
//! ```no_run
//! # fn file_system() -> std::sync::Arc<dyn hither_vfs::FileSystem> { unimplemented!() }
//! hither_testkit::conformance::run(file_system).assert_all_passed();
//! ```
//!
//! Every test gets a file system from the factory and a directory of its own in it, so a factory may also hand out
//! the same file system each time. Tests are chosen by [`Capabilities`]; those that do not apply are counted as
//! skipped, with the reason. Nothing here knows an implementation: what is expected is what `man 2` and Linux's local
//! file systems say.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hither_vfs::{Call, Caller, Capabilities, FileSystem};

use crate::Client;
use crate::check::{Failure, Outcome};

mod attributes;
mod calls;
mod content;
mod directories;
mod identity;
mod links;
mod listings;
mod names;
mod permissions;
mod renames;
mod sparse;
mod xattrs;

/// What a test is run with.
pub(crate) struct Subject {
    /// The file system.
    pub(crate) fs: Arc<dyn FileSystem>,
    /// A client in the test's own directory.
    pub(crate) client: Client,
}

impl Subject {
    /// The client as another user, who is in the group of the same number and in no other.
    pub(crate) fn as_user(&self, id: u32) -> Client {
        self.client.as_caller(Caller::new(id, id, 0, 0).with_groups([]))
    }

    /// The client with a umask.
    pub(crate) fn with_umask(&self, umask: u32) -> Client {
        let mut caller = Caller::this_process();
        caller.umask = umask;
        self.client.as_caller(caller)
    }
}

/// One test: a name, when it applies, what it does.
pub(crate) struct Test {
    pub(crate) name: &'static str,
    pub(crate) needs: &'static [Need],
    pub(crate) run: fn(&Subject) -> Outcome,
}

/// What a test needs of the file system or the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    PersistentIds,
    HardLinks,
    Symlinks,
    SpecialFiles,
    Xattrs,
    RenameExchange,
    Tmpfile,
    Fallocate,
    Sparse,
    /// The process may act as others and make devices.
    Root,
}

impl Need {
    /// Why it is not met, if it is not.
    fn missing(self, can: &Capabilities) -> Option<&'static str> {
        let (met, reason) = match self {
            Need::PersistentIds => (can.persistent_ids, "no persistent ids"),
            Need::HardLinks => (can.hard_links, "no hard links"),
            Need::Symlinks => (can.symlinks, "no symbolic links"),
            Need::SpecialFiles => (can.special_files, "no special files"),
            Need::Xattrs => (can.xattrs, "no extended attributes"),
            Need::RenameExchange => (can.rename_exchange, "no RENAME_EXCHANGE"),
            Need::Tmpfile => (can.tmpfile, "no O_TMPFILE"),
            Need::Fallocate => (can.fallocate, "no fallocate"),
            Need::Sparse => (can.sparse, "does not know holes"),
            Need::Root => (rustix::process::geteuid().is_root(), "this process is not root"),
        };
        (!met).then_some(reason)
    }
}

/// Writes one table entry a test: the name is the function's.
macro_rules! tests {
    ($($name:ident $([$($need:ident),*])?),* $(,)?) => {
        &[$(crate::conformance::Test {
            name: stringify!($name),
            needs: &[$($(crate::conformance::Need::$need),*)?],
            run: $name,
        }),*]
    };
}
pub(crate) use tests;

/// All tests, in the order in which they run.
fn all() -> impl Iterator<Item = &'static Test> {
    [
        names::TESTS,
        content::TESTS,
        sparse::TESTS,
        attributes::TESTS,
        permissions::TESTS,
        directories::TESTS,
        listings::TESTS,
        links::TESTS,
        renames::TESTS,
        xattrs::TESTS,
        identity::TESTS,
        calls::TESTS,
    ]
    .into_iter()
    .flatten()
}

/// How a run went.
#[derive(Debug, Default)]
pub struct Report {
    /// Names of the tests that passed.
    pub passed: Vec<&'static str>,
    /// Those that failed, and how.
    pub failed: Vec<(&'static str, String)>,
    /// Those that did not apply, and why.
    pub skipped: Vec<(&'static str, String)>,
}

impl Report {
    /// Prints the counts and what was skipped.
    ///
    /// # Panics
    /// If a test failed, or none passed.
    pub fn assert_all_passed(&self) {
        println!("{self}");
        assert!(self.failed.is_empty(), "{self}");
        assert!(!self.passed.is_empty(), "no test ran");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, failed, skipped) = (self.passed.len(), self.failed.len(), self.skipped.len());
        writeln!(f, "conformance: {passed} passed, {failed} failed, {skipped} skipped")?;
        for (name, reason) in &self.skipped {
            writeln!(f, "  skipped {name}: {reason}")?;
        }
        for (name, failure) in &self.failed {
            writeln!(f, "  FAILED {name}: {failure}")?;
        }
        Ok(())
    }
}

/// The suite, to be narrowed before it is run.
#[derive(Default)]
pub struct Suite {
    only: Option<String>,
    exceptions: Vec<(&'static str, &'static str)>,
}

impl Suite {
    /// Runs only tests whose names contain `part`.
    pub fn only(self, part: &str) -> Self {
        Suite { only: Some(part.to_owned()), ..self }
    }

    /// Leaves out a test that is known not to hold here; it is counted as skipped for `reason`.
    pub fn except(mut self, name: &'static str, reason: &'static str) -> Self {
        self.exceptions.push((name, reason));
        self
    }

    /// Runs the tests against file systems from the factory.
    ///
    /// # Panics
    /// If an exception names no test.
    pub fn run(&self, factory: impl Fn() -> Arc<dyn FileSystem>) -> Report {
        for (name, _) in &self.exceptions {
            assert!(all().any(|test| test.name == *name), "the exception {name} names no test");
        }
        let mut report = Report::default();
        for test in all().filter(|test| self.only.as_ref().is_none_or(|part| test.name.contains(part))) {
            match self.run_one(test, &factory) {
                Ok(()) => report.passed.push(test.name),
                Err(Failure::Skipped(reason)) => report.skipped.push((test.name, reason)),
                Err(failure) => report.failed.push((test.name, failure.to_string())),
            }
        }
        report
    }

    fn run_one(&self, test: &Test, factory: &dyn Fn() -> Arc<dyn FileSystem>) -> Outcome {
        if let Some((_, reason)) = self.exceptions.iter().find(|(name, _)| *name == test.name) {
            return Err(Failure::Skipped((*reason).to_owned()));
        }
        let fs = factory();
        let can = fs.capabilities();
        if let Some(reason) = test.needs.iter().find_map(|need| need.missing(&can)) {
            return Err(Failure::Skipped(reason.to_owned()));
        }
        let client = own_directory(&*fs, test.name)?;
        let subject = Subject { fs, client };
        match catch_unwind(AssertUnwindSafe(|| (test.run)(&subject))) {
            Ok(outcome) => outcome,
            Err(panic) => Err(Failure::from_panic(&*panic)),
        }
    }
}

/// A fresh directory for a test, whatever earlier runs have left.
fn own_directory(fs: &dyn FileSystem, test: &str) -> Result<Client, Failure> {
    static RUN: AtomicU64 = AtomicU64::new(0);
    let run = RUN.fetch_add(1, Ordering::Relaxed);
    let name = format!("{test}.{}.{run}", std::process::id());
    let call = Call::own();
    let directory = fs.root().mkdir(&call, name.as_ref(), 0o755)?;
    Ok(Client::at(directory.node, call))
}

/// Runs the whole suite.
pub fn run(factory: impl Fn() -> Arc<dyn FileSystem>) -> Report {
    Suite::default().run(factory)
}
