//! Names the life of a store's page cache: what was written into it is there as long as this name is the same.

use std::fs;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, StatxFlags, statx};

/// `STATX_MNT_ID_UNIQUE` (Linux 6.8): an id that no later mount gets again, unlike that of `STATX_MNT_ID`.
const STATX_MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// 16 bytes, equal for two runs only if machine and mount of the store's disk have lived on between them.
///
/// Where the kernel cannot tell mounts apart for certain, each run has its own: copies that no sync had made safe
/// are then fetched again, which costs time and nothing else.
pub(crate) fn of(store: impl AsFd) -> io::Result<[u8; 16]> {
    let boot = fs::read("/proc/sys/kernel/random/boot_id")?;
    let status = statx(store, "", AtFlags::EMPTY_PATH, STATX_MNT_ID_UNIQUE)?;
    let mount = if status.stx_mask & STATX_MNT_ID_UNIQUE.bits() != 0 {
        status.stx_mnt_id.to_le_bytes().to_vec()
    } else {
        fs::read("/proc/sys/kernel/random/uuid")?
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(&boot).update(&mount);
    let mut name = [0; 16];
    hasher.finalize_xof().fill(&mut name);
    Ok(name)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    #[test]
    fn one_mount_has_one_name_and_another_has_another() {
        let shm = super::of(File::open("/dev/shm").unwrap()).unwrap();
        assert_eq!(shm, super::of(File::open("/dev/shm").unwrap()).unwrap());
        assert_ne!(shm, super::of(File::open("/proc").unwrap()).unwrap());
    }
}
