//! Mounts and unmounts: by `mount(2)` where that is allowed, else through fusermount3.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hither_vfs::Errno;
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags};

use crate::error::{Error, Result};
use crate::options::Options;
use crate::transport::dev;

mod helper;
mod stale;

pub use stale::clear_stale;

/// The type that `/proc/mounts` shows.
pub(crate) const FS_TYPE: &str = "fuse.hither";
/// The same after `fuse.`, as fusermount3 wants it.
const SUBTYPE: &str = "hither";

/// How something was mounted, and is to be unmounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// `mount(2)`.
    SystemCall,
    /// fusermount3.
    Helper,
}

/// How to unmount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmount {
    /// Only if nothing uses the mount.
    IfUnused,
    /// Take it away from its place now; what is open goes on until it is closed.
    Lazily,
}

/// Options of `mount(8)` that are flags of `mount(2)`.
const FLAGS: &[(&str, MountFlags)] = &[
    ("nosuid", MountFlags::NOSUID),
    ("nodev", MountFlags::NODEV),
    ("noexec", MountFlags::NOEXEC),
    ("noatime", MountFlags::NOATIME),
    ("nodiratime", MountFlags::NODIRATIME),
    ("relatime", MountFlags::RELATIME),
    ("strictatime", MountFlags::STRICTATIME),
    ("lazytime", MountFlags::LAZYTIME),
    ("sync", MountFlags::SYNCHRONOUS),
    ("dirsync", MountFlags::DIRSYNC),
];

/// Options that ask for what is so anyway.
const DEFAULTS: &[&str] = &["rw", "suid", "dev", "exec", "atime", "async", "defaults", "default_permissions"];

/// For messages.
pub(crate) fn known_options() -> String {
    let names: Vec<&str> = FLAGS.iter().map(|(name, _)| *name).chain(DEFAULTS.iter().copied()).collect();
    names.join(", ")
}

fn mount_flags(options: &Options) -> Result<MountFlags> {
    let mut flags = if options.read_only { MountFlags::RDONLY } else { MountFlags::empty() };
    for option in &options.mount_options {
        if let Some((_, flag)) = FLAGS.iter().find(|(name, _)| name == option) {
            flags |= *flag;
        } else if option == "ro" {
            flags |= MountFlags::RDONLY;
        } else if !DEFAULTS.contains(&option.as_str()) {
            return Err(Error::UnknownOption { option: option.clone() });
        }
    }
    Ok(flags)
}

/// Checks a mount point; gives its absolute path.
fn check(path: &Path) -> Result<PathBuf> {
    let whole = || path.to_owned();
    if stale::is_stale(path) {
        return Err(Error::Stale { path: whole() });
    }
    let attributes = std::fs::metadata(path).map_err(|source| match errno(&source) {
        Some(Errno::NOENT) => Error::NoMountpoint { path: whole() },
        Some(Errno::NOTCONN) => Error::Stale { path: whole() },
        _ => Error::Mountpoint { path: whole(), source },
    })?;
    if !attributes.is_dir() {
        return Err(Error::NotADirectory { path: whole() });
    }
    std::fs::canonicalize(path).map_err(|source| Error::Mountpoint { path: whole(), source })
}

fn errno(error: &io::Error) -> Option<Errno> {
    error.raw_os_error().map(Errno::from_raw_os_error)
}

/// Mounts; gives the session's descriptor, the absolute mount point, and how it was done.
pub(crate) fn mount(path: &Path, options: &Options) -> Result<(OwnedFd, PathBuf, By)> {
    let flags = mount_flags(options)?;
    let path = check(path)?;
    match by_system_call(&path, options, flags) {
        Err(Error::Mount { source, .. } | Error::NoDevice { source })
            if matches!(errno(&source), Some(Errno::PERM | Errno::ACCESS)) =>
        {
            let descriptor = helper::mount(&path, options, flags)?;
            Ok((descriptor, path, By::Helper))
        }
        Err(error) => Err(error),
        Ok(descriptor) => Ok((descriptor, path, By::SystemCall)),
    }
}

fn by_system_call(path: &Path, options: &Options, flags: MountFlags) -> Result<OwnedFd> {
    let descriptor = rustix::fs::open(dev::PATH, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Error::NoDevice { source: errno.into() })?;
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let mut data = format!(
        "fd={},rootmode=40000,user_id={uid},group_id={gid},default_permissions",
        descriptor.as_raw_fd()
    );
    if options.allow_other || uid == 0 {
        data.push_str(",allow_other");
    }
    let failed = |source: io::Error| Error::Mount { path: path.to_owned(), source };
    let data = CString::new(data).map_err(|error| failed(error.into()))?;
    let source = options.fs_name.as_str();
    rustix::mount::mount(source, path, FS_TYPE, flags, data.as_c_str())
        .map_err(|errno| failed(errno.into()))?;
    Ok(descriptor)
}

/// Unmounts what was mounted so.
pub(crate) fn unmount(path: &Path, by: By, how: Unmount) -> Result<()> {
    let result = match by {
        By::SystemCall => {
            let flags = match how {
                Unmount::IfUnused => UnmountFlags::NOFOLLOW,
                Unmount::Lazily => UnmountFlags::NOFOLLOW | UnmountFlags::DETACH,
            };
            rustix::mount::unmount(path, flags).map_err(io::Error::from)
        }
        By::Helper => helper::unmount(path, how)?,
    };
    result.map_err(|source| match errno(&source) {
        Some(Errno::BUSY) => Error::Busy { path: path.to_owned() },
        _ => Error::Unmount { path: path.to_owned(), source },
    })
}

/// The device number of the mount at `path`, as `/sys/class/bdi` names it.
fn device_number(path: &Path) -> Option<String> {
    let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
    let mounts = stale::parse(&mounts);
    let mount =
        mounts.into_iter().rev().find(|mount| mount.path.as_bytes() == path.as_os_str().as_bytes())?;
    Some(mount.device)
}

/// Sets what the kernel reads ahead on the mount at `path`.
pub(crate) fn set_read_ahead(path: &Path, kib: u32) -> io::Result<()> {
    let device = device_number(path).ok_or(Errno::NODEV)?;
    std::fs::write(format!("/sys/class/bdi/{device}/read_ahead_kb"), kib.to_string())
}
