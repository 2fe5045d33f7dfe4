//! From a request to its answer: decode, call the file system, encode. A queue's thread never waits here: what cannot
//! be served at once is posted to a pool and asked again there, and locks are parked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hither_rt::clock::Duration;
use hither_rt::thread::Pool;
use hither_vfs::{Call, Caller, Capabilities, Errno, Error, FileKind, FileSystem, Patience, Result};

use crate::backing::{BackingDevice, Backings};
use crate::errors::ErrorLog;
use crate::handles::{Handles, OpenDir, OpenFile};
use crate::inflight::{Delivery, Destination, InFlight, Table};
use crate::nodes::{Known, Nodes};
use crate::notify::Notifier;
use crate::protocol::decode::{self, Dialect, Malformed, Operation, Request};
use crate::reply::{Given, Reply};
use crate::stats::{Counters, is_failure};
use crate::transport::Notices;
use crate::transport::request::{Arrived, Kept};
use crate::watchdog::Bell;

mod attributes;
mod directories;
mod files;
mod locks;
mod namespace;
mod opens;
mod xattrs;

/// Threads for calls that wait. Beyond it they queue.
const POOL_MAX: usize = 256;
/// Attributes of a file that may be written past us are asked for again after this time.
const WRITTEN_BY_KERNEL_TIMEOUT: Duration = Duration::from_secs(1);
/// Distance of a WRITE's bytes from its begin, in one piece: the header and `struct fuse_write_in`.
pub(crate) const DATA_AT: usize = 80;

/// A file system as the kernel sees it.
pub(crate) struct Dispatcher {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) capabilities: Capabilities,
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) files: Handles<OpenFile>,
    pub(crate) dirs: Handles<OpenDir>,
    pub(crate) in_flight: Table,
    pub(crate) backings: Arc<Backings>,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) counters: Counters,
    pub(crate) errors: ErrorLog,
    pub(crate) pool: Pool,
    pub(crate) dialect: Dialect,
    /// How long a call may take.
    pub(crate) deadline: Option<Duration>,
    pub(crate) bell: Bell,
}

/// What a dispatcher has to know of its mount.
pub(crate) struct Setting {
    /// Makes backing ids; `None` where no open gets a backing, for the reason beside it.
    pub(crate) backing_device: Option<Arc<dyn BackingDevice>>,
    pub(crate) why_no_backing: &'static str,
    /// A name's timeout can be ended without more.
    pub(crate) expire_only: bool,
    pub(crate) dialect: Dialect,
    /// How long a call may take.
    pub(crate) deadline: Option<Duration>,
}

/// What a handler leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The answer is in the reply.
    Answer,
    /// Somebody else will answer.
    Parked,
}

impl Dispatcher {
    /// Serves `fs`, whose events go to the kernel as `notices`.
    pub(crate) fn new(fs: Arc<dyn FileSystem>, notices: Arc<dyn Notices>, setting: Setting) -> Arc<Self> {
        let nodes = Arc::new(Nodes::new(fs.root()));
        let backings = Arc::new(Backings::new(setting.backing_device, setting.why_no_backing));
        let notifier = Notifier::new(notices, setting.expire_only, nodes.clone(), backings.clone());
        let notifier = Arc::new(notifier);
        fs.subscribe(notifier.listener());
        Arc::new(Dispatcher {
            capabilities: fs.capabilities(),
            fs,
            nodes,
            files: Handles::default(),
            dirs: Handles::default(),
            in_flight: Table::default(),
            backings,
            notifier,
            counters: Counters::default(),
            errors: ErrorLog::default(),
            pool: Pool::new("fuse-pool", POOL_MAX),
            dialect: setting.dialect,
            deadline: setting.deadline,
            bell: Bell::default(),
        })
    }

    /// Serves the request that `arrived` from `destination`. `false` if the thread was replaced meanwhile and has to
    /// end.
    pub(crate) fn serve(
        self: &Arc<Self>,
        arrived: &mut impl Arrived,
        destination: Destination,
        reply: &mut Reply,
    ) -> bool {
        let served = catch_unwind(AssertUnwindSafe(|| self.serve_once(arrived, destination, reply)));
        served.unwrap_or_else(|_| {
            // Not in a handler, where it is caught: the thread goes on, and who asked gets an error unless answered before.
            self.counters.panics.add(1);
            tracing::error!(
                "serving a request panicked; this is a bug, please report it with the line above"
            );
            let header = arrived.message().header();
            if let Some(in_flight) = header.and_then(|header| self.in_flight.get(header.unique)) {
                let _ = in_flight.fail(Errno::IO);
                self.in_flight.end(&in_flight);
            }
            true
        })
    }

    fn serve_once(
        self: &Arc<Self>,
        arrived: &mut impl Arrived,
        destination: Destination,
        reply: &mut Reply,
    ) -> bool {
        let request = match decode::decode(arrived.message(), self.dialect) {
            Ok(request) => request,
            Err(malformed) => {
                self.refuse(malformed, destination);
                return true;
            }
        };
        self.counters.request(request.header.opcode);
        if self.without_answer(&request) {
            return true;
        }
        let in_flight = self.in_flight.begin(&request.header, destination);
        let posted = self.attempt(&request, Patience::Never, &in_flight, reply);
        if posted {
            self.post(arrived.keep(), &in_flight);
        }
        !in_flight.leave_queue()
    }

    /// Messages that the kernel expects no answer to.
    fn without_answer(&self, request: &Request<'_>) -> bool {
        match &request.operation {
            Operation::Forget { count } => self.nodes.forget(request.header.nodeid, *count),
            Operation::BatchForget { nodes } => {
                for forget in *nodes {
                    self.nodes.forget(forget.nodeid, forget.nlookup);
                }
            }
            Operation::Interrupt { unique } => {
                self.in_flight.interrupt(*unique);
                self.bell.ring();
            }
            _ => return false,
        }
        true
    }

    /// Answers what is no request of the protocol.
    fn refuse(&self, malformed: Malformed, destination: Destination) {
        let Malformed(Some(header)) = malformed else {
            tracing::error!("the kernel sent a message shorter than its header");
            return;
        };
        self.counters.request(header.opcode);
        self.counters.error(header.opcode);
        tracing::error!(opcode = header.opcode, length = header.len, "the kernel sent a malformed request");
        let in_flight = self.in_flight.begin(&header, destination);
        let _ = in_flight.fail(Errno::INVAL);
        self.in_flight.end(&in_flight);
    }

    /// Asks again, with patience, on a thread that may wait.
    fn post(self: &Arc<Self>, kept: Kept, in_flight: &Arc<InFlight>) {
        self.counters.posted.add(1);
        let patience = in_flight.post(self.deadline);
        if self.deadline.is_some() {
            self.bell.ring();
        }
        let (dispatcher, in_flight) = (self.clone(), in_flight.clone());
        self.pool.post(move || dispatcher.serve_posted(&kept, &in_flight, patience));
    }

    fn serve_posted(self: &Arc<Self>, kept: &Kept, in_flight: &Arc<InFlight>, patience: Patience) {
        if in_flight.is_answered() {
            self.in_flight.end(in_flight);
            return;
        }
        // It was read once already.
        let Ok(request) = decode::decode(kept.message(), self.dialect) else {
            let _ = in_flight.fail(Errno::IO);
            self.in_flight.end(in_flight);
            return;
        };
        Reply::with_threads_own(|reply| {
            if self.attempt(&request, patience, in_flight, reply) {
                let cause = "a call with patience was answered as if it had none";
                self.fail(&request, in_flight, &Error::with_cause(Errno::IO, cause));
            }
        });
    }

    /// Runs a request's handler and answers it. `true` if it lacked patience: nothing happened.
    fn attempt(
        self: &Arc<Self>,
        request: &Request<'_>,
        patience: Patience,
        in_flight: &Arc<InFlight>,
        reply: &mut Reply,
    ) -> bool {
        reply.reset(self.notifier.changes());
        let call = Call::new(caller(request), patience);
        let result = catch_unwind(AssertUnwindSafe(|| self.handle(request, &call, in_flight, reply)));
        match result {
            Ok(Ok(Flow::Answer)) => self.deliver(in_flight, reply),
            Ok(Ok(Flow::Parked)) => {}
            Ok(Err(error)) if error.is_would_block() => {
                self.take_back(std::mem::take(&mut reply.given));
                return true;
            }
            Ok(Err(error)) => {
                self.take_back(std::mem::take(&mut reply.given));
                self.fail(request, in_flight, &error);
            }
            Err(_) => {
                self.counters.panics.add(1);
                self.take_back(std::mem::take(&mut reply.given));
                let cause = "the handler panicked; this is a bug, please report it with the line above";
                self.fail(request, in_flight, &Error::with_cause(Errno::IO, cause));
            }
        }
        false
    }

    /// Sends the answer; takes back what it gave if nobody waits for it.
    fn deliver(&self, in_flight: &InFlight, reply: &mut Reply) {
        reply.settle(self.notifier.changes());
        let delivery = reply.send(in_flight);
        self.in_flight.end(in_flight);
        if delivery == Delivery::Lost {
            self.counters.late.add(1);
            self.take_back(std::mem::take(&mut reply.given));
        }
    }

    /// The kernel was given these and does not know of it.
    pub(crate) fn take_back(&self, given: Given) {
        for id in given.lookups {
            self.nodes.forget(id, 1);
        }
        if let Some(number) = given.file {
            self.close_file(number);
        }
        if let Some(number) = given.dir {
            drop(self.dirs.remove(number));
        }
        if let Some((known, lock)) = given.lock {
            locks::unlock(&known, lock);
        }
    }

    /// Answers with an error.
    fn fail(&self, request: &Request<'_>, in_flight: &InFlight, error: &Error) {
        let code = request.header.opcode;
        // The kernel takes ENOSYS as a word about all files for ever: only the front end may say that.
        let errno = match error.errno() {
            Errno::NOSYS if !self.is_unserved(&request.operation) => Errno::OPNOTSUPP,
            // Marks a mount point whose daemon is gone (`clear_stale`).
            Errno::NOTCONN | Errno::CONNABORTED => Errno::IO,
            errno => errno,
        };
        // What the watchdog has answered it has counted.
        if is_failure(errno) && !in_flight.is_answered() {
            self.counters.error(code);
            self.counters.timed_out.add(u64::from(errno == Errno::IO && in_flight.is_late()));
        }
        self.errors.report(code, request.header.nodeid, errno, error);
        let _ = in_flight.fail(errno);
        self.in_flight.end(in_flight);
    }

    /// Whether the kernel is to be told, once and for all, not to ask such a thing: nobody here serves it.
    fn is_unserved(&self, operation: &Operation<'_>) -> bool {
        use Operation as Op;
        let can = &self.capabilities;
        match operation {
            Op::Unserved | Op::Unknown => true,
            Op::Getxattr { .. } | Op::Setxattr { .. } | Op::Listxattr { .. } | Op::Removexattr { .. } => {
                !can.xattrs && !can.acls
            }
            Op::Lseek(_) => !can.sparse,
            Op::Fallocate(_) => !can.fallocate,
            Op::Tmpfile { .. } => !can.tmpfile,
            _ => false,
        }
    }

    /// The node of an id.
    fn known(&self, id: u64) -> Result<Arc<Known>> {
        self.nodes.get(id).ok_or_else(|| Errno::STALE.into())
    }

    /// The open file of a number.
    fn file(&self, number: u64) -> Result<Arc<OpenFile>> {
        self.files.get(number).ok_or_else(|| Errno::BADF.into())
    }

    /// The open directory of a number.
    fn dir(&self, number: u64) -> Result<Arc<OpenDir>> {
        self.dirs.get(number).ok_or_else(|| Errno::BADF.into())
    }

    /// For how long attributes of `known` hold.
    fn attr_timeout(&self, known: &Known) -> Duration {
        let timeout = self.capabilities.timeouts.attr;
        if known.is_superseded() {
            Duration::ZERO
        } else if known.is_written_by_kernel() {
            timeout.min(WRITTEN_BY_KERNEL_TIMEOUT)
        } else {
            timeout
        }
    }

    fn handle(
        self: &Arc<Self>,
        request: &Request<'_>,
        call: &Call,
        in_flight: &Arc<InFlight>,
        reply: &mut Reply,
    ) -> Result<Flow> {
        use Operation as Op;
        if self.is_unserved(&request.operation) {
            return Err(Errno::NOSYS.into());
        }
        // Requests about the whole file system, and those that name an open instead of a node.
        match &request.operation {
            Op::Statfs => return self.statfs(call, reply),
            Op::Read(args) => return self.read(call, args, reply),
            Op::Write { args, data } => return self.write(call, args, data, reply),
            Op::Release(args) => return self.release(args),
            Op::Readdir { args, plus } => return self.readdir(call, args, *plus, reply),
            Op::Releasedir(args) => return self.releasedir(args),
            Op::Flush(args) => return self.flush(call, args),
            Op::Fsync(args) => return self.fsync(call, args),
            Op::Fsyncdir(args) => return self.fsyncdir(call, args),
            Op::Fallocate(args) => return self.fallocate(call, args),
            Op::Lseek(args) => return self.lseek(call, args, reply),
            Op::CopyFileRange { args, wide } => return self.copy_file_range(call, args, *wide, reply),
            Op::Getlk(args) => return self.getlk(args, reply),
            Op::Setlk { args, wait } => return self.setlk(args, *wait, in_flight, reply),
            Op::Syncfs => return self.fs.sync(call).map(|()| Flow::Answer),
            Op::Destroy => return Ok(Flow::Answer),
            Op::Ioctl(_) => return Err(Errno::NOTTY.into()),
            _ => {}
        }
        let known = self.known(request.header.nodeid)?;
        self.handle_node(&request.operation, &known, call, reply)
    }

    /// Requests about a node.
    fn handle_node(
        &self,
        operation: &Operation<'_>,
        known: &Arc<Known>,
        call: &Call,
        reply: &mut Reply,
    ) -> Result<Flow> {
        use Operation as Op;
        match operation {
            Op::Lookup { name } => self.lookup(call, known, name, reply),
            Op::Getattr(args) => self.getattr(call, known, args, reply),
            Op::Statx(args) => self.statx(call, known, args, reply),
            Op::Setattr(args) => self.setattr(call, known, args, reply),
            Op::Open(args) => self.open(call, known, args, reply),
            Op::Opendir(_) => self.opendir(call, known, reply),
            Op::Create { name, args } => self.create(call, known, name, args, reply),
            Op::Tmpfile { args } => self.tmpfile(call, known, args, reply),
            Op::Readlink => self.readlink(call, known, reply),
            Op::Symlink { name, target } => self.symlink(call, known, name, target, reply),
            Op::Mknod { name, args } => self.mknod(call, known, name, args, reply),
            Op::Mkdir { name, args } => self.mkdir(call, known, name, args, reply),
            Op::Unlink { name } => self.unlink(call, known, name, FileKind::Regular),
            Op::Rmdir { name } => self.unlink(call, known, name, FileKind::Directory),
            Op::Rename { name, new_parent, new_name, flags } => {
                let new_parent = self.known(*new_parent)?;
                self.rename(call, (known, name), (&new_parent, new_name), *flags)
            }
            Op::Link { node, name } => self.link(call, known, name, &*self.known(*node)?, reply),
            Op::Access { mask } => known.node.access(call, *mask).map(|()| Flow::Answer),
            Op::Getxattr { name, size } => self.getxattr(call, known, name, *size, reply),
            Op::Listxattr { size } => self.listxattr(call, known, *size, reply),
            Op::Setxattr { name, value, args } => self.setxattr(call, known, name, value, args),
            Op::Removexattr { name } => self.removexattr(call, known, name),
            _ => Err(Errno::NOSYS.into()),
        }
    }
}

/// Who asks.
fn caller(request: &Request<'_>) -> Caller {
    let umask = match &request.operation {
        Operation::Create { args, .. } | Operation::Tmpfile { args } => args.umask,
        Operation::Mknod { args, .. } => args.umask,
        Operation::Mkdir { args, .. } => args.umask,
        _ => 0,
    };
    let header = &request.header;
    let caller = Caller::new(header.uid, header.gid, header.pid, umask & 0o777);
    match request.group {
        // The groups of a process in another pid namespace cannot be read; the one that decides is told.
        Some(group) if header.pid == 0 => caller.with_groups([group]),
        _ => caller,
    }
}

#[cfg(test)]
mod tests;
