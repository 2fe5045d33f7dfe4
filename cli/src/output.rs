//! Writing to the person: results to standard output, complaints to standard error. No other file prints.

use std::io::{self, Write};

use serde::Serialize;

/// Standard output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output")]
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

/// A number with its noun, which takes an `s` unless it is one; nouns in -y take -ies.
pub fn counted(number: u64, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_go_with_their_number() {
        assert_eq!(counted(1, "copy"), "1 copy");
        assert_eq!(counted(0, "copy"), "0 copies");
        assert_eq!(counted(2, "file"), "2 files");
    }
}
