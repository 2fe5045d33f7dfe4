//! Random operations on a file system and on a plain model, which must agree on every answer and on the whole tree.
//!
//! The [model](tree) is deliberately simple: a list of inodes, directories as maps, files as arrays of bytes. It shares
//! no code with any file system of ours. Operations are drawn over few names and small offsets, so that they meet. A
//! sequence that fails is shrunk to the shortest that does, printed, and its seed is kept in the file that the test
//! names, to be run first from then on.
//!
//! ```no_run
//! # fn file_system() -> std::sync::Arc<dyn hither_vfs::FileSystem> { unimplemented!() }
//! use hither_testkit::model::{self, Check};
//! let regressions = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/model.txt");
//! model::check(&Check::new(regressions).cases(500), file_system).assert_agreed();
//! ```

use std::fmt;
use std::sync::Arc;

use hither_vfs::{Capabilities, FileSystem};
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestError, TestRunner};

mod draw;
pub mod op;
pub mod outcome;
mod subject;
pub mod tree;

use op::Op;
use outcome::{Outcome, State};
pub(crate) use subject::Subject;
use tree::Tree;

/// What operations are applied to: a file system, the model, a directory of the host.
pub(crate) trait Target {
    /// Does it, and tells what came of it.
    fn apply(&mut self, op: &Op) -> Outcome;

    /// The whole tree.
    fn state(&mut self) -> State;
}

/// How long and how often to try.
#[derive(Clone, Debug)]
pub struct Check {
    cases: u32,
    ops: usize,
    regressions: &'static str,
}

impl Check {
    /// A check whose failing seeds are kept in that file.
    pub fn new(regressions: &'static str) -> Self {
        Check { cases: 200, ops: 120, regressions }
    }

    /// How many sequences (200). `PROPTEST_CASES` in the environment overrules it.
    pub fn cases(self, cases: u32) -> Self {
        Check { cases, ..self }
    }

    /// How many operations a sequence has at most (120).
    pub fn ops(self, ops: usize) -> Self {
        Check { ops, ..self }
    }

    /// Draws sequences and applies each to both targets, which are made anew for it.
    pub(crate) fn run(
        &self,
        can: &Capabilities,
        names: (&'static str, &'static str),
        targets: impl Fn() -> Result<(Box<dyn Target>, Box<dyn Target>), String>,
    ) -> Verdict {
        let config = Config {
            cases: Config::default().cases_or(self.cases),
            failure_persistence: Some(Box::new(FileFailurePersistence::Direct(self.regressions))),
            max_shrink_iters: 20_000,
            ..Config::default()
        };
        let strategy = proptest::collection::vec(draw::any_op(can), 1..=self.ops);
        let result = TestRunner::new(config).run(&strategy, |ops| {
            let (mut expected, mut found) = targets().map_err(TestCaseError::fail)?;
            compare(&ops, names, &mut *expected, &mut *found).map_err(TestCaseError::fail)
        });
        match result {
            Ok(()) => Verdict { disagreement: None },
            Err(TestError::Abort(reason)) => Verdict { disagreement: Some(format!("gave up: {reason}")) },
            Err(TestError::Fail(reason, _)) => Verdict { disagreement: Some(reason.to_string()) },
        }
    }
}

/// The number of cases of the environment, if it names one, or else of the test.
trait CasesOr {
    fn cases_or(&self, cases: u32) -> u32;
}

impl CasesOr for Config {
    fn cases_or(&self, cases: u32) -> u32 {
        if std::env::var_os("PROPTEST_CASES").is_some() { self.cases } else { cases }
    }
}

/// What a check found.
#[derive(Debug)]
#[must_use]
pub struct Verdict {
    disagreement: Option<String>,
}

impl Verdict {
    /// # Panics
    /// If there was a disagreement: with the shortest sequence of operations that leads to it.
    pub fn assert_agreed(&self) {
        assert!(self.disagreement.is_none(), "{self}");
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.disagreement.as_deref().unwrap_or("no disagreement"))
    }
}

/// Trees are compared after so many operations, and after the last.
const STATE_EVERY: usize = 8;

/// Applies the operations to both and compares answers and trees. A third tree, the plan, tells what there is for
/// operations to choose from.
fn compare(
    ops: &[Op],
    names: (&str, &str),
    expected: &mut dyn Target,
    found: &mut dyn Target,
) -> Result<(), String> {
    let mut plan = Tree::default();
    let mut done: Vec<Op> = Vec::new();
    for (index, op) in ops.iter().enumerate() {
        let op = op.chosen(&plan);
        plan.apply(&op);
        let (one, other) = (expected.apply(&op), found.apply(&op));
        done.push(op);
        if one != other {
            let (expected, found) = names;
            return Err(format!("  {expected}: {one:?}\n  {found}: {other:?}\n{}", listed(&done)));
        }
        if (index + 1) % STATE_EVERY == 0 || index + 1 == ops.len() {
            let differences = expected.state().differences(&found.state(), names);
            if !differences.is_empty() {
                return Err(format!("trees differ:\n{}\n{}", differences.join("\n"), listed(&done)));
            }
        }
    }
    Ok(())
}

/// The operations, so that they can be pasted into a test.
fn listed(ops: &[Op]) -> String {
    let lines: String = ops.iter().map(|op| format!("    Op::{op:?},\n")).collect();
    format!("after\n[\n{lines}]")
}

/// Checks file systems from the factory, each empty, against the model.
pub fn check(check: &Check, factory: impl Fn() -> Arc<dyn FileSystem>) -> Verdict {
    let can = factory().capabilities();
    check.run(&can, ("the model", "the file system"), || {
        Ok((Box::new(Tree::default()), Box::new(Subject::new(factory()).map_err(|error| error.to_string())?)))
    })
}

/// Applies a sequence that was found before: for tests that keep one by name.
pub fn replay(ops: &[Op], factory: impl Fn() -> Arc<dyn FileSystem>) -> Verdict {
    let subject = Subject::new(factory()).map_err(|error| error.to_string());
    let run =
        |mut subject| compare(ops, ("the model", "the file system"), &mut Tree::default(), &mut subject);
    Verdict { disagreement: subject.and_then(run).err() }
}
