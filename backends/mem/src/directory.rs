//! The entries of a directory, by name and by position.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::sync::{Arc, Weak};

use crate::node::MemNode;

/// Positions of `.` and `..`; 0 is the start.
pub(crate) const DOT: u64 = 1;
pub(crate) const DOT_DOT: u64 = 2;

/// Entries. Each name keeps its position for as long as it is there, and no position is given twice: a listing that
/// goes by positions sees each lasting name once, whatever comes and goes meanwhile.
pub(crate) struct Directory {
    by_name: HashMap<Arc<OsStr>, u64>,
    by_position: BTreeMap<u64, Child>,
    next_position: u64,
    parent: Weak<MemNode>,
    dead: bool,
}

/// An entry.
#[derive(Clone)]
pub(crate) struct Child {
    pub(crate) name: Arc<OsStr>,
    pub(crate) node: Arc<MemNode>,
}

impl Directory {
    pub(crate) fn new(parent: Weak<MemNode>) -> Self {
        Directory {
            by_name: HashMap::new(),
            by_position: BTreeMap::new(),
            next_position: DOT_DOT + 1,
            parent,
            dead: false,
        }
    }

    /// Whether the directory was removed: nothing can be made in it any more.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead
    }

    pub(crate) fn die(&mut self) {
        self.dead = true;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(crate) fn parent(&self) -> &Weak<MemNode> {
        &self.parent
    }

    pub(crate) fn set_parent(&mut self, parent: Weak<MemNode>) {
        self.parent = parent;
    }

    pub(crate) fn get(&self, name: &OsStr) -> Option<&Arc<MemNode>> {
        let position = self.by_name.get(name)?;
        self.by_position.get(position).map(|child| &child.node)
    }

    /// Makes `name` lead to `node`; returns what it led to before. The position of a name that was there stays.
    pub(crate) fn put(&mut self, name: &OsStr, node: Arc<MemNode>) -> Option<Arc<MemNode>> {
        if let Some(child) = self.by_name.get(name).and_then(|position| self.by_position.get_mut(position)) {
            return Some(std::mem::replace(&mut child.node, node));
        }
        let name: Arc<OsStr> = Arc::from(name);
        let position = self.next_position;
        self.next_position += 1;
        self.by_name.insert(name.clone(), position);
        self.by_position.insert(position, Child { name, node });
        None
    }

    pub(crate) fn remove(&mut self, name: &OsStr) -> Option<Arc<MemNode>> {
        let position = self.by_name.remove(name)?;
        self.by_position.remove(&position).map(|child| child.node)
    }

    /// Up to `count` entries behind a position, with theirs.
    pub(crate) fn behind(&self, position: u64, count: usize) -> Vec<(u64, Child)> {
        let later = self.by_position.range(position.saturating_add(1)..);
        later.take(count).map(|(position, child)| (*position, child.clone())).collect()
    }

    /// Takes all entries out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Arc<MemNode>> {
        self.by_name.clear();
        std::mem::take(&mut self.by_position).into_values().map(|child| child.node)
    }
}
