//! Each fault does what the table says, to the calls it is meant for and to no others.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use hither_mem::Mem;
use hither_rt::sync::Mutex;
use hither_vfs::{
    Call, Cancel, Errno, Event, EventSink, FileSystem, Handle, OFlags, Patience, RenameFlags, SetAttr,
    WriteAt,
};

use super::*;
use crate::Client;

const LONG: Duration = Duration::from_secs(20);

fn faulty() -> (Arc<Faulty>, Arc<Script>, Client) {
    let script = Arc::new(Script::default());
    let faulty = Faulty::new(Arc::new(Mem::new()), script.clone());
    let client = Client::new(&*faulty);
    (faulty, script, client)
}

fn errno<T>(result: hither_vfs::Result<T>) -> Option<Errno> {
    result.err().map(|error| error.errno())
}

#[test]
fn without_a_script_it_is_the_inner_file_system() {
    let (faulty, script, client) = faulty();
    client.write("a", b"bytes").unwrap();
    client.link("a", "b").unwrap();
    client.mkdir("d", 0o755).unwrap();
    client.rename("b", "d/b", RenameFlags::empty()).unwrap();
    assert_eq!(client.read("d/b").unwrap(), b"bytes");
    let (a, b) = (client.node("a").unwrap(), client.node("d/b").unwrap());
    assert!(Arc::ptr_eq(&a, &b));
    assert!(Arc::ptr_eq(&faulty.root(), client.root()));
    let plus = client.list_node(&*client.node("d").unwrap(), true).unwrap();
    let found = plus.into_iter().find(|listed| listed.name == "b").unwrap().found.unwrap();
    assert!(Arc::ptr_eq(&found.node, &a));
    let handle = client.open("a", OFlags::RDWR).unwrap();
    let to = client.open("a", OFlags::RDWR).unwrap();
    assert_eq!(handle.copy_range(client.call(), 0, &*to, 10, 5).unwrap(), 5);
    let set = SetAttr { size: Some(2), ..SetAttr::default() };
    assert_eq!(a.setattr(client.call(), &set, Some(&*handle)).unwrap().size, 2);
    assert_eq!(script.count(Kind::CopyRange), 1);
    assert_eq!(script.bytes_read(), 5);
    assert_eq!(script.bytes_written(), 10);
}

#[test]
fn calls_fail_when_their_turn_comes() {
    let (_, script, client) = faulty();
    client.write("a", &[7; 100]).unwrap();
    let handle = client.open("a", OFlags::RDONLY).unwrap();
    let read = || errno(client.read_at(&*handle, 0, 10));
    let every = script.fail(Kind::Read, When::Every(3), Errno::IO);
    let results: Vec<_> = (0..7).map(|_| read().is_some()).collect();
    assert_eq!(results, [false, false, true, false, false, true, false]);
    script.remove(every);
    for (when, fails) in [
        (When::Nth(2), [false, true, false, false]),
        (When::First(2), [true, true, false, false]),
        (When::After(2), [false, false, true, true]),
        (When::Always, [true; 4]),
    ] {
        let rule = script.fail(Kind::Read, when, Errno::IO);
        assert_eq!([(); 4].map(|()| read() == Some(Errno::IO)), fails, "{when:?}");
        script.remove(rule);
    }
    assert_eq!(read(), None);
    assert_eq!(script.count(Kind::Read), 7 + 4 * 4 + 1);
}

#[test]
fn a_rule_can_be_about_one_name_or_one_node() {
    let (_, script, client) = faulty();
    client.write("a", b"a").unwrap();
    client.write("b", b"b").unwrap();
    script.add(Rule::new(Kind::Lookup, When::Always, Action::Fail(Errno::ACCESS)).named("a"));
    assert_eq!(errno(client.lookup("a")), Some(Errno::ACCESS));
    let b = client.lookup("b").unwrap();
    script.add(Rule::new(Kinds::DATA, When::Always, Action::Fail(Errno::IO)).on(b.node.identity()));
    assert_eq!(errno(client.read("b")), Some(Errno::IO));
    client.write("c", b"c").unwrap();
    assert_eq!(client.read("c").unwrap(), b"c");
}

#[test]
fn transfers_are_short_and_bits_flip() {
    let (_, script, client) = faulty();
    let handle = client.create("a", OFlags::RDWR, 0o600).unwrap().handle;
    script.add(Rule::new(Kinds::DATA, When::Always, Action::Short(3)));
    assert_eq!(handle.write(client.call(), b"abcdef", WriteAt::Offset(0)).unwrap(), 3);
    client.write_at(&*handle, b"abcdef", 0).unwrap();
    assert_eq!(client.read_at(&*handle, 0, 6).unwrap(), b"abc");
    script.heal();
    script.add(Rule::new(Kind::Read, When::Nth(2), Action::FlipBit(9)));
    assert_eq!(client.read_at(&*handle, 0, 6).unwrap(), b"abcdef");
    assert_eq!(client.read_at(&*handle, 0, 6).unwrap(), b"a`cdef");
    assert_eq!(client.read_at(&*handle, 0, 6).unwrap(), b"abcdef");
}

#[test]
fn space_runs_out_at_the_byte() {
    let (_, script, client) = faulty();
    let handle = client.create("a", OFlags::RDWR, 0o600).unwrap().handle;
    script.set_space(Some(10));
    let write = |bytes: &[u8]| handle.write(client.call(), bytes, WriteAt::End);
    assert_eq!(write(b"12345678").unwrap(), 8);
    assert_eq!(write(b"12345678").unwrap(), 2);
    assert_eq!(errno(write(b"1")), Some(Errno::NOSPC));
    assert_eq!(client.read("a").unwrap(), b"1234567812");
    script.set_space(Some(5));
    script.fail(Kind::Write, When::Always, Errno::IO);
    assert_eq!(errno(write(b"12345")), Some(Errno::IO));
    script.heal();
    script.set_space(Some(5));
    assert_eq!(write(b"12345").unwrap(), 5);
}

#[test]
fn a_delay_takes_its_time_and_heeds_patience() {
    const DELAY: Duration = Duration::from_millis(30);
    let (_, script, client) = faulty();
    client.write("a", b"a").unwrap();
    script.delay(Kind::Getattr, DELAY);
    let node = client.node("a").unwrap();
    let start = Instant::now();
    node.getattr(client.call()).unwrap();
    assert!(start.elapsed() >= DELAY);
    let hasty = client.with_patience(Patience::Never);
    assert!(node.getattr(hasty.call()).unwrap_err().is_would_block());
    let brief = client.with_patience(Patience::at_most(Duration::from_millis(1)));
    assert_eq!(errno(node.getattr(brief.call())), Some(Errno::IO));
    // Those that are delayed at the same time wait side by side.
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| node.getattr(client.call()).unwrap());
        }
    });
    assert!(start.elapsed() < 5 * DELAY);
}

/// Reads on another thread; the result comes by the channel.
fn read_aside(client: &Client, handle: &Arc<dyn Handle>) -> mpsc::Receiver<Option<Errno>> {
    let (tell, hear) = mpsc::channel();
    let (client, handle) = (client.clone(), handle.clone());
    std::thread::spawn(move || tell.send(errno(client.read_at(&*handle, 0, 1))));
    hear
}

#[test]
fn a_hang_lasts_until_it_is_released() {
    let (_, script, client) = faulty();
    client.write("a", b"a").unwrap();
    let handle = client.open("a", OFlags::RDONLY).unwrap();
    for (release, expected) in [(None, None), (Some(Errno::STALE), Some(Errno::STALE))] {
        script.hang(Kind::Read);
        // Patience does not help, as it does not in a system call.
        let stuck = read_aside(&client.with_patience(Patience::at_most(Duration::ZERO)), &handle);
        assert!(script.wait_until_stuck(1, LONG));
        client.attr("a").unwrap();
        assert_eq!(stuck.try_recv(), Err(mpsc::TryRecvError::Empty));
        match release {
            None => script.release(),
            Some(errno) => script.fail_stuck(errno),
        }
        assert_eq!(stuck.recv_timeout(LONG), Ok(expected));
        assert_eq!(script.stuck(), 0);
        assert_eq!(client.read("a").unwrap(), b"a");
    }
    assert!(!script.wait_until_stuck(1, Duration::from_millis(10)));
}

#[test]
fn a_patient_hang_ends_with_the_patience() {
    let (_, script, client) = faulty();
    client.write("a", b"a").unwrap();
    let handle = client.open("a", OFlags::RDONLY).unwrap();
    script.add(Rule::new(Kind::Read, When::Always, Action::Hang).patiently());
    let cancel = Cancel::default();
    let stuck = read_aside(
        &client.with_patience(Patience::Until { deadline: None, cancel: cancel.clone() }),
        &handle,
    );
    assert!(script.wait_until_stuck(1, LONG));
    cancel.cancel();
    assert_eq!(stuck.recv_timeout(LONG), Ok(Some(Errno::INTR)));
}

#[test]
fn what_vanished_comes_back() {
    let (faulty, script, client) = faulty();
    client.write("a", b"a").unwrap();
    let handle = client.open("a", OFlags::RDONLY).unwrap();
    script.vanish(Errno::NOTCONN);
    assert_eq!(errno(client.read_at(&*handle, 0, 1)), Some(Errno::NOTCONN));
    assert_eq!(errno(client.lookup("a")), Some(Errno::NOTCONN));
    assert_eq!(errno(faulty.statfs(client.call())), Some(Errno::NOTCONN));
    script.come_back();
    assert_eq!(client.read_at(&*handle, 0, 1).unwrap(), b"a");
}

#[derive(Default)]
struct Heard(Mutex<Vec<Event>>);

impl EventSink for Heard {
    fn notify(&self, event: &Event) {
        self.0.lock().push(event.clone());
    }
}

#[test]
fn events_of_the_inner_file_system_and_injected_ones_are_heard() {
    let inner = Faulty::new(Arc::new(Mem::new()), Arc::default());
    let outer = Faulty::new(inner.clone(), Arc::default());
    let heard = Arc::new(Heard::default());
    outer.subscribe(heard.clone());
    let (one, two) = (Event::Attr(inner.root().identity()), Event::Data(inner.root().identity()));
    inner.notify(&one);
    outer.notify(&two);
    assert_eq!(*heard.0.lock(), [one, two]);
}

#[test]
fn nodes_of_others_are_of_another_file_system() {
    let (_, _, client) = faulty();
    let (_, _, other) = faulty();
    other.write("a", b"a").unwrap();
    let call = Call::own();
    let linked = client.root().link(&call, "b".as_ref(), &*other.node("a").unwrap());
    assert_eq!(errno(linked), Some(Errno::XDEV));
}
