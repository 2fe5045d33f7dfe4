//! How a failure becomes an exit code: 2 where the person asked for something that cannot be, 1 for all else.

use std::fmt;
use std::process::ExitCode;

use hither_stack::{BuildError, ConfigError};

use crate::output::OutputError;

/// Done.
pub const DONE: u8 = 0;
/// Failed, or found what was looked for to be wrong.
pub const FAILED: u8 = 1;
/// Wrong usage, or a configuration that cannot be.
pub const USAGE: u8 = 2;

/// Wrong usage, told to the person as it is.
#[derive(Debug)]
struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// An error that ends with exit code 2.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage(message.into()))
}

/// The exit code that an error stands for. A reader of our output that went away is none.
pub fn code_of(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        if cause.is::<Usage>() || cause.is::<ConfigError>() {
            return USAGE;
        }
        if cause.downcast_ref::<BuildError>().is_some_and(BuildError::is_usage) {
            return USAGE;
        }
        if cause.downcast_ref::<OutputError>().is_some_and(OutputError::is_reader_gone) {
            return DONE;
        }
    }
    FAILED
}

/// An error of mounting or unmounting. Its message holds its cause already, and what to do; one that follows from what
/// was asked for is wrong usage.
pub fn of_mounting(error: hither_fuse::Error) -> anyhow::Error {
    use hither_fuse::Error;
    let message = error.to_string();
    match error {
        Error::NoMountpoint { .. }
        | Error::NotADirectory { .. }
        | Error::Mountpoint { .. }
        | Error::UnknownOption { .. } => usage(message),
        Error::Busy { path } => {
            let path = path.display();
            anyhow::anyhow!(
                "{path} is in use: close what uses it (`fuser -vm {path}` shows it), or `hither umount --lazy {path}` \
                 takes it away and lets programs keep what they have open"
            )
        }
        _ => anyhow::anyhow!(message),
    }
}

/// Tells the person (one line, unless an excerpt belongs to it) and returns the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let code = code_of(error);
    if code != DONE {
        crate::output::complain(&format!("{error:#}"));
    }
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// What is printed is the message and its causes: none may say what was said before.
    #[test]
    fn nothing_is_said_twice() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let path = || std::path::PathBuf::from("/m");
        let reason = full().to_string();
        for error in [
            OutputError::from(full()).into(),
            anyhow::Error::from(BuildError::Unusable { role: "origin", path: path(), source: full() }),
            of_mounting(hither_fuse::Error::NoDevice { source: full() }),
            of_mounting(hither_fuse::Error::Mount { path: path(), source: full() }),
            of_mounting(hither_fuse::Error::Mountpoint { path: path(), source: full() }),
            of_mounting(hither_fuse::Error::Unmount { path: path(), source: full() }),
            of_mounting(hither_fuse::Error::Threads { source: full() }),
        ] {
            let said = format!("{error:#}");
            assert_eq!(said.matches(&reason).count(), 1, "{said}");
        }
        let busy = format!("{:#}", of_mounting(hither_fuse::Error::Busy { path: path() }));
        assert!(busy.contains("`hither umount --lazy /m`"), "{busy}");
    }

    #[test]
    fn codes_follow_the_kind_of_error_however_deep_it_lies() {
        assert_eq!(code_of(&usage("x").context("while y")), USAGE);
        assert_eq!(code_of(&anyhow::anyhow!("x")), FAILED);
        assert_eq!(code_of(&anyhow::Error::from(BuildError::Settings("x".into()))), USAGE);
        let held = BuildError::StoreInUse { store: "/s".into(), pid: "1".into(), mountpoint: "/m".into() };
        assert_eq!(code_of(&anyhow::Error::from(held)), FAILED);
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(code_of(&OutputError::from(broken()).into()), DONE);
        assert_eq!(code_of(&OutputError::from(io::Error::from(io::ErrorKind::StorageFull)).into()), FAILED);
        assert_eq!(code_of(&broken().into()), FAILED, "another pipe than standard output");
    }
}
