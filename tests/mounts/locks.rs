//! Locks between processes: POSIX and flock, waiting, and waiters that are killed. The daemon answers them, since one
//! file may have several node ids.

use std::fs;
use std::time::Duration;

use hither_tests::actor::{Actor, Request};
use hither_tests::needs_mounts;
use hither_tests::scene::{Scene, View};
use rustix::io::Errno;

const A_WHILE: Duration = Duration::from_millis(300);
const SOON: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Posix,
    Flock,
}

fn lock(kind: Kind, operation: &str, wait: bool) -> Request {
    let (name, operation) = ("f".to_owned(), operation.to_owned());
    match kind {
        Kind::Posix => Request::Lock { name, operation, wait },
        Kind::Flock => Request::Flock { name, operation, wait },
    }
}

/// Two actors with the file open; on a cache one of them has the copy and the other the origin's file.
fn actors(scene: &mut Scene) -> (Actor, Actor) {
    fs::write(scene.origin().join("f"), "content").unwrap();
    let path = scene.root().join("f");
    let (mut one, mut other) = (Actor::start().unwrap(), Actor::start().unwrap());
    one.open("f", &path, "rw").unwrap();
    other.open("f", &path, "rw").unwrap();
    (one, other)
}

fn each(test: impl Fn(Kind, &mut Actor, &mut Actor, &Scene)) {
    for view in View::ALL {
        for kind in [Kind::Posix, Kind::Flock] {
            let mut scene = Scene::new(view, &[]).unwrap();
            let (mut one, mut other) = actors(&mut scene);
            test(kind, &mut one, &mut other, &scene);
        }
    }
}

#[test]
fn locks_exclude_and_are_released() {
    needs_mounts!();
    each(|kind, one, other, scene| {
        one.gives(&lock(kind, "write", false)).unwrap();
        let refused = other.act(&lock(kind, "read", false)).unwrap().errno();
        assert_eq!(refused, Some(Errno::AGAIN), "{kind:?} {:?}", scene.view());
        one.gives(&lock(kind, "read", false)).unwrap();
        other.gives(&lock(kind, "read", false)).unwrap();
        assert_eq!(one.act(&lock(kind, "write", false)).unwrap().errno(), Some(Errno::AGAIN));
        other.gives(&lock(kind, "unlock", false)).unwrap();
        one.gives(&lock(kind, "write", false)).unwrap();
        // Closing drops it.
        one.close("f").unwrap();
        other.gives(&lock(kind, "write", false)).unwrap();
    });
}

#[test]
fn who_waits_gets_the_lock_when_it_is_free_and_when_its_holder_is_killed() {
    needs_mounts!();
    each(|kind, one, other, scene| {
        one.gives(&lock(kind, "write", true)).unwrap();
        other.ask(&lock(kind, "write", true)).unwrap();
        assert_eq!(other.answer(A_WHILE).unwrap(), None, "{kind:?} {:?}: it must wait", scene.view());
        one.gives(&lock(kind, "unlock", true)).unwrap();
        let answer = other.answer(SOON).unwrap().expect("the lock is free");
        assert_eq!(answer.errno(), None);

        let mut third = Actor::start().unwrap();
        third.open("f", &scene.root().join("f"), "rw").unwrap();
        third.ask(&lock(kind, "write", true)).unwrap();
        assert_eq!(third.answer(A_WHILE).unwrap(), None);
        // The holder dies.
        let holder = std::mem::replace(other, Actor::start().unwrap());
        holder.kill().unwrap();
        let answer = third.answer(SOON).unwrap().expect("a killed holder's lock is free");
        assert_eq!(answer.errno(), None);
    });
}

#[test]
fn a_waiter_that_is_killed_takes_nothing_with_it() {
    needs_mounts!();
    each(|kind, one, other, scene| {
        one.gives(&lock(kind, "write", true)).unwrap();
        other.ask(&lock(kind, "write", true)).unwrap();
        assert_eq!(other.answer(A_WHILE).unwrap(), None);
        let waiter = std::mem::replace(other, Actor::start().unwrap());
        // kill waits for the end of the process: it must not hang in the lock.
        waiter.kill().unwrap();
        one.gives(&lock(kind, "unlock", true)).unwrap();
        other.open("f", &scene.root().join("f"), "rw").unwrap();
        let free = other.act(&lock(kind, "write", false)).unwrap();
        assert_eq!(free.errno(), None, "{kind:?} {:?}: the dead waiter has the lock", scene.view());
    });
}

#[test]
fn a_reader_of_the_copy_and_a_writer_of_the_file_share_locks() {
    needs_mounts!();
    for kind in [Kind::Posix, Kind::Flock] {
        let mut scene = Scene::new(View::Cache, &["--settle", "100ms"]).unwrap();
        fs::write(scene.origin().join("f"), "content").unwrap();
        std::thread::sleep(Duration::from_millis(150));
        let path = scene.root().join("f");
        fs::read(&path).unwrap();
        scene.mount().unwrap().wait_for_state("f", "cached").unwrap();
        let (mut reader, mut writer) = (Actor::start().unwrap(), Actor::start().unwrap());
        reader.open("f", &path, "r").unwrap();
        assert_eq!(scene.mount().unwrap().count("/front_end/opens_passthrough").unwrap(), 1);
        writer.open("f", &path, "rw").unwrap();
        reader.gives(&lock(kind, "read", false)).unwrap();
        let refused = writer.act(&lock(kind, "write", false)).unwrap().errno();
        assert_eq!(refused, Some(Errno::AGAIN), "{kind:?}: two node ids, one file");
        writer.ask(&lock(kind, "write", true)).unwrap();
        assert_eq!(writer.answer(A_WHILE).unwrap(), None);
        reader.gives(&lock(kind, "unlock", false)).unwrap();
        assert_eq!(writer.answer(SOON).unwrap().expect("the lock is free").errno(), None);
    }
}
