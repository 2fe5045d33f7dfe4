//! What every file system of ours is tested with. (This text is filled in as parts are added.)

mod check;
pub mod client;
pub mod conformance;
pub mod differential;
pub mod faults;
pub mod model;
pub mod tree;

pub use client::Client;
