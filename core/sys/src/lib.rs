//! System calls that need unsafe, each behind a safe function.

pub mod fuse_dev;
