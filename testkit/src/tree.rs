//! Trees of files: made at random from a seed, and compared.
//!
//! ```no_run
//! use hither_testkit::tree::{self, Shape};
//! tree::make("/dev/shm/a".as_ref(), 42, &Shape::default())?;
//! assert_eq!(tree::differences("/dev/shm/a".as_ref(), "/mnt/b".as_ref())?, Vec::<String>::new());
//! # Ok::<(), std::io::Error>(())
//! ```

mod compare;
mod make;

pub use compare::{Aspects, differences, differences_in};
pub use make::{Made, Shape, make};

#[cfg(test)]
mod tests;
