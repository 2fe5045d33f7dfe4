//! The cache as a file system.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use hither_rt::clock::{Instant, now};
use hither_rt::sync::Mutex;
use hither_vfs::{
    Attr, Call, Capabilities, Event, EventSink, FileKind, FileSystem, Node, Result, StatFs, Timeouts,
};

use crate::background::Background;
use crate::node::CacheNode;
use crate::options::Options;
use crate::report::Stats;
use crate::shared::Shared;
use crate::store::Store;

/// A cached view of an origin. Ends its background work when dropped; call [`Cache::shutdown`] before, so that no copy
/// is lost to a power cut that follows.
pub struct Cache {
    pub(crate) shared: Arc<Shared>,
    pub(crate) root: Arc<CacheNode>,
    background: Mutex<Option<Background>>,
    /// What the origin said of its space, and when: `find` and `rsync` ask at each start.
    space: Mutex<Option<(Instant, StatFs)>>,
}

impl Cache {
    /// Puts a cache in `store` in front of `origin`. The store must be used by nobody else; that is the caller's to make
    /// sure of. Fails if the store belongs to another origin, is damaged, or cannot be written.
    pub fn open(
        origin: Arc<dyn FileSystem>,
        store: Arc<dyn FileSystem>,
        options: Options,
    ) -> Result<Arc<Self>> {
        let store = Store::open(store, &options.origin_name, options.instance)?;
        let root = origin.root();
        let shared = Shared::new(origin, store, options);
        let attr = Attr { mode: FileKind::Directory.mode_bits(), ..Default::default() };
        let root = shared.intern(root, &attr);
        shared.origin.subscribe(Arc::new(FromOrigin(Arc::downgrade(&shared))));
        let background = Background::start(&shared)?;
        Ok(Arc::new(Cache {
            shared,
            root,
            background: Mutex::new(Some(background)),
            space: Mutex::default(),
        }))
    }

    /// Counters since the start, and the store's use now.
    pub fn stats(&self) -> Stats {
        let usage = self.shared.index.usage();
        let durable = self.shared.index.count(|copy| self.shared.store.is_durable(copy.commit));
        Stats {
            copies: usage.copies,
            used_bytes: usage.bytes,
            pinned_bytes: usage.pinned,
            durable_copies: durable,
            scanning: self.shared.is_scanning(),
            ..self.shared.counters.stats()
        }
    }

    /// Ends background work and makes all copies durable. The cache still answers after it.
    pub fn shutdown(&self) {
        self.shared.closing.store(true, Ordering::Release);
        let background = self.background.lock().take();
        drop(background);
        self.shared.refused.forget();
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl FileSystem for Cache {
    fn root(&self) -> Arc<dyn Node> {
        self.root.clone()
    }

    fn capabilities(&self) -> Capabilities {
        let window = self.shared.options.revalidate / 2;
        let origin = self.shared.origin.capabilities();
        Capabilities { timeouts: Timeouts { entry: window, attr: window }, backings: true, ..origin }
    }

    fn statfs(&self, call: &Call) -> Result<StatFs> {
        let asked = now();
        if let Some((said, space)) = *self.space.lock()
            && asked.saturating_duration_since(said) < self.shared.options.revalidate
        {
            return Ok(space);
        }
        call.patience.check()?;
        let space = self.shared.origin.statfs(call)?;
        *self.space.lock() = Some((asked, space));
        Ok(space)
    }

    fn sync(&self, call: &Call) -> Result<()> {
        call.patience.check()?;
        self.shared.origin.sync(call)
    }

    fn subscribe(&self, sink: Arc<dyn EventSink>) {
        self.shared.events.subscribe(sink);
    }
}

/// Passes the origin's news on, after forgetting what they make wrong.
struct FromOrigin(Weak<Shared>);

impl EventSink for FromOrigin {
    fn notify(&self, event: &Event) {
        let Some(shared) = self.0.upgrade() else { return };
        let (identity, name) = match event {
            Event::Name { parent, name } => (parent, Some(name.as_os_str())),
            Event::Attr(identity) | Event::Data(identity) => (identity, None),
            Event::Evicted(_) => return,
        };
        if let Some(node) = shared.nodes.get(identity) {
            let names: Vec<_> = name.into_iter().collect();
            node.directory.lock().forget(&names, shared.next_stamp());
            node.file.lock().forget_known(shared.next_stamp());
        }
        shared.notify(event);
    }
}
