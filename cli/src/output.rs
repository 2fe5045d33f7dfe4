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
    out.write_all(harmless(text.as_ref(), |_| false).as_bytes())?;
    Ok(out.write_all(b"\n")?)
}

/// The text without control characters but those to `keep`: names of files, and what another user's daemon says, must
/// not steer a terminal.
fn harmless(text: &str, keep: impl Fn(char) -> bool) -> String {
    text.chars().map(|c| if c.is_control() && !keep(c) { '?' } else { c }).collect()
}

/// Writes bytes to standard output as they are.
pub fn raw(bytes: &[u8]) -> Result<(), OutputError> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// Writes a value as JSON for people and programs.
pub fn json(value: &impl Serialize) -> Result<(), OutputError> {
    // JSON escapes control characters by itself.
    let mut text = serde_json::to_vec_pretty(value).map_err(io::Error::from)?;
    text.push(b'\n');
    raw(&text)
}

/// Writes a line to standard error, with our name before it.
pub fn complain(text: &str) {
    // Nobody is left to hear of a failure here.
    let _ = writeln!(io::stderr().lock(), "hither: {}", harmless(text, |c| c == '\n'));
}

/// Writes a line to standard error that is no complaint.
pub fn note(text: &str) {
    // As above.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
