//! The cache over file systems in memory: what it promises, and what it does when origin or store fail.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by where it stops")]

mod conformance;
mod durability;
mod faults;
mod fill;
mod kit;
mod model;
mod room;
mod rules;
mod stress;
mod validity;
