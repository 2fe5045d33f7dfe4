//! The programs whose speed is measured: plain loops of system calls, and unmodified `find` and `tar`.
//!
//! Each returns how many operations it did.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::fs::{Advice, AtFlags, CWD, Mode, OFlags, StatxFlags};

/// Calls between two looks at the clock.
const BATCH: u64 = 64;

fn open(path: &Path) -> anyhow::Result<OwnedFd> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .with_context(|| format!("cannot open {}", path.display()))
}

/// Numbers that look random and are the same in each run (an LCG, Knuth's constants).
#[derive(Debug)]
pub struct Scatter(u64);

impl Scatter {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Scatter {
        Scatter(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next, below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// Opens the file and reads blocks of 4 KiB at random places of its first `size` bytes.
pub fn random_reads(path: &Path, size: u64, reads: u64) -> anyhow::Result<u64> {
    let file = open(path)?;
    let mut buffer = [0; 4096];
    let mut scatter = Scatter::new(reads);
    for _ in 0..reads {
        let offset = scatter.below(size / 4096) * 4096;
        let got = rustix::io::pread(&file, &mut buffer, offset).context("cannot read")?;
        anyhow::ensure!(got == buffer.len(), "a short read of {got} bytes");
    }
    Ok(reads)
}

/// Opens the file and reads it from the begin, `block` bytes a call, until its end or `blocks` calls.
pub fn sequential_read(path: &Path, block: usize, blocks: u64) -> anyhow::Result<u64> {
    let file = open(path)?;
    let mut buffer = vec![0; block];
    for read in 0..blocks {
        let got = rustix::io::read(&file, &mut buffer).context("cannot read")?;
        if got == 0 {
            return Ok(read);
        }
    }
    Ok(blocks)
}

/// Asks for the attributes of a file, for some time.
pub fn stat(path: &Path, time: Duration) -> anyhow::Result<u64> {
    for_some_time(time, |_| {
        let stat = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS);
        stat.map(drop).with_context(|| format!("cannot stat {}", path.display()))
    })
}

/// Opens files in turn, reads 4 KiB, closes them, for some time.
pub fn open_read_close(paths: &[PathBuf], time: Duration) -> anyhow::Result<u64> {
    let mut buffer = [0; 4096];
    for_some_time(time, |at| {
        let file = open(&paths[at as usize % paths.len()])?;
        let got = rustix::io::pread(&file, &mut buffer, 0).context("cannot read")?;
        anyhow::ensure!(got == buffer.len(), "a short read of {got} bytes");
        Ok(())
    })
}

fn for_some_time(time: Duration, mut call: impl FnMut(u64) -> anyhow::Result<()>) -> anyhow::Result<u64> {
    let end = Instant::now() + time;
    let mut calls = 0;
    while Instant::now() < end {
        for at in calls..calls + BATCH {
            call(at)?;
        }
        calls += BATCH;
    }
    Ok(calls)
}

/// `find TREE`, asking for every file's size; an error unless it finds so many files.
pub fn find(tree: &Path, files: u64) -> anyhow::Result<u64> {
    let mut command = Command::new("find");
    command.arg(tree).args(["-type", "f", "-size", "+0", "-printf", "."]).env("LC_ALL", "C");
    let found = bytes_of(command)?;
    anyhow::ensure!(found == files, "find found {found} files of {files}");
    Ok(1)
}

/// `tar -cf - TREE`; an error unless at least so many bytes come.
pub fn tar(tree: &Path, bytes: u64) -> anyhow::Result<u64> {
    let mut command = Command::new("tar");
    // Through a pipe: to /dev/null GNU tar would not read at all.
    command.args(["-cf", "-", "-C"]).arg(tree).arg(".").env("LC_ALL", "C");
    let got = bytes_of(command)?;
    anyhow::ensure!(got >= bytes, "tar read {got} bytes of {bytes}");
    Ok(1)
}

/// Runs a program and counts what it prints.
fn bytes_of(mut command: Command) -> anyhow::Result<u64> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {name}"))?;
    let mut out = child.stdout.take().context("no pipe")?;
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    loop {
        match out.read(&mut buffer).with_context(|| format!("cannot read from {name}"))? {
            0 => break,
            got => bytes += got as u64,
        }
    }
    let status = child.wait().with_context(|| format!("cannot wait for {name}"))?;
    anyhow::ensure!(status.success(), "{name}: {status}");
    Ok(bytes)
}

/// How long until the first byte of a file: its open, then its first read of 4 KiB.
pub fn first_byte(path: &Path) -> anyhow::Result<(Duration, Duration)> {
    let mut buffer = [0; 4096];
    let start = Instant::now();
    let file = open(path)?;
    let opened = start.elapsed();
    rustix::io::read(&file, &mut buffer).context("cannot read")?;
    Ok((opened, start.elapsed() - opened))
}

/// Has the kernel forget the file's pages (not its attributes).
pub fn forget_pages(path: &Path) -> anyhow::Result<()> {
    rustix::fs::fadvise(open(path)?, 0, None, Advice::DontNeed).context("cannot drop pages")
}

/// Has the kernel read the file anew, by its own readahead. What a file costs to read depends on how its pages came into
/// memory (in pieces of what size), and that must not be what is compared. What is dirty must have been written back.
pub fn read_anew(path: &Path) -> anyhow::Result<()> {
    forget_pages(path)?;
    sequential_read(path, 1 << 20, u64::MAX).map(drop)
}

/// A file of bytes that do not compress, in one block of 1 MiB repeated.
pub fn write_file(path: &Path, bytes: u64, seed: u64) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut scatter = Scatter::new(seed);
    let length = usize::try_from(bytes.min(1 << 20)).unwrap_or(1 << 20);
    let block: Vec<u8> = (0..length).map(|_| scatter.below(256) as u8).collect();
    let cannot = || format!("cannot write {}", path.display());
    let mut file = File::create(path).with_context(cannot)?;
    let mut left = bytes;
    while left > 0 {
        let piece = left.min(block.len() as u64);
        file.write_all(&block[..piece as usize]).with_context(cannot)?;
        left -= piece;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_count_what_they_do_and_notice_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        write_file(&file, 3 << 20, 1).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 3 << 20);
        assert_eq!(random_reads(&file, 3 << 20, 100).unwrap(), 100);
        assert_eq!(sequential_read(&file, 1 << 20, 100).unwrap(), 3);
        assert_eq!(sequential_read(&file, 4096, 5).unwrap(), 5);
        assert!(stat(&file, Duration::from_millis(5)).unwrap() >= BATCH);
        assert!(open_read_close(std::slice::from_ref(&file), Duration::from_millis(5)).unwrap() >= BATCH);
        assert_eq!(find(dir.path(), 1).unwrap(), 1);
        assert!(find(dir.path(), 2).is_err());
        assert_eq!(tar(dir.path(), 3 << 20).unwrap(), 1);
        assert!(tar(dir.path(), 4 << 20).is_err());
        write_file(&file, 10, 1).unwrap();
        assert!(random_reads(&file, 8192, 1).is_err());
    }
}
