//! News that goes upward: what changed other than by the call that is being answered.

use std::ffi::OsString;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::Identity;

/// Something changed elsewhere; whoever keeps a copy of it forgets that copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A name of a directory leads elsewhere, or nowhere, now.
    Name {
        /// The directory.
        parent: Identity,
        /// The name in it.
        name: OsString,
    },
    /// A node's attributes changed, or its backing epoch moved.
    Attr(Identity),
    /// A node's bytes (and attributes) changed.
    Data(Identity),
    /// The descriptors behind a node's backing should be let go: its copy was evicted.
    Evicted(Identity),
}

/// Hears of events. Called from any thread, with no lock of the file system held; must not block.
pub trait EventSink: Send + Sync {
    /// One event.
    fn notify(&self, event: &Event);
}

/// The listeners of one file system: what implementations keep to serve `FileSystem::subscribe`.
#[derive(Default)]
pub struct Events(RwLock<Vec<Arc<dyn EventSink>>>);

impl Events {
    /// Adds a listener for as long as the file system lives.
    pub fn subscribe(&self, sink: Arc<dyn EventSink>) {
        self.0.write().push(sink);
    }

    /// Tells every listener.
    pub fn notify(&self, event: &Event) {
        for sink in self.0.read().iter() {
            sink.notify(event);
        }
    }
}
