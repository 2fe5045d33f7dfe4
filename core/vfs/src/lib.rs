//! The file system trait that every storey above speaks.
//!
//! A [`FileSystem`] is a tree of [`Node`]s; an open file is a [`Handle`], an open directory a
//! [`DirHandle`]. All calls are synchronous and carry a [`Call`]: who asks ([`Caller`]) and how long
//! the answer may take ([`Patience`]). Layers implement the same traits over inner file systems, so
//! they stack. This crate knows no front end, no backend and no layer.

mod attr;
mod call;
mod error;
mod events;
mod fs;
mod handle;
mod intern;
pub mod locks;
mod node;

pub use attr::{Attr, FileKind, SetAttr, SetTime, StatFs, Timestamp};
pub use call::{Call, Caller, Cancel, Patience};
pub use error::{Error, Result};
pub use events::{Event, EventSink, Events};
pub use fs::{Capabilities, FileSystem, Timeouts};
pub use handle::{Backing, DirEntry, DirHandle, DirSink, Handle, SeekTo, WriteAt};
pub use intern::Interner;
pub use node::{Created, Entry, Epoch, Identity, Node, PersistentId, open_current};

pub use rustix::fs::{FallocateFlags, OFlags, RenameFlags, XattrFlags};
pub use rustix::io::Errno;
