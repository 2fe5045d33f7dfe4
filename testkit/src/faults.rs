//! Faults as file systems: [`Faulty`] wraps any file system and breaks it as a [`Script`] says, while it runs.
//!
//! # The fault model
//!
//! What an inner file system (an origin, a store, a replica) is allowed to do to the layer above it:
//!
//! | fault | how | what it stands for |
//! |---|---|---|
//! | a call fails | [`Action::Fail`] at the Nth call, every Nth, all after the Nth, of chosen kinds | bad sectors, a flaky link, quota, EACCES |
//! | a call is slow | [`Action::Delay`] | a network's round trip (2 ms for the slow origin of the benchmarks), a busy disk |
//! | a call hangs | [`Action::Hang`] until [`Script::release`] | a dead NFS or Lustre server. By default the thread is stuck whatever the call's patience says, as in a system call that cannot be interrupted; [`Rule::patiently`] makes it honour patience |
//! | a transfer is short | [`Action::Short`] | an interrupted write; an origin that was truncated under a reader |
//! | the space is full | [`Script::set_space`]: so many more bytes can be written, then ENOSPC | a full store |
//! | bytes are wrong | [`Action::FlipBit`] in what is read | silent corruption |
//! | all is gone | [`Script::vanish`]: every call fails with ESTALE, EIO or ENOTCONN until [`Script::come_back`] | an unmounted or fenced file system |
//! | news from elsewhere | [`Faulty::notify`] | another node changed something |
//!
//! What is *not* modelled: a call that fails and yet takes effect, reordered or lost writes after a sync (see
//! `power_cut`), and answers that contradict each other but for flipped bits.
//!
//! A failing call fails before the inner file system sees it. Rules act in the order in which they were added; a delay
//! or a hang goes on to later rules when it is over. Calls are counted before anything else happens to them.
//! A delay honours patience: a call that must never wait is told WouldBlock (and counted).
//!
//! Backings bypass all faults, since their reads and writes never come by. They are held back, so that all I/O does,
//! unless the file system is wrapped by [`Faulty::with_backings`].

mod faulty;
mod forward;
mod kinds;
mod script;

pub use faulty::Faulty;
pub use kinds::{Kind, Kinds};
pub use script::{Action, Rule, RuleId, Script, When};

#[cfg(test)]
mod tests;
