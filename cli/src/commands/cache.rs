//! `hither cache ...`: asks the daemon of the mount that each path lies on.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use hither_stack::units::Size;

use super::rules;
use crate::args::cache::{Command, EvictArgs, MountArgs, StateArgs};
use crate::control::client::{Client, Located, Mounts};
use crate::control::protocol::{FileState, Operation, Outcome, Progress, State, WirePath};
use crate::failure::{self, DONE, FAILED, usage};
use crate::output::{self, OutputError};
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
        let done = clients.of(path).and_then(|(client, below)| act(client, path, below));
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

/// Work on trees, with a bar; failures are listed.
fn trees(
    paths: &[PathBuf],
    what: &str,
    operation: impl Fn(WirePath) -> Operation,
) -> anyhow::Result<ExitCode> {
    let mut failed = false;
    let code = each(paths, |client, _, path| {
        let bar = Bar::new(what);
        let outcome = client.request(operation(path), &mut |now| bar.show(now));
        let outcome = outcome.inspect_err(|_| bar.show(&Progress::default()))?;
        let Outcome::Files(done) = outcome else { bail!("the daemon answers another question") };
        bar.end(&format!(
            "{what}: {} files, {}; {} skipped, {} failed",
            done.files_done,
            Size(done.bytes_done),
            done.skipped,
            done.failed
        ));
        failed |= done.failed > 0;
        for (path, why) in &done.failures {
            output::complain(&format!("{}: {why}", path.0.display()));
        }
        let unnamed = done.failed.saturating_sub(done.failures.len() as u64);
        if unnamed > 0 {
            output::complain(&format!("and {unnamed} more"));
        }
        Ok(())
    })?;
    Ok(if failed && code == ExitCode::SUCCESS { ExitCode::from(FAILED) } else { code })
}

fn evict(args: &EvictArgs) -> anyhow::Result<ExitCode> {
    let mut client = one_mount(args.mount.mountpoint.as_deref())?.connect()?;
    let to_bytes = args.to.map(|Size(bytes)| bytes);
    match client.request(Operation::Evict { to_bytes }, &mut |_| ())? {
        Outcome::Evicted { files, bytes } => {
            output::line(format!("evicted {files} copies, {}", Size(bytes)))?
        }
        _ => bail!("the daemon answers another question"),
    }
    Ok(ExitCode::SUCCESS)
}

fn verify(args: &MountArgs) -> anyhow::Result<ExitCode> {
    let mut client = one_mount(args.mountpoint.as_deref())?.connect()?;
    let bar = Bar::new("verify");
    let Outcome::Verified(verified) = client.request(Operation::Verify, &mut |now| bar.show(now))? else {
        bail!("the daemon answers another question");
    };
    for path in &verified.damaged {
        output::line(format!("damaged: {}", path.0.display()))?;
    }
    let damaged = verified.damaged.len();
    let said = format!(
        "{} copies, {}: {damaged} damaged, {} fetched again",
        verified.copies,
        Size(verified.bytes),
        verified.refetched
    );
    bar.end(&said);
    Ok(if damaged > 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}
