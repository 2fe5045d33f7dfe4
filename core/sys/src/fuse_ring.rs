//! FUSE over io_uring (`linux/fuse.h`, protocol 7.42; Linux 6.14): requests come as completions of commands that wait in
//! a ring, and the answer to one is the command that waits for the next. Each processor has a queue of its own, so the
//! thread that serves a request can be the neighbour of the program that made it.
//!
//! A command has a *slot* of memory: a head of fixed size and room for a payload. Who may touch it changes hands: the
//! kernel's while the command waits, ours from its completion to the commit. [`Held`] is the proof that it is ours.

#![expect(unsafe_code, reason = "the kernel writes into memory that it was told of")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use io_uring::cqueue;
use io_uring::squeue::Entry128;
use io_uring::{IoUring, opcode, types};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// `FUSE_IO_URING_CMD_REGISTER`
const REGISTER: u32 = 1;
/// `FUSE_IO_URING_CMD_COMMIT_AND_FETCH`
const COMMIT_AND_FETCH: u32 = 2;
/// `FUSE_URING_IOV_SEGS`: the head and the payload.
const SEGMENTS: u32 = 2;
/// Where `len` lies in a `struct io_uring_sqe`.
const SQE_LEN_AT: usize = 24;
/// Marks the completion of the bell.
const BELL: u64 = u64::MAX;

/// Bytes of a head: `struct fuse_uring_req_header`.
pub const HEAD: usize = 288;
/// Where in it the fixed part of an operation begins; before it are `in` and `out` headers.
pub const FIXED_AT: usize = 128;
/// Where in it `struct fuse_uring_ent_in_out` begins.
const ENTRY_AT: usize = 256;
/// Distance of two heads.
const HEAD_STRIDE: usize = 512;
const PAGE: usize = 4096;

/// Whose a slot is.
mod owner {
    pub(super) const KERNEL: u8 = 0;
    pub(super) const FREE: u8 = 1;
    pub(super) const HELD: u8 = 2;
}

/// The memory of a ring's slots.
#[derive(Debug)]
pub struct Slots {
    begin: NonNull<u8>,
    heads: usize,
    payload: usize,
    owners: Box<[AtomicU8]>,
    /// Wakes the thread that waits in [`Ring::wait`].
    bell: OwnedFd,
}

// SAFETY: the memory is reached through `Held` only, of which a slot has one at a time, and only while the kernel has no
// command that writes there; all else is atomic or not changed after the start.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

impl Slots {
    fn new(depth: u16, payload: usize) -> io::Result<Arc<Self>> {
        let heads = (usize::from(depth) * HEAD_STRIDE).next_multiple_of(PAGE);
        let payload = payload.next_multiple_of(PAGE);
        let length = heads + usize::from(depth) * payload;
        // SAFETY: with a null hint and without MAP_FIXED the kernel chooses addresses that nothing else uses.
        let begin = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let begin = NonNull::new(begin.cast()).ok_or(Errno::NOMEM)?;
        let owners = (0..depth).map(|_| AtomicU8::new(owner::FREE)).collect();
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Slots { begin, heads, payload, owners, bell }))
    }

    fn length(&self) -> usize {
        self.heads + self.owners.len() * self.payload
    }

    fn head_at(&self, slot: u16) -> *mut u8 {
        // SAFETY: slots are below the depth that the mapping was made for.
        unsafe { self.begin.as_ptr().add(usize::from(slot) * HEAD_STRIDE) }
    }

    fn payload_at(&self, slot: u16) -> *mut u8 {
        // SAFETY: slots are below the depth that the mapping was made for.
        unsafe { self.begin.as_ptr().add(self.heads + usize::from(slot) * self.payload) }
    }

    /// The slot, if it is ours and nobody holds it.
    pub fn hold(self: &Arc<Self>, slot: u16) -> Option<Held> {
        self.pass(slot, owner::FREE, owner::HELD).then(|| Held { slots: self.clone(), slot })
    }

    fn pass(&self, slot: u16, from: u8, to: u8) -> bool {
        let owner = self.owners.get(usize::from(slot));
        owner.is_some_and(|owner| {
            owner.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
        })
    }

    /// Has [`Ring::wait`] return, now or when it is called next.
    pub fn ring_bell(&self) {
        // A counter that is full is a bell that rings.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Whether `bytes` are those of the slot's payload, from its begin.
    pub fn is_payload(&self, slot: u16, bytes: &[u8]) -> bool {
        usize::from(slot) < self.owners.len() && std::ptr::eq(bytes.as_ptr(), self.payload_at(slot))
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the mapping; a ring keeps it alive while the kernel may write there.
        let _ = unsafe { rustix::mm::munmap(self.begin.as_ptr().cast(), self.length()) };
    }
}

/// A slot that is ours, and this one's alone. Dropping it lets others have it; the kernel gets it by [`Ring::commit`].
#[derive(Debug)]
pub struct Held {
    slots: Arc<Slots>,
    slot: u16,
}

impl Held {
    /// Which.
    pub fn slot(&self) -> u16 {
        self.slot
    }

    /// The head: `in_out` of 128 bytes, the operation's fixed part of 128, and 32 of the ring's own.
    pub fn head(&self) -> &[u8; HEAD] {
        // SAFETY: the slot is within the mapping, ours, and this one's alone; a head is bytes of any value.
        unsafe { &*self.slots.head_at(self.slot).cast() }
    }

    fn head_mut(&mut self) -> &mut [u8; HEAD] {
        // SAFETY: as in `head`, and `self` is borrowed exclusively.
        unsafe { &mut *self.slots.head_at(self.slot).cast() }
    }

    /// All the room for a payload.
    pub fn room(&self) -> &[u8] {
        // SAFETY: as in `head`.
        unsafe { std::slice::from_raw_parts(self.slots.payload_at(self.slot), self.slots.payload) }
    }

    /// The same, to be filled.
    pub fn room_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `head`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.slots.payload_at(self.slot), self.slots.payload) }
    }

    /// The payload that came.
    pub fn payload(&self) -> &[u8] {
        let at = ENTRY_AT + 16;
        let length = u32::from_ne_bytes([0, 1, 2, 3].map(|byte| self.head()[at + byte]));
        &self.room()[..(length as usize).min(self.slots.payload)]
    }

    /// Puts an answer in: the 16 bytes of its header, and how many bytes of payload there are in the room.
    pub fn answer(&mut self, header: [u8; 16], payload: usize) {
        let head = self.head_mut();
        head[..16].copy_from_slice(&header);
        head[ENTRY_AT + 16..ENTRY_AT + 20].copy_from_slice(&(payload as u32).to_ne_bytes());
    }

    fn commit_id(&self) -> u64 {
        u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| self.head()[ENTRY_AT + 8 + byte]))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.slots.pass(self.slot, owner::HELD, owner::FREE);
    }
}

/// What [`Ring::wait`] returns for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// A request, in that slot, which is ours.
    Request(u16),
    /// The bell was rung.
    Bell,
    /// The slot gets no more requests, for that reason; with [`Errno::NOTCONN`] the mount is gone.
    Ended(Errno),
}

/// One queue's ring. It belongs to the thread that opened it: the kernel completes its commands there.
pub struct Ring {
    ring: IoUring<Entry128>,
    slots: Arc<Slots>,
    device: OwnedFd,
    queue: u16,
}

impl Drop for Ring {
    fn drop(&mut self) {
        let waiting = self.slots.owners.iter().any(|owner| owner.load(Ordering::Acquire) == owner::KERNEL);
        if waiting {
            // The kernel gives up these commands some time after the ring's end: the memory must not be another's.
            std::mem::forget(self.slots.clone());
        }
    }
}

/// Queues of a session: one for each possible processor.
pub fn queues() -> usize {
    let listed = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    // `0-63`: the last number is the highest.
    let last = listed.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<usize>().ok());
    last.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), |last| last + 1)
}

fn set_up(entries: u32) -> io::Result<IoUring<Entry128>> {
    let mut builder = IoUring::<Entry128>::builder();
    builder.setup_cqsize(2 * entries).setup_single_issuer().setup_defer_taskrun();
    builder.build(entries)
}

/// Whether this process may have such rings at all (`kernel.io_uring_disabled`, seccomp, an old kernel).
pub fn may_have_rings() -> io::Result<()> {
    set_up(2).map(drop)
}

impl Ring {
    /// Opens the ring of a queue of the session of `device`, and has `depth` commands of up to `payload` bytes wait in
    /// it. The kernel uses rings once every queue has one: `0` to the number of possible processors.
    ///
    /// `depth` has to be ample: a request that comes when no command waits stays in the kernel until some other request of
    /// the queue is answered; a command that is registered later does not take it.
    ///
    /// # Errors
    /// EOPNOTSUPP if the session did not ask for rings, EINVAL if `payload` is too small; the kernel goes on with
    /// `/dev/fuse` then.
    pub fn open(device: BorrowedFd<'_>, queue: u16, depth: u16, payload: usize) -> io::Result<Self> {
        // One more for the bell.
        let ring = set_up((u32::from(depth) + 1).next_power_of_two())?;
        let device = device.try_clone_to_owned()?;
        let mut ring = Ring { ring, slots: Slots::new(depth, payload)?, device, queue };
        ring.register()?;
        Ok(ring)
    }

    /// Its slots.
    pub fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    fn register(&mut self) -> io::Result<()> {
        let slots = self.slots.clone();
        let depth = slots.owners.len() as u16;
        let areas: Vec<[libc::iovec; 2]> = (0..depth)
            .map(|slot| {
                let area = |begin: *mut u8, len| libc::iovec { iov_base: begin.cast(), iov_len: len };
                [area(slots.head_at(slot), HEAD), area(slots.payload_at(slot), slots.payload)]
            })
            .collect();
        for (slot, areas) in (0..depth).zip(&areas) {
            let mut entry = self.command(REGISTER, slot, 0, Some(areas.as_ptr() as u64));
            // SAFETY: `Entry128` begins with the kernel's `struct io_uring_sqe`, of which this is the field `len`; the
            // crate has no other way to set it.
            unsafe { (&raw mut entry).cast::<u8>().add(SQE_LEN_AT).cast::<u32>().write(SEGMENTS) };
            self.push(slot, &entry)?;
        }
        self.listen()?;
        // The areas are read here.
        self.ring.submit()?;
        let mut came = Vec::new();
        self.take(&mut came);
        match came.into_iter().find_map(|came| if let Came::Ended(errno) = came { Some(errno) } else { None })
        {
            Some(errno) => Err(errno.into()),
            None => Ok(()),
        }
    }

    fn command(&self, what: u32, slot: u16, commit_id: u64, address: Option<u64>) -> Entry128 {
        // struct fuse_uring_cmd_req: flags, commit_id, qid.
        let mut request = [0; 80];
        request[8..16].copy_from_slice(&commit_id.to_ne_bytes());
        request[16..18].copy_from_slice(&self.queue.to_ne_bytes());
        let device = types::Fd(self.device.as_raw_fd());
        opcode::UringCmd80::new(device, what).cmd(request).addr(address).build().user_data(u64::from(slot))
    }

    /// Hands a slot that is ours to the kernel, with a command.
    fn push(&mut self, slot: u16, entry: &Entry128) -> io::Result<()> {
        if !self.slots.pass(slot, owner::FREE, owner::KERNEL) {
            return Err(Errno::BUSY.into());
        }
        self.push_entry(entry)
    }

    fn push_entry(&mut self, entry: &Entry128) -> io::Result<()> {
        loop {
            // SAFETY: what the entry points to outlives the command: slots as `Slots` says, the areas of a registration
            // until it is submitted; the bell is polled, which touches no memory.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.ring.submit()?;
        }
    }

    /// Waits for the bell, once.
    fn listen(&mut self) -> io::Result<()> {
        let poll = opcode::PollAdd::new(types::Fd(self.slots.bell.as_raw_fd()), libc::POLLIN as u32);
        self.push_entry(&poll.build().user_data(BELL).into())
    }

    /// Answers the request in a slot, with what [`Held::answer`] put there, and waits for the next in it; goes out
    /// with the next [`Ring::submit`] or [`Ring::wait`].
    ///
    /// # Errors
    /// EBUSY: somebody holds the slot, or it is the kernel's.
    pub fn commit(&mut self, slot: u16) -> io::Result<()> {
        let held = self.slots.hold(slot).ok_or(Errno::BUSY)?;
        let entry = self.command(COMMIT_AND_FETCH, slot, held.commit_id(), None);
        drop(held);
        self.push(slot, &entry)
    }

    /// Sends commits out.
    pub fn submit(&mut self) -> io::Result<()> {
        self.ring.submit().map(drop)
    }

    /// Sends commits out, waits, and appends what came.
    pub fn wait(&mut self, came: &mut Vec<Came>) -> io::Result<()> {
        match self.ring.submit_and_wait(1) {
            Ok(_) => {}
            // EBUSY: completions have to be taken first.
            Err(error)
                if [libc::EINTR, libc::EBUSY, libc::EAGAIN].map(Some).contains(&error.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        self.take(came);
        if came.contains(&Came::Bell) {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.slots.bell, &mut count);
            self.listen()?;
        }
        Ok(())
    }

    fn take(&mut self, came: &mut Vec<Came>) {
        let slots = &self.slots;
        came.extend(self.ring.completion().map(|entry: cqueue::Entry| {
            if entry.user_data() == BELL {
                return Came::Bell;
            }
            let slot = entry.user_data() as u16;
            slots.pass(slot, owner::KERNEL, owner::FREE);
            if entry.result() < 0 {
                Came::Ended(Errno::from_raw_os_error(-entry.result()))
            } else {
                Came::Request(slot)
            }
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_begins_with_the_kernels_structure() {
        assert_eq!(size_of::<Entry128>(), 128);
        let entry: Entry128 = opcode::Nop::new().build().user_data(7).into();
        // SAFETY: the entry is plain bytes; `user_data` follows `len` and `rw_flags` in the kernel's structure.
        let user_data = unsafe { (&raw const entry).cast::<u8>().add(SQE_LEN_AT + 8).cast::<u64>().read() };
        assert_eq!(user_data, 7);
    }

    #[test]
    fn a_slot_is_held_once_and_its_memory_is_its_own() {
        let slots = Slots::new(3, 8192).unwrap();
        let mut first = slots.hold(0).unwrap();
        assert!(slots.hold(0).is_none());
        let mut second = slots.hold(1).unwrap();
        assert!(slots.hold(3).is_none());
        first.room_mut().fill(1);
        second.room_mut().fill(2);
        assert!(first.room().iter().all(|byte| *byte == 1) && first.room().len() == 8192);
        first.answer([9; 16], 5000);
        assert_eq!(first.payload().len(), 5000);
        assert_eq!(first.head()[..16], [9; 16]);
        assert_eq!(second.payload().len(), 0);
        assert!(slots.is_payload(0, first.payload()) && !slots.is_payload(1, first.payload()));
        drop(first);
        assert!(slots.hold(0).is_some());
    }

    #[test]
    fn a_session_without_rings_is_told() {
        if may_have_rings().is_err() {
            eprintln!("skipped: no io_uring here");
            return;
        }
        let other = rustix::fs::memfd_create("no-session", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let refused = Ring::open(std::os::fd::AsFd::as_fd(&other), 0, 2, 8192).err().unwrap();
        assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
