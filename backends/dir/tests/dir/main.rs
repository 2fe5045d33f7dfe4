//! A directory of the host as a file system: what a program sees through the trait.

mod ground;
mod posix;
