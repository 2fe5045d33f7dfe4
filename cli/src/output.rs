//! Writing to the person: results to standard output, complaints to standard error. No other file prints.

use std::io::{self, Write};

use serde::Serialize;

/// Standard output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
pub struct OutputError(#[from] io::Error);

impl OutputError {
    /// Whether only the reader went away (`hither status | head -1`), which is no failure of ours.
    pub fn is_reader_gone(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

/// Writes a line to standard output.
pub fn line(text: impl AsRef<str>) -> Result<(), OutputError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref().as_bytes())?;
    Ok(out.write_all(b"\n")?)
}

/// Writes bytes to standard output as they are.
pub fn raw(bytes: &[u8]) -> Result<(), OutputError> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// Writes a value as JSON for people and programs.
pub fn json(value: &impl Serialize) -> Result<(), OutputError> {
    line(serde_json::to_string_pretty(value).map_err(io::Error::from)?)
}

/// Writes a line to standard error, with our name before it.
pub fn complain(text: &str) {
    // Nobody is left to hear of a failure here.
    let _ = writeln!(io::stderr().lock(), "hither: {text}");
}

/// Writes a line to standard error that is no complaint.
pub fn note(text: &str) {
    // As above.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
