//! The wrapping file system: which of its objects stand for which of the inner one's.

use std::sync::Arc;

use hither_vfs::{
    Call, Capabilities, Created, DirHandle, Entry, Errno, Event, EventSink, Events, FileSystem, Handle,
    Identity, Interner, Node, Result, StatFs,
};

use super::script::Site;
use super::{Kind, Script};

/// A file system that does what the inner one does, unless its script has other plans.
pub struct Faulty {
    inner: Arc<dyn FileSystem>,
    shared: Arc<Shared>,
    root: Arc<FaultyNode>,
    own_events: Events,
}

/// What all wrapped objects share.
pub(super) struct Shared {
    pub(super) script: Arc<Script>,
    nodes: Interner<Identity, FaultyNode>,
    pub(super) backings: bool,
}

pub(super) struct FaultyNode {
    pub(super) inner: Arc<dyn Node>,
    pub(super) shared: Arc<Shared>,
}

pub(super) struct FaultyHandle {
    pub(super) inner: Arc<dyn Handle>,
    pub(super) node: Identity,
    pub(super) shared: Arc<Shared>,
}

pub(super) struct FaultyDirHandle {
    pub(super) inner: Arc<dyn DirHandle>,
    pub(super) node: Identity,
    pub(super) shared: Arc<Shared>,
}

impl Faulty {
    /// Wraps a file system. Backings are held back, so that all reads and writes come by.
    pub fn new(inner: Arc<dyn FileSystem>, script: Arc<Script>) -> Arc<Self> {
        Faulty::wrap(inner, script, false)
    }

    /// Wraps a file system and hands its backings on: what goes through them has no faults and is not counted.
    pub fn with_backings(inner: Arc<dyn FileSystem>, script: Arc<Script>) -> Arc<Self> {
        Faulty::wrap(inner, script, true)
    }

    fn wrap(inner: Arc<dyn FileSystem>, script: Arc<Script>, backings: bool) -> Arc<Self> {
        let shared = Arc::new(Shared { script, nodes: Interner::default(), backings });
        let root = shared.node(inner.root());
        Arc::new(Faulty { inner, shared, root, own_events: Events::default() })
    }

    /// Its script.
    pub fn script(&self) -> &Arc<Script> {
        &self.shared.script
    }

    /// Tells the listeners of an event, as if it had come from elsewhere. Events of the inner file system are handed
    /// on by themselves. (Identities are those of the inner file system.)
    pub fn notify(&self, event: &Event) {
        self.own_events.notify(event);
    }
}

impl FileSystem for Faulty {
    fn root(&self) -> Arc<dyn Node> {
        self.root.clone()
    }

    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.capabilities();
        Capabilities { backings: inner.backings && self.shared.backings, ..inner }
    }

    fn statfs(&self, call: &Call) -> Result<StatFs> {
        self.shared.script.pass(&Site::new(Kind::Statfs, call))?;
        self.inner.statfs(call)
    }

    fn sync(&self, call: &Call) -> Result<()> {
        self.shared.script.pass(&Site::new(Kind::Sync, call))?;
        self.inner.sync(call)
    }

    fn subscribe(&self, sink: Arc<dyn EventSink>) {
        self.own_events.subscribe(sink.clone());
        self.inner.subscribe(sink);
    }
}

impl Shared {
    /// The one wrapped node of an inner node.
    pub(super) fn node(self: &Arc<Self>, inner: Arc<dyn Node>) -> Arc<FaultyNode> {
        let make = {
            let inner = inner.clone();
            |_: &_| FaultyNode { inner, shared: self.clone() }
        };
        self.nodes.get_or_replace_cyclic(inner.identity(), |living| Arc::ptr_eq(&living.inner, &inner), make)
    }

    pub(super) fn entry(self: &Arc<Self>, entry: Entry) -> Entry {
        Entry { node: self.node(entry.node), ..entry }
    }

    pub(super) fn handle(self: &Arc<Self>, inner: Arc<dyn Handle>, node: Identity) -> Arc<dyn Handle> {
        Arc::new(FaultyHandle { inner, node, shared: self.clone() })
    }

    pub(super) fn created(self: &Arc<Self>, created: Created) -> Created {
        let node = created.entry.node.identity();
        Created { handle: self.handle(created.handle, node), entry: self.entry(created.entry) }
    }
}

/// The inner node of one of ours; EXDEV if it is another file system's.
pub(super) fn inner_node<'a>(shared: &Arc<Shared>, node: &'a dyn Node) -> Result<&'a dyn Node> {
    let ours = node.as_any().downcast_ref::<FaultyNode>();
    let ours = ours.filter(|node| Arc::ptr_eq(&node.shared, shared));
    ours.map(|node| &*node.inner).ok_or_else(|| Errno::XDEV.into())
}

/// The inner handle of one of ours; EXDEV if it is another file system's.
pub(super) fn inner_handle<'a>(shared: &Arc<Shared>, handle: &'a dyn Handle) -> Result<&'a dyn Handle> {
    let ours = handle.as_any().downcast_ref::<FaultyHandle>();
    let ours = ours.filter(|handle| Arc::ptr_eq(&handle.shared, shared));
    ours.map(|handle| &*handle.inner).ok_or_else(|| Errno::XDEV.into())
}
