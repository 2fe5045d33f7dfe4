//! How commands talk to a running mount: a socket per mount, a line of JSON each way.

pub mod client;
pub mod protocol;
pub mod registry;
pub mod server;
pub mod service;
mod watch;
