//! From a command to a daemon: the program starts itself again in the background and waits until that is ready.
//!
//! (A process cannot be forked once it has threads, and a library may start some at any time; a fresh start has none.)
//! Until it is ready the daemon has the terminal for its complaints, and its exit code becomes that of the command.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::failure::FAILED;

/// What the daemon says when it is ready.
const READY: &[u8] = b"ready\n";

/// The flag that makes a mount the daemon.
const DETACHED: &str = "--detached";

/// Starts `hither ARGUMENTS` as a daemon and waits until it is ready or gone. The exit code is that of the command.
pub fn start(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let flags = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let (flags, operands) = arguments.split_at(flags);
    // What the caller has open, a lock file or a pipe that somebody waits for, is not kept open by the daemon.
    if let Err(error) = hither_sys::files::bequeath_none_from(3) {
        tracing::debug!(%error, "the daemon inherits what is open");
    }
    let mut child = Command::new("/proc/self/exe")
        .arg0("hither")
        .args(flags)
        .arg(DETACHED)
        .args(operands)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the daemon")?;
    if is_ready(&mut child)? {
        return Ok(ExitCode::SUCCESS);
    }
    // It has said why.
    let status = child.wait().context("cannot wait for the daemon")?;
    match status.code().map(u8::try_from) {
        Some(Ok(code)) if code != 0 => Ok(ExitCode::from(code)),
        _ => {
            crate::output::complain(&format!("the daemon ended before it was ready ({status})"));
            Ok(ExitCode::from(FAILED))
        }
    }
}

fn is_ready(child: &mut Child) -> anyhow::Result<bool> {
    let Some(mut pipe) = child.stdout.take() else { bail!("the daemon has no pipe to us") };
    let mut said = [0; READY.len()];
    match pipe.read_exact(&mut said) {
        Ok(()) => Ok(said == READY),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error).context("cannot hear of the daemon"),
    }
}

/// In the daemon: the way to tell who started it that it is ready.
pub struct Readiness(File);

impl Readiness {
    /// Takes the pipe over from standard output, so that no program that we start inherits it; leaves the session of
    /// the terminal.
    pub fn take() -> io::Result<Self> {
        let pipe = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        rustix::stdio::dup2_stdout(&null()?)?;
        // It fails only for the leader of a group, which who was started so is not.
        let _ = rustix::process::setsid();
        Ok(Readiness(pipe.into()))
    }

    /// Tells it, and leaves the terminal alone from now on. An error means that nobody waits any more.
    pub fn tell(mut self) -> io::Result<()> {
        self.0.write_all(READY)?;
        Ok(rustix::stdio::dup2_stderr(&null()?)?)
    }
}

fn null() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/null")
}

/// Makes this process fit to serve files for everybody: no mask of its own, as many descriptors as it may have, and no
/// directory kept in use.
pub fn settle() -> anyhow::Result<()> {
    hither_sys::umask::clear();
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .context("cannot raise the number of open files")?;
    std::env::set_current_dir("/").context("cannot go to /")
}
