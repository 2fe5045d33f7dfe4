//! What the kernel does with opens, mappings and backings, seen by programs: the points of the design's "kernel
//! semantics" that a cache must get right.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hither_tests::actor::{Actor, Request};
use hither_tests::mount::Mount;
use hither_tests::needs_mounts;
use hither_tests::program::{output, shell};
use hither_tests::scene::{Scene, View};

const SETTLED: Duration = Duration::from_millis(150);

/// A cache of one settled file, `f`.
fn scene_of(content: &[u8], more: &[&str]) -> Scene {
    let mut options = vec!["--settle", "100ms"];
    options.extend(more);
    let scene = Scene::new(View::Cache, &options).unwrap();
    fs::write(scene.origin().join("f"), content).unwrap();
    std::thread::sleep(SETTLED);
    scene
}

/// Reads `f` through the mount until the cache has it. (After a refused open a file stays as it is for two seconds.)
fn fill(scene: &mut Scene) {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        fs::read(scene.root().join("f")).unwrap();
        let said = Mount::cache_command(&["state"], scene.root().join("f")).unwrap();
        if said.contains(": cached") {
            return;
        }
        assert!(Instant::now() < end, "{said}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn passthrough_opens(scene: &mut Scene) -> u64 {
    scene.mount().unwrap().count("/front_end/opens_passthrough").unwrap()
}

fn hits(scene: &mut Scene) -> u64 {
    scene.mount().unwrap().count("/caches/0/hits").unwrap()
}

fn text(byte: u8, length: usize) -> Vec<u8> {
    vec![byte; length]
}

#[test]
fn an_open_that_is_held_does_not_keep_the_next_one_from_the_copy() {
    needs_mounts!();
    let mut scene = scene_of(&text(b'a', 3 << 20), &[]);
    let path = scene.root().join("f");
    let mut holder = Actor::start().unwrap();
    holder.open("f", &path, "r").unwrap();
    assert_eq!(holder.read("f", 0, 4).unwrap(), "aaaa");
    scene.mount().unwrap().wait_for_state("f", "cached").unwrap();
    assert_eq!(passthrough_opens(&mut scene), 0, "the first open began before there was a copy");

    let mut second = Actor::start().unwrap();
    second.open("f", &path, "r").unwrap();
    assert_eq!(second.read("f", 2 << 20, 4).unwrap(), "aaaa");
    assert_eq!(passthrough_opens(&mut scene), 1);
    assert_eq!(hits(&mut scene), 1);
    // Both go on, side by side.
    assert_eq!(holder.read("f", (3 << 20) - 4, 8).unwrap(), "aaaa");
    assert_eq!(second.read("f", (3 << 20) - 4, 8).unwrap(), "aaaa");
}

#[test]
fn a_new_version_is_seen_by_new_opens_and_old_ones_keep_theirs() {
    needs_mounts!();
    let mut scene = scene_of(&text(b'a', 100_000), &["--revalidate", "0s"]);
    fill(&mut scene);
    let path = scene.root().join("f");
    let mut old = Actor::start().unwrap();
    old.open("f", &path, "r").unwrap();
    old.map("m", "f", 100_000, false).unwrap();
    assert_eq!(old.read("f", 0, 3).unwrap(), "aaa");

    // By another way than the mount: in place, then as a new file.
    for (round, byte) in [b'b', b'c'].into_iter().enumerate() {
        let beneath = scene.origin().join("f");
        if round == 0 {
            OpenOptions::new()
                .write(true)
                .open(&beneath)
                .unwrap()
                .write_all_at(&text(byte, 100_000), 0)
                .unwrap();
        } else {
            fs::write(scene.origin().join("new"), text(byte, 100_000)).unwrap();
            fs::rename(scene.origin().join("new"), &beneath).unwrap();
        }
        let expected = String::from_utf8(text(byte, 100_000)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        std::thread::sleep(SETTLED);
        fill(&mut scene);
        let mut new = Actor::start().unwrap();
        let before = passthrough_opens(&mut scene);
        new.open("f", &path, "r").unwrap();
        assert_eq!(passthrough_opens(&mut scene), before + 1, "the new version has a copy, too");
        assert_eq!(new.read("f", 0, 100_000).unwrap(), expected);
        assert_eq!(old.read("f", 0, 3).unwrap(), "aaa", "an old open keeps the version that it opened");
        assert_eq!(old.peek("m", 50_000, 3).unwrap(), "aaa");
    }
}

#[test]
fn a_mapping_goes_on_after_the_close_and_while_the_file_is_replaced() {
    needs_mounts!();
    for view in [View::Dir, View::Cache] {
        let options: &[&str] = if view == View::Cache { &["--settle", "100ms"] } else { &[] };
        let mut scene = Scene::new(view, options).unwrap();
        fs::write(scene.origin().join("f"), text(b'a', 3 << 20)).unwrap();
        std::thread::sleep(SETTLED);
        if view == View::Cache {
            fill(&mut scene);
        }
        let path = scene.root().join("f");
        let mut program = Actor::start().unwrap();
        program.open("f", &path, "r").unwrap();
        program.map("m", "f", 3 << 20, false).unwrap();
        program.close("f").unwrap();
        assert_eq!(program.peek("m", 0, 3).unwrap(), "aaa");
        fs::write(scene.root().join("new"), text(b'b', 3 << 20)).unwrap();
        fs::rename(scene.root().join("new"), &path).unwrap();
        // Pages that were not touched before.
        assert_eq!(program.peek("m", 2 << 20, 3).unwrap(), "aaa", "{view:?}");
        assert_eq!(fs::read(&path).unwrap(), text(b'b', 3 << 20));
        if view == View::Cache {
            Mount::cache_command(&["evict", "--to", "0"], scene.root()).unwrap();
            assert_eq!(
                program.peek("m", (3 << 20) - 3, 3).unwrap(),
                "aaa",
                "an evicted copy lives while mapped"
            );
        }
    }
}

#[test]
fn stores_through_a_mapping_reach_the_origin_also_after_the_close() {
    needs_mounts!();
    for view in [View::Dir, View::Cache] {
        let options: &[&str] = if view == View::Cache { &["--settle", "100ms"] } else { &[] };
        let mut scene = Scene::new(view, options).unwrap();
        fs::write(scene.origin().join("f"), text(b'a', 8192)).unwrap();
        std::thread::sleep(SETTLED);
        if view == View::Cache {
            fill(&mut scene);
        }
        let mut program = Actor::start().unwrap();
        program.open("f", &scene.root().join("f"), "rw").unwrap();
        program.map("m", "f", 8192, true).unwrap();
        program.close("f").unwrap();
        program.gives(&Request::Poke { map: "m".into(), offset: 4090, text: "stored".into() }).unwrap();
        program.gives(&Request::Msync { map: "m".into() }).unwrap();
        let mut expected = text(b'a', 8192);
        expected[4090..4096].copy_from_slice(b"stored");
        assert_eq!(fs::read(scene.origin().join("f")).unwrap(), expected, "{view:?}");
        assert_eq!(fs::read(scene.root().join("f")).unwrap(), expected, "{view:?}");
        // Once more, now without msync: the end of the process must do.
        program.gives(&Request::Poke { map: "m".into(), offset: 0, text: "again".into() }).unwrap();
        drop(program);
        shell(&scene.root(), "sync -f f").unwrap();
        expected[..5].copy_from_slice(b"again");
        assert_eq!(fs::read(scene.root().join("f")).unwrap(), expected, "{view:?}");
        scene.unmount().unwrap();
        assert_eq!(fs::read(scene.origin().join("f")).unwrap(), expected, "{view:?}");
    }
}

#[test]
fn a_killed_daemon_leaves_readers_of_copies_reading_and_the_next_mount_serves() {
    needs_mounts!();
    let mut scene = scene_of(&text(b'a', 2 << 20), &[]);
    fill(&mut scene);
    let path = scene.root().join("f");
    let mut reader = Actor::start().unwrap();
    reader.open("f", &path, "r").unwrap();
    reader.map("m", "f", 2 << 20, false).unwrap();
    assert_eq!(passthrough_opens(&mut scene), 1);
    scene.mount().unwrap().kill().unwrap();

    assert_eq!(reader.read("f", 1 << 20, 3).unwrap(), "aaa", "the kernel has the backing");
    assert_eq!(reader.peek("m", 1_000_000, 3).unwrap(), "aaa");
    let dead = fs::metadata(&path).unwrap_err().raw_os_error();
    assert_eq!(dead, Some(rustix::io::Errno::NOTCONN.raw_os_error()));

    scene.mount().unwrap().again().unwrap();
    assert_eq!(fs::read(&path).unwrap(), text(b'a', 2 << 20));
    assert_eq!(hits(&mut scene), 1, "the copy survived, and is used");
    assert_eq!(reader.read("f", 0, 3).unwrap(), "aaa", "the old mount's reader goes on");
    fs::write(&path, "new").unwrap();
    assert_eq!(fs::read_to_string(scene.origin().join("f")).unwrap(), "new");
    assert_eq!(reader.read("f", 0, 3).unwrap(), "aaa");
}

#[test]
fn a_dead_mount_point_is_cleared_by_umount_too() {
    needs_mounts!();
    let mut scene = Scene::new(View::Dir, &[]).unwrap();
    scene.mount().unwrap().kill().unwrap();
    assert!(fs::read_dir(scene.root()).is_err());
    scene.unmount().unwrap();
    assert_eq!(fs::read_dir(scene.root()).unwrap().count(), 0);
}

#[test]
fn direct_reads_mappings_and_execution_work_in_every_state() {
    needs_mounts!();
    let program = fs::read("/bin/true").unwrap();
    // Uncached, never cached, and backed; then through the daemon only.
    for (options, cached) in [
        (&["--settle", "1h"][..], false),
        (&["--settle", "100ms"], true),
        (&["--settle", "100ms", "--passthrough", "off"], true),
    ] {
        let mut scene = Scene::new(View::Cache, options).unwrap();
        let mut content = program.clone();
        content.resize(2 << 20, b'z');
        fs::write(scene.origin().join("f"), &content).unwrap();
        fs::set_permissions(scene.origin().join("f"), fs::Permissions::from_mode(0o755)).unwrap();
        std::thread::sleep(SETTLED);
        for pass in 0..3 {
            let path = scene.root().join("f");
            // As O_DIRECT, by a mapping and by the kernel's loader: on the first pass all meet a running fill.
            let mut actor = Actor::start().unwrap();
            actor.open("d", &path, "rd").unwrap();
            assert_eq!(
                actor.read("d", (2 << 20) - 4096, 4096).unwrap(),
                "z".repeat(4096),
                "{options:?} {pass}"
            );
            actor.open("f", &path, "r").unwrap();
            actor.map("m", "f", 2 << 20, false).unwrap();
            assert_eq!(actor.peek("m", (2 << 20) - 5, 5).unwrap(), "zzzzz");
            output(&mut Command::new(&path)).unwrap();
            if cached {
                scene.mount().unwrap().wait_for_state("f", "cached").unwrap();
            }
            // A program that runs is not written to, as everywhere; where there is a copy, it is the copy that runs.
        }
        assert_eq!(hits(&mut scene) > 0, cached, "{options:?}");
        assert_eq!(passthrough_opens(&mut scene) > 0, cached && !options.contains(&"off"));
    }
}

#[test]
fn a_file_is_read_while_it_is_being_filled_from_a_slow_origin() {
    needs_mounts!();
    let content: Vec<u8> = (0..24_u32 << 20).map(|n| (n >> 12) as u8).collect();
    let mut scene = scene_of(&content, &["--fetches", "1"]);
    let path = scene.root().join("f");
    let file = File::open(&path).unwrap();
    // From the end, while the fill goes on elsewhere; each page must be the origin's.
    for at in (0..24_u64).rev() {
        let offset = (at << 20) + 4096 * 17;
        let mut page = [0; 4096];
        file.read_exact_at(&mut page, offset).unwrap();
        assert_eq!(page[..], content[offset as usize..][..4096]);
    }
    let mut threads = Vec::new();
    for _ in 0..4 {
        let (path, content) = (path.clone(), content.clone());
        threads.push(std::thread::spawn(move || assert!(fs::read(path).unwrap() == content)));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    scene.mount().unwrap().wait_for_state("f", "cached").unwrap();
    let fetched = scene.mount().unwrap().count("/caches/0/fetched_bytes").unwrap();
    assert_eq!(fetched, content.len() as u64, "each byte is fetched once, however many read it");
    assert!(fs::read(&path).unwrap() == content);
}

#[test]
fn a_shell_writes_to_a_backed_file_and_readers_see_it() {
    needs_mounts!();
    let mut scene = scene_of(b"one\n", &["--revalidate", "60s"]);
    fill(&mut scene);
    let root = scene.root();
    let mut reader = Actor::start().unwrap();
    reader.open("old", &root.join("f"), "r").unwrap();
    assert_eq!(shell(&root, "echo two >> f; cat f; stat -c %s f").unwrap(), "one\ntwo\n8\n");
    assert_eq!(fs::read_to_string(scene.origin().join("f")).unwrap(), "one\ntwo\n");
    assert_eq!(reader.read("old", 0, 9).unwrap(), "one\n", "a reader of the copy keeps its version");
    assert_eq!(
        shell(&root, "echo three > f; cat f; : > f; stat -c %s f; echo x | tee -a f").unwrap(),
        "three\n0\nx\n"
    );
    assert_eq!(shell(&root, "sed -i s/x/y/ f; cat f; truncate -s 3 f; wc -c < f").unwrap(), "y\n3\n");
    assert_eq!(scene.mount().unwrap().state("f").unwrap(), "none");
    std::thread::sleep(SETTLED);
    fill(&mut scene);
    assert_eq!(fs::read(root.join("f")).unwrap(), b"y\n\0");
}

/// Errors by number that actors got who opened one file again and again; `"opens"` are the successes.
/// Each has its flags, and the time that it leaves between two opens.
fn hammer(path: &Path, all: &[(&str, u64)], milliseconds: u64) -> BTreeMap<String, u64> {
    let mut actors: Vec<_> = all.iter().map(|_| Actor::start().unwrap()).collect();
    for (actor, (flags, pause_ms)) in actors.iter_mut().zip(all) {
        let (path, flags) = (path.to_str().unwrap().to_owned(), (*flags).to_owned());
        actor.ask(&Request::Hammer { path, flags, milliseconds, pause_ms: *pause_ms }).unwrap();
    }
    let mut counts_of_all = BTreeMap::new();
    for actor in &mut actors {
        let answer = actor.answer(Duration::from_secs(60)).unwrap().expect("the hammer ends in time");
        let hither_tests::actor::Answer::Given(counts) = answer else { unreachable!("{answer:?}") };
        for (what, count) in serde_json::from_str::<BTreeMap<String, u64>>(&counts).unwrap() {
            *counts_of_all.entry(what).or_default() += count;
        }
    }
    counts_of_all
}

#[test]
fn no_open_is_ever_refused_as_stale() {
    needs_mounts!();
    // Copies come and go as fast as they can: a settled version at once, and every answer of the origin asked anew.
    for revalidate in ["0s", "1s"] {
        let options = ["--settle", "0s", "--revalidate", revalidate];
        let mut scene = Scene::new(View::Cache, &options).unwrap();
        fs::write(scene.origin().join("f"), text(b'a', 50_000)).unwrap();
        let path = scene.root().join("f");
        // Writers that leave time for a copy to be made, and to be found by those who read.
        let writers = [("rw", 70), ("wt", 90), ("w", 110), ("rwt", 2_300)];
        let counts = hammer(&path, &[&[("r", 0), ("r", 0), ("r", 3)], &writers[..]].concat(), 5_000);
        assert_eq!(counts.keys().collect::<Vec<_>>(), ["opens"], "{counts:?}");
        assert!(counts["opens"] > 500, "{counts:?}");
        assert!(scene.mount().unwrap().count("/caches/0/fills").unwrap() > 0, "nothing was ever cached");
    }
}

#[test]
fn truncating_opens_of_backed_files_work_the_first_time() {
    needs_mounts!();
    let mut scene = scene_of(b"content", &["--revalidate", "60s"]);
    for round in 0..10 {
        fill(&mut scene);
        let path = scene.root().join("f");
        let held = File::open(&path).unwrap();
        fs::write(&path, format!("round {round}")).unwrap();
        assert_eq!(fs::read_to_string(scene.origin().join("f")).unwrap(), format!("round {round}"));
        drop(held);
        std::thread::sleep(SETTLED);
    }
    assert!(hits(&mut scene) >= 10);
}
