//! The suites: each runs on one or more views and says what it found as counts and failures.

use std::time::Instant;

use anyhow::Result;

use crate::report::Outcome;
use crate::scene::View;

pub mod apps;
pub mod fsx;
pub mod kills;
pub mod load;
pub mod pjdfstest;
pub mod power_cuts;
pub mod stress;

/// How long a suite takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Seconds: what `./dev test` runs.
    Quick,
    /// Minutes: what `cargo xtask suites` runs.
    Full,
}

impl Extent {
    /// One of two numbers.
    pub fn of<T>(self, quick: T, full: T) -> T {
        match self {
            Extent::Quick => quick,
            Extent::Full => full,
        }
    }
}

/// Runs `fill` on an empty outcome and takes the time. What keeps the suite from going on is a failure, too.
fn timed(suite: &str, view: View, fill: impl FnOnce(&mut Outcome) -> Result<()>) -> Outcome {
    let begin = Instant::now();
    let mut outcome = Outcome::new(suite, view.name());
    if let Err(error) = fill(&mut outcome) {
        outcome.fail(format!("{error:#}"));
    }
    outcome.seconds = begin.elapsed().as_secs_f64();
    outcome
}
