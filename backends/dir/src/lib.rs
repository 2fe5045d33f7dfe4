//! A directory of the host as a file system.
