//! Between the kernel and the dispatcher: how requests come and where their answers go. `dev` is `/dev/fuse`,
//! `ring` is io_uring; another transport needs a [`Channel`] and threads that call
//! [`Dispatcher::serve`](crate::dispatch::Dispatcher::serve).

use std::io::{self, IoSlice};

pub(crate) mod buffer;
pub(crate) mod dev;
pub(crate) mod request;
pub(crate) mod ring;
pub(crate) mod threads;

/// Where the answers to the requests of one queue go. Any thread may answer, at any time, each request once.
pub(crate) trait Channel: Send + Sync {
    /// Answers the request `unique`, which came in `slot` (0 where a queue has no slots): `error` is 0 or a negative
    /// errno, `body` what follows the header.
    ///
    /// # Errors
    /// ENOENT: the kernel does not wait for it any more.
    fn answer(&self, slot: u32, unique: u64, error: i32, body: &[IoSlice<'_>]) -> io::Result<()>;

    /// The thread that serves this queue is stuck in a call: lets another serve it from now on. `false` if there are
    /// too many already; the stuck thread then goes on when it comes back.
    fn replace_thread(&self) -> bool;
}

/// Sends what the kernel did not ask for.
pub(crate) trait Notices: Send + Sync {
    /// One message: `code` of [`notify`](crate::protocol::abi::notify) and its body.
    fn send(&self, code: i32, body: &[IoSlice<'_>]) -> io::Result<()>;
}
