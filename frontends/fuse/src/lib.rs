//! The FUSE front end: mounts a [`FileSystem`](hither_vfs::FileSystem) so that any program can use it.
//!
//! It decodes, calls and encodes; what is more than that is here because the kernel wants it so:
//! - a node id of the kernel stands for an inode in one backing epoch (`nodes`), since the kernel serves all opens of
//!   a node id in one way (`backing`);
//! - no thread that reads requests waits (`dispatch`), every request is answered once whatever its handler does
//!   (`inflight`, `watchdog`), and what was given in an answer that nobody took is taken back;
//! - the protocol (`protocol`) knows no file system, and the transport (`transport`) no protocol beyond the header.
//!
//! ```no_run
//! # fn example(fs: std::sync::Arc<dyn hither_vfs::FileSystem>) -> Result<(), hither_fuse::Error> {
//! let session = hither_fuse::mount(fs, "/mnt/x".as_ref(), &hither_fuse::Options::default())?;
//! session.join();
//! # Ok(())
//! # }
//! ```

mod backing;
mod dispatch;
mod error;
mod errors;
mod handles;
mod ids;
mod inflight;
mod mount;
mod nodes;
mod notify;
mod options;
mod protocol;
mod reply;
#[cfg(test)]
mod scripted;
mod session;
mod stats;
mod transport;
mod watchdog;

pub use error::{Error, Result};
pub use mount::{Unmount, clear_stale};
pub use options::{Options, Passthrough, Transport};
pub use session::{Remote, Session, mount};
pub use stats::{DataPath, Operation, RequestPath, Stats};
