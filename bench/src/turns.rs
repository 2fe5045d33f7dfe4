//! Contenders in turns: each round gives every contender one burst, so that a disturbance of some seconds falls on all of
//! them, and ratios are taken within a round.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use hither_sys::cpu_time;
use rustix::thread::{ClockId, CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;

/// Where the client may run. Daemons may run where they like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Client {
    /// Wherever the scheduler puts it.
    Free,
    /// On one processor, as the ranks of a parallel job are.
    Pinned,
}

impl Client {
    /// Both.
    pub const ALL: [Client; 2] = [Client::Free, Client::Pinned];

    /// For the table.
    pub fn name(self) -> &'static str {
        match self {
            Client::Free => "free",
            Client::Pinned => "pinned",
        }
    }
}

/// What is done in a burst, with the number of the round, from 0 for the warming one.
type Step<'a> = Box<dyn FnMut(usize) -> anyhow::Result<u64> + 'a>;

/// One of those that are compared.
pub struct Contender<'a> {
    name: &'static str,
    pids: Vec<u32>,
    prepare: Option<Step<'a>>,
    burst: Step<'a>,
    rounds_max: usize,
    is_warmed: bool,
}

impl<'a> Contender<'a> {
    /// A contender, the daemons that work for it, and what it does in a burst: it returns how many operations.
    pub fn new(
        name: &'static str,
        pids: &[u32],
        burst: impl FnMut(usize) -> anyhow::Result<u64> + 'a,
    ) -> Contender<'a> {
        Contender {
            name,
            pids: pids.to_vec(),
            prepare: None,
            burst: Box::new(burst),
            rounds_max: usize::MAX,
            is_warmed: true,
        }
    }

    /// What happens before each burst, unmeasured.
    pub fn prepared(mut self, mut prepare: impl FnMut(usize) -> anyhow::Result<()> + 'a) -> Contender<'a> {
        self.prepare = Some(Box::new(move |round| prepare(round).map(|()| 0)));
        self
    }

    /// Takes part in the first rounds only, because it is slow.
    pub fn at_most(mut self, rounds: usize) -> Contender<'a> {
        self.rounds_max = rounds;
        self
    }

    /// Has no burst that is not measured before those that are.
    pub fn cold(mut self) -> Contender<'a> {
        self.is_warmed = false;
        self
    }
}

/// A burst, per operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// Of the clock on the wall.
    pub seconds: f64,
    /// Of processors, for the client and the daemons.
    pub cpu_seconds: f64,
}

/// All bursts of a contender.
#[derive(Debug, Clone)]
pub struct Series {
    /// Which contender.
    pub name: &'static str,
    /// In the order of rounds.
    pub bursts: Vec<Burst>,
}

impl Series {
    /// Median time of an operation.
    pub fn seconds(&self) -> f64 {
        median(self.bursts.iter().map(|burst| burst.seconds))
    }

    /// Median processor time of an operation.
    pub fn cpu_seconds(&self) -> f64 {
        median(self.bursts.iter().map(|burst| burst.cpu_seconds))
    }

    /// Median over rounds of how many times longer this took than `other` did in the same round.
    pub fn times(&self, other: &Series) -> f64 {
        median(self.bursts.iter().zip(&other.bursts).map(|(own, other)| own.seconds / other.seconds))
    }
}

/// The median; NaN of nothing.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}

/// Gives every contender its bursts, in turns, each round beginning with the next of them.
pub fn take(
    client: Client,
    rounds: usize,
    mut contenders: Vec<Contender<'_>>,
) -> anyhow::Result<Vec<Series>> {
    let _placed = Placed::new(client)?;
    let mut series: Vec<Series> =
        contenders.iter().map(|contender| Series { name: contender.name, bursts: Vec::new() }).collect();
    for round in 0..=rounds {
        let takes_part =
            |contender: &Contender<'_>| round <= contender.rounds_max && (round > 0 || contender.is_warmed);
        let mut order: Vec<usize> = (0..contenders.len()).filter(|at| takes_part(&contenders[*at])).collect();
        // Nobody of three or more comes twice in succession, and finds its own data in the processor's caches.
        let begin = round.checked_rem(order.len()).unwrap_or(0);
        order.rotate_left(begin);
        for at in order {
            let contender = &mut contenders[at];
            let burst = burst(contender, round).with_context(|| contender.name)?;
            if round > 0 {
                series[at].bursts.push(burst);
            }
        }
    }
    Ok(series)
}

fn burst(contender: &mut Contender<'_>, round: usize) -> anyhow::Result<Burst> {
    if let Some(prepare) = &mut contender.prepare {
        prepare(round)?;
    }
    let cpu_before = cpu(&contender.pids)?;
    let start = Instant::now();
    let operations = (contender.burst)(round)?;
    let took = start.elapsed();
    let cpu = cpu(&contender.pids)?.saturating_sub(cpu_before);
    anyhow::ensure!(operations > 0, "nothing was done");
    let each = |time: Duration| time.as_secs_f64() / operations as f64;
    Ok(Burst { seconds: each(took), cpu_seconds: each(cpu) })
}

/// Processor time of this thread, of children that have ended, and of daemons.
pub fn cpu(pids: &[u32]) -> anyhow::Result<Duration> {
    let own = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    let own = Duration::new(own.tv_sec.unsigned_abs(), u32::try_from(own.tv_nsec).unwrap_or(0));
    let mut sum = own + cpu_time::of_ended_children();
    for &pid in pids {
        sum += cpu_time::of_process(pid).with_context(|| format!("the daemon {pid} is gone"))?;
    }
    Ok(sum)
}

/// This thread, and children that it starts, on one processor; back where it was when dropped.
struct Placed(Option<CpuSet>);

impl Placed {
    fn new(client: Client) -> anyhow::Result<Placed> {
        if client == Client::Free {
            return Ok(Placed(None));
        }
        let before = sched_getaffinity(None).context("cannot ask for processors")?;
        let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| before.is_set(cpu)).context("no processor")?;
        let mut one = CpuSet::new();
        one.set(last);
        sched_setaffinity(None, &one).context("cannot be pinned")?;
        Ok(Placed(Some(before)))
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if let Some(before) = &self.0
            && let Err(error) = sched_setaffinity(None, before)
        {
            eprintln!("bench: stays pinned: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn rounds_begin_with_each_in_turn_and_slow_contenders_leave_early() {
        let log = RefCell::new(Vec::new());
        let log_of = &log;
        let contender = |name: &'static str| {
            Contender::new(name, &[], move |round| {
                log_of.borrow_mut().push(format!("{name}{round}"));
                std::thread::sleep(Duration::from_millis(1));
                Ok(10)
            })
        };
        let contenders = vec![contender("a"), contender("b"), contender("c").at_most(1).cold()];
        let series = take(Client::Pinned, 2, contenders).unwrap();
        assert_eq!(*log.borrow(), ["a0", "b0", "b1", "c1", "a1", "a2", "b2"]);
        let bursts: Vec<usize> = series.iter().map(|series| series.bursts.len()).collect();
        assert_eq!(bursts, [2, 2, 1]);
        assert!(series[0].seconds() >= 1e-4);
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let series = |seconds: &[f64]| Series {
            name: "s",
            bursts: seconds.iter().map(|&seconds| Burst { seconds, cpu_seconds: 0.0 }).collect(),
        };
        // The third round was disturbed for both.
        assert_eq!(series(&[2.0, 2.0, 20.0]).times(&series(&[1.0, 1.0, 10.0])), 2.0);
        assert_eq!(median([4.0, 1.0, 3.0, 2.0].into_iter()), 2.5);
        assert!(median(std::iter::empty()).is_nan());
    }

    #[test]
    fn a_burst_that_does_nothing_is_an_error() {
        assert!(take(Client::Free, 1, vec![Contender::new("idle", &[], |_| Ok(0))]).is_err());
    }
}
