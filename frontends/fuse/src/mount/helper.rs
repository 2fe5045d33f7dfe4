//! fusermount3, the set-user-id helper of libfuse: it mounts for an ordinary user and passes the descriptor back.

use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use hither_vfs::Errno;
use rustix::mount::MountFlags;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
};

use super::{FLAGS, SUBTYPE, Unmount};
use crate::error::{Error, Result};
use crate::options::Options;

const PROGRAM: &str = "fusermount3";

fn run(command: &mut Command) -> Result<Output> {
    command.env("LC_ALL", "C").output().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => Error::NoHelper,
        _ => Error::Helper { source },
    })
}

/// What the helper said, without its own name before each line.
fn words(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let lines = said.lines().map(|line| line.trim_start_matches(PROGRAM).trim_start_matches(": ").trim());
    let said = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    if said.is_empty() { output.status.to_string() } else { said }
}

/// Mounts; gives the session's descriptor.
pub(super) fn mount(path: &Path, options: &Options, flags: MountFlags) -> Result<OwnedFd> {
    let failed = |errno: Errno| Error::Helper { source: errno.into() };
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(failed)?;
    let mut command = Command::new(PROGRAM);
    // Its end of the socket is its standard input, so that no descriptor has to be left open over exec.
    command.arg("-o").arg(option_list(options, flags)).arg("--").arg(path);
    command.stdin(Stdio::from(theirs)).env("_FUSE_COMMFD", "0");
    let output = run(&mut command)?;
    // The command holds its end until now.
    drop(command);
    let refused = || Error::HelperRefused { path: path.to_owned(), said: words(&output) };
    if !output.status.success() {
        return Err(refused());
    }
    receive_descriptor(ours).map_err(failed)?.ok_or_else(refused)
}

fn option_list(options: &Options, flags: MountFlags) -> OsString {
    let escaped = options.fs_name.replace('\\', "\\\\").replace(',', "\\,");
    let mut list = format!("fsname={escaped},subtype={SUBTYPE},default_permissions");
    if options.allow_other {
        list.push_str(",allow_other");
    }
    for (name, flag) in FLAGS {
        if flags.contains(*flag) {
            list.push(',');
            list.push_str(name);
        }
    }
    if flags.contains(MountFlags::RDONLY) {
        list.push_str(",ro");
    }
    list.into()
}

/// The descriptor that was passed over `socket`, if one was.
fn receive_descriptor(socket: OwnedFd) -> std::result::Result<Option<OwnedFd>, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; 1];
    let mut parts = [IoSliceMut::new(&mut byte)];
    rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(socket.as_fd(), &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    })?;
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(descriptor)
}

/// Unmounts. The inner result is that of the system call, as far as the helper's words tell.
pub(super) fn unmount(path: &Path, how: Unmount) -> Result<io::Result<()>> {
    let output = run(Command::new(PROGRAM).args(arguments(how)).arg("--").arg(path).stdin(Stdio::null()))?;
    if output.status.success() {
        return Ok(Ok(()));
    }
    let said = words(&output);
    Ok(Err(if said.contains("busy") { Errno::BUSY.into() } else { io::Error::other(said) }))
}

fn arguments(how: Unmount) -> &'static [&'static str] {
    match how {
        Unmount::IfUnused => &["-u"],
        Unmount::Lazily => &["-u", "-z"],
    }
}
