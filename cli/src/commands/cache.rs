//! `hither cache ...`: asks the daemon of the mount that each path lies on.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use hither_rt::clock::{self, Duration};
use hither_stack::units::Size;

use super::rules;
use crate::args::cache::{Command, EvictArgs, MountArgs, StateArgs};
use crate::control::client::{Client, Located, Mounts};
use crate::control::protocol::{Evicted, FileState, Operation, Outcome, Progress, State, WirePath};
use crate::failure::{self, DONE, FAILED, usage};
use crate::output::{self, OutputError, counted};
use crate::progress::Bar;

/// Does what a `cache` command says.
pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::State(args) => state(&args),
        Command::Attach(args) => each(&args.paths, |client, _, path| {
            client.request(Operation::Attach { path, wait: args.wait }, &mut |_| ()).map(drop)
        }),
        Command::Detach(args) => each(&args.paths, |client, _, path| {
            client.request(Operation::Detach { path, keep: args.keep }, &mut |_| ()).map(drop)
        }),
        Command::Warm(args) => trees(&args.paths, "warm", |path| Operation::Warm { path }),
        Command::Pin(args) => trees(&args.paths, "pin", |path| Operation::Pin { path, pinned: true }),
        Command::Unpin(args) => trees(&args.paths, "unpin", |path| Operation::Pin { path, pinned: false }),
        Command::Evict(args) => evict(&args),
        Command::Verify(args) => verify(&args),
        Command::Rules(command) => rules::run(command),
    }
}

/// The only cache there is, or the one at a mount point.
pub fn one_mount(mountpoint: Option<&Path>) -> anyhow::Result<Located> {
    if let Some(mountpoint) = mountpoint {
        return Mounts::read()?.at(mountpoint);
    }
    let is_cache = |located: &Located| located.entry.as_ref().is_some_and(|entry| entry.kind == "cache");
    let mut caches: Vec<_> = Mounts::read()?.ours().into_iter().filter(is_cache).collect();
    match (caches.pop(), caches.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(usage("no cache is mounted (see `hither status`)")),
        (Some(_), false) => {
            Err(usage("several caches are mounted: name the mount point (see `hither status`)"))
        }
    }
}

/// Connections to the daemons of the mounts that paths lie on: one each, since many paths lie on one.
struct Clients {
    mounts: Mounts,
    /// By device.
    clients: Vec<(String, Client)>,
}

impl Clients {
    /// Where `path` lies below its mount, and a connection to that mount's daemon.
    fn of(&mut self, path: &Path) -> anyhow::Result<(&mut Client, WirePath)> {
        let (mount, below) = self.mounts.locate(path)?;
        let at = match self.clients.iter().position(|(device, _)| *device == mount.device) {
            Some(at) => at,
            None => {
                let client = self.mounts.located(mount).connect()?;
                self.clients.push((mount.device.clone(), client));
                self.clients.len() - 1
            }
        };
        match self.clients.get_mut(at) {
            Some((_, client)) => Ok((client, WirePath(below))),
            None => bail!("no connection"),
        }
    }

    /// After an error a connection may be anywhere in its conversation.
    fn forget(&mut self) {
        self.clients.clear();
    }
}

/// Does something for each path, going on after a failure; the exit code is that of the gravest.
fn each(
    paths: &[PathBuf],
    mut act: impl FnMut(&mut Client, &Path, WirePath) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let mut clients = Clients { mounts: Mounts::read()?, clients: Vec::new() };
    let mut code = DONE;
    for path in paths {
        // Where a path leads to is told with the path; the daemon does not know how it was written.
        let done = clients.of(path).and_then(|(client, below)| {
            act(client, path, below).map_err(|error| match error.is::<OutputError>() {
                true => error,
                false => error.context(path.display().to_string()),
            })
        });
        if let Err(error) = done {
            if error.is::<OutputError>() {
                return Err(error);
            }
            clients.forget();
            code = code.max(failure::code_of(&error));
            output::complain(&format!("{error:#}"));
        }
    }
    Ok(ExitCode::from(code))
}

fn state(args: &StateArgs) -> anyhow::Result<ExitCode> {
    let mut states = Vec::new();
    let code = each(&args.paths, |client, name, path| {
        let Outcome::File(state) = client.request(Operation::State { path }, &mut |_| ())? else {
            bail!("the daemon answers another question");
        };
        if args.json {
            states.push(state);
        } else {
            output::line(describe(name, &state))?;
        }
        Ok(())
    })?;
    if args.json {
        output::json(&states)?;
    }
    Ok(code)
}

fn describe(name: &Path, state: &FileState) -> String {
    let name = name.display();
    let mut line = match state.state {
        State::Cached => format!("{name}: cached, {}", Size(state.size)),
        State::Filling => format!("{name}: filling, {} of {}", Size(state.present), Size(state.size)),
        State::None => format!("{name}: none, {}", Size(state.size)),
        State::NotAFile => format!("{name}: not a file"),
    };
    if state.pinned {
        line.push_str(", pinned");
    }
    if state.open_count > 0 {
        line.push_str(&format!(", open {}", state.open_count));
    }
    if let Some(reason) = &state.reason {
        line.push_str(&format!(" ({reason})"));
    }
    line
}

/// Work on trees, with a bar; what was done is said at the end, and failures are listed.
fn trees(
    paths: &[PathBuf],
    what: &str,
    operation: impl Fn(WirePath) -> Operation,
) -> anyhow::Result<ExitCode> {
    let mut failed = false;
    let code = each(paths, |client, name, path| {
        let (began, bar) = (clock::now(), Bar::new(what));
        let outcome = client.request(operation(path.clone()), &mut |now| bar.show(now))?;
        drop(bar);
        let Outcome::Files(done) = outcome else { bail!("the daemon answers another question") };
        output::line(format!("{what} {}: {}", name.display(), worked(&done, began.elapsed())))?;
        failed |= done.failed > 0;
        for complaint in complaints(&done, |found| as_typed(name, &path.0, found)) {
            output::complain(&complaint);
        }
        Ok(())
    })?;
    Ok(if failed && code == ExitCode::SUCCESS { ExitCode::from(FAILED) } else { code })
}

/// How many files are named that failed for the same reason.
const NAMED: usize = 3;

/// The failures by their reason, the most frequent first: a full store fails a thousand files for one.
fn complaints(done: &Progress, named: impl Fn(&Path) -> PathBuf) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&Path>)> = Vec::new();
    for (path, why) in &done.failures {
        match reasons.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, paths)) => paths.push(&path.0),
            None => reasons.push((why, vec![&path.0])),
        }
    }
    reasons.sort_by_key(|(_, paths)| std::cmp::Reverse(paths.len()));
    let mut complaints = Vec::new();
    for (reason, paths) in reasons {
        complaints
            .extend(paths.iter().take(NAMED).map(|path| format!("{}: {reason}", named(path).display())));
        match paths.len().saturating_sub(NAMED) {
            0 => {}
            more => complaints.push(format!("and {} more: {reason}", counted(more as u64, "file"))),
        }
    }
    match done.failed.saturating_sub(done.failures.len() as u64) {
        0 => {}
        more => complaints.push(format!("and {} more", counted(more, "file"))),
    }
    complaints
}

/// A path that the daemon found at or below `asked`, in the words of who typed `typed` for that.
fn as_typed(typed: &Path, asked: &Path, found: &Path) -> PathBuf {
    match found.strip_prefix(asked) {
        Ok(rest) if rest.as_os_str().is_empty() => typed.to_owned(),
        Ok(rest) => typed.join(rest),
        Err(_) => found.to_owned(),
    }
}

fn worked(done: &Progress, took: Duration) -> String {
    let mut said = format!(
        "{}, {} in {:.1} s",
        counted(done.files_done, "file"),
        Size(done.bytes_done),
        took.as_secs_f64()
    );
    if done.skipped > 0 {
        said.push_str(&format!(", {} skipped by rule, by size or as just changed", done.skipped));
    }
    if done.failed > 0 {
        said.push_str(&format!(", {} failed", done.failed));
    }
    said
}

fn evict(args: &EvictArgs) -> anyhow::Result<ExitCode> {
    let mut client = one_mount(args.mount.mountpoint.as_deref())?.connect()?;
    let to_bytes = args.to.map(|Size(bytes)| bytes);
    let Outcome::Evicted(done) = client.request(Operation::Evict { to_bytes }, &mut |_| ())? else {
        bail!("the daemon answers another question");
    };
    output::line(format!(
        "evicted {}, {}; {} remain",
        counted(done.files, "copy"),
        Size(done.bytes),
        Size(done.used_bytes)
    ))?;
    match remains(&done) {
        Some(why) => {
            output::complain(&why);
            Ok(ExitCode::from(FAILED))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Why more remains than was to; `None` if it does not.
fn remains(done: &Evicted) -> Option<String> {
    if done.used_bytes <= done.target_bytes {
        return None;
    }
    let in_use = done.used_bytes.saturating_sub(done.pinned_bytes);
    let why = match (done.pinned_bytes, in_use) {
        (pinned, 0) => format!("{} are pinned (see `hither cache unpin`)", Size(pinned)),
        (0, in_use) => format!("{} are open or being fetched", Size(in_use)),
        (pinned, in_use) => {
            format!(
                "{} are pinned (see `hither cache unpin`), {} open or being fetched",
                Size(pinned),
                Size(in_use)
            )
        }
    };
    Some(format!("not down to {}: {why}", Size(done.target_bytes)))
}

fn verify(args: &MountArgs) -> anyhow::Result<ExitCode> {
    let located = one_mount(args.mountpoint.as_deref())?;
    let (began, bar) = (clock::now(), Bar::new("verify"));
    let outcome = located.connect()?.request(Operation::Verify, &mut |now| bar.show(now))?;
    drop(bar);
    let Outcome::Verified(verified) = outcome else { bail!("the daemon answers another question") };
    for path in &verified.damaged {
        output::line(format!("damaged: {}", located.mount.mountpoint.join(&path.0).display()))?;
    }
    let copies = counted(verified.copies, "copy");
    let took = began.elapsed().as_secs_f64();
    let checked = format!("{copies}, {} checked in {took:.1} s", Size(verified.bytes));
    let damaged = verified.damaged.len();
    if damaged == 0 {
        output::line(format!("{checked}: none damaged"))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(format!("{checked}: {damaged} damaged, {} fetched again", verified.refetched))?;
    Ok(ExitCode::from(FAILED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_daemon_found_is_named_as_it_was_typed() {
        let named = |typed: &str, asked: &str, found: &str| {
            as_typed(typed.as_ref(), asked.as_ref(), found.as_ref()).display().to_string()
        };
        assert_eq!(named("m3/repo", "repo", "repo/a/b"), "m3/repo/a/b");
        assert_eq!(named("../link", "repo/a", "repo/a"), "../link");
        assert_eq!(named("m3", "", "repo/a"), "m3/repo/a");
        assert_eq!(named("m3/repo", "repo", "repository"), "repository");
    }

    #[test]
    fn a_thousand_failures_for_one_reason_are_four_lines() {
        let full = |number| (WirePath(format!("d/{number}").into()), "no room".to_owned());
        let mut failures: Vec<_> = (0..1000).map(full).collect();
        failures.insert(7, (WirePath("d/secret".into()), "denied".to_owned()));
        let done = Progress { failed: 1300, failures, ..Progress::default() };
        let said = complaints(&done, |path| Path::new("m").join(path));
        let expected = [
            "m/d/0: no room",
            "m/d/1: no room",
            "m/d/2: no room",
            "and 997 files more: no room",
            "m/d/secret: denied",
            "and 299 files more",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn what_remains_is_explained_if_it_is_more_than_was_to() {
        let of = |target_bytes, used_bytes, pinned_bytes| {
            remains(&Evicted { target_bytes, used_bytes, pinned_bytes, ..Evicted::default() })
        };
        assert_eq!(of(10, 10, 10), None);
        assert_eq!(of(0, 0, 0), None);
        assert_eq!(of(0, 5, 5).unwrap(), "not down to 0: 5 are pinned (see `hither cache unpin`)");
        assert_eq!(of(1024, 2048, 0).unwrap(), "not down to 1K: 2K are open or being fetched");
        assert!(
            of(0, 5, 2)
                .unwrap()
                .ends_with("2 are pinned (see `hither cache unpin`), 3 open or being fetched")
        );
    }
}
