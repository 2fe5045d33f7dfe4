//! Random requests to one table, against a model that keeps one flag for each byte and owner and a plain list of who
//! waits. Grants, refusals, deadlocks, order of wake-ups and every byte are compared after every step.

use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;

use super::super::*;
use super::fresh_ids;

const BYTES: usize = 12;
const OWNERS: usize = 4;

#[derive(Clone, Debug)]
enum Op {
    /// Without a waker.
    Try(usize, RangeInclusive<usize>, LockKind),
    /// With one.
    Wait(usize, RangeInclusive<usize>, LockKind),
    Release(usize),
    Forget(usize),
    /// The n-th of those that wait.
    Cancel(usize),
    Get(usize, RangeInclusive<usize>, LockKind),
}

fn op() -> impl Strategy<Value = Op> {
    let kind =
        || prop_oneof![3 => Just(LockKind::Read), 4 => Just(LockKind::Write), 2 => Just(LockKind::Unlock)];
    let range = || (0..BYTES, 0..BYTES).prop_map(|(a, b)| a.min(b)..=a.max(b));
    let wish = || (0..OWNERS, range(), kind());
    prop_oneof![
        4 => wish().prop_map(|(owner, range, kind)| Op::Try(owner, range, kind)),
        6 => wish().prop_map(|(owner, range, kind)| Op::Wait(owner, range, kind)),
        1 => (0..OWNERS).prop_map(Op::Release),
        1 => (0..OWNERS).prop_map(Op::Forget),
        1 => (0usize..4).prop_map(Op::Cancel),
        1 => wish().prop_map(|(owner, range, kind)| Op::Get(owner, range, kind)),
    ]
}

#[derive(Clone)]
struct Waiting {
    id: usize,
    owner: usize,
    range: RangeInclusive<usize>,
    kind: LockKind,
    overtaken: u32,
    ticket: Option<Ticket>,
}

impl Waiting {
    fn clashes(&self, owner: usize, range: &RangeInclusive<usize>, kind: LockKind) -> bool {
        let shares_a_byte = range.clone().any(|byte| self.range.contains(&byte));
        self.owner != owner && shares_a_byte && (self.kind == LockKind::Write || kind == LockKind::Write)
    }
}

struct Model {
    whole: bool,
    held: [[Option<LockKind>; BYTES]; OWNERS],
    waiting: Vec<Waiting>,
    /// Ids in the order in which they must be woken, with how.
    woken: Vec<(usize, Option<Errno>)>,
    /// The base of the owners' numbers: the model knows them by index.
    base: u64,
}

impl Model {
    fn blockers(&self, owner: usize, range: &RangeInclusive<usize>, kind: LockKind) -> Vec<usize> {
        let forbids = |held: Option<LockKind>| match (held, kind) {
            (None, _) | (_, LockKind::Unlock) => false,
            (Some(held), wanted) => held == LockKind::Write || wanted == LockKind::Write,
        };
        (0..OWNERS)
            .filter(|other| *other != owner && range.clone().any(|byte| forbids(self.held[*other][byte])))
            .collect()
    }

    fn passes_nobody(
        &self,
        queue: usize,
        owner: usize,
        range: &RangeInclusive<usize>,
        kind: LockKind,
    ) -> bool {
        let holds = self.held[owner].iter().any(Option::is_some);
        let mut earlier = self.waiting[..queue].iter();
        holds || !earlier.any(|w| w.overtaken >= side::OVERTAKEN_MAX && w.clashes(owner, range, kind))
    }

    fn apply(&mut self, owner: usize, range: &RangeInclusive<usize>, kind: LockKind) {
        for byte in range.clone() {
            self.held[owner][byte] = (kind != LockKind::Unlock).then_some(kind);
        }
    }

    fn count_overtaken(&mut self, queue: usize, owner: usize, range: &RangeInclusive<usize>, kind: LockKind) {
        if kind == LockKind::Unlock {
            return;
        }
        for waiting in &mut self.waiting[..queue] {
            if waiting.clashes(owner, range, kind) {
                waiting.overtaken += 1;
            }
        }
    }

    fn settle(&mut self) {
        while let Some(at) = (0..self.waiting.len()).find(|at| {
            let w = &self.waiting[*at];
            self.blockers(w.owner, &w.range, w.kind).is_empty()
                && self.passes_nobody(*at, w.owner, &w.range, w.kind)
        }) {
            let granted = self.waiting.remove(at);
            self.count_overtaken(at, granted.owner, &granted.range, granted.kind);
            self.apply(granted.owner, &granted.range, granted.kind);
            self.woken.push((granted.id, None));
        }
    }

    /// Whether some owner among `from` waits, through others, for `owner`.
    fn waits_for(&self, from: &[usize], owner: usize) -> bool {
        let mut reached = from.to_vec();
        for _ in 0..OWNERS {
            let further: Vec<usize> = self
                .waiting
                .iter()
                .filter(|w| reached.contains(&w.owner))
                .flat_map(|w| self.blockers(w.owner, &w.range, w.kind))
                .collect();
            reached.extend(further);
        }
        reached.contains(&owner)
    }

    /// What `set` must answer: `Ok(true)` granted, `Ok(false)` parked.
    fn set(
        &mut self,
        id: Option<usize>,
        owner: usize,
        range: &RangeInclusive<usize>,
        kind: LockKind,
    ) -> Result<bool> {
        if self.whole {
            if self.held[owner][0] == Some(kind) {
                return Ok(true);
            }
            self.apply(owner, range, LockKind::Unlock);
            self.settle();
        }
        let queue = self.waiting.len();
        let blockers = self.blockers(owner, range, kind);
        let free = blockers.is_empty() && (id.is_none() || self.passes_nobody(queue, owner, range, kind));
        if kind == LockKind::Unlock || free {
            self.count_overtaken(queue, owner, range, kind);
            self.apply(owner, range, kind);
            self.settle();
            return Ok(true);
        }
        let Some(id) = id else { return Err(Errno::AGAIN.into()) };
        if !self.whole && self.waits_for(&blockers, owner) {
            return Err(Errno::DEADLK.into());
        }
        let range = range.clone();
        self.waiting.push(Waiting { id, owner, range, kind, overtaken: 0, ticket: None });
        Ok(false)
    }

    fn range(&self, range: &RangeInclusive<usize>) -> RangeInclusive<usize> {
        if self.whole { 0..=BYTES - 1 } else { range.clone() }
    }
}

type Woken = Arc<Mutex<Vec<(usize, Option<Errno>)>>>;

fn step(op: &Op, id: usize, class: LockClass, table: &LockTable, model: &mut Model, woken: &Woken) {
    match op {
        Op::Try(owner, range, kind) => set(None, (*owner, range, *kind), class, table, model, woken),
        Op::Wait(owner, range, kind) => set(Some(id), (*owner, range, *kind), class, table, model, woken),
        Op::Release(owner) => {
            table.release(class, model.base + *owner as u64);
            model.apply(*owner, &(0..=BYTES - 1), LockKind::Unlock);
            model.settle();
        }
        Op::Forget(owner) => {
            table.forget(class, model.base + *owner as u64);
            let gone: Vec<Waiting> = model.waiting.iter().filter(|w| w.owner == *owner).cloned().collect();
            model.woken.extend(gone.iter().map(|w| (w.id, Some(Errno::INTR))));
            model.waiting.retain(|w| w.owner != *owner);
            model.apply(*owner, &(0..=BYTES - 1), LockKind::Unlock);
            model.settle();
        }
        Op::Cancel(at) => {
            if *at < model.waiting.len() {
                let cancelled = model.waiting.remove(*at);
                assert!(table.cancel(cancelled.ticket.unwrap()));
                model.settle();
            }
        }
        Op::Get(owner, range, kind) => {
            let range = model.range(range);
            let wide = *range.start() as u64..=*range.end() as u64;
            let told = table.get(class, model.base + *owner as u64, wide, *kind);
            let expected = model.blockers(*owner, &range, *kind);
            assert_eq!(told.is_some(), !expected.is_empty());
            if let Some(held) = told {
                assert!(expected.contains(&((held.owner - model.base) as usize)));
            }
        }
    }
}

fn set(
    id: Option<usize>,
    (owner, range, kind): (usize, &RangeInclusive<usize>, LockKind),
    class: LockClass,
    table: &LockTable,
    model: &mut Model,
    woken: &Woken,
) {
    let range = model.range(range);
    let number = model.base + owner as u64;
    let wide = *range.start() as u64..=*range.end() as u64;
    let request = LockRequest { class, owner: number, pid: number as u32, range: wide, kind };
    let waker = id.map(|id| {
        let woken = woken.clone();
        Box::new(move |result: Result<()>| woken.lock().push((id, result.err().map(|error| error.errno()))))
            as Waker
    });
    let expected = model.set(id, owner, &range, kind);
    match (table.set(request, waker), expected) {
        (Ok(Outcome::Granted), Ok(true)) => {}
        (Ok(Outcome::Parked(ticket)), Ok(false)) => model.waiting.last_mut().unwrap().ticket = Some(ticket),
        (Err(told), Err(expected)) => assert_eq!(told.errno(), expected.errno()),
        (told, expected) => panic!("the table says {told:?}, the model {expected:?}"),
    }
}

fn compare(class: LockClass, table: &LockTable, model: &Model, woken: &Woken) {
    assert_eq!(*woken.lock(), model.woken);
    let mut bytes = [[None; BYTES]; OWNERS];
    let mut state = table.state.lock();
    let spans = state.as_mut().map(|state| state.side(class).held.all()).unwrap_or_default();
    for pair in spans.windows(2).filter(|pair| pair[0].owner == pair[1].owner) {
        let gap = pair[1].range.start() - pair[0].range.end();
        assert!(gap > 1 || (gap == 1 && pair[0].kind != pair[1].kind), "not merged: {spans:?}");
    }
    for span in &spans {
        for byte in *span.range.start()..=(*span.range.end()).min(BYTES as u64 - 1) {
            bytes[(span.owner - model.base) as usize][byte as usize] = Some(span.kind);
        }
    }
    assert_eq!(bytes, model.held);
    assert_eq!(state.is_none(), model.waiting.is_empty() && bytes.iter().flatten().all(Option::is_none));
}

fn run(class: LockClass, ops: &[Op]) {
    let table = LockTable::default();
    let mut model = Model {
        whole: class == LockClass::Flock,
        held: Default::default(),
        waiting: Vec::new(),
        woken: Vec::new(),
        base: fresh_ids(OWNERS as u64),
    };
    let woken = Woken::default();
    for (id, op) in ops.iter().enumerate() {
        step(op, id, class, &table, &mut model, &woken);
        compare(class, &table, &model, &woken);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn posix_locks_are_those_of_the_model(ops in prop::collection::vec(op(), 1..80)) {
        run(LockClass::Posix, &ops);
    }

    #[test]
    fn flocks_are_those_of_the_model(ops in prop::collection::vec(op(), 1..80)) {
        run(LockClass::Flock, &ops);
    }
}
