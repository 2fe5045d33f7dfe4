//! The actor's own side: does what it is told, one request after another.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::time::{Duration, Instant};

use hither_sys::mapping::Mapping;
use rustix::fs::{FlockOperation, OFlags, fcntl_lock, flock};
use rustix::io::Errno;

use super::{Answer, Request};
use crate::tree::digest;

/// Answers requests until there are no more.
///
/// # Errors
/// A line is no request, or nobody takes the answers.
pub fn serve() -> anyhow::Result<()> {
    let mut actor = Actor::default();
    for line in io::stdin().lock().lines() {
        let answer = match actor.perform(serde_json::from_str(&line?)?) {
            Ok(text) => Answer::Given(text),
            Err(error) => Answer::Errno(error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())),
        };
        let mut output = io::stdout().lock();
        writeln!(output, "{}", serde_json::to_string(&answer)?)?;
        output.flush()?;
    }
    Ok(())
}

#[derive(Default)]
struct Actor {
    files: HashMap<String, File>,
    maps: HashMap<String, Mapping>,
}

impl Actor {
    fn perform(&mut self, request: Request) -> io::Result<String> {
        match request {
            Request::Open { name, path, flags } => {
                let file = open(&path, &flags)?;
                self.files.insert(name, file);
            }
            Request::Close { name } => drop(self.files.remove(&name).ok_or(Errno::BADF)?),
            Request::Read { name, offset, length } => return read(self.file(&name)?, offset, length),
            Request::Digest { name } => return Ok(digest(&mut self.file(&name)?.try_clone()?)?.to_string()),
            Request::Write { name, offset, text } => {
                self.file(&name)?.write_all_at(text.as_bytes(), offset)?;
            }
            Request::Truncate { name, length } => self.file(&name)?.set_len(length)?,
            Request::Map { map, name, length, writable } => {
                let mapping = Mapping::new(self.file(&name)?, length, writable)?;
                self.maps.insert(map, mapping);
            }
            Request::Peek { map, offset, length } => {
                let mut bytes = vec![0; length];
                self.map(&map)?.read(offset, &mut bytes);
                return Ok(String::from_utf8_lossy(&bytes).into_owned());
            }
            Request::Poke { map, offset, text } => self.map(&map)?.write(offset, text.as_bytes()),
            Request::Msync { map } => self.map(&map)?.sync()?,
            Request::Lock { name, operation, wait } => {
                fcntl_lock(self.file(&name)?, locking(&operation, wait)?)?;
            }
            Request::Flock { name, operation, wait } => flock(self.file(&name)?, locking(&operation, wait)?)?,
            Request::Hammer { path, flags, milliseconds, pause_ms } => {
                let (time, pause) = (Duration::from_millis(milliseconds), Duration::from_millis(pause_ms));
                return hammer(&path, &flags, time, pause);
            }
        }
        Ok(String::new())
    }

    fn file(&self, name: &str) -> io::Result<&File> {
        Ok(self.files.get(name).ok_or(Errno::BADF)?)
    }

    fn map(&self, name: &str) -> io::Result<&Mapping> {
        Ok(self.maps.get(name).ok_or(Errno::BADF)?)
    }
}

fn open(path: &str, flags: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let has = |letter| flags.contains(letter);
    options.read(has('r')).write(has('w')).truncate(has('t')).create(has('c')).append(has('a'));
    if has('d') {
        options.custom_flags(OFlags::DIRECT.bits().cast_signed());
    }
    options.open(path)
}

/// Reads into memory that is aligned to a page, as O_DIRECT wants.
fn read(file: &File, offset: u64, length: usize) -> io::Result<String> {
    const PAGE: usize = 4096;
    let mut memory = vec![0_u8; length + PAGE];
    let begin = memory.as_ptr().align_offset(PAGE);
    let bytes = memory.get_mut(begin..begin + length).ok_or(Errno::INVAL)?;
    let mut count = 0;
    while let Some(rest) = bytes.get_mut(count..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + count as u64)? {
            0 => break,
            more => count += more,
        }
    }
    Ok(String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()).into_owned())
}

fn locking(operation: &str, wait: bool) -> io::Result<FlockOperation> {
    Ok(match (operation, wait) {
        ("read", true) => FlockOperation::LockShared,
        ("read", false) => FlockOperation::NonBlockingLockShared,
        ("write", true) => FlockOperation::LockExclusive,
        ("write", false) => FlockOperation::NonBlockingLockExclusive,
        ("unlock", _) => FlockOperation::Unlock,
        _ => return Err(Errno::INVAL.into()),
    })
}

fn hammer(path: &str, flags: &str, time: Duration, pause: Duration) -> io::Result<String> {
    let mut counts = BTreeMap::from([("opens".to_owned(), 0_u64)]);
    let end = Instant::now() + time;
    while Instant::now() < end {
        let key = match open(path, flags).and_then(|file| use_once(&file, flags)) {
            Ok(()) => "opens".to_owned(),
            Err(error) => error.raw_os_error().unwrap_or(0).to_string(),
        };
        *counts.entry(key).or_default() += 1;
        std::thread::sleep(pause);
    }
    Ok(serde_json::to_string(&counts)?)
}

fn use_once(file: &File, flags: &str) -> io::Result<()> {
    if flags.contains('r') {
        file.read_at(&mut [0; 16], 0)?;
    }
    if flags.contains('w') {
        file.write_at(b"0123456789abcdef", 0)?;
    }
    Ok(())
}
