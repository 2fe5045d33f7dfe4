//! What a failed call says: an errno for the program, a cause for the log.

use std::fmt;
use std::sync::Arc;

use rustix::io::Errno;

/// The result of every call of the trait.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed call. Cheap to clone, since one failed fetch answers many waiting readers.
#[derive(Clone)]
pub struct Error {
    errno: Errno,
    would_block: bool,
    cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// The answer to a call with [`Patience::Never`](crate::Patience::Never) that cannot be served at once: the
    /// front end posts the call again from a thread that may wait. Not to be confused with an `EAGAIN` that is
    /// meant for the program (a lock that is held).
    pub const WOULD_BLOCK: Error = Error { errno: Errno::AGAIN, would_block: true, cause: None };

    /// An errno with the story behind it. The cause is logged where the errno leaves us, never shown to a program.
    pub fn with_cause(errno: Errno, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error { errno, would_block: false, cause: Some(Arc::from(cause.into())) }
    }

    /// What the program gets.
    pub fn errno(&self) -> Errno {
        self.errno
    }

    /// Whether the call only lacked patience.
    pub fn is_would_block(&self) -> bool {
        self.would_block
    }

    /// The story behind the errno, if one was kept.
    pub fn cause(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.cause.as_deref()
    }
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Self {
        Error { errno, would_block: false, cause: None }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(raw) => Errno::from_raw_os_error(raw).into(),
            None => Error::with_cause(Errno::IO, error),
        }
    }
}

impl PartialEq<Errno> for Error {
    fn eq(&self, errno: &Errno) -> bool {
        !self.would_block && self.errno == *errno
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.would_block {
            return f.write_str("the call would have to wait");
        }
        match &self.cause {
            Some(cause) => write!(f, "{}: {cause}", self.errno),
            None => write!(f, "{}", self.errno),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as &(dyn std::error::Error + 'static))
    }
}
