//! A file system in memory to measure the front end with: mounted, and served by one of its transports.
//!
//! It prints `ready` once it is mounted, and ends at the end of its standard input.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use hither_fuse::{Options, Transport, Unmount};
use hither_mem::Mem;

/// How requests come.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum How {
    Dev,
    Uring,
}

/// Mounts an empty file system in memory.
#[derive(Debug, Parser)]
#[command(name = "mem-mount")]
struct Args {
    /// Where to mount it.
    mountpoint: PathBuf,
    /// How requests come.
    #[arg(long, value_enum)]
    transport: How,
    /// Threads that take requests from /dev/fuse.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mem-mount: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    let transport = match args.transport {
        How::Dev => Transport::Dev,
        How::Uring => Transport::Uring,
    };
    let options = Options { transport, threads: args.threads, ..Options::default() };
    let session = hither_fuse::mount(Arc::new(Mem::new()), &args.mountpoint, &options)
        .with_context(|| format!("cannot mount {}", args.mountpoint.display()))?;
    let mut out = std::io::stdout();
    writeln!(out, "ready").and_then(|()| out.flush()).context("cannot write to standard output")?;
    std::io::stdin().read_to_end(&mut Vec::new()).context("cannot read standard input")?;
    session.unmount(Unmount::Lazily)?;
    session.join();
    Ok(())
}
