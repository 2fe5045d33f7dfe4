//! `hither-bench`: measures a layer and prints a table, or JSON, or writes the table into the documentation.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use hither_bench::{cache, fuse, report};

/// Measures side by side: raw, hither, peers.
#[derive(Debug, Parser)]
#[command(name = "hither-bench", bin_name = "./dev bench")]
enum Command {
    /// The read cache over an origin with a round trip of 2 ms.
    Cache {
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
        /// Fewer and shorter bursts, fewer files: to see that it works, not to be quoted.
        #[arg(long)]
        quick: bool,
        /// Only sections whose name contains this: hits, trees, first-reads, fall-back, many-files.
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
        /// Also write the table into this file, between its markers.
        #[arg(long, value_name = "FILE")]
        write: Option<PathBuf>,
    },
    /// The FUSE front end: a file system in memory behind each transport (root; io_uring switched on).
    Fuse {
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
        /// Fewer bursts: to see that it works, not to be quoted.
        #[arg(long)]
        quick: bool,
        /// Also write the table into this file, between its markers.
        #[arg(long, value_name = "FILE")]
        write: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    match run(Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    let (name, report, json, write) = match command {
        Command::Cache { json, quick, only, write } => {
            ("cache", cache::measure(&cache::Settings::new(quick, only))?, json, write)
        }
        Command::Fuse { json, quick, write } => {
            ("fuse", fuse::measure(&fuse::Settings::new(quick))?, json, write)
        }
    };
    if json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{}", report.markdown());
    }
    if let Some(path) = write {
        report::write_between_markers(&path, name, &report.markdown())?;
    }
    Ok(())
}
