//! `/dev/fuse`: one descriptor for each queue. All queues share the requests that wait; each request is answered on
//! the descriptor that it was read from.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use hither_sys::fuse_dev;
use hither_vfs::Errno;
use rustix::fs::{Mode, OFlags};

use super::buffer::PageBuffer;
use super::request::InBuffer;
use super::threads::Threads;
use super::{Channel, Notices};
use crate::backing::BackingDevice;
use crate::dispatch::{DATA_AT, Dispatcher};
use crate::inflight::Destination;
use crate::protocol::abi::OutHeader;
use crate::protocol::wire::Wire;
use crate::reply::Reply;

/// Where the kernel's end is opened.
pub(crate) const PATH: &str = "/dev/fuse";
/// Threads beyond the configured ones that stuck ones may be replaced by.
const REPLACEMENTS_MAX: usize = 64;
/// More parts than any answer has.
const PARTS_MAX: usize = 4;

/// The descriptor that belongs to the mount.
pub(crate) struct Device(OwnedFd);

impl Device {
    pub(crate) fn new(descriptor: OwnedFd) -> Self {
        Device(descriptor)
    }

    /// Reads one message.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(&self.0, buffer)?)
    }

    /// Answers one message.
    pub(crate) fn answer(&self, unique: u64, error: i32, body: &[IoSlice<'_>]) -> io::Result<()> {
        write_message(self.0.as_fd(), unique, error, body)
    }

    /// A further descriptor of the same mount.
    fn another(&self) -> io::Result<OwnedFd> {
        let fresh = rustix::fs::open(PATH, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        fuse_dev::clone_session(fresh.as_fd(), self.0.as_fd())?;
        Ok(fresh)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Notices for Device {
    fn send(&self, code: i32, body: &[IoSlice<'_>]) -> io::Result<()> {
        write_message(self.0.as_fd(), 0, code, body)
    }
}

impl BackingDevice for Device {
    fn open(&self, file: BorrowedFd<'_>) -> io::Result<i32> {
        fuse_dev::backing_open(self.0.as_fd(), file)
    }

    fn close(&self, id: i32) -> io::Result<()> {
        fuse_dev::backing_close(self.0.as_fd(), id)
    }
}

/// Writes the header and what follows it, in one call as the kernel wants it.
fn write_message(
    descriptor: BorrowedFd<'_>,
    unique: u64,
    error: i32,
    body: &[IoSlice<'_>],
) -> io::Result<()> {
    let length = OutHeader::SIZE + body.iter().map(|part| part.len()).sum::<usize>();
    let header = OutHeader { len: length as u32, error, unique }.to_bytes();
    let mut parts = [IoSlice::new(&[]); PARTS_MAX];
    parts[0] = IoSlice::new(&header);
    let used = 1 + body.len();
    parts[1..used].copy_from_slice(body);
    let written = rustix::io::writev(descriptor, &parts[..used])?;
    if written == length { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// One descriptor and the threads that read it: one, and those that replace stuck ones.
struct Queue {
    descriptor: OwnedFd,
    shared: Arc<Shared>,
    itself: Weak<Queue>,
}

impl Channel for Queue {
    fn answer(&self, _slot: u32, unique: u64, error: i32, body: &[IoSlice<'_>]) -> io::Result<()> {
        write_message(self.descriptor.as_fd(), unique, error, body)
    }

    fn replace_thread(&self) -> bool {
        let Some(queue) = self.itself.upgrade() else { return false };
        // It takes the stuck one's place in the count: whoever waits for the end of the mount does not wait for that one.
        self.shared.threads.replace(|| start_thread(queue))
    }
}

struct Shared {
    dispatcher: Arc<Dispatcher>,
    buffer_size: usize,
    /// Threads that read, or will once their call is done; without those that were replaced.
    threads: Threads,
    /// Set when nobody reads any more.
    is_gone: Arc<AtomicBool>,
}

/// The running transport.
#[derive(Clone)]
pub(crate) struct Transport(Arc<Shared>);

impl Transport {
    /// Starts `threads` queues, each with its descriptor and its thread. `is_gone` is set when the mount is.
    pub(crate) fn start(
        device: &Arc<Device>,
        dispatcher: Arc<Dispatcher>,
        threads: usize,
        max_write: usize,
        is_gone: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            dispatcher,
            buffer_size: (max_write + DATA_AT).next_multiple_of(4096),
            threads: Threads::new(REPLACEMENTS_MAX),
            is_gone,
        });
        for number in 0..threads.max(1) {
            let descriptor = match device.another() {
                Ok(descriptor) => descriptor,
                // One descriptor serves any number of threads, only with more contention.
                Err(error) => {
                    tracing::warn!(%error, number, "cannot clone /dev/fuse; threads share a descriptor");
                    device.0.try_clone()?
                }
            };
            let queue = Arc::new_cyclic(|itself| Queue {
                descriptor,
                shared: shared.clone(),
                itself: itself.clone(),
            });
            shared.threads.begin();
            if let Err(error) = start_thread(queue) {
                shared.ended();
                return Err(error);
            }
        }
        Ok(Transport(shared))
    }

    /// Waits until the mount is gone. Threads that are stuck in a call may be left.
    pub(crate) fn join(&self) {
        self.0.threads.join();
    }

    /// Threads that read requests.
    pub(crate) fn threads(&self) -> usize {
        self.0.threads.serving()
    }
}

/// Starts a thread that reads `queue`, and is counted already.
fn start_thread(queue: Arc<Queue>) -> io::Result<()> {
    let run = move || {
        if serve(&queue) == End::Gone {
            queue.shared.ended();
        }
    };
    hither_rt::thread::spawn("fuse-dev", run).map(drop)
}

impl Shared {
    fn ended(&self) {
        self.threads.end(|| self.is_gone.store(true, Ordering::Release));
    }
}

/// Why a thread stops reading.
#[derive(PartialEq, Eq)]
enum End {
    /// There is nothing to read any more.
    Gone,
    /// Another thread reads in its place.
    Replaced,
}

/// Reads and serves requests.
fn serve(queue: &Arc<Queue>) -> End {
    let shared = &queue.shared;
    let mut buffer = PageBuffer::new(shared.buffer_size, DATA_AT);
    let mut reply = Reply::new();
    loop {
        match rustix::io::read(&queue.descriptor, buffer.bytes_mut()) {
            Ok(length) => {
                let destination = Destination { channel: queue.clone(), slot: 0 };
                let mut arrived = InBuffer { buffer: &mut buffer, length, aligned_at: DATA_AT };
                if !shared.dispatcher.serve(&mut arrived, destination, &mut reply) {
                    shared.threads.replaced_ended();
                    return End::Replaced;
                }
            }
            // ENOENT: the request was interrupted before it was read.
            Err(Errno::INTR | Errno::AGAIN | Errno::NOENT) => {}
            Err(Errno::NODEV | Errno::CONNABORTED) => return End::Gone,
            Err(error) => {
                tracing::error!(%error, "cannot read from /dev/fuse; this thread ends");
                return End::Gone;
            }
        }
    }
}
