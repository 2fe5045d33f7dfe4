//! Requests answered without a kernel: each test plays the kernel's part message by message.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use hither_rt::clock::{Duration, Instant};
use hither_rt::sync::{Condvar, Mutex};
use hither_vfs::{Cancel, Errno, FileSystem, Patience};

use super::*;
use crate::inflight::Limits;
use crate::protocol::abi::{
    CreateIn, EntryOut, FileLock, FlushIn, InHeader, InterruptIn, LkIn, OpenIn, OpenOut, ReadIn, ReleaseIn,
    SetattrIn, WriteIn, fattr, opcode,
};
use crate::protocol::wire::{Pad, Wire};
use crate::scripted::Scripted;
use crate::transport::Channel;
use crate::transport::buffer::PageBuffer;
use crate::transport::request::InBuffer;
use crate::watchdog;

mod answers;
mod epochs;
mod hostile;
mod locking;
mod waiting;

/// Longest that anything is waited for.
const SOON: Duration = Duration::from_secs(20);

const QUICK: Limits = Limits {
    interrupt: Duration::from_millis(30),
    deadline: Duration::from_millis(30),
    inline: Duration::from_millis(60),
};

/// Where the watchdog is to have nothing to do.
const PATIENT: Limits = Limits { interrupt: SOON, deadline: SOON, inline: SOON };

/// The kernel's side.
#[derive(Default)]
struct Kernel {
    answers: Mutex<Vec<(u64, i32, Vec<u8>)>>,
    notices: Mutex<Vec<(i32, Vec<u8>)>>,
    changed: Condvar,
    /// Requests that the kernel has aborted: their answers are refused.
    aborted: Mutex<Vec<u64>>,
    replaced: AtomicUsize,
}

impl Channel for Kernel {
    fn answer(&self, _: u32, unique: u64, error: i32, body: &[IoSlice<'_>]) -> io::Result<()> {
        if self.aborted.lock().contains(&unique) {
            return Err(Errno::NOENT.into());
        }
        let mut answers = self.answers.lock();
        assert!(!answers.iter().any(|(known, ..)| *known == unique), "{unique} is answered twice");
        answers.push((unique, error, joined(body)));
        self.changed.notify_all();
        Ok(())
    }

    fn replace_thread(&self) -> bool {
        self.replaced.fetch_add(1, Ordering::SeqCst);
        true
    }
}

impl Notices for Kernel {
    fn send(&self, code: i32, body: &[IoSlice<'_>]) -> io::Result<()> {
        self.notices.lock().push((code, joined(body)));
        self.changed.notify_all();
        Ok(())
    }
}

/// Backing ids that count up.
#[derive(Default)]
struct Ids {
    last: AtomicI32,
    living: Mutex<Vec<i32>>,
    refuse: AtomicBool,
}

impl BackingDevice for Ids {
    fn open(&self, _: BorrowedFd<'_>) -> io::Result<i32> {
        if self.refuse.load(Ordering::SeqCst) {
            return Err(Errno::LOOP.into());
        }
        let id = self.last.fetch_add(1, Ordering::SeqCst) + 1;
        self.living.lock().push(id);
        Ok(id)
    }

    fn close(&self, id: i32) -> io::Result<()> {
        let mut living = self.living.lock();
        let at = living.iter().position(|known| *known == id).ok_or(Errno::NOENT)?;
        living.remove(at);
        Ok(())
    }
}

/// A dispatcher between a file system and a played kernel.
struct Play {
    kernel: Arc<Kernel>,
    ids: Arc<Ids>,
    dispatcher: Arc<Dispatcher>,
    watchdog: Option<std::thread::JoinHandle<()>>,
    next: AtomicUsize,
}

impl Drop for Play {
    fn drop(&mut self) {
        self.dispatcher.bell.end();
        self.watchdog.take().map(std::thread::JoinHandle::join);
    }
}

/// An answer: the errno (0 if none) and the body.
type Answered = (i32, Vec<u8>);

impl Play {
    fn new(fs: Arc<dyn FileSystem>) -> Self {
        Play::with(fs, None, QUICK)
    }

    fn with(fs: Arc<dyn FileSystem>, deadline: Option<Duration>, limits: Limits) -> Self {
        let kernel = Arc::new(Kernel::default());
        let ids = Arc::new(Ids::default());
        let setting = Setting {
            backing_device: Some(ids.clone()),
            why_no_backing: "",
            expire_only: true,
            dialect: Dialect { setxattr_ext: true },
            deadline,
        };
        let dispatcher = Dispatcher::new(fs, kernel.clone(), setting);
        let watched = dispatcher.clone();
        let watchdog = std::thread::spawn(move || watchdog::watch(&watched, &limits));
        Play { kernel, ids, dispatcher, watchdog: Some(watchdog), next: AtomicUsize::new(1) }
    }

    /// Sends a request by another thread's hand, as a queue would read it; does not wait. `pid` 0 is a program that
    /// nobody can ask about, 1 one that lives.
    fn send_as(&self, pid: u32, code: u32, nodeid: u64, fill: impl FnOnce(&mut Vec<u8>)) -> u64 {
        let unique = 2 * self.next.fetch_add(1, Ordering::SeqCst) as u64;
        let mut body = Vec::new();
        fill(&mut body);
        let len = (InHeader::SIZE + body.len()) as u32;
        let header = InHeader { len, opcode: code, unique, nodeid, pid, ..InHeader::default() };
        let mut bytes = Vec::new();
        header.put(&mut bytes);
        bytes.extend_from_slice(&body);
        self.deliver_bytes(&bytes);
        unique
    }

    fn deliver_bytes(&self, bytes: &[u8]) -> std::thread::JoinHandle<bool> {
        let mut buffer = PageBuffer::new((1 << 20) + 4096, DATA_AT);
        buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        let (dispatcher, length) = (self.dispatcher.clone(), bytes.len());
        let destination = Destination { channel: self.kernel.clone(), slot: 0 };
        std::thread::spawn(move || {
            let mut arrived = InBuffer { buffer: &mut buffer, length, aligned_at: DATA_AT };
            dispatcher.serve(&mut arrived, destination, &mut Reply::new())
        })
    }

    fn send(&self, code: u32, nodeid: u64, fill: impl FnOnce(&mut Vec<u8>)) -> u64 {
        self.send_as(0, code, nodeid, fill)
    }

    fn answer_to(&self, unique: u64) -> Answered {
        self.wait_for(|kernel| {
            let answers = kernel.answers.lock();
            answers.iter().find(|(known, ..)| *known == unique).map(|(_, error, body)| (-error, body.clone()))
        })
    }

    /// Waits until `look` finds something.
    fn wait_for<T>(&self, look: impl Fn(&Kernel) -> Option<T>) -> T {
        let begin = Instant::now();
        while begin.elapsed() < SOON {
            if let Some(found) = look(&self.kernel) {
                return found;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("waited in vain");
    }

    fn ask(&self, code: u32, nodeid: u64, fill: impl FnOnce(&mut Vec<u8>)) -> Answered {
        let unique = self.send(code, nodeid, fill);
        self.answer_to(unique)
    }

    fn has_answer(&self, unique: u64) -> bool {
        self.kernel.answers.lock().iter().any(|(known, ..)| *known == unique)
    }

    fn lookup(&self, name: &str) -> EntryOut {
        let (errno, body) = self.ask(opcode::LOOKUP, 1, |out| put_name(out, name));
        assert_eq!(errno, 0, "{name}");
        EntryOut::take(&mut &body[..]).unwrap()
    }

    fn open(&self, nodeid: u64, flags: u32) -> std::result::Result<OpenOut, i32> {
        let (errno, body) = self.ask(opcode::OPEN, nodeid, |out| OpenIn { flags, open_flags: 0 }.put(out));
        if errno == 0 { Ok(OpenOut::take(&mut &body[..]).unwrap()) } else { Err(errno) }
    }

    fn release(&self, fh: u64) {
        let args = ReleaseIn { fh, ..ReleaseIn::default() };
        assert_eq!(self.ask(opcode::RELEASE, 0, |out| args.put(out)).0, 0);
    }

    fn read(&self, fh: u64) -> Answered {
        self.ask(opcode::READ, 0, |out| ReadIn { fh, size: 4096, ..ReadIn::default() }.put(out))
    }

    fn interrupt(&self, unique: u64) {
        self.send(opcode::INTERRUPT, 0, |out| InterruptIn { unique }.put(out));
    }

    /// Until `is_so`: what happens behind an answer.
    fn until(&self, is_so: impl Fn(&Dispatcher) -> bool) {
        self.wait_for(|_| is_so(&self.dispatcher).then_some(()));
    }

    fn is_quiet(&self) {
        self.until(|dispatcher| dispatcher.in_flight.len() == 0);
    }
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(name.as_bytes());
    out.push(0);
}

/// A door that threads wait at.
#[derive(Clone, Default)]
struct Door(Arc<(Mutex<bool>, Condvar, AtomicUsize)>);

impl Door {
    fn wait(&self) {
        self.0.2.fetch_add(1, Ordering::SeqCst);
        let mut is_open = self.0.0.lock();
        while !*is_open {
            self.0.1.wait(&mut is_open);
        }
    }

    fn open(&self) {
        *self.0.0.lock() = true;
        self.0.1.notify_all();
    }

    fn waiting(&self) -> usize {
        self.0.2.load(Ordering::SeqCst)
    }
}

fn cancel_of(patience: &Patience) -> Option<Cancel> {
    match patience {
        Patience::Never => None,
        Patience::Until { cancel, .. } => Some(cancel.clone()),
    }
}

fn joined(parts: &[IoSlice<'_>]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.iter().copied()).collect()
}
