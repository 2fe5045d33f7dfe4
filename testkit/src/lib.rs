//! What every file system of ours is tested with. (This text is filled in as parts are added.)

pub mod client;
pub mod faults;

pub use client::Client;
