//! Another process that does what a test says: opens, reads, maps and locks files, waits, and can be killed.
//!
//! The test writes a [`Request`] a line to its standard input; it answers with a line, a JSON value or the errno. Its
//! own side is [`serve`].

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

mod serve;

pub use serve::serve;

/// What an actor can be told to do. Files and mappings have names.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each variant says what its fields are")]
pub enum Request {
    /// Opens; flags are letters: r, w (both: rw), t truncate, c create, a append, d direct.
    Open { name: String, path: String, flags: String },
    /// Closes a file.
    Close { name: String },
    /// Reads bytes; they come as text, other bytes than ASCII replaced.
    Read { name: String, offset: u64, length: usize },
    /// Reads what is left of a file: its checksum.
    Digest { name: String },
    /// Writes all of a text.
    Write { name: String, offset: u64, text: String },
    /// Sets the length.
    Truncate { name: String, length: u64 },
    /// Maps a file from its begin, shared.
    Map { map: String, name: String, length: usize, writable: bool },
    /// Reads of a mapping.
    Peek { map: String, offset: usize, length: usize },
    /// Stores into a mapping.
    Poke { map: String, offset: usize, text: String },
    /// msync.
    Msync { map: String },
    /// Takes or drops a POSIX lock of the whole file: operations `read`, `write`, `unlock`; waits or not.
    Lock { name: String, operation: String, wait: bool },
    /// The same with flock.
    Flock { name: String, operation: String, wait: bool },
    /// Opens, uses and closes a file again and again, with a pause between; counts `opens` and errors by number.
    Hammer { path: String, flags: String, milliseconds: u64, pause_ms: u64 },
}

/// A running actor; killed when dropped.
#[derive(Debug)]
pub struct Actor {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
}

/// How long an answer may take that is not expected to wait for anything.
const PROMPTLY: Duration = Duration::from_secs(30);

impl Actor {
    /// Starts one.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start() -> Result<Self> {
        Actor::of(Command::new(crate::program::actor()?))
    }

    /// Starts one as an ordinary user.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_as(uid: u32) -> Result<Self> {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &uid.to_string(), "--regid", &uid.to_string(), "--clear-groups"]);
        command.arg(crate::program::actor()?);
        Actor::of(command)
    }

    fn of(mut command: Command) -> Result<Self> {
        let mut child = command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("no pipe")?;
        let output = child.stdout.take().context("no pipe")?;
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines();
            lines.map_while(std::io::Result::ok).try_for_each(|line| sender.send(line)).ok();
        });
        Ok(Actor { child, input, answers })
    }

    /// Asks for something that may wait.
    ///
    /// # Errors
    /// It is gone.
    pub fn ask(&mut self, request: &Request) -> Result<()> {
        writeln!(self.input, "{}", serde_json::to_string(request)?)?;
        Ok(())
    }

    /// The answer to the oldest request, if it comes within that time.
    ///
    /// # Errors
    /// It is gone.
    pub fn answer(&mut self, patience: Duration) -> Result<Option<Answer>> {
        match self.answers.recv_timeout(patience) {
            Ok(line) => Ok(Some(serde_json::from_str(&line)?)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!("the actor is gone: {:?}", self.child.try_wait()),
        }
    }

    /// Asks and gets the answer.
    ///
    /// # Errors
    /// It is gone, or does not answer for half a minute.
    pub fn act(&mut self, request: &Request) -> Result<Answer> {
        self.ask(request)?;
        self.answer(PROMPTLY)?.with_context(|| format!("no answer to {request:?}"))
    }

    /// Asks for what must succeed; what it gave.
    ///
    /// # Errors
    /// It did not.
    pub fn gives(&mut self, request: &Request) -> Result<String> {
        match self.act(request)? {
            Answer::Given(text) => Ok(text),
            Answer::Errno(errno) => bail!("{request:?}: {}", Errno::from_raw_os_error(errno)),
        }
    }

    /// Opens a file that must open.
    ///
    /// # Errors
    /// It did not.
    pub fn open(&mut self, name: &str, path: &Path, flags: &str) -> Result<()> {
        let path = path.to_str().context("a test's paths are text")?.to_owned();
        self.gives(&Request::Open { name: name.to_owned(), path, flags: flags.to_owned() })?;
        Ok(())
    }

    /// Reads what must be readable.
    ///
    /// # Errors
    /// It was not.
    pub fn read(&mut self, name: &str, offset: u64, length: usize) -> Result<String> {
        self.gives(&Request::Read { name: name.to_owned(), offset, length })
    }

    /// Writes what must be writable.
    ///
    /// # Errors
    /// It was not.
    pub fn write(&mut self, name: &str, offset: u64, text: &str) -> Result<()> {
        self.gives(&Request::Write { name: name.to_owned(), offset, text: text.to_owned() })?;
        Ok(())
    }

    /// Closes a file.
    ///
    /// # Errors
    /// There is no such file.
    pub fn close(&mut self, name: &str) -> Result<()> {
        self.gives(&Request::Close { name: name.to_owned() })?;
        Ok(())
    }

    /// Maps a file.
    ///
    /// # Errors
    /// It cannot be mapped.
    pub fn map(&mut self, map: &str, name: &str, length: usize, writable: bool) -> Result<()> {
        self.gives(&Request::Map { map: map.to_owned(), name: name.to_owned(), length, writable })?;
        Ok(())
    }

    /// Reads of a mapping.
    ///
    /// # Errors
    /// It is gone: a signal may have ended it.
    pub fn peek(&mut self, map: &str, offset: usize, length: usize) -> Result<String> {
        self.gives(&Request::Peek { map: map.to_owned(), offset, length })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// kill -9.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What an actor answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It was done, and gave this.
    Given(String),
    /// It failed.
    Errno(i32),
}

impl Answer {
    /// The error, if it was one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Answer::Given(_) => None,
            Answer::Errno(errno) => Some(Errno::from_raw_os_error(*errno)),
        }
    }
}
