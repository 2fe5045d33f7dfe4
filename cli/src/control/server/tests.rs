//! The socket with a service that does nothing: rights, bounds, and input of every kind.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Instant;

use super::*;
use crate::control::protocol::WirePath;

const LONG: Duration = Duration::from_secs(10);

/// Answers at once; `warm` goes on until it is cancelled, `verify` tells of progress once.
#[derive(Default)]
struct Dummy {
    callers: Mutex<Vec<Caller>>,
    cancelled: Mutex<bool>,
}

impl Service for Dummy {
    fn perform(
        &self,
        caller: Caller,
        cancel: &Cancel,
        operation: Operation,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Outcome, Problem> {
        self.callers.lock().push(caller);
        match operation {
            Operation::Warm { path } if path.0 == Path::new("silent") => {
                while !cancel.is_cancelled() {
                    hither_rt::clock::sleep(Duration::from_millis(10));
                }
                *self.cancelled.lock() = true;
            }
            Operation::Warm { .. } => {
                while progress(Progress { files_done: 1, ..Progress::default() }) {
                    hither_rt::clock::sleep(Duration::from_millis(10));
                }
                *self.cancelled.lock() = true;
            }
            Operation::Verify => {
                hither_rt::clock::sleep(PROGRESS_EVERY);
                progress(Progress { bytes_done: 3, ..Progress::default() });
            }
            _ => {}
        }
        Ok(Outcome::Nothing)
    }
}

struct Fixture {
    dir: tempfile::TempDir,
    dummy: Arc<Dummy>,
}

impl Fixture {
    /// A server whose mount belongs to whoever runs the test.
    fn new(others: bool) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let dummy = Arc::new(Dummy::default());
        start(
            &dir.path().join("s"),
            Policy { owner: rustix::process::geteuid().as_raw(), others },
            dummy.clone(),
        )
        .unwrap();
        Fixture { dir, dummy }
    }

    fn connect(&self) -> BufReader<UnixStream> {
        let connection = UnixStream::connect(self.dir.path().join("s")).unwrap();
        connection.set_read_timeout(Some(LONG)).unwrap();
        BufReader::new(connection)
    }

    fn wait_until_cancelled(&self) {
        let until = Instant::now() + LONG;
        while !*self.dummy.cancelled.lock() {
            assert!(Instant::now() < until, "the work goes on without a client");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn say(connection: &mut BufReader<UnixStream>, line: &str) {
    connection.get_mut().write_all(line.as_bytes()).unwrap();
    connection.get_mut().write_all(b"\n").unwrap();
}

fn hear(connection: &mut BufReader<UnixStream>) -> Body {
    let line = read_line(connection, 1 << 20).unwrap().expect("an answer");
    serde_json::from_slice::<Reply>(&line).unwrap().body
}

fn problem(body: Body) -> Problem {
    match body {
        Body::Error(problem) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_follow_each_other_on_one_connection_whatever_was_wrong_before() {
    let fixture = Fixture::new(false);
    let mut connection = fixture.connect();
    let wrong = [
        "",
        "nonsense",
        "{}",
        "[1,2]",
        "{\"version\":1}",
        "{\"version\":1,\"operation\":\"dance\"}",
        "{\"version\":1,\"operation\":\"state\"}",
        "{\"version\":1,\"operation\":\"state\",\"path\":[256]}",
        "{\"version\":1,\"operation\":\"state\",\"path\":7}",
        "{\"version\":-1,\"operation\":\"status\"}",
        "\u{0}\u{7f}",
    ];
    for line in wrong {
        say(&mut connection, line);
        let problem = problem(hear(&mut connection));
        assert!(problem.usage && problem.message.contains("not a request"), "{line}: {problem:?}");
    }
    // Deeper than anything we ever send; serde_json gives up by itself.
    say(&mut connection, &"[".repeat(50_000));
    assert!(problem(hear(&mut connection)).usage);
    say(&mut connection, "{\"version\":2,\"operation\":\"status\"}");
    assert!(problem(hear(&mut connection)).message.contains("another version"));
    say(&mut connection, "{\"version\":1,\"operation\":\"status\",\"more\":{}}");
    assert_eq!(hear(&mut connection), Body::Done(Outcome::Nothing));
}

#[test]
fn a_line_without_end_is_not_kept() {
    let fixture = Fixture::new(false);
    let mut connection = fixture.connect();
    // The server may hang up before it has all.
    let _ = connection.get_mut().write_all(&vec![b'x'; 4 * MAX_REQUEST]);
    let mut rest = Vec::new();
    let _ = connection.read_to_end(&mut rest);
    assert_eq!(rest, b"");
    let mut cut = fixture.connect();
    cut.get_mut().write_all(b"{\"version\":1,\"operation\":\"status\"}").unwrap();
    cut.get_mut().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(cut.read_to_end(&mut rest).unwrap(), 0, "half a line is not obeyed");
    assert!(fixture.dummy.callers.lock().is_empty());
}

#[test]
fn progress_comes_before_the_outcome() {
    let fixture = Fixture::new(false);
    let mut connection = fixture.connect();
    say(&mut connection, "{\"version\":1,\"operation\":\"verify\"}");
    assert_eq!(hear(&mut connection), Body::Progress(Progress { bytes_done: 3, ..Progress::default() }));
    assert_eq!(hear(&mut connection), Body::Done(Outcome::Nothing));
}

#[test]
fn a_client_that_goes_away_ends_its_work_whether_that_speaks_or_not() {
    for path in ["talking", "silent"] {
        let fixture = Fixture::new(false);
        let mut connection = fixture.connect();
        say(&mut connection, &format!("{{\"version\":1,\"operation\":\"warm\",\"path\":\"{path}\"}}"));
        if path == "talking" {
            assert!(matches!(hear(&mut connection), Body::Progress(_)));
        }
        drop(connection);
        fixture.wait_until_cancelled();
    }
}

#[test]
fn work_is_done_as_the_one_who_asks() {
    let fixture = Fixture::new(false);
    let mut connection = fixture.connect();
    say(&mut connection, "{\"version\":1,\"operation\":\"status\"}");
    hear(&mut connection);
    let callers = fixture.dummy.callers.lock();
    let own = Caller::this_process();
    assert_eq!((callers[0].uid, callers[0].gid, callers[0].pid), (own.uid, own.gid, own.pid));
    assert_eq!(callers[0].groups().len(), own.groups().len());
}

#[test]
fn more_connections_than_there_is_room_for_are_told_so() {
    let fixture = Fixture::new(false);
    let held: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut connection = fixture.connect();
            say(&mut connection, "{\"version\":1,\"operation\":\"status\"}");
            assert_eq!(hear(&mut connection), Body::Done(Outcome::Nothing));
            connection
        })
        .collect();
    assert!(problem(hear(&mut fixture.connect())).message.contains("busy"));
    drop(held);
    let until = Instant::now() + LONG;
    loop {
        let mut connection = fixture.connect();
        say(&mut connection, "{\"version\":1,\"operation\":\"status\"}");
        if hear(&mut connection) == Body::Done(Outcome::Nothing) {
            break;
        }
        assert!(Instant::now() < until, "room that was given back is not used");
    }
}

/// What `nobody` is answered to a request, by a helper process; `None` if this process cannot become nobody.
fn ask_as_nobody(fixture: &Fixture, request: &str) -> Option<Body> {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n\
                  s.sendall(sys.argv[2].encode()+b'\\n')\nprint(s.makefile().readline(),end='')";
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(fixture.dir.path().join("s"))
        .arg(request)
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice::<Reply>(&output.stdout).unwrap().body)
}

#[test]
fn others_may_look_and_fetch_where_the_mount_is_open_to_them_and_never_more() {
    let path = || WirePath("f".into());
    let harmless = [
        Operation::Status,
        Operation::State { path: path() },
        Operation::Attach { path: path(), wait: false },
    ];
    let harmful = [
        Operation::Unmount { lazy: true },
        Operation::Detach { path: path(), keep: false },
        Operation::Pin { path: path(), pinned: true },
        Operation::Evict { to_bytes: Some(0) },
        Operation::Verify,
        Operation::Rules,
        Operation::AddRule { rule: "all".into(), before: None },
        Operation::RemoveRule { name: "r1".into() },
    ];
    let (open, closed) = (Fixture::new(true), Fixture::new(false));
    let line = |operation: &Operation| {
        serde_json::to_string(&Request { version: VERSION, operation: operation.clone() }).unwrap()
    };
    for operation in &harmless {
        let Some(body) = ask_as_nobody(&open, &line(operation)) else {
            println!("skipped: needs root and python3");
            return;
        };
        assert_eq!(body, Body::Done(Outcome::Nothing), "{operation:?}");
        let refused = problem(ask_as_nobody(&closed, &line(operation)).unwrap());
        assert!(refused.message.contains("permission denied"), "{refused:?}");
    }
    for operation in &harmful {
        let refused = problem(ask_as_nobody(&open, &line(operation)).unwrap());
        assert!(refused.message.contains("permission denied"), "{operation:?}: {refused:?}");
    }
    let callers = open.dummy.callers.lock();
    assert_eq!(callers.len(), harmless.len());
    assert!(callers.iter().all(|caller| caller.uid == 65_534));
}
