//! What is mounted, as the kernel tells it (`/proc/self/mountinfo`, proc(5)), and which of it is ours.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The file system type of our mounts.
const TYPE: &str = "fuse.hither";

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// `major:minor` of the file system: the same for bind mounts of it, and no other one's.
    pub device: String,
    /// Which directory of the file system is mounted: `/` unless it is a bind mount.
    pub root: PathBuf,
    /// Where.
    pub mountpoint: PathBuf,
    /// The file system's type.
    pub kind: String,
    /// Who mounted it, if it is a FUSE mount.
    pub owner: Option<u32>,
}

impl Mount {
    /// Whether it is one of ours.
    pub fn is_ours(&self) -> bool {
        self.kind == TYPE
    }
}

/// Every mount, in the kernel's order: a later one covers an earlier one at the same place.
pub fn read() -> io::Result<Vec<Mount>> {
    Ok(parse(&fs::read("/proc/self/mountinfo")?))
}

/// The mount that `path` (absolute, without symbolic links in it) lies on.
pub fn of_path<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let covering = mounts.iter().filter(|mount| path.starts_with(&mount.mountpoint));
    covering.max_by_key(|mount| mount.mountpoint.as_os_str().len())
}

/// The mount at `mountpoint` that is on top.
pub fn at<'a>(mounts: &'a [Mount], mountpoint: &Path) -> Option<&'a Mount> {
    mounts.iter().rfind(|mount| mount.mountpoint == mountpoint)
}

fn parse(text: &[u8]) -> Vec<Mount> {
    // Lines that are not understood are no mounts of ours.
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// `ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [TAG...] - TYPE SOURCE SUPER-OPTIONS`
fn line(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let dash = fields.iter().position(|field| *field == b"-")?;
    let text = |at: usize| fields.get(at).map(|field| String::from_utf8_lossy(field).into_owned());
    let path = |at: usize| fields.get(at).map(|field| PathBuf::from(OsString::from_vec(unescape(field))));
    let owner = text(dash + 3)?.split(',').find_map(|option| option.strip_prefix("user_id=")?.parse().ok());
    Some(Mount { device: text(2)?, root: path(3)?, mountpoint: path(4)?, kind: text(dash + 1)?, owner })
}

/// Blank, tab, newline and backslash are written as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail.get(..3).filter(|_| first == b'\\').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[u8] = b"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw\n\
        40 22 0:45 / /mnt/a\\040b rw,nosuid - fuse.hither hither rw,user_id=1000,group_id=7,allow_other\n\
        41 22 0:45 /sub /bind rw master:2 - fuse.hither hither rw,user_id=1000,group_id=7\n\
        42 40 0:50 / /mnt/a\\040b/tmp rw - tmpfs tmpfs rw\n\
        43 22 0:51 / /mnt/a\\040b rw - fuse.other x rw,user_id=0\n\
        a line of another kind\n";

    #[test]
    fn lines_are_understood_and_escapes_undone() {
        let mounts = parse(SAMPLE);
        assert_eq!(mounts.len(), 5);
        let expected = Mount {
            device: "0:45".into(),
            root: "/".into(),
            mountpoint: "/mnt/a b".into(),
            kind: "fuse.hither".into(),
            owner: Some(1000),
        };
        assert_eq!(mounts[1], expected);
        assert!(mounts[1].is_ours() && mounts[2].is_ours() && !mounts[4].is_ours());
        assert_eq!(mounts[0].owner, None);
        assert_eq!(unescape(b"\\"), b"\\");
        assert_eq!(unescape(b"\\9zz\\134"), b"\\9zz\\");
    }

    #[test]
    fn the_innermost_and_topmost_mount_counts() {
        let mounts = parse(SAMPLE);
        let device = |path| of_path(&mounts, Path::new(path)).map(|mount| mount.device.as_str());
        assert_eq!(device("/bind/x"), Some("0:45"));
        assert_eq!(device("/mnt/a b/x"), Some("0:51"));
        assert_eq!(device("/mnt/a b/tmp/x"), Some("0:50"));
        assert_eq!(device("/mnt/a bc"), Some("254:0"));
        assert_eq!(at(&mounts, Path::new("/mnt/a b")).unwrap().device, "0:51");
        assert_eq!(at(&mounts, Path::new("/mnt")), None);
    }

    #[test]
    fn the_kernel_of_this_machine_is_understood() {
        let mounts = read().unwrap();
        assert!(mounts.iter().any(|mount| mount.mountpoint == Path::new("/proc") && mount.kind == "proc"));
    }
}
