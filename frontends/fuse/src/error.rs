//! Why a mount could not be made or unmade, in words for the person who asked for it.

use std::io;
use std::path::PathBuf;

/// The result of mounting and unmounting.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a mount could not be made or unmade.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such directory.
    #[error("the mount point {path} does not exist; create it: mkdir -p {path}")]
    NoMountpoint {
        /// The mount point.
        path: PathBuf,
    },
    /// Something else than a directory.
    #[error("the mount point {path} is not a directory")]
    NotADirectory {
        /// The mount point.
        path: PathBuf,
    },
    /// It cannot be looked at.
    #[error("cannot use {path} as a mount point: {source}")]
    Mountpoint {
        /// The mount point.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A daemon that is gone left its mount.
    #[error("{path} is the mount point of a daemon that is gone; clear it: hither umount {path}")]
    Stale {
        /// The mount point.
        path: PathBuf,
    },
    /// No device.
    #[error(
        "cannot open /dev/fuse: {source}; load the module (modprobe fuse), or give the container the device \
         (docker run --device /dev/fuse --cap-add SYS_ADMIN)"
    )]
    NoDevice {
        /// Why.
        source: io::Error,
    },
    /// `mount(2)` failed.
    #[error("cannot mount on {path}: {source}")]
    Mount {
        /// The mount point.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not root, and no helper.
    #[error(
        "mounting without root needs fusermount3; install it (Debian: apt install fuse3), or mount as root"
    )]
    NoHelper,
    /// The helper cannot be run.
    #[error("cannot run fusermount3: {source}")]
    Helper {
        /// Why.
        source: io::Error,
    },
    /// The helper refused.
    #[error("fusermount3 cannot mount on {path}: {said}{}", advice(said))]
    HelperRefused {
        /// The mount point.
        path: PathBuf,
        /// Its words.
        said: String,
    },
    /// An option nobody knows.
    #[error("unknown mount option {option:?}; known are ro, rw, and {}", crate::mount::known_options())]
    UnknownOption {
        /// The option.
        option: String,
    },
    /// The kernel speaks another protocol.
    #[error("the kernel speaks FUSE {major}.{minor}; hither needs 7.31 (Linux 5.2) or a later 7")]
    Version {
        /// Its major version.
        major: u32,
        /// Its minor version.
        minor: u32,
    },
    /// The first exchange failed.
    #[error("the first exchange with the kernel on {path} failed: {source}")]
    Handshake {
        /// The mount point.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Requests over io_uring were asked for and cannot be had.
    #[error("no requests over io_uring: {why}; leave --transport out for /dev/fuse")]
    NoRings {
        /// Why.
        why: String,
    },
    /// No threads.
    #[error("cannot start the threads of the mount: {source}")]
    Threads {
        /// Why.
        source: io::Error,
    },
    /// Still in use.
    #[error("{path} is in use; close what uses it (fuser -vm {path} shows it), or detach it lazily")]
    Busy {
        /// The mount point.
        path: PathBuf,
    },
    /// Cannot be unmounted.
    #[error("cannot unmount {path}: {source}{}", advice(&source.to_string()))]
    Unmount {
        /// The mount point.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What to do about the words of fusermount3.
fn advice(said: &str) -> &'static str {
    if said.contains("user_allow_other") {
        "; add the line user_allow_other to /etc/fuse.conf (root), or leave allow_other out"
    } else if said.contains("/dev/fuse") {
        "; users need access to the device (chmod 666 /dev/fuse as root, which udev does where it runs)"
    } else if said.contains("not permitted") {
        "; fusermount3 must be installed set-user-id root, and you must own the mount point"
    } else if said.contains("/etc/mtab") {
        "; make the file (root): ln -s /proc/self/mounts /etc/mtab"
    } else {
        ""
    }
}
