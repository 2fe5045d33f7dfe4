//! A mount from beginning to end: mounted, the first exchange, its threads, its statistics, unmounted.

use std::io::IoSlice;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use hither_rt::sync::Mutex;
use hither_sys::fuse_ring;
use hither_vfs::{Errno, FileSystem};

use crate::backing::BackingDevice;
use crate::dispatch::{Dispatcher, Setting};
use crate::error::{Error, Result};
use crate::mount::{self, By, Unmount};
use crate::options::{self, Options, Passthrough};
use crate::protocol::abi::init_flags;
use crate::protocol::decode::{Dialect, Message, Operation, decode};
use crate::protocol::init::{Agreement, Answer, Wishes, negotiate};
use crate::protocol::wire::Wire;
use crate::stats::{DataPath, RequestPath, Stats};
use crate::transport::dev::{Device, Transport};
use crate::transport::ring::{self, Rings};
use crate::watchdog;

/// A living mount. Dropping it unmounts, lazily.
pub struct Session {
    remote: Remote,
    dispatcher: Arc<Dispatcher>,
    transport: Transport,
    watchdog: Mutex<Option<JoinHandle<()>>>,
    passthrough: Option<&'static str>,
    /// Or why there are none.
    rings: std::result::Result<Rings, String>,
}

/// Ends a mount from elsewhere: a signal handler's thread, a control socket.
#[derive(Clone, Debug)]
pub struct Remote {
    path: PathBuf,
    by: By,
    /// Whoever unmounts holds this, so that what is mounted there later is never taken for ours.
    is_unmounted: Arc<Mutex<bool>>,
    is_gone: Arc<AtomicBool>,
}

/// Mounts `fs` on the directory `mountpoint`. The mount answers when this returns.
///
/// # Errors
/// See [`Error`]. Nothing is left mounted.
pub fn mount(fs: Arc<dyn FileSystem>, mountpoint: &Path, options: &Options) -> Result<Session> {
    let (descriptor, path, by) = mount::mount(mountpoint, options)?;
    let remote = Remote { path, by, is_unmounted: Arc::default(), is_gone: Arc::default() };
    let session = start(fs, Device::new(descriptor), remote.clone(), options);
    if session.is_err() {
        let _ = remote.unmount(Unmount::Lazily);
    }
    session
}

fn start(fs: Arc<dyn FileSystem>, device: Device, remote: Remote, options: &Options) -> Result<Session> {
    let device = Arc::new(device);
    let capabilities = fs.capabilities();
    let no_rings = why_no_rings(options.transport);
    let wishes = Wishes {
        rings: no_rings.is_none(),
        max_write: options.max_write,
        passthrough: capabilities.backings && options.passthrough == Passthrough::Auto,
        acls: capabilities.acls && capabilities.xattrs,
    };
    let agreement = shake_hands(&device, &wishes, &remote.path)?;
    let no_passthrough = why_no_passthrough(&device, &agreement, capabilities.backings, options.passthrough);
    let backing_device = match no_passthrough {
        None => Some(device.clone() as Arc<dyn BackingDevice>),
        Some(_) => None,
    };
    if let Some(kib) = options.read_ahead_kib
        && let Err(error) = mount::set_read_ahead(&remote.path, kib)
    {
        tracing::debug!(%error, kib, "cannot set the kernel's readahead");
    }
    let dispatcher = Dispatcher::new(
        fs,
        device.clone(),
        Setting {
            backing_device,
            why_no_backing: no_passthrough.unwrap_or_default(),
            expire_only: agreement.has(init_flags::HAS_EXPIRE_ONLY),
            dialect: agreement.dialect(),
            deadline: options.deadline,
        },
    );
    let threads = |source| Error::Threads { source };
    let watchdog = watchdog::start(dispatcher.clone()).map_err(threads)?;
    let started = open_paths(&device, &dispatcher, &agreement, no_rings, &remote, options);
    let (rings, transport) = started.inspect_err(|_| dispatcher.bell.end())?;
    let session = Session {
        remote,
        transport,
        dispatcher,
        watchdog: Mutex::new(Some(watchdog)),
        passthrough: no_passthrough,
        rings,
    };
    tracing::info!(
        mountpoint = %session.remote.path.display(), minor = agreement.minor, requests = %session.request_path(),
        data_path = %session.data_path(), "mounted"
    );
    Ok(session)
}

/// Why the kernel is not asked for rings; `None` if it is.
fn why_no_rings(wish: options::Transport) -> Option<String> {
    match wish {
        options::Transport::Dev => Some("io_uring is not wanted".to_owned()),
        options::Transport::Auto | options::Transport::Uring => {
            let error = fuse_ring::may_have_rings().err()?;
            Some(format!("this process may not use io_uring: {error}"))
        }
    }
}

/// Starts whoever takes requests: queues over io_uring, or else several at `/dev/fuse`; one is needed there anyhow.
fn open_paths(
    device: &Arc<Device>,
    dispatcher: &Arc<Dispatcher>,
    agreement: &Agreement,
    no_rings: Option<String>,
    remote: &Remote,
    options: &Options,
) -> Result<(std::result::Result<Rings, String>, Transport)> {
    let max_write = agreement.max_write as usize;
    let rings = match no_rings {
        Some(why) => Err(why),
        None if !agreement.has(init_flags::OVER_IO_URING) => {
            Err("the kernel does not offer io_uring (hither doctor)".to_owned())
        }
        None => ring::start(device, dispatcher, max_write)
            .inspect_err(
                |error| tracing::warn!(%error, "the kernel refuses rings; /dev/fuse takes their place"),
            )
            .map_err(|error| format!("the kernel refuses io_uring: {error}")),
    };
    let threads = match &rings {
        Ok(_) => 1,
        Err(why) if options.transport == options::Transport::Uring => {
            return Err(Error::NoRings { why: why.clone() });
        }
        Err(_) => options.threads,
    };
    let transport = Transport::start(device, dispatcher.clone(), threads, max_write, remote.is_gone.clone());
    Ok((rings, transport.map_err(|source| Error::Threads { source })?))
}

/// The first exchange.
fn shake_hands(device: &Device, wishes: &Wishes, path: &Path) -> Result<Agreement> {
    let failed = |source: std::io::Error| Error::Handshake { path: path.to_owned(), source };
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = device.read(&mut buffer).map_err(failed)?;
        let Ok(request) = decode(Message::whole(&buffer[..length]), Dialect::default()) else {
            return Err(failed(Errno::PROTO.into()));
        };
        let unique = request.header.unique;
        let Operation::Init { major, minor, max_readahead, flags } = request.operation else {
            let _ = device.answer(unique, -Errno::IO.raw_os_error(), &[]);
            continue;
        };
        let mut body = Vec::new();
        let agreed = match negotiate(major, minor, max_readahead, flags, wishes) {
            Answer::Agree(agreement, out) => {
                out.put(&mut body);
                Some(agreement)
            }
            Answer::AskAgain(out) => {
                out.put(&mut body);
                None
            }
            Answer::Refuse => {
                let _ = device.answer(unique, -Errno::PROTO.raw_os_error(), &[]);
                return Err(Error::Version { major, minor });
            }
        };
        device.answer(unique, 0, &[IoSlice::new(&body)]).map_err(failed)?;
        if let Some(agreement) = agreed {
            return Ok(agreement);
        }
    }
}

/// Why opens get no backing; `None` if they do. The kernel is asked with a file of no name.
fn why_no_passthrough(
    device: &Device,
    agreement: &Agreement,
    fs_has_backings: bool,
    wish: Passthrough,
) -> Option<&'static str> {
    if wish == Passthrough::Off {
        return Some("switched off");
    }
    if !fs_has_backings {
        return Some("this file system has no local copies to give");
    }
    if !agreement.has(init_flags::PASSTHROUGH) {
        return Some("needs Linux 6.9 or later, built with CONFIG_FUSE_PASSTHROUGH");
    }
    let Ok(probe) = rustix::fs::memfd_create("hither-probe", rustix::fs::MemfdFlags::CLOEXEC) else {
        return Some("the kernel has no memfd_create to try it with");
    };
    match device.open(probe.as_fd()) {
        Ok(id) => {
            let _ = device.close(id);
            None
        }
        Err(error) if error.raw_os_error() == Some(Errno::PERM.raw_os_error()) => {
            Some("needs CAP_SYS_ADMIN: mount as root")
        }
        Err(error) => {
            tracing::warn!(%error, "the kernel refuses passthrough");
            Some("the kernel refuses it (see the log)")
        }
    }
}

impl Session {
    /// The absolute mount point.
    pub fn mountpoint(&self) -> &Path {
        &self.remote.path
    }

    /// A means to end the mount from elsewhere.
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// What the mount has done so far.
    pub fn stats(&self) -> Stats {
        let dispatcher = &self.dispatcher;
        let (backing_ids, opens_unbacked) = dispatcher.backings.counts();
        Stats {
            data_path: self.data_path(),
            requests: self.request_path(),
            opens_unbacked: opens_unbacked as u64,
            threads: self.transport.threads() + self.rings.as_ref().map_or(0, Rings::threads),
            pool_threads: dispatcher.pool.load().0,
            in_flight: dispatcher.in_flight.len(),
            nodes: dispatcher.nodes.len(),
            files: dispatcher.files.len(),
            backing_ids,
            ..dispatcher.counters.snapshot()
        }
    }

    fn request_path(&self) -> RequestPath {
        match &self.rings {
            Ok(rings) => RequestPath::Ring { queues: rings.queues() },
            Err(why) => RequestPath::Dev { why: why.clone() },
        }
    }

    fn data_path(&self) -> DataPath {
        match self.passthrough {
            None => DataPath::Passthrough { why_not: self.dispatcher.backings.why_not() },
            Some(why) => DataPath::PageCache { why: why.to_owned() },
        }
    }

    /// Unmounts; see [`Session::join`] for its end.
    ///
    /// # Errors
    /// [`Error::Busy`] if it is in use and is not to be detached.
    pub fn unmount(&self, how: Unmount) -> Result<()> {
        self.remote.unmount(how)
    }

    /// Waits until the mount is gone, by whoever's hand, and the last that was open on it is closed.
    pub fn join(&self) {
        self.transport.join();
        if let Ok(rings) = &self.rings {
            rings.join();
        }
        // The kernel keeps a session for a moment, and files that back its opens with it, which would keep the file systems
        // below from being unmounted.
        for known in self.dispatcher.nodes.all() {
            self.dispatcher.backings.end(&known);
        }
        self.dispatcher.bell.end();
        if let Some(watchdog) = self.watchdog.lock().take() {
            let _ = watchdog.join();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.remote.unmount(Unmount::Lazily);
        self.dispatcher.bell.end();
    }
}

impl Remote {
    /// Unmounts, unless that was done before.
    ///
    /// # Errors
    /// [`Error::Busy`] if it is in use and is not to be detached.
    pub fn unmount(&self, how: Unmount) -> Result<()> {
        let mut is_unmounted = self.is_unmounted.lock();
        if !*is_unmounted && !self.is_gone.load(Ordering::Acquire) {
            mount::unmount(&self.path, self.by, how)?;
            *is_unmounted = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
