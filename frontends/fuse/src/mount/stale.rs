//! Mount points that a killed daemon left behind: everything there fails with "Transport endpoint is not connected".

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use hither_vfs::Errno;
use rustix::process::geteuid;

use super::{By, FS_TYPE, Unmount, unmount};
use crate::error::Result;

/// A living daemon that has not answered for so long is hung, not gone: its mount is left alone.
const PATIENCE: Duration = Duration::from_secs(2);

/// Clears `path` if it is the mount point of a hither daemon that is gone; a living mount is never touched, also if
/// it hangs. Whether there was something to clear.
///
/// # Errors
/// Those of unmounting.
pub fn clear_stale(path: &Path) -> Result<bool> {
    let mut cleared = false;
    // A daemon that was killed and started anew without clearing may have left several.
    while let Some(path) = top_mount(path).filter(|path| is_dead(path)) {
        let by = if geteuid().is_root() { By::SystemCall } else { By::Helper };
        unmount(&path, by, Unmount::Lazily)?;
        cleared = true;
    }
    Ok(cleared)
}

/// The path as `/proc/self/mountinfo` has it, if the topmost mount there is one of ours. The mount point itself cannot
/// be asked, but its parent directory can.
fn top_mount(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let path = std::fs::canonicalize(parent).ok()?.join(name);
    let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
    let mounts = parse(&mounts);
    let top = mounts.iter().rev().find(|mount| mount.path.as_bytes() == path.as_os_str().as_bytes())?;
    (top.kind == FS_TYPE).then_some(path)
}

/// Whether `path` is the mount point of a hither daemon that is gone.
pub(super) fn is_stale(path: &Path) -> bool {
    top_mount(path).is_some_and(|path| is_dead(&path))
}

/// Whether the kernel itself says that the daemon is gone. Ours never answers so, and the space of a file system is
/// never told from a cache, as attributes are.
fn is_dead(path: &Path) -> bool {
    let (answer, wait) = mpsc::channel();
    let path = path.to_owned();
    // A hung daemon would hold up whoever asks: so somebody else does, and is left to it.
    let asked = hither_rt::thread::spawn("stale-check", move || {
        let _ = answer.send(rustix::fs::statfs(&path).err());
    });
    let answer = if asked.is_ok() { wait.recv_timeout(PATIENCE).ok().flatten() } else { None };
    // CONNABORTED: it went while it was being asked.
    matches!(answer, Some(Errno::NOTCONN | Errno::CONNABORTED))
}

/// A line of `/proc/self/mountinfo` (`proc(5)`).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MountLine {
    pub(super) path: OsString,
    pub(super) kind: OsString,
    /// `major:minor`
    pub(super) device: String,
}

/// The mounts in the order in which they were made.
pub(super) fn parse(mountinfo: &[u8]) -> Vec<MountLine> {
    mountinfo.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<MountLine> {
    let mut fields = line.split(|byte| *byte == b' ');
    let device = String::from_utf8(fields.nth(2)?.to_vec()).ok()?;
    let path = unescape(fields.nth(1)?);
    let mut fields = fields.skip_while(|field| *field != b"-");
    let kind = OsStr::from_bytes(fields.nth(1)?).to_owned();
    Some(MountLine { path, kind, device })
}

/// Space, tab, newline and backslash come as `\ooo`.
fn unescape(field: &[u8]) -> OsString {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.get(..3).filter(|_| *first == b'\\');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = &behind[3..];
            }
            None => {
                plain.push(*first);
                rest = behind;
            }
        }
    }
    OsString::from_vec(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_and_without_optional_fields() {
        let text = b"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n\
                     41 25 0:39 / /a\\040b\\134c rw - fuse.hither hither rw,user_id=0\n";
        let mounts = parse(text);
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].path, "/mnt2");
        assert_eq!(mounts[0].kind, "ext3");
        assert_eq!(
            mounts[1],
            MountLine { path: "/a b\\c".into(), kind: FS_TYPE.into(), device: "0:39".to_owned() }
        );
    }

    #[test]
    fn what_is_no_mount_of_ours_is_left_alone() {
        assert_eq!(top_mount(Path::new("/proc")), None);
        assert!(!clear_stale(Path::new("/proc")).unwrap());
        assert!(!clear_stale(Path::new("/no/such/directory")).unwrap());
    }
}
