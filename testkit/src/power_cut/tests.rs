//! What was synced before a cut is there after it, and what was not may be lost.

use std::fs;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;

/// The disk, or a line that says why there is none here.
fn disk() -> Option<Disk> {
    match Disk::new(128 << 20) {
        Ok(disk) => Some(disk),
        Err(cannot) => {
            println!("not run: {cannot}");
            assert!(!rustix::process::geteuid().is_root() || !tools_are_there(), "{cannot}");
            None
        }
    }
}

fn tools_are_there() -> bool {
    let there = |program| Command::new(program).arg("-V").output().is_ok();
    there("mkfs.xfs") && there("mkfs.ext4") && Path::new("/dev/loop-control").exists()
}

#[test]
fn what_was_synced_survives_and_the_rest_need_not() {
    let Some(disk) = disk() else { return };
    let mut synced = File::create(disk.path().join("synced")).unwrap();
    synced.write_all(&[7; 100_000]).unwrap();
    synced.sync_all().unwrap();
    File::open(disk.path()).unwrap().sync_all().unwrap();
    fs::write(disk.path().join("unsynced"), b"only in the cache").unwrap();
    let cut = disk.cut().unwrap();
    assert_eq!(fs::read(cut.path().join("synced")).unwrap(), [7; 100_000]);
    let unsynced = fs::read(cut.path().join("unsynced")).unwrap_or_default();
    assert!(unsynced.is_empty(), "nothing had asked for it to be written");
    // Both go on, apart from each other.
    fs::write(cut.path().join("new"), b"here").unwrap();
    assert!(!disk.path().join("new").exists());
    assert_eq!(fs::read(disk.path().join("unsynced")).unwrap(), b"only in the cache");
}

/// Writes files one after another, each synced before its number is told.
fn write_and_sync(at: &Path, told: &AtomicU64, stop: &AtomicBool) {
    for number in 1.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let (new, name) = (at.join("new"), at.join(number.to_string()));
        let mut file = File::create(&new).unwrap();
        file.write_all(&contents(number)).unwrap();
        file.sync_all().unwrap();
        fs::rename(&new, &name).unwrap();
        File::open(at).unwrap().sync_all().unwrap();
        told.store(number, Ordering::SeqCst);
        if number > 20 {
            fs::remove_file(at.join((number - 20).to_string())).unwrap();
        }
    }
}

fn contents(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(1 + number as usize % 5000)
}

#[test]
fn a_cut_at_any_moment_is_a_sound_file_system() {
    let Some(disk) = disk() else { return };
    let (told, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| write_and_sync(disk.path(), &told, &stop));
        for round in 0..12 {
            std::thread::sleep(Duration::from_millis(20 + 13 * round));
            let before = told.load(Ordering::SeqCst);
            let cut = disk.cut().unwrap();
            let after = told.load(Ordering::SeqCst);
            // Removals are not synced: those of the last few may be there or not. All in between must be there.
            for number in after.saturating_sub(19).max(1)..=before {
                let path = cut.path().join(number.to_string());
                assert_eq!(fs::read(&path).unwrap(), contents(number), "{number} was told to be safe");
            }
            for entry in fs::read_dir(cut.path()).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                if let Ok(number) = name.parse() {
                    let bytes = fs::read(cut.path().join(&name)).unwrap();
                    assert_eq!(bytes, contents(number), "a name is made only when its bytes are safe");
                }
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
    assert!(told.load(Ordering::SeqCst) > 10);
}
