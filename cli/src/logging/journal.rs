//! Lines to the systemd journal, in its own protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL).
//!
//! (tracing-journald sends an event's fields beside its message, where `journalctl` does not show them; here a line
//! says all that a person needs to act on.)

use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// Where the journal listens, if there is one.
pub const SOCKET: &str = "/run/systemd/journal/socket";

/// What is longer is cut: a datagram is bounded, and nobody reads on.
const LONGEST: usize = 16 << 10;

/// The journal.
#[derive(Clone)]
pub struct Journal(Arc<UnixDatagram>);

impl Journal {
    /// Reaches the journal at `socket`.
    pub fn connect(socket: &Path) -> io::Result<Self> {
        let datagrams = UnixDatagram::unbound()?;
        datagrams.connect(socket)?;
        Ok(Journal(Arc::new(datagrams)))
    }
}

/// One event on its way; sent when dropped.
pub struct Line<'a> {
    journal: &'a Journal,
    priority: u8,
    text: Vec<u8>,
}

impl<'a> MakeWriter<'a> for Journal {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { journal: self, priority: 6, text: Vec::new() }
    }

    /// Priorities are those of `syslog(3)`.
    fn make_writer_for(&'a self, event: &Metadata<'_>) -> Line<'a> {
        let priority = match *event.level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            _ => 7,
        };
        Line { journal: self, priority, text: Vec::new() }
    }
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let text = self.text.trim_ascii();
        let text = text.get(..LONGEST).unwrap_or(text);
        if text.is_empty() {
            return;
        }
        let mut datagram =
            format!("PRIORITY={}\nSYSLOG_IDENTIFIER=hither\nMESSAGE\n", self.priority).into_bytes();
        datagram.extend_from_slice(&(text.len() as u64).to_le_bytes());
        datagram.extend_from_slice(text);
        datagram.push(b'\n');
        // A journal that is being restarted loses a line; there is nobody to tell.
        let _ = self.journal.0.send(&datagram);
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn an_event_is_one_message_with_its_fields_and_a_priority() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let journal = UnixDatagram::bind(&socket).unwrap();
        let writer = Journal::connect(&socket).unwrap();
        let lines = tracing_subscriber::fmt::layer().without_time().with_level(false).with_target(false);
        let subscriber = tracing_subscriber::registry().with(lines.with_ansi(false).with_writer(writer));
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(path = "/a\nb", "cannot read");
            tracing::error!("{}", "x".repeat(2 * LONGEST));
        });
        let mut datagram = vec![0; 4 * LONGEST];
        let count = journal.recv(&mut datagram).unwrap();
        let message = b"cannot read path=\"/a\\nb\"";
        let mut expected = b"PRIORITY=4\nSYSLOG_IDENTIFIER=hither\nMESSAGE\n".to_vec();
        expected.extend_from_slice(&(message.len() as u64).to_le_bytes());
        expected.extend_from_slice(message);
        expected.push(b'\n');
        assert_eq!(datagram[..count].escape_ascii().to_string(), expected.escape_ascii().to_string());
        let count = journal.recv(&mut datagram).unwrap();
        assert!(datagram.starts_with(b"PRIORITY=3\n") && count < LONGEST + 100);
    }
}
