//! Tells the kernel to forget what it keeps. Invalidating a name or pages can wait for requests that we have to answer,
//! so it is done by threads of its own, never by one that serves requests; forgetting attributes waits for nothing.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use hither_rt::sync::Mutex;
use hither_rt::thread::Pool;
use hither_vfs::{Errno, Event, EventSink, Identity};

use crate::backing::Backings;
use crate::nodes::{Known, Nodes};
use crate::protocol::abi::{EXPIRE_ONLY, InvalEntryOut, InvalInodeOut, notify};
use crate::protocol::wire::Wire;
use crate::transport::Notices;

/// Threads that may be held up at once, each by a request under way in the directory or on the pages it invalidates.
const THREADS: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Notice {
    Name { parent: u64, name: OsString },
    Attr { id: u64 },
    Pages { id: u64 },
}

impl Notice {
    /// Whether it does not concern its node any more. To send it all the same would do harm: the kernel throws answers
    /// away that were under way meanwhile, and reads a past version within the size of the present one.
    fn is_past(&self, nodes: &Nodes) -> bool {
        match self {
            Notice::Name { .. } => false,
            Notice::Attr { id } | Notice::Pages { id } => nodes.get(*id).is_none_or(|known| known.is_past()),
        }
    }
}

/// Turns events into invalidations.
pub(crate) struct Notifier {
    shared: Arc<Shared>,
    pool: Pool,
    nodes: Arc<Nodes>,
    backings: Arc<Backings>,
    changes: AtomicU64,
}

struct Shared {
    notices: Arc<dyn Notices>,
    /// The kernel can let a name's timeout end without tearing down what is mounted or open below it.
    expire_only: bool,
    pending: Mutex<HashSet<Notice>>,
}

impl Notifier {
    pub(crate) fn new(
        notices: Arc<dyn Notices>,
        expire_only: bool,
        nodes: Arc<Nodes>,
        backings: Arc<Backings>,
    ) -> Self {
        let shared = Shared { notices, expire_only, pending: Mutex::default() };
        let pool = Pool::new("fuse-notify", THREADS);
        Notifier { shared: Arc::new(shared), pool, nodes, backings, changes: AtomicU64::new(0) }
    }

    /// How many changes were told so far. An answer during which this number moved may be old already, and is given
    /// no timeout.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Sends a notice soon, once if it is asked for several times before.
    fn post(&self, notice: Notice) {
        if self.shared.pending.lock().insert(notice.clone()) {
            let (shared, nodes) = (self.shared.clone(), self.nodes.clone());
            self.pool.post(move || {
                shared.pending.lock().remove(&notice);
                if !notice.is_past(&nodes) {
                    shared.send(&notice);
                }
            });
        }
    }

    /// The attributes that the kernel keeps of `known` are wrong: forgotten when this returns.
    pub(crate) fn forget_attr(&self, known: &Known) {
        self.changed();
        self.shared.send(&Notice::Attr { id: known.id });
    }

    /// The inode is in another epoch than that of `known` now: from here on its attributes are given without a timeout,
    /// and those given before are forgotten when this returns.
    pub(crate) fn superseded(&self, known: &Known) {
        self.shared.send(&Notice::Attr { id: known.id });
    }

    /// The ids of an inode that changes of it concern.
    fn present_ids(&self, identity: &Identity) -> impl Iterator<Item = u64> + use<> {
        self.nodes.ids_of(identity).into_iter().filter(|known| !known.is_past()).map(|known| known.id)
    }

    /// Bytes or attributes of the inode were changed through `known`, which the kernel knows; its other ids it has to be
    /// told of.
    pub(crate) fn changed_through(&self, known: &Known, bytes: bool) {
        for other in self.nodes.siblings(known) {
            self.forget_attr(&other);
            if bytes {
                self.post(Notice::Pages { id: other.id });
            }
        }
    }
}

/// What a file system is given: it may outlive the mount, which its listeners must not keep alive.
pub(crate) struct Listener(Weak<Notifier>);

impl EventSink for Listener {
    fn notify(&self, event: &Event) {
        if let Some(notifier) = self.0.upgrade() {
            notifier.hear(event);
        }
    }
}

impl Notifier {
    /// For `FileSystem::subscribe`.
    pub(crate) fn listener(self: &Arc<Self>) -> Arc<Listener> {
        Arc::new(Listener(Arc::downgrade(self)))
    }

    fn hear(&self, event: &Event) {
        self.changed();
        match event {
            Event::Name { parent, name } => {
                for parent in self.nodes.ids_of(parent) {
                    self.post(Notice::Name { parent: parent.id, name: name.clone() });
                }
            }
            Event::Attr(identity) => {
                for id in self.present_ids(identity) {
                    self.post(Notice::Attr { id });
                }
            }
            Event::Data(identity) => {
                for id in self.present_ids(identity) {
                    self.post(Notice::Pages { id });
                }
            }
            Event::Evicted(identity) => {
                for known in self.nodes.ids_of(identity) {
                    self.backings.evict(&known);
                }
            }
        }
    }
}

impl Shared {
    fn send(&self, notice: &Notice) {
        let mut head = Vec::with_capacity(InvalInodeOut::SIZE);
        let sent = match notice {
            Notice::Name { parent, name } => {
                let flags = if self.expire_only { EXPIRE_ONLY } else { 0 };
                InvalEntryOut { parent: *parent, namelen: name.len() as u32, flags }.put(&mut head);
                let parts = [IoSlice::new(&head), IoSlice::new(name.as_bytes()), IoSlice::new(&[0])];
                self.notices.send(notify::INVAL_ENTRY, &parts)
            }
            // A negative offset means attributes only, offset and length 0 all pages.
            Notice::Attr { id } => {
                InvalInodeOut { ino: *id, off: -1, len: 0 }.put(&mut head);
                self.notices.send(notify::INVAL_INODE, &[IoSlice::new(&head)])
            }
            Notice::Pages { id } => {
                InvalInodeOut { ino: *id, off: 0, len: 0 }.put(&mut head);
                self.notices.send(notify::INVAL_INODE, &[IoSlice::new(&head)])
            }
        };
        if let Err(error) = sent {
            report(notice, &error);
        }
    }
}

/// ENOENT only says that the kernel keeps nothing of it, ENODEV and ENOTCONN that the mount is gone.
fn report(notice: &Notice, error: &io::Error) {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NODEV | Errno::NOTCONN) => {}
        _ => {
            tracing::warn!(?notice, %error, "cannot tell the kernel that something changed; it may show old data until its timeout")
        }
    }
}
