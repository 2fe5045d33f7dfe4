//! The cache over file systems in memory: what it promises, and what it does when origin or store fail.

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
