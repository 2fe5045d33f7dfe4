//! The program that tests start to have other processes: actors, and the workers of the stress suite.

use clap::Parser;
use hither_tests::suites::stress;

#[derive(Debug, Parser)]
enum Role {
    /// Do what standard input says.
    Serve,
    /// Work in a tree, at random.
    Stress(stress::Worker),
}

fn main() -> anyhow::Result<()> {
    match Role::parse() {
        Role::Serve => hither_tests::actor::serve(),
        Role::Stress(worker) => worker.run(),
    }
}
