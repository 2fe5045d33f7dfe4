//! What a suite found, as counts: a line for people, JSON for machines.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// What one suite found on one view.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// The suite.
    pub suite: String,
    /// The view that it ran on.
    pub view: String,
    /// Things counted, by name.
    pub counts: BTreeMap<String, u64>,
    /// What is wrong, one text each; none is a pass.
    pub failures: Vec<String>,
    /// Wall clock.
    pub seconds: f64,
}

impl Outcome {
    /// Nothing found yet.
    pub fn new(suite: &str, view: &str) -> Self {
        Outcome {
            suite: suite.to_owned(),
            view: view.to_owned(),
            counts: BTreeMap::new(),
            failures: Vec::new(),
            seconds: 0.0,
        }
    }

    /// Adds to a count.
    pub fn add(&mut self, name: &str, count: u64) {
        *self.counts.entry(name.to_owned()).or_default() += count;
    }

    /// One of the counts.
    pub fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    /// Notes what is wrong.
    pub fn fail(&mut self, what: impl fmt::Display) {
        self.failures.push(what.to_string());
    }

    /// Fails the test that asked for it if anything is wrong.
    ///
    /// # Panics
    /// If there is a failure.
    pub fn assert_passed(&self) {
        assert!(self.failures.is_empty(), "{self}");
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.failures.is_empty() { "ok" } else { "FAILED" };
        write!(f, "{:<10} {:<6} {verdict:<6} {:>7.1} s ", self.suite, self.view, self.seconds)?;
        for (name, count) in &self.counts {
            write!(f, " {name} {count}")?;
        }
        for failure in &self.failures {
            write!(f, "\n    {}", failure.replace('\n', "\n    "))?;
        }
        Ok(())
    }
}
