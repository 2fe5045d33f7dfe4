//! The file system: what its nodes share, its root, its space.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hither_sys::creds;
use hither_vfs::{Call, Capabilities, Error, EventSink, Events, FileSystem, Interner, Node, Result, StatFs};
use rustix::fs::{CWD, Mode, OFlags};

use crate::attr::{self, Asking};
use crate::descriptors::Descriptors;
use crate::mounts::Mounts;
use crate::node::{DirNode, FIRST_BORN};
use crate::options::{Identity, Options};
use crate::probe;
use crate::proc::ProcFd;

/// A directory of the host as a file system.
pub struct Dir {
    shared: Arc<Shared>,
    root: Arc<DirNode>,
    capabilities: Capabilities,
    events: Events,
}

/// What all nodes of a tree share.
pub(crate) struct Shared {
    pub options: Options,
    pub proc: ProcFd,
    pub mounts: Mounts,
    /// Nodes by device and inode number.
    pub nodes: Interner<(u64, u64), DirNode>,
    pub descriptors: Descriptors,
    /// Counts nodes made, to tell which came first.
    pub births: AtomicU64,
    /// The device of the root, whose inode numbers are shown as they are.
    pub root_dev: u64,
    /// How attributes are asked for.
    pub asking: Asking,
}

impl Shared {
    /// To be asked before anything that touches the disk.
    pub fn admit(&self, call: &Call) -> Result<()> {
        if self.options.may_block { call.patience.check() } else { Ok(()) }
    }
}

impl Dir {
    /// Serves the directory at `path` (symbolic links are followed here, once).
    pub fn open(path: &Path, options: Options) -> Result<Arc<Dir>> {
        // Threads of ours that are started while acting for a caller must not inherit that.
        hither_rt::thread::at_start(|| drop(creds::own()));
        let _own = creds::own();
        let is_root = rustix::process::geteuid().is_root();
        if options.identity == Identity::Caller && is_root && !creds::may_assume() {
            tracing::warn!(path = %path.display(), "no right to act as others: all that is made will belong to root");
        }
        let proc = ProcFd::open()?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(|errno| {
            Error::with_cause(errno, format!("cannot open the directory {}: {errno}", path.display()))
        })?;
        let stat = attr::statx_fd(fd.as_fd())?;
        let mounts = Mounts::new(&stat, fd.as_fd(), &proc, options.handles)?;
        let capabilities = probe::capabilities(&options, mounts.root(), &proc, fd.as_fd());
        let births = mounts.root().fs.keeps_birth();
        let shared = Arc::new(Shared {
            proc,
            mounts,
            nodes: Interner::default(),
            descriptors: Descriptors::new(options.descriptors),
            births: AtomicU64::new(FIRST_BORN),
            root_dev: attr::dev_of(&stat),
            asking: Asking::new(births, options.fresh_attributes),
            options,
        });
        let root = DirNode::root(&shared, &stat, fd)?;
        Ok(Arc::new(Dir { shared, root, capabilities, events: Events::default() }))
    }
}

impl FileSystem for Dir {
    fn root(&self) -> Arc<dyn Node> {
        self.root.clone()
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn statfs(&self, call: &Call) -> Result<StatFs> {
        self.shared.admit(call)?;
        let told = rustix::fs::fstatvfs(self.root.reach(call)?)?;
        Ok(StatFs {
            block_size: told.f_frsize,
            blocks: told.f_blocks,
            blocks_free: told.f_bfree,
            blocks_available: told.f_bavail,
            files: told.f_files,
            files_free: told.f_ffree,
            name_max: told.f_namemax as u32,
        })
    }

    fn sync(&self, call: &Call) -> Result<()> {
        self.shared.admit(call)?;
        for mount in self.shared.mounts.all() {
            // Without an open file of a mount (its root may not be read) there is nothing to sync it by.
            if let Some(anchor) = mount.anchor() {
                rustix::fs::syncfs(anchor)?;
            }
        }
        Ok(())
    }

    fn subscribe(&self, sink: Arc<dyn EventSink>) {
        self.events.subscribe(sink);
    }
}
