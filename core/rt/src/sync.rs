//! Locks that know no poison: a panic is caught and answered where the work began, not wherever a lock is next taken.

pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
