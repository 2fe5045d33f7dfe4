//! The text that Prometheus gets, and what an HTTP server must bear.

use std::collections::HashSet;

use super::*;
use crate::control::protocol::WirePath;

fn status() -> Status {
    let lookups = Requests { operation: "lookup".into(), count: 7, errors: 1 };
    Status {
        mountpoint: WirePath("/mnt/a\"b".into()),
        pid: 1,
        uid: 0,
        hither: "0".into(),
        started: 0,
        kind: "cache".into(),
        source: "/o".into(),
        transport: "io_uring".into(),
        transport_reason: String::new(),
        data_path: "passthrough".into(),
        data_path_reason: String::new(),
        read_only: false,
        allow_other: true,
        log: String::new(),
        origin_timeout_ms: None,
        metrics: None,
        front_end: FrontEnd { operations: vec![lookups], in_flight: 3, ..FrontEnd::default() },
        caches: vec![
            CacheStatus { store: "/s".into(), hits: u64::MAX, used_bytes: 5, ..CacheStatus::default() },
            CacheStatus { store: "/t".into(), ..CacheStatus::default() },
        ],
    }
}

#[test]
fn the_text_has_help_type_and_labels() {
    let text = text(status());
    for line in [
        "# HELP hither_requests Requests of the kernel",
        "# TYPE hither_requests counter",
        "hither_requests_total{mountpoint=\"/mnt/a\\\"b\",operation=\"lookup\"} 7",
        "hither_request_errors_total{mountpoint=\"/mnt/a\\\"b\",operation=\"lookup\"} 1",
        "hither_requests_in_flight{mountpoint=\"/mnt/a\\\"b\"} 3.0",
        "# TYPE hither_cache_used_bytes gauge",
        "hither_cache_used_bytes{mountpoint=\"/mnt/a\\\"b\",store=\"/s\"} 5.0",
        "hither_cache_hits_total{mountpoint=\"/mnt/a\\\"b\",store=\"/s\"} 18446744073709551615",
        "hither_cache_hits_total{mountpoint=\"/mnt/a\\\"b\",store=\"/t\"} 0",
        "# EOF",
    ] {
        assert!(text.lines().any(|other| other == line), "no line {line} in\n{text}");
    }
    let without = Status { caches: Vec::new(), ..status() };
    assert!(!super::text(without).contains("hither_cache"));
}

#[test]
fn every_metric_has_its_own_name_and_unit() {
    let mut names: Vec<_> = OPERATION.iter().map(|metric| metric.name).collect();
    names.extend(MOUNT.iter().map(|metric| metric.name));
    names.extend(CACHE.iter().map(|metric| metric.name));
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    assert!(names.iter().all(|name| name.starts_with("hither_")));
}

fn ask(address: std::net::SocketAddr, request: &[u8]) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    // A server that has heard enough may have closed already.
    let _ = connection.write_all(request);
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn http_requests_good_and_bad() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    serve(listener, status).unwrap();
    let good = ask(address, b"GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(good.starts_with("HTTP/1.1 200 OK\r\n") && good.ends_with("# EOF\n"), "{good}");
    let length: usize =
        good.split("Content-Length: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
    assert_eq!(good.split_once("\r\n\r\n").unwrap().1.len(), length);
    assert!(ask(address, b"GET /else HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(ask(address, b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(ask(address, b"\x16\x03\x01 nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    // One that says nothing, and one that never ends: both are let go of, and the next is served.
    let silent = TcpStream::connect(address).unwrap();
    let mut endless = b"GET / HTTP/1.1\r\nX: ".to_vec();
    endless.resize(3 * MAX_REQUEST, b'x');
    assert!(!ask(address, &endless).contains("200"));
    assert!(ask(address, b"GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200"));
    drop(silent);
}
