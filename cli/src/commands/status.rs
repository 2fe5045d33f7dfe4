//! `hither status`.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::bail;
use hither_stack::units::{Period, Size};
use serde::Serialize;

use crate::args::status::Args;
use crate::control::client::{Located, Mounts};
use crate::control::protocol::{CacheStatus, Operation, Outcome, Status, WirePath};
use crate::failure::FAILED;
use crate::output::{self, counted};

/// A mount in the list that could not be asked.
#[derive(Serialize)]
struct Silent {
    mountpoint: WirePath,
    error: String,
}

/// A mount in the list.
#[derive(Serialize)]
#[serde(untagged)]
enum Listed {
    Known(Box<Status>),
    Silent(Silent),
}

/// Shows one mount, or all.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.mountpoint {
        Some(mountpoint) => {
            let status = ask(&Mounts::read()?.at(mountpoint)?)?;
            if args.json {
                output::json(&status)?;
            } else {
                for (topic, line) in describe(&status) {
                    output::line(format!("{topic:<10} {line}"))?;
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        None => list(args.json),
    }
}

/// The status of a mount.
pub fn ask(located: &Located) -> anyhow::Result<Status> {
    match located.connect()?.request(Operation::Status, &mut |_| ())? {
        Outcome::Status(status) => Ok(*status),
        other => bail!("the daemon answers another question: {other:?}"),
    }
}

fn list(json: bool) -> anyhow::Result<ExitCode> {
    let listed: Vec<Listed> = Mounts::read()?
        .ours()
        .iter()
        .map(|located| match ask(located) {
            Ok(status) => Listed::Known(Box::new(status)),
            Err(error) => {
                let mountpoint = WirePath(located.mount.mountpoint.clone());
                Listed::Silent(Silent { mountpoint, error: format!("{error:#}") })
            }
        })
        .collect();
    if json {
        output::json(&listed)?;
    } else if listed.is_empty() {
        output::line("nothing is mounted")?;
    } else {
        for mount in &listed {
            output::line(summary(mount))?;
        }
    }
    let silent = listed.iter().any(|mount| matches!(mount, Listed::Silent(_)));
    Ok(if silent { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn summary(mount: &Listed) -> String {
    match mount {
        Listed::Silent(silent) => format!("{}  {}", silent.mountpoint.0.display(), silent.error),
        Listed::Known(status) => {
            let mountpoint = status.mountpoint.0.display();
            let mut line = format!("{mountpoint}  {} of {}  pid {}", status.kind, status.source, status.pid);
            if let Some(cache) = status.caches.first() {
                let _ = write!(line, "  {}, {}", hit_rate(cache), use_of(cache));
            }
            line
        }
    }
}

/// Everything that a person may want to know, a line a topic.
fn describe(status: &Status) -> Vec<(&str, String)> {
    let mut lines =
        vec![(status.kind.as_str(), format!("{} at {}", status.source, status.mountpoint.0.display()))];
    lines.push(("daemon", format!("pid {}, up {}, log: {}", status.pid, uptime(status.started), status.log)));
    let path = match (status.data_path.as_str(), status.data_path_reason.as_str()) {
        ("passthrough", "") => "passthrough: the kernel reads local copies by itself".to_owned(),
        ("passthrough", why) => format!("passthrough, at times without it: {why}"),
        (path, "") => path.to_owned(),
        (path, why) => format!("{path}, no passthrough: {why}"),
    };
    lines.push(("data path", path));
    let requests = match (status.transport.as_str(), status.transport_reason.as_str()) {
        ("dev", "") => "/dev/fuse".to_owned(),
        ("dev", why) => format!("/dev/fuse: {why}"),
        (transport, _) => transport.to_owned(),
    };
    lines.push(("requests", requests));
    let front = &status.front_end;
    let opens = format!(
        "{} by the kernel, {} through the page cache, {} direct; {} files open",
        front.opens_passthrough, front.opens_cached, front.opens_direct, front.open_files
    );
    lines.push(("opens", opens));
    let served =
        format!("{} read, {} written by the daemon", Size(front.bytes_read), Size(front.bytes_written));
    lines.push(("bytes", served));
    lines.push((
        "requests",
        format!(
            "{}, {} failed, {} of them for want of an answer{}; {} interrupted, {} in flight",
            front.requests,
            front.errors,
            front.timed_out,
            patience(status),
            front.interrupted,
            front.in_flight
        ),
    ));
    status.caches.iter().for_each(|cache| describe_cache(cache, &mut lines));
    if let Some(address) = &status.metrics {
        lines.push(("metrics", address.clone()));
    }
    lines
}

fn patience(status: &Status) -> String {
    match status.origin_timeout_ms {
        Some(time) => format!(" within {}", Period(Duration::from_millis(time))),
        None => String::new(),
    }
}

fn describe_cache(cache: &CacheStatus, lines: &mut Vec<(&str, String)>) {
    lines.push((
        "hits",
        format!(
            "{} opens hit ({}), {} missed ({}): {}",
            cache.hits,
            Size(cache.hit_bytes),
            cache.misses,
            Size(cache.miss_bytes),
            hit_rate(cache)
        ),
    ));
    if cache.bypassed_by_rule + cache.bypassed_full + cache.bypassed_unsettled > 0 {
        lines.push((
            "bypassed",
            format!(
                "{} by rule or size (empty files too), {} for lack of room, {} just changed or being written",
                cache.bypassed_by_rule, cache.bypassed_full, cache.bypassed_unsettled
            ),
        ));
    }
    lines.push((
        "fetched",
        format!(
            "{} in {} reads of the origin; {} copies made, {} given up, {} outdated, {} evicted",
            Size(cache.fetched_bytes),
            cache.fetches,
            cache.fills,
            cache.fills_abandoned,
            cache.invalidated,
            cache.evicted
        ),
    ));
    let scanning = if cache.scanning { " (still being listed)" } else { "" };
    lines.push((
        "store",
        format!(
            "{}: {}, {} copies, {} of them safe from a power loss, {} pinned{scanning}",
            cache.store,
            use_of(cache),
            cache.copies,
            cache.durable_copies,
            Size(cache.pinned_bytes)
        ),
    ));
    if cache.disk_bytes > 0 {
        lines.push(("disk", disk(cache)));
    }
    lines.push((
        "errors",
        format!(
            "{} of the origin, {} of the store, {} found damaged by verify",
            cache.origin_errors,
            cache.store_errors,
            counted(cache.damaged, "copy")
        ),
    ));
}

/// The limit that holds where nobody gave a capacity, or where other files fill the disk.
fn disk(cache: &CacheStatus) -> String {
    let (free, all, kept) = (Size(cache.disk_free_bytes), Size(cache.disk_bytes), Size(cache.min_free_bytes));
    let full = if free <= kept { ": no room for copies" } else { "" };
    format!("{free} of {all} free, {kept} are kept free (min-free){full}")
}

fn hit_rate(cache: &CacheStatus) -> String {
    match cache.hits + cache.misses {
        0 => "no opens yet".to_owned(),
        opens => format!("{:.0}% hits", 100.0 * cache.hits as f64 / opens as f64),
    }
}

fn use_of(cache: &CacheStatus) -> String {
    match cache.capacity_bytes {
        Some(capacity) => format!("{} of {} used", Size(cache.used_bytes), Size(capacity)),
        None => format!("{} used", Size(cache.used_bytes)),
    }
}

fn uptime(started: u64) -> String {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO).as_secs().saturating_sub(started);
    match since {
        ..60 => format!("{since}s"),
        60..3600 => format!("{}m", since / 60),
        3600..86_400 => format!("{}h {}m", since / 3600, since % 3600 / 60),
        _ => format!("{}d {}h", since / 86_400, since % 86_400 / 3600),
    }
}
