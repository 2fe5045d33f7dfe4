//! The daemon's end of the control socket: who may ask what, and that nobody can make it wait or grow.
//!
//! A connection is served by one thread of a bounded pool. What it may ask follows from its credentials, which the
//! kernel vouches for (`SO_PEERCRED`, `SO_PEERGROUPS`); work on files is done as that user.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hither_rt::clock;
use hither_rt::sync::Mutex;
use hither_rt::thread::{Pool, spawn};
use hither_vfs::{Caller, Cancel};
use serde::Deserialize;

use super::protocol::{Body, MAX_REQUEST, Operation, Outcome, Problem, Progress, Reply, Request, VERSION};
use super::watch::Watcher;

/// Connections served at once; more are told that it is busy.
const CONNECTIONS: usize = 32;

/// Of them, those of one user who neither owns the mount nor is root.
const CONNECTIONS_A_USER: usize = 4;

/// How long a connection may be silent between requests, and a client not take its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Progress is told at most this often.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// What the socket gives access to.
pub trait Service: Send + Sync + 'static {
    /// Does what is asked as `caller`; tells of progress on the way, and stops when told `false` or cancelled.
    fn perform(
        &self,
        caller: Caller,
        cancel: &Cancel,
        operation: Operation,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Outcome, Problem>;
}

/// Who may ask.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// May ask everything, like root.
    pub owner: u32,
    /// Others may look at, fetch and warm what they may read. Only where the daemon can act as them and the mount is
    /// open to them anyway.
    pub others: bool,
}

/// Listens at `socket` and serves it from now on, for the life of the process.
pub fn start(socket: &Path, policy: Policy, service: Arc<dyn Service>) -> io::Result<()> {
    // It can only be the leftover of a dead process with the same pid.
    let _ = std::fs::remove_file(socket);
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o666))?;
    let server = Arc::new(Server {
        policy,
        service,
        watcher: Watcher::start()?,
        admitted: Mutex::default(),
        pool: Pool::new("control", CONNECTIONS),
    });
    spawn("control", move || {
        loop {
            match listener.accept() {
                Ok((connection, _)) => server.admit(connection),
                Err(error) => {
                    // Out of descriptors, most likely: that passes.
                    tracing::warn!(%error, "cannot accept a control connection");
                    clock::sleep(Duration::from_secs(1));
                }
            }
        }
    })?;
    Ok(())
}

struct Server {
    policy: Policy,
    service: Arc<dyn Service>,
    watcher: Watcher,
    /// Connections by user.
    admitted: Mutex<HashMap<u32, usize>>,
    pool: Pool,
}

/// Who is connected.
#[derive(Clone)]
struct Peer {
    uid: u32,
    gid: u32,
    pid: u32,
    groups: Vec<u32>,
    /// Root, or the owner of the mount.
    trusted: bool,
}

/// Counts one connection for as long as it lives.
struct Admitted {
    server: Arc<Server>,
    uid: u32,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut admitted = self.server.admitted.lock();
        if let Some(count) = admitted.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                admitted.remove(&self.uid);
            }
        }
    }
}

impl Server {
    fn admit(self: &Arc<Self>, connection: UnixStream) {
        let limits =
            [connection.set_read_timeout(Some(PATIENCE)), connection.set_write_timeout(Some(PATIENCE))];
        let peer = match self.peer(&connection) {
            Ok(peer) if limits.iter().all(Result::is_ok) => peer,
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(%error, "a control connection of nobody known was refused");
                return;
            }
        };
        let Some(admitted) = self.count(&peer) else {
            let busy =
                Problem { message: "the mount is busy with other commands: try again".into(), usage: false };
            // The accepting thread waits for nobody: what does not fit the socket's buffer is lost.
            let _ = connection.set_nonblocking(true);
            let _ = send(&connection, Body::Error(busy));
            return;
        };
        let server = self.clone();
        self.pool.post(move || {
            // Silence, or a client that went away, is no event.
            if let Err(error) = server.serve(&connection, &peer) {
                tracing::debug!(%error, "a control connection ended");
            }
            drop(admitted);
        });
    }

    fn peer(&self, connection: &UnixStream) -> io::Result<Peer> {
        let hither_sys::peer::Credentials { pid, uid, gid } =
            hither_sys::peer::credentials(connection.as_fd())?;
        Ok(Peer {
            uid,
            gid,
            pid,
            groups: hither_sys::peer::groups(connection.as_fd())?,
            trusted: uid == 0 || uid == self.policy.owner,
        })
    }

    fn count(self: &Arc<Self>, peer: &Peer) -> Option<Admitted> {
        let mut admitted = self.admitted.lock();
        let all: usize = admitted.values().sum();
        let his = admitted.entry(peer.uid).or_default();
        if all >= CONNECTIONS || (!peer.trusted && *his >= CONNECTIONS_A_USER) {
            if *his == 0 {
                admitted.remove(&peer.uid);
            }
            return None;
        }
        *his += 1;
        Some(Admitted { server: self.clone(), uid: peer.uid })
    }

    /// Answers requests until the client is through. An error ends the connection.
    fn serve(&self, connection: &UnixStream, peer: &Peer) -> io::Result<()> {
        let mut lines = BufReader::new(connection);
        while let Some(line) = read_line(&mut lines, MAX_REQUEST)? {
            let body = match parse(&line) {
                Ok(operation) => self.answer(connection, peer, operation)?,
                Err(problem) => Body::Error(problem),
            };
            send(connection, body)?;
        }
        Ok(())
    }

    fn answer(&self, connection: &UnixStream, peer: &Peer, operation: Operation) -> io::Result<Body> {
        if let Err(problem) = self.allowed(peer, &operation) {
            return Ok(Body::Error(problem));
        }
        let caller = Caller::new(peer.uid, peer.gid, peer.pid, 0).with_groups(peer.groups.clone());
        let cancel = Cancel::default();
        let _watch = self.watcher.watch(connection, &cancel)?;
        let mut told = clock::now();
        let mut progress = |progress: Progress| {
            if told.elapsed() >= PROGRESS_EVERY {
                told = clock::now();
                if send(connection, Body::Progress(progress)).is_err() {
                    cancel.cancel();
                }
            }
            !cancel.is_cancelled()
        };
        let result = self.service.perform(caller, &cancel, operation, &mut progress);
        Ok(result.map_or_else(Body::Error, Body::Done))
    }

    fn allowed(&self, peer: &Peer, operation: &Operation) -> Result<(), Problem> {
        let harmless = matches!(
            operation,
            Operation::Status | Operation::State { .. } | Operation::Attach { .. } | Operation::Warm { .. }
        );
        if peer.trusted || (self.policy.others && harmless) {
            return Ok(());
        }
        let owner = self.policy.owner;
        let message = format!("permission denied: only root and user {owner}, who mounted it, may do that");
        Err(Problem { message, usage: false })
    }
}

fn parse(line: &[u8]) -> Result<Operation, Problem> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }

    let wrong = |message: String| Problem { message, usage: true };
    let versioned: Versioned =
        serde_json::from_slice(line).map_err(|error| wrong(format!("not a request: {error}")))?;
    if versioned.version != VERSION {
        let (theirs, ours) = (versioned.version, VERSION);
        let message = format!(
            "the mount was started by another version of hither (it speaks protocol {ours}, this command {theirs}): \
             use that version, or mount again"
        );
        return Err(wrong(message));
    }
    let request: Request =
        serde_json::from_slice(line).map_err(|error| wrong(format!("not a request: {error}")))?;
    Ok(request.operation)
}

/// A line without its newline; `None` at the end. Longer ones than `limit` bytes are an error.
pub(super) fn read_line(reader: &mut impl BufRead, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    reader.by_ref().take(limit as u64).read_until(b'\n', &mut line)?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        // What was cut off in the middle may mean anything.
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "a line that is too long or has no end")),
    }
}

fn send(mut connection: &UnixStream, body: Body) -> io::Result<()> {
    let mut line = serde_json::to_vec(&Reply { version: VERSION, body })?;
    line.push(b'\n');
    connection.write_all(&line)
}

#[cfg(test)]
mod tests;
