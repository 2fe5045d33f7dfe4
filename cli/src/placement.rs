//! Where a store lies: on a disk of this machine, or on something that makes no sense or little.

use std::fs;
use std::path::Path;

use hither_stack::FsConfig;

use crate::failure::usage;
use crate::mountinfo::{self, Mount};
use crate::output::complain;

/// File systems that a cache is put in front of, not behind.
const REMOTE: &[&str] = &[
    "nfs",
    "nfs4",
    "lustre",
    "cifs",
    "smb3",
    "ceph",
    "9p",
    "afs",
    "gpfs",
    "beegfs",
    "orangefs",
    "glusterfs",
];

/// Refuses stores on a mount of hither, whose copies would only go where the origin is, and warns of remote ones.
pub fn check(fs: &FsConfig) -> anyhow::Result<()> {
    let FsConfig::Cache(cache) = fs else { return Ok(()) };
    let store = &cache.settings.store;
    let mounts = mountinfo::read().unwrap_or_default();
    // What is not there will be said by who builds it.
    let real = fs::canonicalize(store).ok().or_else(|| fs::canonicalize(store.parent()?).ok());
    if let Some(mount) = real.as_deref().and_then(|real| mountinfo::of_path(&mounts, real)) {
        judge(store, mount)?;
    }
    check(&cache.origin)
}

fn judge(store: &Path, mount: &Mount) -> anyhow::Result<()> {
    let (store, at) = (store.display(), mount.mountpoint.display());
    if mount.is_ours() {
        return Err(usage(format!(
            "the store {store} lies on a mount of hither ({at}): name a directory on a disk of this machine"
        )));
    }
    if REMOTE.contains(&mount.kind.strip_prefix("fuse.").unwrap_or(&mount.kind)) {
        let kind = &mount.kind;
        complain(&format!(
            "warning: the store {store} lies on {kind} ({at}): copies are only fast on a disk of this machine"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{USAGE, code_of};

    fn on(kind: &str) -> anyhow::Result<()> {
        let mount = Mount {
            device: "0:1".into(),
            root: "/".into(),
            mountpoint: "/m".into(),
            kind: kind.into(),
            owner: None,
        };
        judge(Path::new("/m/s"), &mount)
    }

    #[test]
    fn a_store_on_a_mount_of_ours_is_wrong_usage_and_on_any_other_it_is_not() {
        let error = on("fuse.hither").unwrap_err();
        assert_eq!(code_of(&error), USAGE);
        assert!(error.to_string().contains("/m/s lies on a mount of hither (/m)"), "{error}");
        for kind in ["ext4", "tmpfs", "nfs4", "fuse.glusterfs"] {
            on(kind).unwrap();
        }
    }
}
