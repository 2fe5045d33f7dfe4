//! A slow directory to measure against: SRC, mounted so that every request takes a network's round trip.
//!
//! The kernel's side of it (page cache, readahead, one second of trust in names and attributes) is what a client of a
//! network file system has. Requests wait for their round trip side by side: sixteen reads at once take as long as one.
//!
//! It prints `ready` once it is mounted. Then each line on standard input is answered by one line: a JSON object of the
//! requests so far, by operation. It ends at the end of its input, so that a driver that dies leaves nothing behind;
//! with `--stay` at SIGTERM, or when somebody unmounts it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use hither_dir::Dir;
use hither_fuse::{Options, Passthrough, Session, Unmount};
use hither_testkit::faults::{Faulty, Kind, Kinds, Script};
use signal_hook::consts::{SIGINT, SIGTERM};

/// What costs no round trip: a client of a network file system closes a file it did not write to without asking.
const FREE: &[Kind] = &[Kind::Flush, Kind::PersistentId, Kind::ProjectId];

/// Mounts a directory so that every request takes a round trip.
#[derive(Debug, Parser)]
#[command(name = "slow-origin")]
struct Args {
    /// The directory to show.
    source: PathBuf,
    /// Where to mount it.
    mountpoint: PathBuf,
    /// The round trip, in microseconds.
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 2000)]
    rtt_us: u64,
    /// Refuse every change.
    #[arg(long)]
    read_only: bool,
    /// Do not end with standard input.
    #[arg(long)]
    stay: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("slow-origin: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    let session = Arc::new(mount(args)?);
    let mut signals =
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).context("cannot take signals")?;
    let remote = session.remote();
    std::thread::spawn(move || {
        for _ in &mut signals {
            if let Err(error) = remote.unmount(Unmount::Lazily) {
                eprintln!("slow-origin: cannot unmount: {error}");
            }
        }
    });
    say("ready")?;
    if !args.stay {
        let session = session.clone();
        std::thread::spawn(move || {
            if let Err(error) = answer(&session) {
                eprintln!("slow-origin: {error:#}");
            }
            if let Err(error) = session.unmount(Unmount::Lazily) {
                eprintln!("slow-origin: cannot unmount: {error}");
            }
        });
    }
    session.join();
    Ok(())
}

fn mount(args: &Args) -> anyhow::Result<Session> {
    let options = hither_dir::Options { backings: false, ..hither_dir::Options::default() };
    let inner =
        Dir::open(&args.source, options).with_context(|| format!("cannot show {}", args.source.display()))?;
    let script = Arc::new(Script::default());
    let delayed = Kinds::ALL.without(FREE);
    script.delay(delayed, Duration::from_micros(args.rtt_us));
    let options = Options {
        fs_name: format!("slow:{}", args.source.display()),
        read_only: args.read_only,
        passthrough: Passthrough::Off,
        ..Options::default()
    };
    let mounted = hither_fuse::mount(Faulty::new(inner, script), &args.mountpoint, &options);
    mounted.with_context(|| format!("cannot mount {}", args.mountpoint.display()))
}

/// Answers each line of the input until its end.
fn answer(session: &Session) -> anyhow::Result<()> {
    for line in std::io::stdin().lock().lines() {
        line.context("cannot read standard input")?;
        let stats = session.stats();
        let requests: BTreeMap<_, _> =
            stats.operations.into_iter().map(|operation| (operation.name, operation.count)).collect();
        say(&serde_json::to_string(&requests).context("cannot tell the requests")?)?;
    }
    Ok(())
}

fn say(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("cannot write to standard output")
}
