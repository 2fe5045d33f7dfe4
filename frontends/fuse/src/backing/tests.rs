//! Ids that are kept for later opens are bounded, and go in the order of their last use.

use super::*;
use crate::scripted::{Scripted, backing};
use hither_vfs::{Call, FileSystem};
use std::collections::BTreeSet;

#[derive(Default)]
struct Ids(Mutex<(i32, BTreeSet<i32>)>);

impl BackingDevice for Ids {
    fn open(&self, _: BorrowedFd<'_>) -> io::Result<i32> {
        let mut ids = self.0.lock();
        ids.0 += 1;
        let id = ids.0;
        ids.1.insert(id);
        Ok(id)
    }

    fn close(&self, id: i32) -> io::Result<()> {
        assert!(self.0.lock().1.remove(&id), "{id} is closed twice");
        Ok(())
    }
}

#[test]
fn the_longest_idle_go_first_and_those_in_use_never() {
    let ids = Arc::new(Ids::default());
    let backings = Backings::new(Some(ids.clone()), "");
    let nodes = crate::nodes::Nodes::new(Scripted::new().root());
    let fs = Scripted::new();
    let given = backing(b"");
    let all = IDLE_MAX + 100;
    let known: Vec<Arc<Known>> = (0..all)
        .map(|number| {
            let name = format!("{number}");
            fs.add(&name, b"");
            let entry = fs.root().lookup(&Call::own(), name.as_ref()).unwrap();
            nodes.look_up(&entry).0
        })
        .collect();
    let open = |at: usize| backings.open(&known[at], Some(given.clone()), OFlags::RDONLY, true).unwrap();
    // Nodes 0 to 9 stay open, 10 to 19 are used again after they were idle.
    for at in 0..all {
        let grant = open(at);
        assert_eq!(grant.backing_id, at as i32 + 1);
        if at >= 10 {
            backings.close(&known[at], grant.kind);
        }
        if at == 1000 {
            for (again, known) in known.iter().enumerate().take(20).skip(10) {
                assert_eq!(open(again).backing_id, again as i32 + 1);
                backings.close(known, OpenKind::Passthrough);
            }
        }
    }
    let living = ids.0.lock().1.clone();
    assert_eq!(living.len(), IDLE_MAX + 10);
    assert_eq!(backings.counts(), (IDLE_MAX + 10, 0));
    let gone: Vec<i32> = (1..=all as i32).filter(|id| !living.contains(id)).collect();
    assert_eq!(gone, (21..=110).collect::<Vec<i32>>());
    drop((known, nodes, backings));
    assert!(ids.0.lock().1.is_empty());
}

#[test]
fn memory_of_a_known_node_is_bounded() {
    assert!(size_of::<Known>() <= 128, "{}", size_of::<Known>());
}
