//! `run`: a cached view of a real tree behind a slow origin, read by unmodified programs, checked and timed, and left
//! up to be played with.

mod compare;
mod passes;
mod sample;
pub mod view;

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::{cargo, process};
use passes::{Pass, Program};
use sample::Sample;
use view::View;

/// The round trip of the origin that is made slow, in microseconds.
const RTT_US: u32 = 2000;
/// What is read at most: enough to see the difference, little enough that the slow passes take a minute.
const LIMIT: sample::Budget = sample::Budget { files: 4000, bytes: 256 << 20 };
/// Trees of fewer files are not worth showing.
const FILES_MIN: u64 = 2000;

/// Mount a cached view of a slow directory, read it twice with find, tar and grep, check it, and leave it up.
///
/// Without arguments it takes a tree of this machine as the origin, read only, and makes it slow: every request takes
/// a round trip of 2 ms. With ORIGIN, that directory is the origin as it is. `./dev stop` ends it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory to show.
    origin: Option<PathBuf>,
    /// Where to mount it; made if it is missing [default: in a new folder for temporary files].
    mountpoint: Option<PathBuf>,
}

/// Mounts, reads, checks, prints. What was mounted is taken away again if a step fails.
pub fn run(args: &Args, root: &Path) -> anyhow::Result<()> {
    view::refuse_second(root)?;
    let (source, is_slowed) = match &args.origin {
        Some(origin) => {
            let origin = origin.canonicalize().with_context(|| format!("no origin {}", origin.display()))?;
            anyhow::ensure!(origin.is_dir(), "{} is not a directory", origin.display());
            (origin, false)
        }
        None => (sample::tree_of_this_machine(FILES_MIN)?, true),
    };
    let build = ["build", "--release", "--package", "hither", "--package", "hither-bench", "--bins"];
    process::run(&mut cargo::command(root, &build))?;
    let sample = Sample::of(&source, LIMIT)?;
    anyhow::ensure!(sample.files > 0, "no files in {}", source.display());
    let view = View::begin(root, &source, args.mountpoint.as_deref(), is_slowed.then_some(RTT_US))?;
    let shown = read(&view, &sample);
    if shown.is_err() {
        eprintln!("dev: taking the mount away again");
        if let Err(error) = view.end(root) {
            eprintln!("dev: {error:#}; when nothing uses it any more, run ./dev stop");
        }
    }
    shown
}

/// The passes, the comparison, the table.
fn read(view: &View, sample: &Sample) -> anyhow::Result<()> {
    eprintln!("dev: reading {sample} of {}", view.source.display());
    let pass = |name, at: &Path| Pass::run(name, at, sample);
    // The first reader warms the disk's own memory for all others, unless that can be emptied before each of them.
    let mut passes = Vec::new();
    if view.rtt_us.is_some() {
        passes.push(pass("raw local disk", &view.source)?);
    }
    passes.push(pass("origin", &view.origin)?);
    passes.push(pass("first pass", &view.mountpoint)?);
    passes.push(pass("cached pass", &view.mountpoint)?);
    passes::ensure_equal(&passes)?;
    eprintln!("dev: comparing every byte with the source");
    let compared = compare::trees(&view.source, &view.mountpoint, &sample.paths)
        .context("the view differs from its source (or the source changed meanwhile)")?;
    let slowed = match view.rtt_us {
        Some(rtt_us) => {
            format!(" behind a round trip of {} ms, asked again after 60 s", f64::from(rtt_us) / 1000.0)
        }
        None => String::new(),
    };
    println!("\n{}{slowed}, read through {}\n", view.source.display(), view.mountpoint.display());
    print!("{}", table(&passes));
    let emptied = passes.iter().all(|pass| pass.is_cold);
    println!(
        "\nThe kernel's page cache was {} before each pass.",
        if emptied {
            "emptied"
        } else {
            "not emptied (only root can do that), which flatters all but the first pass"
        }
    );
    println!("Same output of all programs, and {compared} equal byte for byte.\n");
    print!("{}", process::output(view.hither().arg("status").arg(&view.mountpoint))?);
    println!("\nThe view stays at {}\nTo stop it: ./dev stop", view.mountpoint.display());
    Ok(())
}

/// Times a program and pass, and what the two that matter are worth.
fn table(passes: &[Pass]) -> String {
    let find = |name| passes.iter().find(|pass| pass.name == name);
    let order = ["origin", "first pass", "cached pass", "raw local disk"].map(find);
    let shown: Vec<&Pass> = order.into_iter().flatten().collect();
    let mut text = format!("{:<12}", "seconds");
    for pass in &shown {
        text += &format!("{:>16}", pass.name);
    }
    text += &format!("{:>18}", "origin / cached");
    let raw = find("raw local disk");
    if raw.is_some() {
        text += &format!("{:>14}", "cached / raw");
    }
    text.push('\n');
    let all = Program::ALL.map(Some);
    for program in all.into_iter().chain([None]) {
        text += &format!("{:<12}", program.map_or("together", Program::name));
        for pass in &shown {
            text += &format!("{:>16.2}", pass.seconds(program));
        }
        let ratio = |over: Option<&Pass>, under: Option<&Pass>| match (over, under) {
            (Some(over), Some(under)) => over.seconds(program) / under.seconds(program).max(1e-9),
            _ => f64::NAN,
        };
        let cached = find("cached pass");
        text += &format!("{:>17.1}x", ratio(find("origin"), cached));
        if raw.is_some() {
            text += &format!("{:>13.1}x", ratio(cached, raw));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Pass, table};
    use std::time::Duration;

    #[test]
    fn the_table_tells_what_the_cache_is_worth() {
        let pass = |name, seconds| Pass::of(name, [seconds; 3].map(Duration::from_secs));
        let text = table(&[
            pass("raw local disk", 1),
            pass("origin", 30),
            pass("first pass", 31),
            pass("cached pass", 2),
        ]);
        let last: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(last, ["together", "90.00", "93.00", "6.00", "3.00", "15.0x", "2.0x"]);
        let text = table(&[pass("origin", 30), pass("first pass", 31), pass("cached pass", 2)]);
        let last: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(last, ["together", "90.00", "93.00", "6.00", "15.0x"]);
        assert!(!text.contains("raw"));
    }
}
