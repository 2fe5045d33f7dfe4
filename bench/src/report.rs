//! What came out: rows of figures with the goals they are held against, as a table for people and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use crate::machine::Machine;
use crate::turns::{Client, Series};

/// What a row is held against.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// The figure is to be this or more.
    AtLeast(f64),
    /// The figure is to be this or less.
    AtMost(f64),
    /// The figure is wanted, whatever it is.
    Measured,
}

impl Goal {
    /// Whether a figure meets it; `None` if there is nothing to meet.
    pub fn is_met(self, figure: f64) -> Option<bool> {
        match self {
            Goal::AtLeast(least) => Some(figure >= least),
            Goal::AtMost(most) => Some(figure <= most),
            Goal::Measured => None,
        }
    }
}

/// A contender's figures in a row.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// Which contender.
    pub contender: &'static str,
    /// Median time of an operation.
    pub seconds: f64,
    /// Median processor time of an operation, of the client and its daemons.
    pub cpu_seconds: f64,
    /// How many bursts that is the median of.
    pub bursts: usize,
}

/// A work, measured.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What was done.
    pub work: String,
    /// Where the client ran.
    pub client: Option<Client>,
    /// The contenders.
    pub cells: Vec<Cell>,
    /// What the figure means.
    pub compares: String,
    /// The figure held against the goal.
    pub figure: f64,
    /// What it is counted in; empty for a ratio.
    pub unit: &'static str,
    /// The goal.
    pub goal: Goal,
    /// Whether it is met.
    pub met: Option<bool>,
}

impl Row {
    /// How a contender did against another of the same turns: by speed if the goal is a least one, by time otherwise.
    pub fn ratio(
        work: &str,
        client: Client,
        series: &[Series],
        (subject, against): (&'static str, &'static str),
        goal: Goal,
    ) -> anyhow::Result<Row> {
        let times = find(series, subject)?.times(find(series, against)?);
        let (figure, compares) = match goal {
            Goal::AtLeast(_) => (1.0 / times, format!("speed of {against}")),
            Goal::AtMost(_) | Goal::Measured => (times, format!("time of {against}")),
        };
        let client = Some(client);
        Ok(Row { client, cells: cells(series), compares, ..Row::figure(work, figure, "", goal) })
    }

    /// How long an operation took a contender, in microseconds.
    pub fn microseconds(
        work: &str,
        client: Client,
        series: &[Series],
        subject: &'static str,
        goal: Goal,
    ) -> anyhow::Result<Row> {
        let figure = 1e6 * find(series, subject)?.seconds();
        let (client, compares) = (Some(client), format!("of {subject}"));
        Ok(Row { client, cells: cells(series), compares, ..Row::figure(work, figure, "µs", goal) })
    }

    /// A figure that is no comparison.
    pub fn figure(work: &str, figure: f64, unit: &'static str, goal: Goal) -> Row {
        let (work, met) = (work.to_owned(), goal.is_met(figure));
        Row { work, client: None, cells: Vec::new(), compares: String::new(), figure, unit, goal, met }
    }
}

fn find<'a>(series: &'a [Series], name: &str) -> anyhow::Result<&'a Series> {
    series.iter().find(|series| series.name == name).with_context(|| format!("no {name}"))
}

fn cells(series: &[Series]) -> Vec<Cell> {
    let measured = series.iter().filter(|series| !series.bursts.is_empty());
    measured
        .map(|series| Cell {
            contender: series.name,
            seconds: series.seconds(),
            cpu_seconds: series.cpu_seconds(),
            bursts: series.bursts.len(),
        })
        .collect()
}

/// A measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Where and when.
    pub machine: Machine,
    /// The columns of the table, by contender.
    pub columns: &'static [&'static str],
    /// What lay below: the disk, the origin.
    pub below: String,
    /// Fewer and shorter bursts than a figure to be quoted needs.
    pub quick: bool,
    /// What could not be measured, and why.
    pub missing: Vec<String>,
    /// The figures.
    pub rows: Vec<Row>,
}

impl Report {
    /// A table, the machine below it.
    pub fn markdown(&self) -> String {
        let mut text = format!("| work | client | {} | figure | goal | |\n", self.columns.join(" | "));
        text += &format!("|---|---{}|---|---|---|\n", "|---".repeat(self.columns.len()));
        for row in &self.rows {
            let cell = |column: &&str| {
                let cell = row.cells.iter().find(|cell| cell.contender == *column);
                cell.map_or_else(String::new, |cell| {
                    format!("{} ({})", time(cell.seconds), time(cell.cpu_seconds))
                })
            };
            let cells: Vec<String> = self.columns.iter().map(cell).collect();
            let client = row.client.map_or("", Client::name);
            let _ = write!(text, "| {} | {client} | {} ", row.work, cells.join(" | "));
            let figure = number(row.figure);
            let figure = [figure.as_str(), row.unit, row.compares.as_str()].join(" ");
            let words = figure.split_whitespace().collect::<Vec<_>>().join(" ");
            let goal = match row.goal {
                Goal::AtLeast(least) => format!("at least {}", number(least)),
                Goal::AtMost(most) => format!("at most {}", number(most)),
                Goal::Measured => String::new(),
            };
            let verdict = row.met.map_or("", |met| if met { "met" } else { "**missed**" });
            let _ = writeln!(text, "| {words} | {goal} | {verdict} |");
        }
        let machine = &self.machine;
        let _ = write!(
            text,
            "\nTime of an operation, median of bursts (in brackets: processor time of client and daemons). {}, Linux {}, {} x {}, \
             {} GiB, {}. Other programs took {:.0}% of the processors.",
            machine.date,
            machine.kernel,
            machine.cpus,
            machine.cpu,
            machine.memory_gib,
            self.below,
            100.0 * machine.others
        );
        if machine.was_disturbed() {
            let _ = write!(
                text,
                " **The machine was not quiet ({} MiB of caches were reclaimed as well): not to be quoted.**",
                machine.reclaimed_mib
            );
        }
        if self.quick {
            text += " **Quick run: not to be quoted.**";
        }
        for missing in &self.missing {
            let _ = write!(text, " Not measured: {missing}.");
        }
        text
    }
}

/// A time, to read: three digits and a unit.
fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 1e-6 => (s * 1e9, "ns"),
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    format!("{} {unit}", number(value))
}

/// A number, to read: three digits, but none before the point dropped.
fn number(value: f64) -> String {
    match value.abs() {
        v if v < 1.0 => format!("{value:.3}"),
        v if v < 10.0 => format!("{value:.2}"),
        v if v < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Replaces what is between `<!-- NAME: begin -->` and `<!-- NAME: end -->` in a file.
pub fn write_between_markers(path: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let file = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let replaced =
        between_markers(&file, name, text).with_context(|| format!("{} is as it was", path.display()))?;
    std::fs::write(path, replaced).with_context(|| format!("cannot write {}", path.display()))
}

fn between_markers(file: &str, name: &str, text: &str) -> anyhow::Result<String> {
    let (begin, end) = (format!("<!-- {name}: begin -->"), format!("<!-- {name}: end -->"));
    let split = || {
        let (before, rest) = file.split_once(&begin)?;
        let (_, after) = rest.split_once(&end)?;
        Some((before, after))
    };
    let (before, after) = split().with_context(|| format!("no markers `{begin}` and `{end}`"))?;
    Ok(format!("{before}{begin}\n{}\n{end}{after}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns::Burst;

    fn series(name: &'static str, seconds: f64) -> Series {
        Series { name, bursts: vec![Burst { seconds, cpu_seconds: seconds / 2.0 }; 3] }
    }

    #[test]
    fn least_goals_are_about_speed_and_most_goals_about_time() {
        let all = [series("raw", 0.9e-6), series("cache", 1e-6)];
        let row = Row::ratio("w", Client::Free, &all, ("cache", "raw"), Goal::AtLeast(0.9)).unwrap();
        assert!((row.figure - 0.9).abs() < 1e-9, "{}", row.figure);
        let row = Row::ratio("w", Client::Free, &all, ("cache", "raw"), Goal::AtMost(1.1)).unwrap();
        assert_eq!(row.met, Some(false));
        assert!(Row::ratio("w", Client::Free, &all, ("cache", "rclone"), Goal::Measured).is_err());
    }

    #[test]
    fn the_table_says_what_was_missed() {
        let machine = Machine {
            kernel: "6.18".into(),
            cpu: "CPU".into(),
            cpus: 2,
            memory_gib: 24,
            date: "2026-01-31".into(),
            others: 0.25,
            reclaimed_mib: 7,
        };
        let all = [series("raw", 1e-6), series("cache", 2e-6), series("origin", 2.04e-3)];
        let rows = vec![
            Row::ratio("4 KiB", Client::Pinned, &all, ("cache", "raw"), Goal::AtLeast(0.9)).unwrap(),
            Row::figure("memory", 150.0, "bytes a file", Goal::AtMost(1024.0)),
        ];
        let missing = vec!["rclone (not installed)".to_owned()];
        let columns = &["raw", "dir", "cache", "origin", "rclone"];
        let below = "data on ext4".to_owned();
        let report = Report { machine, columns, below, quick: true, missing, rows };
        let text = report.markdown();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[2],
            "| 4 KiB | pinned | 1.00 µs (500 ns) |  | 2.00 µs (1.00 µs) | 2.04 ms (1.02 ms) |  | 0.500 speed of raw | at least 0.900 | **missed** |"
        );
        assert_eq!(lines[3], "| memory |  |  |  |  |  |  | 150 bytes a file | at most 1024 | met |");
        assert!(
            text.contains("25%")
                && text.contains("7 MiB")
                && text.contains("not to be quoted")
                && text.contains("rclone")
        );
    }

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let file = "a\n<!-- t: begin -->\nold\n<!-- t: end -->\nb\n";
        assert_eq!(
            between_markers(file, "t", "new\n").unwrap(),
            "a\n<!-- t: begin -->\nnew\n<!-- t: end -->\nb\n"
        );
        assert!(between_markers(file, "u", "new").is_err());
    }
}
