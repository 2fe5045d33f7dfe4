//! Programs that nobody changed, on a tree that was there before the mount and on what they make themselves: what they
//! print must be the same natively, through `dir` and through `cache`, there also when everything is cached.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::timed;
use crate::program::output;
use crate::report::Outcome;
use crate::requirement::missing_program;
use crate::scene::{Scene, View};

/// A program at work. `prepare` makes `$INPUT` natively before the mount; `run` works in an empty folder of the view,
/// finds the input at `$INPUT` through the view and at `$BENEATH` in the directory itself, and prints what it found.
#[derive(Debug)]
pub struct App {
    /// Its name in reports.
    pub name: &'static str,
    programs: &'static [&'static str],
    prepare: &'static str,
    run: &'static str,
}

/// All of them.
pub const ALL: &[App] = &[
    App {
        name: "git",
        programs: &["git"],
        prepare: include_str!("apps/git-prepare.sh"),
        run: include_str!("apps/git-run.sh"),
    },
    App {
        name: "sqlite",
        programs: &["sqlite3"],
        prepare: include_str!("apps/sqlite-prepare.sh"),
        run: include_str!("apps/sqlite-run.sh"),
    },
    App {
        name: "tar",
        programs: &["tar", "setfattr", "getfattr", "setfacl", "getfacl", "truncate"],
        prepare: include_str!("apps/tree-prepare.sh"),
        run: include_str!("apps/tar-run.sh"),
    },
    App {
        name: "build",
        programs: &["make", "gcc"],
        prepare: include_str!("apps/build-prepare.sh"),
        run: include_str!("apps/build-run.sh"),
    },
    App {
        name: "python",
        programs: &["python3"],
        prepare: include_str!("apps/python-prepare.sh"),
        run: include_str!("apps/python-run.sh"),
    },
    App {
        name: "rsync",
        programs: &["rsync", "setfattr", "setfacl", "truncate"],
        prepare: include_str!("apps/tree-prepare.sh"),
        run: include_str!("apps/rsync-run.sh"),
    },
];

/// Runs all on all views.
pub fn run() -> Vec<Outcome> {
    ALL.iter().flat_map(App::run_on_all).collect()
}

impl App {
    /// The app of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<&'static App> {
        ALL.iter().find(|app| app.name == name).with_context(|| format!("no app {name}"))
    }

    /// The programs that it needs.
    pub fn programs(&self) -> &'static [&'static str] {
        self.programs
    }

    /// Runs it on all views; what the mounts print is compared with what ext4 printed.
    pub fn run_on_all(&self) -> Vec<Outcome> {
        let mut expected = String::new();
        let suite = format!("app {}", self.name);
        let run_on = |view| {
            timed(&suite, view, |outcome| {
                if let Some(reason) = missing_program(self.programs) {
                    anyhow::bail!("cannot run here: {reason}");
                }
                for (pass, printed) in self.passes(view, outcome)?.into_iter().enumerate() {
                    outcome.add("passes", 1);
                    outcome.add("lines", printed.lines().count() as u64);
                    if expected.is_empty() {
                        expected = printed;
                    } else if printed != expected {
                        outcome.fail(format!("pass {pass}: {}", first_difference(&expected, &printed)));
                    }
                }
                Ok(())
            })
        };
        View::ALL.map(run_on).into()
    }

    /// What each pass printed: the first meets no copies, the second finds what the first left.
    fn passes(&self, view: View, outcome: &mut Outcome) -> Result<Vec<String>> {
        let options: &[&str] = if view == View::Cache { &["--settle", "100ms"] } else { &[] };
        let mut scene = Scene::new(view, options)?;
        let input = scene.origin().join("input");
        fs::create_dir(&input)?;
        self.script(self.prepare, &input, &input, &input)?;
        std::thread::sleep(std::time::Duration::from_millis(150));
        let mut printed = Vec::new();
        for pass in 0..2 {
            let work = scene.root().join(format!("work{pass}"));
            fs::create_dir(&work)?;
            let seen = scene.root().join("input");
            printed.push(self.script(self.run, &work, &seen, &input)?);
        }
        if view == View::Cache {
            let hits = scene.mount()?.count("/caches/0/hits")?;
            anyhow::ensure!(hits > 0, "nothing came from the cache: {:#}", scene.mount()?.status()?);
            outcome.add("hits", hits);
        }
        scene.unmount()?;
        Ok(printed)
    }

    fn script(&self, script: &str, folder: &Path, input: &Path, beneath: &Path) -> Result<String> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-euc", script, self.name]).current_dir(folder);
        shell.env("INPUT", input).env("BENEATH", beneath).env("HOME", folder).env("LC_ALL", "C");
        shell.env("TZ", "UTC");
        output(&mut shell).with_context(|| format!("{}: in {}", self.name, folder.display()))
    }
}

fn first_difference(expected: &str, printed: &str) -> String {
    let mut pairs = expected.lines().zip(printed.lines()).enumerate();
    match pairs.find(|(_, (one, other))| one != other) {
        Some((at, (one, other))) => format!("line {}: `{one}` on ext4, `{other}` here", at + 1),
        None => format!("{} lines on ext4, {} here", expected.lines().count(), printed.lines().count()),
    }
}
