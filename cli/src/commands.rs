//! What each command does.

pub mod cache;
pub mod generate;
pub mod mount;
pub mod rules;
pub mod status;
pub mod umount;
