//! A directory of the host as a file system: what a program sees through the trait.

mod acting;
mod ground;
mod identity;
mod listing;
mod options;
mod posix;
mod xattrs;
