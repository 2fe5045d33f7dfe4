//! `cargo xtask suites`: runs the suites on real mounts and prints what they found.

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use hither_tests::report::Outcome;
use hither_tests::requirement;
use hither_tests::scene::View;
use hither_tests::suites::{Extent, apps, fsx, kills, pjdfstest, power_cuts, stress};

/// Run the suites on real mounts: pjdfstest, fsx, stress, programs, kills and power cuts.
#[derive(Debug, Parser)]
#[command(name = "suites", bin_name = "cargo xtask suites")]
struct Args {
    /// Only these, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Suite>,
    /// The short form of each, as `./dev test` runs it.
    #[arg(long)]
    quick: bool,
    /// Print JSON: a list with an object a suite and view.
    #[arg(long)]
    json: bool,
    /// Of the random ones; a failure is repeated with its seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Of fsx and stress, only these views.
    #[arg(long = "view", value_delimiter = ',', value_parser = ["ext4", "dir", "cache"])]
    views: Vec<String>,
    /// Of the apps, only this one.
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// What POSIX says of calls on names and attributes.
    Pjdfstest,
    /// One file, exercised at random.
    Fsx,
    /// One tree, several processes at random.
    Stress,
    /// git, SQLite, tar, gcc, Python, rsync.
    Apps,
    /// kill -9 of the daemon at random moments.
    Kills,
    /// Power cuts of the store at random moments.
    PowerCuts,
}

/// Does something with each outcome as it comes.
type Tell<'a> = &'a mut dyn FnMut(Outcome);

impl Suite {
    fn run(self, extent: Extent, args: &Args, tell: Tell) -> anyhow::Result<()> {
        let seed = args.seed;
        let views = if args.views.is_empty() { View::ALL.to_vec() } else { args.views() };
        match self {
            Suite::Pjdfstest => pjdfstest::run().into_iter().for_each(tell),
            Suite::Fsx => views.into_iter().map(|view| fsx::run_on(view, extent, seed)).for_each(tell),
            Suite::Stress => views.into_iter().map(|view| stress::run_on(view, extent, seed)).for_each(tell),
            Suite::Apps => {
                let all = || apps::ALL.iter().map(|app| app.name).collect();
                let names = args.app.as_deref().map_or_else(all, |name| vec![name]);
                for name in names {
                    apps::App::named(name)?.run_on_all().into_iter().for_each(&mut *tell);
                }
            }
            Suite::Kills => tell(kills::run(extent, seed)),
            Suite::PowerCuts => tell(power_cuts::run(extent, seed)),
        }
        Ok(())
    }
}

impl Args {
    fn views(&self) -> Vec<View> {
        View::ALL.into_iter().filter(|view| self.views.iter().any(|name| name == view.name())).collect()
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    if let Some(reason) = requirement::missing_for_mounts() {
        anyhow::bail!("the suites cannot run here: {reason}");
    }
    let extent = if args.quick { Extent::Quick } else { Extent::Full };
    let suites = if args.only.is_empty() { Suite::value_variants() } else { &args.only };
    let mut outcomes = Vec::new();
    for suite in suites {
        suite.run(extent, &args, &mut |outcome| {
            if args.json {
                // Progress for whoever waits; the list comes at the end.
                eprintln!("{outcome}");
            } else {
                println!("{outcome}");
            }
            outcomes.push(outcome);
        })?;
    }
    let failed = outcomes.iter().filter(|outcome| !outcome.failures.is_empty()).count();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&outcomes)?);
    } else {
        println!("{} runs, {failed} failed", outcomes.len());
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
