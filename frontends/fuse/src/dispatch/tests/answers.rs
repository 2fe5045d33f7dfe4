//! What answers say, what they give, and what they take back.

use super::*;
use crate::protocol::abi::{Dirent, GetattrOut, WRITE_KILL_SUIDGID};
use crate::scripted::name_of;
use hither_vfs::{Event, Identity};

#[test]
fn a_node_is_forgotten_when_all_its_lookups_are() {
    let fs = Scripted::new();
    fs.add("a", b"");
    let play = Play::new(fs);
    let first = play.lookup("a");
    let again = play.lookup("a");
    assert_eq!((first.nodeid, first.attr.ino), (again.nodeid, 100));
    play.send(opcode::FORGET, first.nodeid, |out| 1_u64.put(out));
    play.send(opcode::BATCH_FORGET, 0, |out| {
        1_u64.put(out);
        first.nodeid.put(out);
        1_u64.put(out);
    });
    play.until(|dispatcher| dispatcher.nodes.len() == 1);
    assert_eq!(play.open(first.nodeid, 0).unwrap_err(), Errno::STALE.raw_os_error());
    assert_ne!(play.lookup("a").nodeid, first.nodeid, "an id is never used again");
}

#[test]
fn what_is_not_there_may_be_remembered() {
    let play = Play::new(Scripted::new());
    let entry = play.lookup("no");
    assert_eq!((entry.nodeid, entry.entry_valid), (0, 86_400));
}

#[test]
fn an_answer_that_nobody_takes_gives_nothing() {
    let fs = Scripted::new();
    fs.add("a", b"");
    let play = Play::new(fs.clone());
    let next = 2 * play.next.load(Ordering::SeqCst) as u64;
    play.kernel.aborted.lock().extend([next, next + 2, next + 4]);
    play.send(opcode::LOOKUP, 1, |out| put_name(out, "a"));
    play.send(opcode::CREATE, 1, |out| {
        CreateIn { flags: 1, mode: 0o600, umask: 0, open_flags: 0 }.put(out);
        put_name(out, "b");
    });
    play.send(opcode::OPENDIR, 1, |out| 0_u64.put(out));
    play.until(|dispatcher| dispatcher.counters.late.get() == 3);
    play.until(|dispatcher| dispatcher.nodes.len() == 1 && dispatcher.dirs.len() == 0);
    assert_eq!((fs.open_handles(), play.dispatcher.files.len()), (0, 0));
}

#[test]
fn a_listing_with_nodes_counts_each_and_takes_them_back_if_it_is_lost() {
    let fs = Scripted::new();
    for number in 0..50 {
        fs.add(&format!("file{number:02}"), b"");
    }
    let play = Play::new(fs);
    let (_, body) = play.ask(opcode::OPENDIR, 1, |out| 0_u64.put(out));
    let fh = OpenOut::take(&mut &body[..]).unwrap().fh;
    let room = 160 * 10 + 100;
    let args = |offset| ReadIn { fh, offset, size: room, ..ReadIn::default() };
    let (errno, body) = play.ask(opcode::READDIRPLUS, 1, |out| args(0).put(out));
    assert_eq!(errno, 0);
    assert_eq!(body.len(), 160 * 10, "as many whole entries as there is room for");
    let mut rest = &body[..];
    let entry = EntryOut::take(&mut rest).unwrap();
    let dirent = Dirent::take(&mut rest).unwrap();
    assert_eq!((entry.attr.ino, dirent.ino, dirent.namelen, dirent.kind), (100, 100, 6, 8));
    assert_eq!(play.dispatcher.nodes.len(), 11);
    let next = 2 * play.next.load(Ordering::SeqCst) as u64;
    play.kernel.aborted.lock().push(next);
    play.send(opcode::READDIRPLUS, 1, |out| args(10).put(out));
    play.until(|dispatcher| dispatcher.counters.late.get() == 1);
    play.until(|dispatcher| dispatcher.nodes.len() == 11);
    let (errno, _) = play.ask(opcode::READDIR, 1, |out| ReadIn { size: 20, ..args(0) }.put(out));
    assert_eq!(errno, Errno::INVAL.raw_os_error(), "no room for even one");
}

#[test]
fn what_is_learned_while_something_changes_is_not_kept() {
    let fs = Scripted::new();
    fs.add("a", b"");
    let play = Play::new(fs.clone());
    let root = fs.root_identity();
    assert_eq!(play.lookup("a").entry_valid, 86_400);
    let teller = Arc::downgrade(&fs);
    fs.set_hook(move |_, _| {
        let event = Event::Name { parent: root, name: "a".into() };
        teller.upgrade().unwrap().tell(&event);
        Ok(())
    });
    let entry = play.lookup("a");
    assert_eq!((entry.entry_valid, entry.attr_valid, entry.attr.ino), (0, 0, 100));
    let (_, body) = play.ask(opcode::GETATTR, 1, |out| Pad::<16>.put(out));
    let attr = GetattrOut::take(&mut &body[..]).unwrap();
    assert_eq!((attr.attr_valid, attr.attr.ino), (0, 1));
}

#[test]
fn events_become_invalidations_of_what_the_kernel_knows() {
    let fs = Scripted::new();
    let file = fs.add("a", b"");
    let play = Play::new(fs.clone());
    let nodeid = play.lookup("a").nodeid;
    let identity = Identity { dev: 1, ino: 100, generation: 0 };
    fs.tell(&Event::Attr(Identity { ino: 5555, ..identity }));
    fs.tell(&Event::Attr(identity));
    fs.tell(&Event::Data(identity));
    fs.tell(&Event::Name { parent: fs.root_identity(), name: "a".into() });
    let expected = [
        (2, [nodeid.to_ne_bytes(), (-1_i64).to_ne_bytes(), [0; 8]].concat()),
        (2, [nodeid.to_ne_bytes(), [0; 8], [0; 8]].concat()),
        (3, [&1_u64.to_ne_bytes()[..], &1_u32.to_ne_bytes(), &1_u32.to_ne_bytes(), b"a\0"].concat()),
    ];
    play.wait_for(|kernel| (kernel.notices.lock().len() >= 3).then_some(()));
    let mut notices = play.kernel.notices.lock().clone();
    notices.sort_by_key(|(code, body)| (*code, body[8..16] != (-1_i64).to_ne_bytes()));
    assert_eq!(notices, expected);
    drop(file);
}

#[test]
fn errnos_that_mean_something_else_to_the_kernel_are_changed() {
    let fs = Scripted::new();
    let play = Play::new(fs.clone());
    assert_eq!(play.ask(opcode::ACCESS, 1, |out| 0_u64.put(out)).0, Errno::OPNOTSUPP.raw_os_error());
    assert_eq!(play.ask(opcode::BMAP, 1, |out| Pad::<16>.put(out)).0, Errno::NOSYS.raw_os_error());
    assert_eq!(
        play.ask(opcode::GETXATTR, 1, |out| {
            0_u64.put(out);
            put_name(out, "user.a");
        })
        .0,
        Errno::NOSYS.raw_os_error(),
        "this file system has none"
    );
    assert_eq!(play.ask(99, 1, |_| {}).0, Errno::NOSYS.raw_os_error());
    assert_eq!(play.ask(opcode::IOCTL, 1, |out| Pad::<32>.put(out)).0, Errno::NOTTY.raw_os_error());
    fs.set_hook(|_, _| Err(Errno::NOTCONN.into()));
    assert_eq!(play.ask(opcode::STATFS, 1, |_| {}).0, Errno::IO.raw_os_error());
    assert_eq!(play.ask(opcode::GETATTR, 1, |_| {}).0, Errno::INVAL.raw_os_error(), "a message cut short");
    assert_eq!(play.read(12_345).0, Errno::BADF.raw_os_error());
}

#[test]
fn appended_bytes_go_to_the_end_and_mapped_ones_to_their_place() {
    let fs = Scripted::new();
    let file = fs.add("a", b"12345");
    let play = Play::new(fs);
    let open = play.open(play.lookup("a").nodeid, 1).unwrap();
    let o_append = 0o2000;
    for (write_flags, data) in [(0, b"x"), (crate::protocol::abi::WRITE_CACHE, b"y")] {
        let args =
            WriteIn { fh: open.fh, offset: 1, size: 1, write_flags, flags: o_append, ..WriteIn::default() };
        play.ask(opcode::WRITE, 0, |out| {
            args.put(out);
            out.extend_from_slice(data);
        });
    }
    assert_eq!(*file.version.lock().bytes.lock(), b"1y345x");
    assert_eq!(play.read(open.fh), (0, b"1y345x".to_vec()));
}

#[test]
fn set_ids_go_before_the_bytes_change_and_the_kernel_hears_of_it() {
    let fs = Scripted::new();
    let file = fs.add("a", b"");
    let play = Play::new(fs);
    let entry = play.lookup("a");
    let open = play.open(entry.nodeid, 1).unwrap();
    file.version.lock().mode = 0o106_755;
    let args = WriteIn { fh: open.fh, size: 1, write_flags: WRITE_KILL_SUIDGID, ..WriteIn::default() };
    let (errno, _) = play.ask(opcode::WRITE, 0, |out| {
        args.put(out);
        out.push(b'x');
    });
    assert_eq!((errno, file.version.lock().mode), (0, 0o100_755));
    let notice = [entry.nodeid.to_ne_bytes(), (-1_i64).to_ne_bytes(), [0; 8]].concat();
    assert_eq!(*play.kernel.notices.lock(), [(2, notice)]);
    file.version.lock().mode = 0o104_755;
    let truncate = SetattrIn { valid: fattr::SIZE | fattr::KILL_SUIDGID, ..SetattrIn::default() };
    let (errno, body) = play.ask(opcode::SETATTR, entry.nodeid, |out| truncate.put(out));
    let attr = GetattrOut::take(&mut &body[..]).unwrap().attr;
    assert_eq!((errno, attr.mode, attr.size), (0, 0o100_755, 0));
    file.version.lock().mode = 0o104_755;
    let chown = SetattrIn { valid: fattr::UID, uid: 5, ..SetattrIn::default() };
    let (_, body) = play.ask(opcode::SETATTR, entry.nodeid, |out| chown.put(out));
    assert_eq!(GetattrOut::take(&mut &body[..]).unwrap().attr.mode, 0o100_755);
}

#[test]
fn the_callers_umask_comes_along() {
    let fs = Scripted::new();
    let play = Play::new(fs);
    let (_, body) = play.ask(opcode::CREATE, 1, |out| {
        CreateIn { flags: 1, mode: 0o666, umask: 0o27, open_flags: 0 }.put(out);
        put_name(out, "b");
    });
    assert_eq!(EntryOut::take(&mut &body[..]).unwrap().attr.mode, 0o100_640);
}

#[test]
fn names_of_any_length_are_looked_up() {
    let play = Play::new(Scripted::new());
    let name = name_of(1024);
    let (errno, _) = play.ask(opcode::LOOKUP, 1, |out| put_name(out, name.to_str().unwrap()));
    assert_eq!(errno, 0);
}
