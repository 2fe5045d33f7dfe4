//! Points 1 and 2 of what the kernel does with backings: one kind of open per node id, and mappings that outlive the
//! close. With passthrough and without, a program must see the same.

use super::*;
use hither_sys::mapping::Mapping;

const FILE: Identity = Identity { dev: 1, ino: 100, generation: 0 };

/// Runs with backings that the kernel may use, and without.
fn both_ways(run: impl Fn(&Arc<Scripted>, &Mounted, bool)) {
    if !can_mount() {
        return;
    }
    for passthrough in [Passthrough::Auto, Passthrough::Off] {
        let fs = Scripted::new();
        fs.add("file", b"");
        let mounted = Mounted::with(fs.clone(), &Options { passthrough, ..Options::default() });
        let is_on = matches!(mounted.session.stats().data_path, DataPath::Passthrough { .. });
        assert_eq!(is_on, passthrough == Passthrough::Auto, "{}", mounted.session.stats().data_path);
        run(&fs, &mounted, is_on);
    }
}

fn read(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; 100];
    let length = file.read_at(&mut bytes, 0).unwrap();
    bytes.truncate(length);
    bytes
}

#[test]
fn old_opens_keep_the_old_version_and_new_ones_get_the_new() {
    both_ways(|fs, mounted, is_on| {
        let file = fs.root_file("file");
        let path = mounted.path("file");
        let mut held = Vec::new();
        for round in 0_u32..6 {
            // They grow, and shrink.
            let bytes = format!("version {round}").repeat((round as usize * 5) % 7 + 1).into_bytes();
            // Every other version has a backing: both kinds of opens live side by side.
            let given = (round % 2 == 0).then(|| backing(&bytes));
            file.advance(&bytes, given);
            fs.tell(&Event::Data(FILE));
            let open = File::open(&path).unwrap();
            held.push((open, bytes));
            for (open, bytes) in &held {
                assert_eq!(read(open), *bytes, "round {round}");
                assert_eq!(fs::metadata(&path).unwrap().len(), held[round as usize].1.len() as u64);
                open.metadata().unwrap();
                assert_eq!(read(open), *bytes, "also after somebody asked for the attributes of the node");
            }
        }
        let inodes: Vec<u64> = held.iter().map(|(open, _)| open.metadata().unwrap().ino()).collect();
        assert_eq!(inodes, [100; 6]);
        let stats = mounted.session.stats();
        assert_eq!(stats.opens_passthrough, if is_on { 3 } else { 0 });
        assert_eq!(stats.opens_cached, if is_on { 3 } else { 6 });
        assert_eq!(stats.files, 6);
    });
}

#[test]
fn a_fill_that_completes_while_a_program_reads_backs_the_next_open() {
    both_ways(|fs, mounted, is_on| {
        let file = fs.root_file("file");
        let path = mounted.path("file");
        let bytes = b"the same bytes, now here".to_vec();
        *file.version.lock().bytes.lock() = bytes.clone();
        let before = File::open(&path).unwrap();
        assert_eq!(read(&before), bytes);
        file.advance(&bytes, Some(backing(&bytes)));
        fs.tell(&Event::Attr(FILE));
        let after = File::open(&path).unwrap();
        assert_eq!((read(&before), read(&after)), (bytes.clone(), bytes));
        let stats = mounted.session.stats();
        assert_eq!((stats.opens_passthrough, stats.opens_stale), (u64::from(is_on), 1));
    });
}

#[test]
fn a_mapping_outlives_the_close_and_writes_to_the_backing_unseen() {
    both_ways(|fs, mounted, is_on| {
        let file = fs.root_file("file");
        let given = backing(&[b'.'; 8192]);
        file.advance(&[b'.'; 8192], Some(given.clone()));
        let open = OpenOptions::new().read(true).write(true).open(mounted.path("file")).unwrap();
        let mapping = Mapping::new(&open, 8192, true).unwrap();
        drop(open);
        until("the open is released", || !is_on || mounted.session.stats().files == 0);
        mapping.write(4096, b"late");
        mapping.sync().unwrap();
        let mut seen = [0; 4];
        mapping.read(4096, &mut seen);
        assert_eq!(&seen, b"late");
        if is_on {
            assert_eq!(rustix::io::pread(&given.0, &mut seen, 4096), Ok(4));
            assert_eq!(&seen, b"late", "it went to the backing without a request");
            assert_eq!(mounted.session.stats().bytes_written, 0);
        } else {
            assert_eq!(file.version.lock().bytes.lock()[4096..4100], *b"late");
        }
        drop(mapping);
    });
}

#[test]
fn what_changed_elsewhere_is_seen_when_it_is_told() {
    both_ways(|fs, mounted, _| {
        let file = fs.root_file("file");
        let path = mounted.path("file");
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
        *file.version.lock().bytes.lock() = vec![1; 10];
        assert_eq!(fs::metadata(&path).unwrap().len(), 0, "kept for a day");
        fs.tell(&Event::Data(FILE));
        until("the kernel is told", || fs::metadata(&path).unwrap().len() == 10);
        assert_eq!(fs::metadata(mounted.path("new")).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs.add("new", b"");
        assert_eq!(fs::metadata(mounted.path("new")).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs.tell(&Event::Name { parent: fs.root_identity(), name: "new".into() });
        until("the kernel is told", || fs::metadata(mounted.path("new")).is_ok());
    });
}
