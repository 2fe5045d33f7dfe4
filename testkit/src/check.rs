//! Checks that return instead of panicking, and say where they failed.

use std::any::Any;
use std::fmt;
use std::panic::Location;

use hither_vfs::{Errno, Error};

/// How a test ended.
pub(crate) type Outcome = Result<(), Failure>;

/// Why a test did not pass.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something was not as it should be.
    Failed { what: String, at: String },
    /// The test cannot say anything here.
    Skipped(String),
}

impl Failure {
    #[track_caller]
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Failure::Failed { what: what.into(), at: Location::caller().to_string() }
    }

    pub(crate) fn from_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Failure::Failed { what: format!("panicked: {text}"), at: "see the output".to_owned() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed { what, at } => write!(f, "{what} ({at})"),
            Failure::Skipped(reason) => write!(f, "skipped: {reason}"),
        }
    }
}

impl From<Error> for Failure {
    #[track_caller]
    fn from(error: Error) -> Self {
        Failure::new(format!("refused: {error}"))
    }
}

impl From<std::io::Error> for Failure {
    #[track_caller]
    fn from(error: std::io::Error) -> Self {
        Failure::new(error.to_string())
    }
}

/// The call was refused with just that errno.
#[track_caller]
pub(crate) fn refused<T>(result: hither_vfs::Result<T>, errno: Errno) -> Outcome {
    match result {
        Ok(_) => Err(Failure::new(format!("went through where \"{errno}\" was due"))),
        Err(error) if error == errno => Ok(()),
        Err(error) => Err(Failure::new(format!("refused with \"{error}\" where \"{errno}\" was due"))),
    }
}

/// The call was refused with one of these.
#[track_caller]
pub(crate) fn refused_with_one_of<T>(result: hither_vfs::Result<T>, errnos: &[Errno]) -> Outcome {
    match result {
        Err(error) if errnos.iter().any(|errno| error == *errno) => Ok(()),
        Err(error) => refused::<()>(Err(error), errnos.first().copied().unwrap_or(Errno::IO)),
        Ok(_) => Err(Failure::new("went through where it was to be refused")),
    }
}

/// The two are equal.
#[track_caller]
pub(crate) fn equal<T: PartialEq<U> + fmt::Debug, U: fmt::Debug>(found: T, expected: U) -> Outcome {
    if found == expected {
        Ok(())
    } else {
        Err(Failure::new(format!("found {found:?} where {expected:?} was due")))
    }
}

/// The condition holds; `what` tells it in words.
#[track_caller]
pub(crate) fn holds(condition: bool, what: &str) -> Outcome {
    if condition { Ok(()) } else { Err(Failure::new(format!("does not hold: {what}"))) }
}
