//! `hither umount`: asks the daemon to unmount, and waits for its end.

use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::args::umount::Args;
use crate::control::client::{Client, Located, Mounts};
use crate::control::protocol::Operation;
use crate::control::registry;
use crate::failure::{DONE, code_of, of_mounting};
use crate::mountinfo;
use crate::output::complain;

/// How long a daemon is waited for whose mount is gone: a call that the kernel does not let it end may take for ever.
const END: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// How often it is looked whether the mount is gone while its daemon does not answer.
const LOOK: Duration = Duration::from_secs(1);

/// Unmounts one after the other, going on after a failure; the exit code is that of the gravest.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut code = DONE;
    for mountpoint in &args.mountpoints {
        if let Err(error) = one(mountpoint, args.lazy) {
            code = code.max(code_of(&error));
            complain(&format!("{error:#}"));
        }
    }
    Ok(ExitCode::from(code))
}

fn one(mountpoint: &Path, lazy: bool) -> anyhow::Result<()> {
    let located = Mounts::read()?.at(mountpoint)?;
    match &located.entry {
        Some(_) => unmount(&located, lazy),
        None => clear(&located),
    }
}

fn unmount(located: &Located, lazy: bool) -> anyhow::Result<()> {
    let client = located.connect()?;
    let pid = i32::try_from(client.pid()?).ok().and_then(Pid::from_raw);
    // Opened before the mount goes, so that it cannot be another process's.
    let process = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())).transpose();
    let process = process.context("cannot watch the daemon")?;
    match ask(client, lazy, located) {
        Ok(()) => {}
        // It may have ended before its answer was out,
        Err(_) if !is_mounted(located) => {}
        // or without one.
        Err(_) if hither_fuse::clear_stale(&located.mount.mountpoint).unwrap_or(false) => {}
        Err(error) => return Err(error.context("not unmounted")),
    }
    if lazy {
        return Ok(());
    }
    let Some(process) = process else { return Ok(()) };
    let mut fds = [PollFd::new(&process, PollFlags::IN)];
    let ended =
        rustix::io::retry_on_intr(|| poll(&mut fds, Some(&END))).context("cannot wait for the daemon")?;
    if ended == 0 {
        complain(&format!(
            "{} is unmounted; its daemon ends once the call returns that holds it (a hung disk or server below?)",
            located.mount.mountpoint.display()
        ));
    }
    Ok(())
}

/// Asks the daemon. One that is ending, and cannot for a call that the kernel does not let it leave, neither answers nor
/// hangs up: the end of the mount is an answer too.
fn ask(mut client: Client, lazy: bool, located: &Located) -> anyhow::Result<()> {
    let (said, answer) = mpsc::channel();
    let request = move || {
        let _ = said.send(client.request(Operation::Unmount { lazy }, &mut |_| ()).map(drop));
    };
    hither_rt::thread::spawn("umount", request).context("cannot start a thread")?;
    loop {
        match answer.recv_timeout(LOOK) {
            Ok(answer) => return answer,
            Err(mpsc::RecvTimeoutError::Timeout) if is_mounted(located) => {}
            Err(_) => return Ok(()),
        }
    }
}

fn is_mounted(located: &Located) -> bool {
    let Ok(mounts) = mountinfo::read() else { return true };
    mountinfo::at(&mounts, &located.mount.mountpoint)
        .is_some_and(|mount| mount.device == located.mount.device)
}

/// Clears what a killed daemon left.
fn clear(located: &Located) -> anyhow::Result<()> {
    if !hither_fuse::clear_stale(&located.mount.mountpoint).map_err(of_mounting)? {
        bail!("{}", located.silent());
    }
    let dead = registry::list().into_iter().filter(|entry| entry.device == located.mount.device);
    dead.for_each(|entry| registry::forget(&entry));
    Ok(())
}
