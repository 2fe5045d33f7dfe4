//! Metrics for Prometheus: every metric there is, in one table, and the few lines of HTTP that serve them.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::control::protocol::{CacheStatus, FrontEnd, Requests, Status};

/// How long a client may take to send its request and to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longest request.
const MAX_REQUEST: usize = 8 << 10;

/// Most header lines of a request.
const MAX_HEADERS: usize = 64;

/// One metric over `T`.
struct Metric<T> {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    value: fn(&T) -> u64,
}

const fn counter<T>(name: &'static str, help: &'static str, value: fn(&T) -> u64) -> Metric<T> {
    Metric { name, help, kind: MetricType::Counter, value }
}

const fn gauge<T>(name: &'static str, help: &'static str, value: fn(&T) -> u64) -> Metric<T> {
    Metric { name, help, kind: MetricType::Gauge, value }
}

/// Of each operation of a mount. Counters get `_total` behind their name.
const OPERATION: &[Metric<Requests>] = &[
    counter("hither_requests", "Requests of the kernel", |now| now.count),
    counter("hither_request_errors", "Requests that failed: something broke or is lacking", |now| now.errors),
];

/// Of each mount.
const MOUNT: &[Metric<FrontEnd>] = &[
    counter("hither_requests_timed_out", "Requests that ran into the origin timeout", |now| now.timed_out),
    counter("hither_requests_interrupted", "Requests whose program gave up", |now| now.interrupted),
    counter("hither_opens_passthrough", "Opens that the kernel serves by itself", |now| {
        now.opens_passthrough
    }),
    counter("hither_opens_cached", "Opens served through the page cache", |now| now.opens_cached),
    counter("hither_opens_direct", "Opens with O_DIRECT served by the daemon", |now| now.opens_direct),
    counter("hither_read_bytes", "File bytes read by the daemon for the kernel", |now| now.bytes_read),
    counter("hither_written_bytes", "File bytes written by the daemon for the kernel", |now| {
        now.bytes_written
    }),
    counter("hither_panics", "Requests that ran into a bug of hither", |now| now.panics),
    gauge("hither_requests_in_flight", "Requests being worked on", |now| now.in_flight),
    gauge("hither_threads", "Threads that take requests", |now| now.threads),
    gauge("hither_nodes", "Files and directories that the kernel knows", |now| now.nodes),
    gauge("hither_open_files", "Open files", |now| now.open_files),
];

/// Of each cache.
const CACHE: &[Metric<CacheStatus>] = &[
    counter("hither_cache_hits", "Opens for reading that had a complete copy", |now| now.hits),
    counter("hither_cache_hit_bytes", "Sizes of the files of those opens", |now| now.hit_bytes),
    counter("hither_cache_misses", "Opens for reading that had no complete copy", |now| now.misses),
    counter("hither_cache_miss_bytes", "Sizes of the files of those opens", |now| now.miss_bytes),
    counter("hither_cache_bypassed_by_rule", "Misses that began no copy by rule or size", |now| {
        now.bypassed_by_rule
    }),
    counter("hither_cache_bypassed_full", "Misses that began no copy for lack of room", |now| {
        now.bypassed_full
    }),
    counter(
        "hither_cache_bypassed_unsettled",
        "Misses that began no copy as the file had just changed or was being written",
        |now| now.bypassed_unsettled,
    ),
    counter("hither_cache_served_bytes", "Bytes given to readers by the daemon", |now| now.served_bytes),
    counter("hither_cache_fetched_bytes", "Bytes read from the origin", |now| now.fetched_bytes),
    counter("hither_cache_fetches", "Reads made at the origin", |now| now.fetches),
    counter("hither_cache_fills", "Copies completed", |now| now.fills),
    counter("hither_cache_fills_abandoned", "Copies given up", |now| now.fills_abandoned),
    counter("hither_cache_invalidated", "Copies dropped since the file changed", |now| now.invalidated),
    counter("hither_cache_evicted", "Copies evicted for room", |now| now.evicted),
    counter("hither_cache_origin_errors", "Errors that the origin answered", |now| now.origin_errors),
    counter("hither_cache_store_errors", "Errors of the store", |now| now.store_errors),
    counter("hither_cache_damaged", "Copies that were found damaged by verify", |now| now.damaged),
    gauge("hither_cache_disk_free_bytes", "Bytes free on the disk of the store", |now| now.disk_free_bytes),
    gauge("hither_cache_copies", "Copies in the store", |now| now.copies),
    gauge("hither_cache_durable_copies", "Copies that would survive a power loss", |now| now.durable_copies),
    gauge("hither_cache_used_bytes", "Bytes that copies take", |now| now.used_bytes),
    gauge("hither_cache_pinned_bytes", "Bytes that pinned copies take", |now| now.pinned_bytes),
    gauge("hither_cache_capacity_bytes", "Bytes that copies may take, 0 if unlimited", |now| {
        now.capacity_bytes.unwrap_or(0)
    }),
    gauge("hither_cache_scanning", "1 while the store is still being listed", |now| u64::from(now.scanning)),
];

/// A status, as Prometheus is told of it.
struct Snapshot(Status);

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Snapshot")
    }
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mountpoint = ("mountpoint".to_owned(), self.0.mountpoint.0.to_string_lossy().into_owned());
        let operations = self.0.front_end.operations.iter();
        let of_operations: Vec<_> = operations
            .map(|requests| {
                (vec![mountpoint.clone(), ("operation".to_owned(), requests.operation.clone())], requests)
            })
            .collect();
        let of_mount = [(vec![mountpoint.clone()], &self.0.front_end)];
        let of_caches: Vec<_> = self
            .0
            .caches
            .iter()
            .map(|cache| (vec![mountpoint.clone(), ("store".to_owned(), cache.store.clone())], cache))
            .collect();
        OPERATION.iter().try_for_each(|metric| metric.encode(&mut encoder, &of_operations))?;
        MOUNT.iter().try_for_each(|metric| metric.encode(&mut encoder, &of_mount))?;
        CACHE.iter().try_for_each(|metric| metric.encode(&mut encoder, &of_caches))
    }
}

impl<T> Metric<T> {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>, of: &[(Vec<(String, String)>, &T)]) -> fmt::Result {
        if of.is_empty() {
            return Ok(());
        }
        let mut metric = encoder.encode_descriptor(self.name, self.help, None, self.kind)?;
        for (labels, source) in of {
            let value = (self.value)(source);
            let mut labelled = metric.encode_family(labels)?;
            match self.kind {
                MetricType::Counter => labelled.encode_counter::<NoLabelSet, u64, u64>(&value, None)?,
                _ => labelled.encode_gauge(&(value as f64))?,
            }
        }
        Ok(())
    }
}

/// A status in the text format of OpenMetrics, which Prometheus reads.
pub fn text(status: Status) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Snapshot(status)));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    text
}

/// Serves `/metrics` from now on, one request at a time: whoever is slow makes others wait for [`PATIENCE`] at most.
pub fn serve(listener: TcpListener, status: impl Fn() -> Status + Send + 'static) -> io::Result<()> {
    hither_rt::thread::spawn("metrics", move || {
        loop {
            let answered = listener.accept().and_then(|(connection, _)| answer(&connection, &status));
            if let Err(error) = answered {
                tracing::debug!(%error, "a request for metrics failed");
                if !matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) {
                    // It may be one that comes at once again, as lack of descriptors does.
                    hither_rt::clock::sleep(Duration::from_millis(10));
                }
            }
        }
    })?;
    Ok(())
}

fn answer(mut connection: &TcpStream, status: &impl Fn() -> Status) -> io::Result<()> {
    connection.set_write_timeout(Some(PATIENCE))?;
    let (code, kind, body) = match read_request(connection)? {
        Some((method, path)) if method == "GET" && (path == "/metrics" || path == "/") => {
            ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", text(status()))
        }
        Some((method, _)) if method != "GET" => {
            ("405 Method Not Allowed", "text/plain", "only GET is served\n".to_owned())
        }
        Some(_) => ("404 Not Found", "text/plain", "metrics are at /metrics\n".to_owned()),
        None => ("400 Bad Request", "text/plain", "not an HTTP request\n".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    connection.write_all(head.as_bytes())?;
    connection.write_all(body.as_bytes())
}

/// Method and path of a request without a body; `None` if it is none.
fn read_request(mut connection: &TcpStream) -> io::Result<Option<(String, String)>> {
    let until = hither_rt::clock::now() + PATIENCE;
    let mut buffer = Vec::new();
    loop {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&buffer) {
            Ok(httparse::Status::Complete(_)) => {
                let path = request.path.map(|path| path.split('?').next().unwrap_or_default().to_owned());
                return Ok(request.method.map(str::to_owned).zip(path));
            }
            Ok(httparse::Status::Partial) if buffer.len() < MAX_REQUEST => {}
            Ok(httparse::Status::Partial) | Err(_) => return Ok(None),
        }
        let left = until.saturating_duration_since(hither_rt::clock::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        connection.set_read_timeout(Some(left))?;
        let mut piece = [0; 1024];
        match connection.read(&mut piece)? {
            0 => return Ok(None),
            count => buffer.extend_from_slice(piece.get(..count).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests;
