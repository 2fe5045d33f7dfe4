//! Unmodified programs over a tree: what they say, and how long they take.

use std::hash::{DefaultHasher, Hasher as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::compare::fill;
use super::sample::Sample;

/// A program that reads a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Names and attributes.
    Find,
    /// All bytes.
    Tar,
    /// All bytes again, as a text search.
    Grep,
}

/// One pass of all programs over a tree.
#[derive(Debug)]
pub struct Pass {
    /// What the table calls it.
    pub name: &'static str,
    /// The kernel's page cache was emptied before.
    pub is_cold: bool,
    took: [Duration; 3],
    said: [Said; 3],
}

/// What a program printed, reduced to what two passes must have in common.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Said {
    bytes: u64,
    digest: u64,
}

impl Program {
    /// In the order in which they run.
    pub const ALL: [Program; 3] = [Program::Find, Program::Tar, Program::Grep];

    /// What a person would call it.
    pub fn name(self) -> &'static str {
        match self {
            Program::Find => "find",
            Program::Tar => "tar",
            Program::Grep => "grep -r",
        }
    }

    fn command(self) -> Command {
        let (program, args): (_, &[&str]) = match self {
            Program::Find => ("find", &[]),
            // Neither to /dev/null, where GNU tar does not read at all, nor to a file. In the order of names, so
            // that two archives can be compared.
            Program::Tar => ("tar", &["--create", "--format=gnu", "--sort=name", "--file=-", "--"]),
            Program::Grep => ("grep", &["-r", "-c", "-F", "-e", "the "]),
        };
        let mut command = Command::new(program);
        command.env("LC_ALL", "C").args(args);
        command
    }

    /// Runs it over the sample at `tree`.
    fn run(self, tree: &Path, sample: &Sample) -> anyhow::Result<Said> {
        let mut command = self.command();
        command.current_dir(tree).args(&sample.paths);
        if self == Program::Find {
            command.args(["-printf", r"%y %m %U %G %T@ %l %p\n"]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let cannot = || format!("cannot run {}", self.name());
        let mut child = command.spawn().with_context(cannot)?;
        let mut stdout = child.stdout.take().context("no pipe")?;
        let said = if self == Program::Tar { digest(&mut stdout) } else { digest_of_lines(&mut stdout) };
        let status = child.wait().with_context(cannot)?;
        // 1 is grep's answer that it found nothing.
        let succeeded = status.success() || (self == Program::Grep && status.code() == Some(1));
        anyhow::ensure!(succeeded, "{} failed in {}: {status}", self.name(), tree.display());
        said.with_context(cannot)
    }
}

impl Pass {
    /// Runs every program over the sample at `tree`, after emptying the kernel's page cache if this user may.
    pub fn run(name: &'static str, tree: &Path, sample: &Sample) -> anyhow::Result<Pass> {
        let is_cold = std::fs::write("/proc/sys/vm/drop_caches", "1").is_ok();
        let mut pass = Pass { name, is_cold, took: [Duration::ZERO; 3], said: [Said::default(); 3] };
        for (at, program) in Program::ALL.into_iter().enumerate() {
            eprint!("dev: {name}: {} ... ", program.name());
            let start = Instant::now();
            pass.said[at] = program.run(tree, sample).inspect_err(|_| eprintln!())?;
            pass.took[at] = start.elapsed();
            eprintln!("{:.2} s", pass.took[at].as_secs_f64());
        }
        Ok(pass)
    }

    /// Seconds of a program, or of all of them.
    pub fn seconds(&self, program: Option<Program>) -> f64 {
        let of = |at: Program| self.took[at as usize];
        program.map_or_else(|| self.took.iter().sum(), of).as_secs_f64()
    }

    /// One that took so long.
    #[cfg(test)]
    pub fn of(name: &'static str, took: [Duration; 3]) -> Pass {
        Pass { name, is_cold: true, took, said: [Said::default(); 3] }
    }
}

/// An error if a program said something else in one pass than in another.
pub fn ensure_equal(passes: &[Pass]) -> anyhow::Result<()> {
    for pair in passes.windows(2) {
        for (at, program) in Program::ALL.into_iter().enumerate() {
            let (one, other) = (&pair[0], &pair[1]);
            let (name, one_name, other_name) = (program.name(), one.name, other.name);
            anyhow::ensure!(
                one.said[at] == other.said[at],
                "{name} printed something else in the pass `{other_name}` than in `{one_name}`: {} bytes, {} bytes",
                other.said[at].bytes,
                one.said[at].bytes
            );
        }
    }
    Ok(())
}

fn digest(from: &mut impl std::io::Read) -> std::io::Result<Said> {
    let mut hasher = DefaultHasher::new();
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    loop {
        // Always whole blocks, so that the pieces in which they came make no difference.
        let got = fill(from, &mut buffer)?;
        hasher.write(&buffer[..got]);
        bytes += got as u64;
        if got == 0 {
            return Ok(Said { bytes, digest: hasher.finish() });
        }
    }
}

/// Lines in any order: directories are listed as their file systems like.
fn digest_of_lines(from: &mut impl std::io::Read) -> std::io::Result<Said> {
    let mut all = Vec::new();
    from.read_to_end(&mut all)?;
    let mut lines: Vec<&[u8]> = all.split(|&byte| byte == b'\n').collect();
    lines.sort();
    digest(&mut &lines.join(&b'\n')[..])
}

#[cfg(test)]
mod tests {
    use super::{Pass, digest_of_lines, ensure_equal};
    use crate::run::sample::{Budget, Sample};
    use std::fs;

    #[test]
    fn programs_that_see_the_same_say_the_same() {
        let trees = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        for tree in &trees {
            let file = tree.path().join("f");
            fs::write(&file, "the end\n").unwrap();
            let old = std::time::SystemTime::UNIX_EPOCH;
            fs::File::options().append(true).open(&file).unwrap().set_modified(old).unwrap();
            fs::File::open(tree.path()).unwrap().set_modified(old).unwrap();
        }
        let pass = |name, at: usize| {
            let tree = trees[at].path();
            Pass::run(name, tree, &Sample::of(tree, Budget { files: 9, bytes: 99 }).unwrap()).unwrap()
        };
        let (one, same) = (pass("one", 0), pass("same", 1));
        ensure_equal(&[one, same]).unwrap();
        let one = pass("one", 0);
        fs::write(trees[1].path().join("f"), "the END\n").unwrap();
        let error = ensure_equal(&[one, pass("other", 1)]).unwrap_err().to_string();
        assert!(error.contains("in the pass `other` than in `one`"), "{error}");
    }

    #[test]
    fn the_order_of_lines_makes_no_difference() {
        let of = |text: &str| digest_of_lines(&mut text.as_bytes()).unwrap();
        assert_eq!(of("a\nb\n"), of("b\na\n"));
        assert_ne!(of("a\nb\n"), of("a\nc\n"));
    }
}
