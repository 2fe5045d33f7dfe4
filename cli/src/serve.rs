//! The life of a mount, from a configuration to its end.

use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow};
use hither_fuse::{Remote, Session, Unmount};
use hither_rt::thread::spawn;
use hither_stack::units::Size;
use hither_stack::{Built, FsConfig, MountConfig, MountFlag, Story};
use hither_vfs::{Call, Caller, Patience};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::control::protocol::WirePath;
use crate::control::registry::{Entry, Registration};
use crate::control::server::{self, Policy};
use crate::control::service::{About, MountService};
use crate::daemon::{self, Readiness};
use crate::failure::of_mounting;
use crate::logging::{self, Destination, Log};
use crate::output::{self, counted};
use crate::{metrics, mountinfo, placement};

/// Mounts, serves until the mount is gone, and makes everything safe. `readiness` is told once the mount answers.
pub fn run(config: &MountConfig, readiness: Option<Readiness>) -> anyhow::Result<()> {
    let destination = match readiness {
        Some(_) => Destination::of_daemon(config.options.log.as_deref(), &config.mountpoint)?,
        None => config.options.log.clone().map_or(Destination::Terminal, Destination::File),
    };
    let log = logging::start(&destination, config.options.log_level)?;
    daemon::settle()?;
    // From here on no signal ends us half-way.
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).context("cannot handle signals")?;
    if hither_fuse::clear_stale(&config.mountpoint).map_err(of_mounting)? {
        tracing::warn!(mountpoint = %config.mountpoint.display(), "cleared the mount of a daemon that is gone");
    }
    let built = placement::check(&config.fs).and_then(|()| Ok(hither_stack::build(config)?));
    let built = Arc::new(built.inspect_err(|_| log.discard_if_empty())?);
    if built.hidden > 0 {
        say_what_is_hidden(&built, readiness.is_some());
    }
    let ended = Mounted::start(config, &built, &destination).and_then(|mounted| {
        if let Some(readiness) = readiness {
            // Whoever waited was interrupted: then the mount is not wanted.
            readiness.tell().inspect_err(|_| take_away(&mounted.session)).context("interrupted")?;
        }
        mounted.attend(signals, &log)
    });
    built.shutdown();
    tracing::info!(mountpoint = %built.mountpoint.display(), "ended");
    ended
}

/// Whoever mounts over files is told so: they are not lost. Who reads the log later is told too.
fn say_what_is_hidden(built: &Built, is_daemon: bool) {
    let mountpoint = built.mountpoint.display();
    let entries = counted(built.hidden as u64, "entry");
    let hides = if built.hidden == 1 { "is" } else { "are" };
    output::complain(&format!(
        "warning: {mountpoint} is not empty: its {entries} {hides} hidden until `hither umount {mountpoint}`"
    ));
    if is_daemon {
        tracing::warn!(%mountpoint, entries = built.hidden, "the mount hides what lies in its mount point");
    }
}

/// A mount that is up.
struct Mounted {
    session: Arc<Session>,
    service: Arc<MountService>,
    _registration: Registration,
}

impl Mounted {
    fn start(config: &MountConfig, built: &Arc<Built>, destination: &Destination) -> anyhow::Result<Self> {
        answers(built, config)?;
        // What can fail for a simple reason comes before the mount.
        let socket = Registration::socket_path()?;
        let metrics = config.options.metrics.map(|address| {
            TcpListener::bind(address.0).with_context(|| format!("cannot serve metrics at {address}"))
        });
        let metrics = metrics.transpose()?;
        let session = hither_fuse::mount(built.fs.clone(), &built.mountpoint, &fuse_options(config));
        let session = Arc::new(session.map_err(of_mounting)?);
        let about = about(config, built, destination, metrics.as_ref());
        let policy = Policy { owner: about.uid, others: rustix::process::geteuid().is_root() };
        let service = Arc::new(MountService::new(about, built.clone(), session.clone(), config.deadline()));
        match publish(config, built, &socket, policy, &service, metrics) {
            Ok(registration) => Ok(Mounted { session, service, _registration: registration }),
            Err(error) => {
                // Threads that were started may hold the session: it does not end by being dropped here.
                take_away(&session);
                Err(error)
            }
        }
    }

    /// Waits for the end of the mount, by whoever's hand, and for signals meanwhile.
    fn attend(self, mut signals: Signals, log: &Log) -> anyhow::Result<()> {
        let (session, wake) = (self.session.clone(), signals.handle());
        spawn("session", move || {
            session.join();
            wake.close();
        })
        .context("cannot start a thread")?;
        let remote = self.session.remote();
        let mut told_to_end = false;
        for signal in &mut signals {
            match signal {
                SIGHUP => log.reopen(),
                _ if told_to_end => {
                    tracing::warn!("told to end again: programs lose what they have open");
                    break;
                }
                _ => {
                    told_to_end = true;
                    on_end_signal(&remote);
                }
            }
        }
        self.service.close();
        Ok(())
    }
}

/// Makes a mount known to commands and to Prometheus.
fn publish(
    config: &MountConfig,
    built: &Built,
    socket: &Path,
    policy: Policy,
    service: &Arc<MountService>,
    metrics: Option<TcpListener>,
) -> anyhow::Result<Registration> {
    server::start(socket, policy, service.clone())
        .with_context(|| format!("cannot listen at {}", socket.display()))?;
    let registration = Registration::publish(&Entry {
        pid: std::process::id(),
        mountpoint: WirePath(built.mountpoint.clone()),
        device: device_of(&built.mountpoint)?,
        socket: WirePath(socket.to_owned()),
        kind: config.fs.kind().to_owned(),
        owner: rustix::process::geteuid().as_raw(),
    })?;
    if let Some(listener) = metrics {
        let service = service.clone();
        metrics::serve(listener, move || service.status()).context("cannot serve metrics")?;
    }
    Ok(registration)
}

/// Takes a mount away whatever uses it.
fn take_away(session: &Session) {
    if let Err(error) = session.unmount(Unmount::Lazily) {
        tracing::error!(%error, "cannot unmount");
    }
}

/// Unmounts. Programs that use the mount keep what they have open; the daemon ends with the last of them, or at the
/// second signal.
fn on_end_signal(remote: &Remote) {
    match remote.unmount(Unmount::IfUnused) {
        Err(hither_fuse::Error::Busy { .. }) => {
            tracing::warn!(
                "told to end while the mount is in use: it is taken away, and ends with its last open file"
            );
            if let Err(error) = remote.unmount(Unmount::Lazily) {
                tracing::error!(%error, "cannot unmount");
            }
        }
        Err(error) => tracing::error!(%error, "cannot unmount"),
        Ok(()) => {}
    }
}

/// Whether the tree can be reached at all, before anybody is given a mount that only hangs.
fn answers(built: &Built, config: &MountConfig) -> anyhow::Result<()> {
    let patience = config.deadline().map_or_else(Patience::forever, Patience::at_most);
    let call = Call::new(Caller::this_process(), patience);
    match built.fs.root().getattr(&call) {
        Ok(_) => Ok(()),
        Err(error) => Err(anyhow!("{} does not answer: {}", source(&config.fs), Story(error))),
    }
}

fn source(fs: &FsConfig) -> String {
    match fs {
        FsConfig::Dir(dir) => dir.source.display().to_string(),
        FsConfig::Cache(cache) => source(&cache.origin),
    }
}

fn fuse_options(config: &MountConfig) -> hither_fuse::Options {
    let options = &config.options;
    let defaults = hither_fuse::Options::default();
    hither_fuse::Options {
        fs_name: source(&config.fs),
        read_only: options.read_only,
        allow_other: options.allow_other,
        mount_options: options.mount_flags.iter().copied().map(MountFlag::name).map(str::to_owned).collect(),
        threads: options.threads.unwrap_or_else(threads),
        deadline: config.deadline(),
        passthrough: match options.passthrough {
            hither_stack::Passthrough::Auto => hither_fuse::Passthrough::Auto,
            hither_stack::Passthrough::Off => hither_fuse::Passthrough::Off,
        },
        transport: match options.transport {
            hither_stack::Transport::Auto => hither_fuse::Transport::Auto,
            hither_stack::Transport::Dev => hither_fuse::Transport::Dev,
            hither_stack::Transport::Uring => hither_fuse::Transport::Uring,
        },
        read_ahead_kib: options.read_ahead.map(|Size(bytes)| u32::try_from(bytes >> 10).unwrap_or(u32::MAX)),
        ..defaults
    }
}

fn about(config: &MountConfig, built: &Built, log: &Destination, metrics: Option<&TcpListener>) -> About {
    let uid = rustix::process::geteuid().as_raw();
    let address = metrics.and_then(|listener| listener.local_addr().ok());
    About {
        mountpoint: built.mountpoint.clone(),
        kind: config.fs.kind(),
        source: source(&config.fs),
        read_only: config.options.read_only,
        allow_other: config.options.allow_other || uid == 0,
        log: log.to_string(),
        origin_timeout: config.deadline(),
        metrics: address.map(|address| format!("http://{address}/metrics")),
        uid,
        started: SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since: Duration| since.as_secs()),
    }
}

/// One a processor, so that a request can be taken where it is made; more than a few bring nothing, since whatever
/// waits is handed on.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 16)
}

/// The device number of the mount, by which commands find its daemon.
fn device_of(mountpoint: &Path) -> anyhow::Result<String> {
    let mounts = mountinfo::read().context("cannot read /proc/self/mountinfo")?;
    match mountinfo::at(&mounts, mountpoint) {
        Some(mount) => Ok(mount.device.clone()),
        // Hidden from us already: the device number says the same.
        None => {
            let device = std::fs::metadata(mountpoint).context("the mount does not answer")?.dev();
            Ok(format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device)))
        }
    }
}
