//! The directories of a mount: that they are there, and that none lies in another.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::build::BuildError;

/// Copies may hold what only some may read at the origin, so the store is nobody's but the daemon's.
const STORE_MODE: u32 = 0o700;

/// What a directory is for, as messages call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Mountpoint,
    Origin,
    Store,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Mountpoint => "mount point",
            Role::Origin => "origin",
            Role::Store => "store",
        }
    }
}

/// The real path of a directory that must be there.
pub(crate) fn existing(role: Role, path: &Path) -> Result<PathBuf, BuildError> {
    let unusable = |source| BuildError::Unusable { role: role.name(), path: path.to_owned(), source };
    let real = fs::canonicalize(path).map_err(unusable)?;
    if !fs::metadata(&real).map_err(unusable)?.is_dir() {
        return Err(unusable(io::Error::from(io::ErrorKind::NotADirectory)));
    }
    Ok(real)
}

/// Refuses a directory that an ordinary user may not list: nobody could use the mount. (What root may not, over NFS for
/// example, other users of root's mount may.)
pub(crate) fn readable(role: Role, path: &Path) -> Result<(), BuildError> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    access(path, Access::READ_OK | Access::EXEC_OK).map_err(|error| BuildError::Unusable {
        role: role.name(),
        path: path.to_owned(),
        source: error.into(),
    })
}

/// Whether anything is mounted at this real path. `true` where that cannot be told.
pub(crate) fn is_mounted(mountpoint: &str) -> bool {
    fs::read_to_string("/proc/self/mountinfo").map_or(true, |text| is_listed(&text, mountpoint))
}

/// The fifth field of a line is the mount point (proc(5)), with blanks and the like in octal.
fn is_listed(mountinfo: &str, mountpoint: &str) -> bool {
    let escaped = mountpoint.replace('\\', r"\134");
    let escaped = escaped.replace(' ', r"\040").replace('\t', r"\011").replace('\n', r"\012");
    mountinfo.lines().any(|line| line.split(' ').nth(4) == Some(&escaped))
}

/// How many files and directories are in a directory; `None` if it cannot be read.
pub(crate) fn entries(directory: &Path) -> Option<usize> {
    fs::read_dir(directory).ok().map(Iterator::count)
}

/// Where a store is or would be: its real path. Its parent must be there.
pub(crate) fn place_of_store(path: &Path) -> Result<PathBuf, BuildError> {
    match (fs::symlink_metadata(path), path.parent(), path.file_name()) {
        (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
            let real = existing(Role::Store, parent).map_err(|refused| match refused {
                BuildError::Unusable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                    BuildError::NoParent { store: path.to_owned(), parent: parent.to_owned() }
                }
                other => other,
            });
            Ok(real?.join(name))
        }
        _ => existing(Role::Store, path),
    }
}

/// Makes a store unless it is there. (Not its parent: that is likely where a disk should have been mounted.)
pub(crate) fn make_store(path: &Path) -> Result<(), BuildError> {
    match DirBuilder::new().mode(STORE_MODE).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(BuildError::Unusable { role: Role::Store.name(), path: path.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}

/// Refuses directories that lie in one another (or are one): a mount that would be its own origin hangs, a store
/// inside the origin would cache itself.
pub(crate) fn refuse_overlap(directories: &[(Role, PathBuf)]) -> Result<(), BuildError> {
    for (at, (role, path)) in directories.iter().enumerate() {
        for (other_role, other) in directories.iter().skip(at + 1) {
            let (inner, outer) = match (path.starts_with(other), other.starts_with(path)) {
                (true, _) => ((role, path), (other_role, other)),
                (false, true) => ((other_role, other), (role, path)),
                (false, false) => continue,
            };
            // Two stores or two origins inside one stack are not told apart by the flags; their paths do it.
            return Err(BuildError::Overlap {
                inner_role: inner.0.name(),
                inner: inner.1.clone(),
                outer_role: outer.0.name(),
                outer: outer.1.clone(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn overlap(mountpoint: &str, origin: &str, store: &str) -> Option<String> {
        let directories = [
            (Role::Mountpoint, mountpoint.into()),
            (Role::Origin, origin.into()),
            (Role::Store, store.into()),
        ];
        refuse_overlap(&directories).err().map(|error| error.to_string())
    }

    #[test]
    fn directories_that_lie_in_one_another_are_refused() {
        assert_eq!(overlap("/mnt", "/lustre", "/nvme"), None);
        assert_eq!(overlap("/mnt", "/mnt2", "/mnt3"), None, "a common beginning is no containment");
        for (mountpoint, origin, store, inner, outer) in [
            ("/mnt", "/lustre", "/lustre/store", "store /lustre/store", "origin /lustre"),
            ("/mnt", "/nvme/data", "/nvme", "origin /nvme/data", "store /nvme"),
            ("/mnt", "/lustre", "/mnt/store", "store /mnt/store", "mount point /mnt"),
            ("/nvme/mnt", "/lustre", "/nvme", "mount point /nvme/mnt", "store /nvme"),
            ("/lustre/mnt", "/lustre", "/nvme", "mount point /lustre/mnt", "origin /lustre"),
            ("/lustre", "/lustre", "/nvme", "mount point /lustre", "origin /lustre"),
        ] {
            let message = overlap(mountpoint, origin, store).unwrap();
            assert!(message.contains(inner) && message.contains(outer), "{message}");
        }
    }

    #[test]
    fn mount_points_are_found_however_they_are_called() {
        let text = r"22 1 254:0 / / rw - ext4 /dev/root rw
40 22 0:45 / /mnt/a\040b\134c rw,nosuid - fuse.hither hither rw";
        assert!(is_listed(text, r"/mnt/a b\c") && is_listed(text, "/"));
        assert!(!is_listed(text, "/mnt") && !is_listed(text, "/mnt/a"));
        assert!(is_mounted("/proc") && !is_mounted("/proc/self/no"));
    }

    #[test]
    fn a_store_is_made_private_but_its_parent_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(dir.path()).unwrap();
        let place = place_of_store(&dir.path().join("store")).unwrap();
        assert_eq!(place, real.join("store"));
        assert!(!place.exists());
        make_store(&place).unwrap();
        assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, STORE_MODE);
        make_store(&place).unwrap();
        assert_eq!(place_of_store(&place).unwrap(), place);
        assert!(place_of_store(&real.join("no/store")).is_err());
        fs::write(real.join("file"), "").unwrap();
        assert!(place_of_store(&real.join("file")).is_err());
        std::os::unix::fs::symlink(real.join("gone"), real.join("link")).unwrap();
        assert!(place_of_store(&real.join("link")).is_err(), "nothing is made where a link happens to lead");
    }
}
