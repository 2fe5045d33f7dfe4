//! The commands' end of the control socket, and the way from a path to the mount that it lies on.

use std::fs;
use std::io::{self, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use rustix::io::Errno;

use super::protocol::{Body, MAX_REPLY, Operation, Outcome, Progress, Reply, Request, VERSION};
use super::registry::{self, Entry};
use super::server::read_line;
use crate::failure::usage;
use crate::mountinfo::{self, Mount};

/// How long a question that needs no work may take.
const QUICK: Duration = Duration::from_secs(20);

/// A mount that says nothing for so long hangs.
const HANGS: Duration = Duration::from_secs(2);

/// A connection to the daemon of a mount.
pub struct Client {
    connection: BufReader<UnixStream>,
    mountpoint: PathBuf,
}

/// A mount of ours, with its daemon as the registry knows it.
#[derive(Debug)]
pub struct Located {
    /// As the kernel knows it.
    pub mount: Mount,
    /// As its daemon says, unless there is none.
    pub entry: Option<Entry>,
}

impl Client {
    /// Connects to the daemon of a mount.
    pub fn connect(entry: &Entry) -> anyhow::Result<Self> {
        let mountpoint = entry.mountpoint.0.clone();
        let connection = UnixStream::connect(&entry.socket.0).with_context(|| {
            format!("cannot reach the daemon of {} (process {})", mountpoint.display(), entry.pid)
        })?;
        // A file of somebody else's making must not have us talk to another service.
        let peer = hither_sys::peer::credentials(connection.as_fd())?;
        if peer.uid != entry.owner {
            bail!("{} is not the socket of a mount of user {}", entry.socket.0.display(), entry.owner);
        }
        Ok(Client { connection: BufReader::new(connection), mountpoint })
    }

    /// The process at the other end, as the kernel knows it.
    pub fn pid(&self) -> anyhow::Result<u32> {
        Ok(hither_sys::peer::credentials(self.connection.get_ref().as_fd())?.pid)
    }

    /// Asks, and waits for the outcome; progress is told on the way.
    pub fn request(
        &mut self,
        operation: Operation,
        progress: &mut dyn FnMut(&Progress),
    ) -> anyhow::Result<Outcome> {
        let quick = matches!(operation, Operation::Status | Operation::Rules);
        self.connection.get_ref().set_read_timeout(quick.then_some(QUICK))?;
        let mut line = serde_json::to_vec(&Request { version: VERSION, operation })?;
        line.push(b'\n');
        let lost = || format!("lost the daemon of {}", self.mountpoint.display());
        // A daemon that refuses the connection answers without reading.
        let sent = self.connection.get_ref().write_all(&line);
        loop {
            let Some(line) = read_line(&mut self.connection, MAX_REPLY).with_context(lost)? else {
                sent.with_context(lost)?;
                bail!("{}: it hung up", lost());
            };
            let reply: Reply = serde_json::from_slice(&line).with_context(|| {
                format!("the daemon of {} answers in another version of hither", self.mountpoint.display())
            })?;
            match reply.body {
                Body::Progress(now) => progress(&now),
                Body::Done(outcome) => return Ok(outcome),
                Body::Error(problem) if problem.usage => return Err(usage(problem.message)),
                Body::Error(problem) => bail!(problem.message),
            }
        }
    }
}

/// What is mounted, and which daemons say that they are there; as of one moment.
pub struct Mounts {
    mounts: Vec<Mount>,
    entries: Vec<Entry>,
}

impl Mounts {
    /// Asks the kernel and the registry.
    pub fn read() -> anyhow::Result<Self> {
        let mounts = mountinfo::read().context("cannot read /proc/self/mountinfo")?;
        Ok(Mounts { mounts, entries: registry::list() })
    }

    /// All mounts of ours.
    pub fn ours(&self) -> Vec<Located> {
        self.mounts.iter().filter(|mount| mount.is_ours()).map(|mount| self.located(mount)).collect()
    }

    /// The mount of ours at a mount point.
    pub fn at(&self, mountpoint: &Path) -> anyhow::Result<Located> {
        let real = real_path(mountpoint, &self.mounts)?;
        let ours = mountinfo::at(&self.mounts, &real).filter(|mount| mount.is_ours());
        ours.map(|mount| self.located(mount)).ok_or_else(|| {
            usage(format!("{} is not a mount point of hither (see `hither status`)", mountpoint.display()))
        })
    }

    /// The mount of ours that `path` lies on, and the path below its root.
    ///
    /// The file itself is never opened, so that asking what the cache has of it does not bring it there.
    pub fn locate(&self, path: &Path) -> anyhow::Result<(&Mount, PathBuf)> {
        let real = real_path(path, &self.mounts)?;
        let Some(mount) = mountinfo::of_path(&self.mounts, &real).filter(|mount| mount.is_ours()) else {
            return Err(usage(format!(
                "{} does not lie on a mount of hither (see `hither status`)",
                path.display()
            )));
        };
        let below = real.strip_prefix(&mount.mountpoint).unwrap_or(&real);
        let root = mount.root.strip_prefix("/").unwrap_or(&mount.root);
        Ok((mount, root.join(below)))
    }

    /// A mount with its daemon. An entry is believed only about mounts of its own owner, and only if it answers.
    pub fn located(&self, mount: &Mount) -> Located {
        let believed = |entry: &&Entry| entry.device == mount.device && Some(entry.owner) == mount.owner;
        let entry = self.entries.iter().filter(believed).find(|entry| Client::connect(entry).is_ok());
        Located { mount: mount.clone(), entry: entry.cloned() }
    }
}

impl Located {
    /// Connects to the mount's daemon.
    pub fn connect(&self) -> anyhow::Result<Client> {
        match &self.entry {
            Some(entry) => Client::connect(entry),
            None => bail!("{}", self.silent()),
        }
    }

    /// What to say of a mount whose daemon cannot be found, as the kernel has it.
    pub fn silent(&self) -> String {
        let mountpoint = self.mount.mountpoint.display();
        match asked(&self.mount.mountpoint) {
            Some(Some(Errno::NOTCONN)) => {
                format!("the daemon of {mountpoint} is gone: `hither umount {mountpoint}` clears the mount")
            }
            Some(Some(Errno::ACCESS | Errno::PERM)) => {
                format!("the daemon of {mountpoint} is not yours to ask: only root and who mounted it may")
            }
            Some(_) => format!(
                "the daemon of {mountpoint} serves the mount, but no commands: `umount {mountpoint}` ends it"
            ),
            None => {
                format!("the daemon of {mountpoint} hangs: `umount -l {mountpoint}` takes the mount away")
            }
        }
    }
}

/// What the mount itself answers, by a question that the kernel never answers from memory; `None`: nothing, for
/// [`HANGS`]. Another thread asks, which is left to it if it has to wait.
fn asked(mountpoint: &Path) -> Option<Option<Errno>> {
    let (answer, wait) = mpsc::channel();
    let mountpoint = mountpoint.to_owned();
    let asking = hither_rt::thread::spawn("mount-check", move || {
        // Nobody listens any more if it took too long.
        let _ = answer.send(rustix::fs::statfs(&mountpoint).err());
    });
    asking.ok().and_then(|_| wait.recv_timeout(HANGS).ok())
}

/// `path` without symbolic links. Its last component is only looked at; and not even that if it is a mount point, whose
/// daemon may be gone, hang, or refuse us.
fn real_path(path: &Path, mounts: &[Mount]) -> anyhow::Result<PathBuf> {
    let canonical = |of: &Path| fs::canonicalize(of).map_err(|error| unreachable_path(path, &error));
    let Some(name) = path.file_name() else { return canonical(path) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let real = canonical(parent)?.join(name);
    if mountinfo::at(mounts, &real).is_some() {
        return Ok(real);
    }
    match fs::symlink_metadata(&real) {
        Ok(found) if found.is_symlink() => canonical(&real),
        Ok(_) => Ok(real),
        Err(error) => Err(unreachable_path(path, &error)),
    }
}

/// Whether the daemon of a FUSE mount is gone.
fn is_dead(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NOTCONN.raw_os_error())
}

/// A path that leads nowhere is wrong usage; one that cannot be followed for another reason is a failure.
fn unreachable_path(path: &Path, error: &io::Error) -> anyhow::Error {
    use io::ErrorKind::{InvalidInput, NotADirectory, NotFound, PermissionDenied};
    let hint =
        if is_dead(error) { ": the mount's daemon is gone; clear it with `hither umount MNT`" } else { "" };
    let message = format!("{}: {error}{hint}", path.display());
    match error.kind() {
        NotFound | NotADirectory | PermissionDenied | InvalidInput => usage(message),
        _ => anyhow!(message),
    }
}
