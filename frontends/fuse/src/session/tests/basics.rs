//! What any program does with files, on several file systems.

use super::*;
use rustix::fs::{AtFlags, CWD, FallocateFlags, FlockOperation, RenameFlags, StatxFlags, XattrFlags};

fn on_each(run: impl Fn(&Mounted)) {
    if !can_mount() {
        return;
    }
    let (_plain_source, plain) = host_dir(false);
    let (_backed_source, backed) = host_dir(true);
    for fs in [Arc::new(Mem::new()) as Arc<dyn FileSystem>, plain, backed] {
        run(&Mounted::new(fs));
    }
}

#[test]
fn bytes_come_back() {
    on_each(|mounted| {
        let path = mounted.path("file");
        let data: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 253) as u8).collect();
        fs::write(&path, &data).unwrap();
        assert!(fs::read(&path).unwrap() == data);
        let mut file = OpenOptions::new().read(true).append(true).open(&path).unwrap();
        file.write_all(b"tail").unwrap();
        file.seek(SeekFrom::End(-6)).unwrap();
        let mut end = [0; 6];
        file.read_exact(&mut end).unwrap();
        assert_eq!(end, [data[2_999_998], data[2_999_999], b't', b'a', b'i', b'l']);
        OpenOptions::new().write(true).open(&path).unwrap().set_len(10).unwrap();
        assert_eq!(fs::read(&path).unwrap(), data[..10]);
        file.sync_all().unwrap();
        let truncated = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
        truncated.write_at(b"x", 4).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"\0\0\0\0x");
        fs::remove_file(&path).unwrap();
        file.write_all(b"unlinked, and still there").unwrap();
        assert_eq!(file.metadata().unwrap().nlink(), 0);
        assert_eq!(fs::metadata(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    });
}

#[test]
fn names_move_and_multiply() {
    on_each(|mounted| {
        let (a, b, dir) = (mounted.path("a"), mounted.path("b"), mounted.path("dir"));
        fs::write(&a, b"a").unwrap();
        fs::write(&b, b"b").unwrap();
        fs::create_dir(&dir).unwrap();
        fs::hard_link(&a, dir.join("link")).unwrap();
        assert_eq!(fs::metadata(&a).unwrap().nlink(), 2);
        assert_eq!(fs::metadata(&a).unwrap().ino(), fs::metadata(dir.join("link")).unwrap().ino());
        rustix::fs::renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
        assert_eq!((fs::read(&a).unwrap(), fs::read(&b).unwrap()), (b"b".to_vec(), b"a".to_vec()));
        let refused = rustix::fs::renameat_with(CWD, &a, CWD, &b, RenameFlags::NOREPLACE);
        assert_eq!(refused, Err(Errno::EXIST));
        fs::rename(&a, &b).unwrap();
        assert_eq!(fs::metadata(dir.join("link")).unwrap().nlink(), 1);
        std::os::unix::fs::symlink("dir/link", mounted.path("sym")).unwrap();
        assert_eq!(fs::read(mounted.path("sym")).unwrap(), b"a");
        assert_eq!(fs::read_link(mounted.path("sym")).unwrap(), Path::new("dir/link"));
        assert_eq!(fs::remove_dir(&dir).unwrap_err().raw_os_error(), Some(Errno::NOTEMPTY.raw_os_error()));
        fs::remove_dir_all(&dir).unwrap();
        rustix::fs::mknodat(CWD, mounted.path("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let device = rustix::fs::makedev(259, 70_000);
        let kind = rustix::fs::FileType::CharacterDevice;
        rustix::fs::mknodat(CWD, mounted.path("device"), kind, 0o600.into(), device).unwrap();
        assert_eq!(fs::symlink_metadata(mounted.path("device")).unwrap().rdev(), device);
    });
}

#[test]
fn attributes_are_kept_to_the_nanosecond() {
    on_each(|mounted| {
        let path = mounted.path("file");
        let file = File::create(&path).unwrap();
        file.set_permissions(Permissions::from_mode(0o4710)).unwrap();
        assert_eq!(file.metadata().unwrap().mode(), 0o104_710);
        let time = std::time::UNIX_EPOCH + Duration::new(1_234_567_890, 123_456_789);
        file.set_modified(time).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), time);
        std::os::unix::fs::chown(&path, Some(12), Some(34)).unwrap();
        let attr = fs::metadata(&path).unwrap();
        assert_eq!((attr.uid(), attr.gid(), attr.mode()), (12, 34, 0o100_710));
        let statx = rustix::fs::statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::ALL).unwrap();
        assert!(statx.stx_mask & StatxFlags::BTIME.bits() != 0, "birth time is told");
        assert!(statx.stx_btime.tv_sec > 1_700_000_000);
        let space = rustix::fs::statvfs(&path).unwrap();
        assert!(space.f_blocks > 0 && space.f_namemax >= 255);
    });
}

#[test]
fn extended_attributes() {
    on_each(|mounted| {
        let path = mounted.path("file");
        fs::write(&path, b"").unwrap();
        // Not "user.": tmpfs of older kernels has none of those.
        let name = "trusted.hither";
        let mut value = [0; 64];
        assert_eq!(rustix::fs::getxattr(&path, name, &mut value), Err(Errno::NODATA));
        rustix::fs::setxattr(&path, name, b"value", XattrFlags::CREATE).unwrap();
        let again = rustix::fs::setxattr(&path, name, b"value", XattrFlags::CREATE);
        assert_eq!(again, Err(Errno::EXIST));
        assert_eq!(rustix::fs::getxattr(&path, name, &mut value), Ok(5));
        assert_eq!(rustix::fs::getxattr(&path, name, &mut [0_u8; 2][..]), Err(Errno::RANGE));
        let mut list = [0_u8; 256];
        let length = rustix::fs::listxattr(&path, &mut list).unwrap();
        assert!(list[..length].split(|byte| *byte == 0).any(|entry| entry == name.as_bytes()));
        rustix::fs::removexattr(&path, name).unwrap();
        assert_eq!(rustix::fs::removexattr(&path, name), Err(Errno::NODATA));
    });
}

#[test]
fn holes_copies_and_nameless_files() {
    on_each(|mounted| {
        let path = mounted.path("sparse");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        file.write_at(&[1; 4096], 1 << 20).unwrap();
        assert_eq!(rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(0)), Ok(1 << 20));
        assert_eq!(rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(1 << 20)), Ok((1 << 20) + 4096));
        assert_eq!(rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(2 << 20)), Err(Errno::NXIO));
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 3 << 20).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 3 << 20);
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, punch, 1 << 20, 4096).unwrap();
        let mut byte = [9];
        file.read_at(&mut byte, 1 << 20).unwrap();
        assert_eq!(byte, [0]);
        file.write_at(b"copied", 0).unwrap();
        let copy = File::create_new(mounted.path("copy")).unwrap();
        let copied = rustix::fs::copy_file_range(&file, Some(&mut 0), &copy, Some(&mut 2), 6).unwrap();
        assert_eq!((copied, fs::read(mounted.path("copy")).unwrap()), (6, b"\0\0copied".to_vec()));
        let mut nameless = OpenOptions::new();
        let nameless =
            nameless.read(true).write(true).custom_flags(rustix::fs::OFlags::TMPFILE.bits() as i32);
        let nameless = nameless.open(mounted.dir.path()).unwrap();
        (&nameless).write_all(b"now it has one").unwrap();
        let descriptor = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&nameless));
        let named = mounted.path("named");
        rustix::fs::linkat(CWD, descriptor, CWD, &named, AtFlags::SYMLINK_FOLLOW).unwrap();
        assert_eq!(fs::read(named).unwrap(), b"now it has one");
    });
}

#[test]
fn a_large_directory_is_listed_whole_while_it_changes() {
    on_each(|mounted| {
        let dir = mounted.path("dir");
        fs::create_dir(&dir).unwrap();
        for number in 0..2000 {
            File::create(dir.join(format!("a rather long name for a file {number}"))).unwrap();
        }
        let mut listed = Vec::new();
        for entry in fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            assert!(entry.metadata().unwrap().is_file());
            if listed.len() == 500 {
                File::create(dir.join("newcomer")).unwrap();
            }
            listed.push(entry.file_name());
        }
        listed.retain(|name| name != "newcomer");
        assert_eq!(listed.len(), 2000);
        listed.sort();
        listed.dedup();
        assert_eq!(listed.len(), 2000);
        let stats = mounted.session.stats();
        let plus = stats.operations.iter().find(|operation| operation.name == "readdirplus");
        assert!(plus.is_some_and(|plus| plus.count > 0), "names come with attributes");
    });
}

#[test]
fn flocks_exclude_each_other() {
    on_each(|mounted| {
        let path = mounted.path("file");
        let (first, second) = (File::create(&path).unwrap(), File::open(&path).unwrap());
        rustix::fs::flock(&first, FlockOperation::LockExclusive).unwrap();
        let refused = rustix::fs::flock(&second, FlockOperation::NonBlockingLockShared);
        assert_eq!(refused, Err(Errno::AGAIN));
        let waiting = std::thread::spawn(move || rustix::fs::flock(&second, FlockOperation::LockShared));
        until("a lock request is under way", || mounted.session.stats().in_flight == 1);
        drop(first);
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
}

#[test]
fn direct_io_reads_and_writes_what_others_see() {
    on_each(|mounted| {
        let path = mounted.path("file");
        fs::write(&path, vec![7; 64 << 10]).unwrap();
        let mut options = OpenOptions::new();
        let direct = options.read(true).write(true).custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32);
        let file = match direct.open(&path) {
            Ok(file) => file,
            // tmpfs of older kernels has none.
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => return,
            Err(error) => panic!("{error}"),
        };
        let mut buffer = crate::transport::buffer::PageBuffer::new(8192, 0);
        let bytes = &mut buffer.bytes_mut()[..8192];
        assert_eq!(file.read_at(bytes, 4096).unwrap(), 8192);
        assert!(bytes.iter().all(|byte| *byte == 7));
        bytes.fill(8);
        assert_eq!(file.write_at(bytes, 8192).unwrap(), 8192);
        let whole = fs::read(&path).unwrap();
        assert_eq!((whole[8191], whole[8192], whole[16_383], whole[16_384]), (7, 8, 8, 7));
    });
}

#[test]
fn a_read_only_mount_refuses_changes() {
    if !can_mount() {
        return;
    }
    let (source, fs) = host_dir(true);
    fs::write(source.path().join("file"), b"kept").unwrap();
    let mounted = Mounted::with(fs, &Options { read_only: true, ..Options::default() });
    assert_eq!(fs::read(mounted.path("file")).unwrap(), b"kept");
    let refused = fs::write(mounted.path("file"), b"lost").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::ROFS.raw_os_error()));
}
