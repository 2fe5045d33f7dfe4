//! FUSE over io_uring: a queue for each processor, served by a thread that is pinned there, so that a request is served
//! where its program runs. FORGET, INTERRUPT and notifications still go through `/dev/fuse`.
//!
//! The answer of a queue's own thread goes out with its next wait, in one system call. All others leave theirs in the
//! queue's outbox and ring its bell, since only the thread that opened a ring may use it.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};

use hither_rt::clock::Duration;
use hither_rt::sync::Mutex;
use hither_rt::thread::{self, ThreadId};
use hither_sys::fuse_ring::{self, Came, FIXED_AT, Held, Ring, Slots};
use hither_vfs::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::Channel;
use super::dev::Device;
use super::request::{Arrived, Head, Kept};
use super::threads::Threads;
use crate::dispatch::Dispatcher;
use crate::inflight::Destination;
use crate::protocol::abi::OutHeader;
use crate::protocol::decode::Message;
use crate::protocol::wire::Wire;
use crate::reply::Reply;

/// Commands that wait in all queues together: a request has one until it is answered, and those that wait for an origin
/// must not keep others out.
const COMMANDS: usize = 256;
/// Commands of a queue on a machine of many processors.
const DEPTH_MIN: usize = 8;
/// Commands of a ring that takes over from a stuck one.
const DEPTH_OF_REPLACEMENT: u16 = 32;
/// Rings beyond one a processor that stuck ones may be replaced by.
const REPLACEMENTS_MAX: usize = 16;
/// The smallest payload that the kernel accepts (`FUSE_MIN_READ_BUFFER`).
const PAYLOAD_MIN: usize = 8192;

/// How long [`Rings::join`] waits for threads that may be stuck.
const JOIN: Duration = Duration::from_secs(1);

struct Shared {
    device: Arc<Device>,
    dispatcher: Arc<Dispatcher>,
    payload: usize,
    threads: Threads,
}

/// The running rings.
pub(crate) struct Rings {
    shared: Arc<Shared>,
    queues: usize,
}

impl Rings {
    /// Queues: one a processor.
    pub(crate) fn queues(&self) -> usize {
        self.queues
    }

    /// Threads that serve them.
    pub(crate) fn threads(&self) -> usize {
        self.shared.threads.serving()
    }

    /// Waits for the threads, whose mount is gone. One that is stuck in a call may be left.
    pub(crate) fn join(&self) {
        self.shared.threads.join_unless_stuck(JOIN);
    }
}

/// Has every processor's queue served over a ring.
///
/// # Errors
/// The first that a ring could not be opened for. The kernel stays with `/dev/fuse` then.
pub(crate) fn start(
    device: &Arc<Device>,
    dispatcher: &Arc<Dispatcher>,
    max_write: usize,
) -> io::Result<Rings> {
    let queues = fuse_ring::queues();
    let depth = COMMANDS.div_ceil(queues).max(DEPTH_MIN) as u16;
    let shared = Arc::new(Shared {
        device: device.clone(),
        dispatcher: dispatcher.clone(),
        payload: max_write.max(PAYLOAD_MIN),
        threads: Threads::new(REPLACEMENTS_MAX),
    });
    let (said, opened) = mpsc::channel();
    for queue in 0..queues {
        start_thread(&shared, queue as u16, depth, said.clone())?;
    }
    drop(said);
    opened.iter().take(queues).collect::<io::Result<()>>()?;
    Ok(Rings { shared, queues })
}

fn start_thread(
    shared: &Arc<Shared>,
    number: u16,
    depth: u16,
    said: mpsc::Sender<io::Result<()>>,
) -> io::Result<()> {
    let shared = shared.clone();
    let run = move || {
        pin(number);
        match Ring::open(shared.device.as_fd(), number, depth, shared.payload) {
            Ok(ring) => {
                // Counted when it takes requests, not before.
                shared.threads.begin();
                let _ = said.send(Ok(()));
                Queue::new(shared.clone(), number, ring.slots().clone()).serve(ring);
                shared.threads.end(|| ());
            }
            Err(error) => {
                tracing::debug!(%error, number, "a ring cannot be opened");
                let _ = said.send(Err(error));
            }
        }
    };
    thread::spawn(&format!("fuse-ring-{number}"), run).map(drop)
}

/// Pins this thread to the processor of its queue. Where that one is off, or not ours, no program runs that would mind.
fn pin(processor: u16) {
    let mut only = CpuSet::new();
    if usize::from(processor) < CpuSet::MAX_CPU {
        only.set(usize::from(processor));
        if let Err(error) = sched_setaffinity(None, &only) {
            tracing::debug!(%error, processor, "a ring's thread is not pinned");
        }
    }
}

/// An answer that the ring's thread has yet to send.
enum Answer {
    /// It is in its slot.
    Placed(u16),
    /// The slot was held, by the ring's thread itself.
    Staged {
        slot: u16,
        header: OutHeader,
        /// Bytes of payload that are in the slot already.
        in_place: usize,
        bytes: Vec<u8>,
    },
}

/// A queue with one ring.
struct Queue {
    number: u16,
    slots: Arc<Slots>,
    owner: ThreadId,
    outbox: Mutex<Vec<Answer>>,
    shared: Arc<Shared>,
}

impl Channel for Queue {
    fn answer(&self, slot: u32, unique: u64, error: i32, body: &[IoSlice<'_>]) -> io::Result<()> {
        let slot = slot as u16;
        let length: usize = body.iter().map(|part| part.len()).sum();
        let header = OutHeader { len: (OutHeader::SIZE + length) as u32, error, unique };
        let answer = match self.slots.hold(slot) {
            Some(mut held) => {
                place(&mut held, header, body.iter().map(|part| &**part));
                Answer::Placed(slot)
            }
            None => {
                let mut parts = body.iter().filter(|part| !part.is_empty());
                let in_place = match (parts.next(), parts.next()) {
                    (Some(only), None) if self.slots.is_payload(slot, only) => only.len(),
                    _ => 0,
                };
                let mut bytes = Vec::new();
                if in_place == 0 {
                    body.iter().for_each(|part| bytes.extend_from_slice(part));
                }
                Answer::Staged { slot, header, in_place, bytes }
            }
        };
        self.outbox.lock().push(answer);
        if thread::current() != self.owner {
            self.slots.ring_bell();
        }
        Ok(())
    }

    fn replace_thread(&self) -> bool {
        // A second ring of the same queue; the stuck one goes on when it comes back, having commands that wait.
        let (said, _) = mpsc::channel();
        let start = || start_thread(&self.shared, self.number, DEPTH_OF_REPLACEMENT, said);
        self.shared.threads.replace(start)
    }
}

/// Puts an answer into its slot.
fn place<'a>(held: &mut Held, header: OutHeader, parts: impl Iterator<Item = &'a [u8]>) {
    let mut at = 0;
    for part in parts {
        match held.room_mut().get_mut(at..at + part.len()) {
            Some(room) => room.copy_from_slice(part),
            None => {
                tracing::error!(
                    "an answer is longer than any request allows; this is a bug, please report it"
                );
                let header =
                    OutHeader { len: OutHeader::SIZE as u32, error: -Errno::IO.raw_os_error(), ..header };
                return held.answer(header.to_bytes(), 0);
            }
        }
        at += part.len();
    }
    held.answer(header.to_bytes(), at);
}

/// A request in a slot. One with a payload keeps the slot; of one without, the slot is lent to the answer.
struct InSlot {
    head: Head,
    held: Option<Held>,
}

impl Arrived for InSlot {
    fn message(&self) -> Message<'_> {
        self.head.message(self.held.as_ref().map_or(&[], Held::payload))
    }

    fn keep(&mut self) -> Kept {
        let rest = self.held.as_ref().map_or(&[][..], Held::payload).to_vec();
        Kept::Apart(Box::new(self.head.clone()), rest)
    }
}

fn head_of(held: &Held) -> Head {
    let mut head = Head { header: [0; 40], fixed: [0; 128] };
    head.header.copy_from_slice(&held.head()[..40]);
    head.fixed.copy_from_slice(&held.head()[FIXED_AT..FIXED_AT + 128]);
    head
}

impl Queue {
    fn new(shared: Arc<Shared>, number: u16, slots: Arc<Slots>) -> Arc<Self> {
        let owner = thread::current();
        Arc::new(Queue { number, slots, owner, outbox: Mutex::default(), shared })
    }

    /// Serves until the mount is gone.
    fn serve(self: &Arc<Self>, mut ring: Ring) {
        let mut reply = Reply::new();
        let mut came = Vec::new();
        loop {
            came.clear();
            if let Err(error) = ring.wait(&mut came) {
                tracing::error!(%error, "a ring cannot wait; its thread ends");
                return;
            }
            let mut is_over = false;
            for (at, what) in came.iter().enumerate() {
                match what {
                    Came::Request(slot) => self.serve_slot(*slot, &mut reply),
                    Came::Bell => {}
                    Came::Ended(Errno::NOTCONN | Errno::CONNABORTED) => is_over = true,
                    Came::Ended(error) => {
                        tracing::error!(%error, "the kernel refused an answer; this is a bug, please report it");
                    }
                }
                self.send_answers(&mut ring);
                // The next may take its time.
                if at + 1 < came.len()
                    && let Err(error) = ring.submit()
                {
                    tracing::debug!(%error, "answers wait for the next turn");
                }
            }
            if is_over {
                return;
            }
        }
    }

    fn serve_slot(self: &Arc<Self>, slot: u16, reply: &mut Reply) {
        let Some(held) = self.slots.hold(slot) else { return };
        let mut request = InSlot { head: head_of(&held), held: None };
        if held.payload().is_empty() {
            reply.lend(held);
        } else {
            request.held = Some(held);
        }
        let destination = Destination { channel: self.clone(), slot: u32::from(slot) };
        // Whoever took over while this thread was stuck is a neighbour: both go on.
        let _ = self.shared.dispatcher.serve(&mut request, destination, reply);
        reply.end_loan();
    }

    /// Sends what is in the outbox.
    fn send_answers(&self, ring: &mut Ring) {
        let answers = std::mem::take(&mut *self.outbox.lock());
        for answer in answers {
            let slot = match answer {
                Answer::Placed(slot) => slot,
                Answer::Staged { slot, header, in_place, bytes } => {
                    let Some(mut held) = self.slots.hold(slot) else { continue };
                    if in_place > 0 {
                        held.answer(header.to_bytes(), in_place);
                    } else {
                        place(&mut held, header, std::iter::once(&bytes[..]));
                    }
                    slot
                }
            };
            if let Err(error) = ring.commit(slot) {
                tracing::error!(%error, slot, "cannot answer over a ring; this is a bug, please report it");
            }
        }
    }
}
