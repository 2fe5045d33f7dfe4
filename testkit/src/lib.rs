//! What every file system of ours is tested with. Each part is used on its own:
//!
//! **[`conformance`]**: every promise of the trait, tests chosen by capability, counted.
//! - `conformance::run(|| Arc::new(Mem::new())).assert_all_passed()`, in a test; the factory is called once a test.
//! - `Suite::default().only("rename").run(factory)` narrows it; `.except(name, reason)` counts a test as skipped.
//! - A report has `passed`, `failed`, `skipped`: assert on `skipped` where nothing may be left out.
//!
//! **[`model`]**: random operations against a plain model; answers, errnos and whole trees are compared.
//! - `let check = Check::new(concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/model.txt")).cases(500);`
//! - `model::check(&check, factory).assert_agreed()`; each case gets a file system, empty, from the factory.
//! - A failure prints the shortest sequence (`model::replay` runs it again by hand); commit the file of seeds.
//!   `PROPTEST_CASES=20000` in the environment makes a long run of it.
//!
//! **[`differential`]**: the same operations on a file system and on a real directory, by system calls.
//! - `differential::check(&check, "/dev/shm".as_ref(), factory).assert_agreed()`.
//! - The directory that is judged by lies where the second argument says; the umask must be 022 or less.
//! - As root it covers owners and set-group-id directories too.
//!
//! **[`faults`]**: a file system that breaks as a script says, while it runs.
//! - `let script = Arc::new(Script::default()); let origin = Faulty::new(inner, script.clone());`
//! - `script.delay(Kinds::ALL, Duration::from_millis(2))`; `script.fail(Kind::Read, When::Every(7), Errno::IO)`;
//!   `script.hang(Kinds::ALL)`, `script.wait_until_stuck(1, limit)`, `script.release()`; `script.vanish(Errno::STALE)`;
//!   `script.set_space(Some(1 << 20))`; `script.add(Rule::new(Kind::Read, When::Nth(3), Action::FlipBit(9)).on(node))`.
//! - `script.count(Kind::Read)` and `script.bytes_read()` tell how often the inner file system was asked.
//!   Backings are held back unless wrapped by `Faulty::with_backings`.
//!
//! **[`power_cut`]**: an ext4 whose state at any moment is mounted anew, as after a power failure. Root only.
//! - `let disk = Disk::new(256 << 20)?;` and let the work run in `disk.path()`.
//! - `let cut = disk.cut()?;` at a random moment, and look at `cut.path()`. Both clean up when dropped.
//! - The error says what is lacking where it cannot run: print it, and do not count the test as passed.
//!
//! **[`tree`]**: trees of files on the host, from a seed, and their comparison.
//! - `tree::make(path, 42, &Shape::default())?` makes names, sizes, links, holes, times and xattrs.
//! - `tree::differences(one, other)?` is empty if the trees are equal in everything but access and status times.
//! - `tree::differences_in(one, other, Aspects { directory_times: false, ..Aspects::default() })?` asks for less.
//!
//! **[`Client`]**: paths on a file system in process, as a program would use it.
//! - `let client = Client::new(&*fs); client.write("a/b", b"bytes")?; client.read("a/b")?`
//! - `client.as_caller(Caller::new(uid, gid, 0, 0o022))` acts as somebody else.
//! - `client.with_patience(Patience::Never)` makes calls that must not wait.

mod check;
pub mod client;
pub mod conformance;
pub mod differential;
pub mod faults;
pub mod model;
pub mod power_cut;
pub mod tree;

pub use client::Client;
