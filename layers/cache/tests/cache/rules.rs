//! What is cached: rules, limits, and what a person asks for.

use std::time::Duration;

use hither_cache::{FileState, Options};
use hither_vfs::{Caller, Errno};

use crate::kit::{Kit, options};

#[test]
fn rules_choose_and_state_says_why() {
    let kit = Kit::new(Options { rules: "cache fname={*.h5}\nbypass all".parse().unwrap(), ..options() });
    kit.elsewhere.write("a.h5", b"data").unwrap();
    kit.elsewhere.write("b.txt", b"text").unwrap();
    kit.cached("a.h5");
    assert_eq!(kit.program.read("b.txt").unwrap(), b"text");
    let report = kit.cache.state(kit.program.call(), "b.txt".as_ref()).unwrap();
    assert_eq!(report.state, FileState::None);
    assert!(report.reason.unwrap().contains("rule"));
    assert_eq!(kit.cache.stats().bypassed_by_rule, 1);
    // Who names a file gets it cached.
    let report = kit.cache.attach(kit.program.call(), "b.txt".as_ref(), true).unwrap();
    assert_eq!((report.state, report.present), (FileState::Cached, 4));
    kit.cache.set_rules("cache path={sub/**}".parse().unwrap());
    kit.program.mkdir("sub", 0o755).unwrap();
    kit.elsewhere.write("sub/c", b"c").unwrap();
    kit.cached("sub/c");
}

#[test]
fn sizes_limit() {
    let kit = Kit::new(Options { min_file: 2, max_file: 3, ..options() });
    for (name, cached) in [("1", false), ("12", true), ("123", true), ("1234", false)] {
        kit.elsewhere.write(name, name.as_bytes()).unwrap();
        assert_eq!(kit.program.read(name).unwrap(), name.as_bytes());
        kit.settle_copy(name);
        assert_eq!(kit.state(name) == FileState::Cached, cached, "{name}");
    }
}

#[test]
fn attach_and_detach() {
    let kit = Kit::new(options());
    kit.elsewhere.write("f", b"bytes").unwrap();
    kit.elsewhere.mkdir("d", 0o755).unwrap();
    let call = kit.program.call();
    assert_eq!(kit.state("f"), FileState::None, "asking caches nothing");
    assert_eq!(kit.origin.bytes_read(), 0);
    kit.cache.attach(call, "f".as_ref(), true).unwrap();
    assert_eq!(kit.state("f"), FileState::Cached);
    kit.cache.detach(call, "f".as_ref(), true).unwrap();
    assert_eq!(kit.program.read("f").unwrap(), b"bytes");
    assert_eq!(kit.origin.bytes_read(), 5, "a kept copy is used again");
    kit.cache.detach(call, "f".as_ref(), false).unwrap();
    assert_eq!(kit.cache.stats().copies, 0);
    let refused = kit.cache.attach(call, "d".as_ref(), true).unwrap_err();
    assert_eq!(refused.errno(), Errno::INVAL);
    assert_eq!(kit.cache.attach(call, "none".as_ref(), true).unwrap_err().errno(), Errno::NOENT);
    assert_eq!(kit.cache.state(call, "d/../f".as_ref()).unwrap_err().errno(), Errno::INVAL);
}

#[test]
fn warm_fetches_a_tree_and_tells_of_it() {
    let kit = Kit::new(options());
    for dir in 0..5 {
        kit.elsewhere.mkdir(format!("d{dir}"), 0o755).unwrap();
        for file in 0..40 {
            kit.elsewhere.write(format!("d{dir}/f{file}"), format!("{dir} {file}").as_bytes()).unwrap();
        }
    }
    let mut told = 0;
    let progress = kit
        .cache
        .warm(kit.program.call(), "".as_ref(), &mut |_| {
            told += 1;
            true
        })
        .unwrap();
    assert_eq!((progress.files_done, progress.files_total, progress.failed), (200, 200, 0), "{progress:?}");
    assert!(told > 0);
    assert_eq!(kit.cache.stats().copies, 200);
    let read = kit.origin.bytes_read();
    assert_eq!(kit.program.read("d3/f39").unwrap(), b"3 39");
    assert_eq!(kit.origin.bytes_read(), read);
    let stopped = kit.cache.warm(kit.program.call(), "".as_ref(), &mut |_| false).unwrap();
    assert!(stopped.files_done <= 200);
}

#[test]
fn what_is_remembered_of_a_directory_is_told_to_those_who_may_search_it() {
    let kit = Kit::new(Options { revalidate: Duration::from_secs(3600), ..options() });
    kit.program.mkdir("secret", 0o700).unwrap();
    kit.program.write("secret/f", b"bytes").unwrap();
    kit.program.list("secret").unwrap();
    kit.program.node("secret/f").unwrap();
    let other = kit.program.as_caller(Caller::new(1000, 1000, 0, 0));
    let refused = kit.cache.state(other.call(), "secret/f".as_ref()).unwrap_err();
    assert_eq!(refused.errno(), Errno::ACCESS);
    let warmed = kit.cache.warm(other.call(), "secret".as_ref(), &mut |_| true).unwrap();
    assert_eq!((warmed.failed, warmed.files_total), (1, 0));
}
