//! Where log lines go: the terminal, the journal or a file; and a panic's one line among them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use hither_rt::sync::Mutex;
use hither_stack::LogLevel;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::control::registry;

mod journal;

use journal::Journal;

/// Whether log lines go anywhere yet.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Where the log lines of a mount go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Standard error.
    Terminal,
    /// The systemd journal.
    Journal,
    /// A file; made if it is missing.
    File(PathBuf),
}

impl Destination {
    /// Where a daemon's lines go: to the file that was asked for, else to the journal, else to a file of its own.
    pub fn of_daemon(asked: Option<&Path>, mountpoint: &Path) -> anyhow::Result<Self> {
        if let Some(file) = asked {
            return Ok(Destination::File(file.to_owned()));
        }
        if Path::new(journal::SOCKET).exists() {
            return Ok(Destination::Journal);
        }
        let name = mountpoint.to_string_lossy().trim_matches('/').replace('/', "-");
        let directory = match rustix::process::geteuid().is_root() {
            true => PathBuf::from("/var/log"),
            false => registry::own_directory()?,
        };
        Ok(Destination::File(directory.join(format!("hither-{name}.log"))))
    }
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Destination::Terminal => f.write_str("standard error"),
            Destination::Journal => f.write_str("journal (journalctl -t hither)"),
            Destination::File(path) => path.display().fmt(f),
        }
    }
}

/// The log of this process.
pub struct Log {
    file: Option<LogFile>,
}

/// Sends log lines to `destination` from now on.
pub fn start(destination: &Destination, level: LogLevel) -> anyhow::Result<Log> {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let registry = tracing_subscriber::registry().with(level);
    let lines = tracing_subscriber::fmt::layer().with_target(false).with_ansi(false);
    let mut file = None;
    match destination {
        Destination::Terminal => registry.with(lines.without_time().with_writer(io::stderr)).try_init()?,
        Destination::Journal => {
            let journal = Journal::connect(Path::new(journal::SOCKET)).context("cannot reach the journal")?;
            registry.with(lines.without_time().with_level(false).with_writer(journal)).try_init()?;
        }
        Destination::File(path) => {
            let log = LogFile::open(path)?;
            file = Some(log.clone());
            registry.with(lines.with_writer(log)).try_init()?;
        }
    }
    STARTED.store(true, Ordering::Release);
    Ok(Log { file })
}

impl Log {
    /// Takes the log file back if it was made for this run and nothing was written to it: of a mount that never was.
    pub fn discard_if_empty(&self) {
        let Some(log) = self.file.as_ref().filter(|log| log.is_new) else { return };
        if fs::metadata(&log.path).is_ok_and(|found| found.len() == 0) {
            // An empty file that stays is no harm.
            let _ = fs::remove_file(&log.path);
        }
    }

    /// Opens the log file anew, for a program that has moved the old one away.
    pub fn reopen(&self) {
        let Some(log) = &self.file else { return };
        match open(&log.path) {
            Ok(file) => *log.file.lock() = file,
            Err(error) => {
                tracing::error!(%error, path = %log.path.display(), "cannot reopen the log; going on with the old one")
            }
        }
    }
}

#[derive(Clone)]
struct LogFile {
    path: PathBuf,
    /// It was not there before.
    is_new: bool,
    file: Arc<Mutex<File>>,
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o640).open(path)
}

impl LogFile {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let is_new = !path.exists();
        let file = open(path).with_context(|| format!("cannot open the log {}", path.display()))?;
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        Ok(LogFile { path, is_new, file: Arc::new(Mutex::new(file)) })
    }
}

impl Write for &LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = &'a LogFile;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// Makes a panic one line, in the log where there is one; never a backtrace on somebody's terminal.
pub fn tame_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let said = payload.downcast_ref::<&str>().copied();
        let said = said.or(payload.downcast_ref::<String>().map(String::as_str));
        let said = said.unwrap_or("no message").replace('\n', " ");
        let place = panic.location().map_or_else(String::new, ToString::to_string);
        if STARTED.load(Ordering::Acquire) {
            tracing::error!(said, place, "internal error: this is a bug in hither, please report it");
        } else {
            crate::output::complain(&format!(
                "internal error at {place}: {said}: this is a bug, please report it"
            ));
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_file_follows_its_name_when_it_is_reopened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let file = LogFile::open(&path).unwrap();
        let log = Log { file: Some(file.clone()) };
        (&file).write_all(b"one\n").unwrap();
        fs::rename(&path, dir.path().join("old")).unwrap();
        (&file).write_all(b"two\n").unwrap();
        log.reopen();
        (&file).write_all(b"three\n").unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("old")).unwrap(), "one\ntwo\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
    }

    #[test]
    fn an_empty_log_is_taken_back_but_never_what_was_there_or_says_something() {
        let dir = tempfile::tempdir().unwrap();
        let discarded = |name: &str, said: &[u8]| {
            let file = LogFile::open(&dir.path().join(name)).unwrap();
            (&file).write_all(said).unwrap();
            Log { file: Some(file) }.discard_if_empty();
            !dir.path().join(name).exists()
        };
        assert!(discarded("new", b""));
        assert!(!discarded("written", b"line\n"));
        fs::write(dir.path().join("old"), "").unwrap();
        assert!(!discarded("old", b""));
    }

    #[test]
    fn the_file_that_was_asked_for_comes_first() {
        let asked = Destination::of_daemon(Some(Path::new("/x/log")), Path::new("/mnt/a")).unwrap();
        assert_eq!(asked, Destination::File("/x/log".into()));
        if !Path::new(journal::SOCKET).exists() && rustix::process::geteuid().is_root() {
            let fallback = Destination::of_daemon(None, Path::new("/mnt/a")).unwrap();
            assert_eq!(fallback, Destination::File("/var/log/hither-mnt-a.log".into()));
        }
    }
}
