//! Where and when a measurement was made, and how much else the machine did meanwhile.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;

/// The machine, and what disturbed it.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// `uname -r`.
    pub kernel: String,
    /// As the processor calls itself.
    pub cpu: String,
    /// Those that this process may use.
    pub cpus: usize,
    /// Whole GiB.
    pub memory_gib: u64,
    /// Of the day it was measured, `YYYY-MM-DD`.
    pub date: String,
    /// Share of all processors' time that processes other than ours took, 0 to 1.
    pub others: f64,
    /// What the kernel took from its caches meanwhile because memory was short, in MiB.
    pub reclaimed_mib: u64,
}

impl Machine {
    /// Whether the figures are about something else than what was measured.
    pub fn was_disturbed(&self) -> bool {
        self.others > 0.05 || self.reclaimed_mib > 0
    }
}

/// Watches how busy the machine is, from its creation on.
#[derive(Debug)]
pub struct Watch {
    start: Instant,
    busy: Duration,
    reclaimed_mib: u64,
}

impl Watch {
    /// Begins to watch.
    pub fn begin() -> anyhow::Result<Watch> {
        Ok(Watch { start: Instant::now(), busy: busy()?, reclaimed_mib: reclaimed_mib()? })
    }

    /// The machine as it was since; `ours` is the processor time of the measurement itself.
    pub fn end(&self, ours: Duration) -> anyhow::Result<Machine> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let all = self.start.elapsed().as_secs_f64() * cpus as f64;
        let busy = busy()?.saturating_sub(self.busy);
        let others = busy.saturating_sub(ours).as_secs_f64() / all.max(1e-9);
        let read = |path: &str| std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"));
        let cpuinfo = read("/proc/cpuinfo")?;
        let meminfo = read("/proc/meminfo")?;
        let kib: u64 =
            field(&meminfo, "MemTotal").and_then(|value| value.split(' ').next()?.parse().ok()).unwrap_or(0);
        let date =
            std::process::Command::new("date").args(["-u", "+%Y-%m-%d"]).output().context("no date")?;
        Ok(Machine {
            kernel: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            cpu: field(&cpuinfo, "model name").unwrap_or("unknown").to_owned(),
            cpus,
            memory_gib: (kib + (1 << 19)) >> 20,
            date: String::from_utf8_lossy(&date.stdout).trim().to_owned(),
            others: others.clamp(0.0, 1.0),
            reclaimed_mib: reclaimed_mib()?.saturating_sub(self.reclaimed_mib),
        })
    }
}

/// The value behind `name:` in the files of /proc.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// What the kernel has taken from its caches, since the machine was started.
fn reclaimed_mib() -> anyhow::Result<u64> {
    let vmstat = std::fs::read_to_string("/proc/vmstat").context("cannot read /proc/vmstat")?;
    let pages = vmstat.lines().filter_map(|line| {
        let (name, pages) = line.split_once(' ')?;
        ["pgsteal_kswapd", "pgsteal_direct"].contains(&name).then(|| pages.parse::<u64>().ok())?
    });
    Ok((pages.sum::<u64>() * rustix::param::page_size() as u64) >> 20)
}

/// Time that processors have spent on something.
fn busy() -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    // user nice system idle iowait irq softirq steal: ticks of 10 ms.
    let ticks: Vec<u64> =
        stat.lines().next().unwrap_or_default().split_whitespace().skip(1).flat_map(str::parse).collect();
    let busy = ticks
        .iter()
        .enumerate()
        .filter(|(at, _)| ![3, 4].contains(at) && *at < 8)
        .map(|(_, ticks)| ticks)
        .sum::<u64>();
    Ok(Duration::from_millis(10 * busy))
}

#[cfg(test)]
mod tests {
    use super::{Watch, field};
    use std::time::Duration;

    #[test]
    fn the_machine_is_described() {
        let machine = Watch::begin().unwrap().end(Duration::ZERO).unwrap();
        assert!(machine.cpus > 0 && machine.memory_gib > 0 && !machine.kernel.is_empty());
        assert_eq!(machine.date.len(), 10, "{}", machine.date);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        assert_eq!(field("VmRSSx:\t1 kB\nVmRSS:\t   20 kB\n", "VmRSS"), Some("20 kB"));
    }
}
