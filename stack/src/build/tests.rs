//! Stacks over real directories: what is built, what is refused, and what is left behind by a refusal.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use hither_vfs::Call;

use super::*;
use crate::config::{DirConfig, MountOptions};
use crate::units::Size;

struct Fixture {
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        for name in ["mnt", "origin"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("origin/f"), "bytes").unwrap();
        Fixture { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    fn origin(&self) -> FsConfig {
        FsConfig::Dir(DirConfig { source: self.path("origin") })
    }

    fn cache(&self, origin: FsConfig, store: &str) -> FsConfig {
        let settings = CacheSettings::new(self.path(store));
        FsConfig::Cache(Box::new(CacheConfig { origin, settings }))
    }

    fn mount(&self, fs: FsConfig) -> MountConfig {
        MountConfig { mountpoint: self.path("mnt"), options: MountOptions::default(), fs }
    }

    fn refused(&self, config: &MountConfig) -> BuildError {
        build(config).err().expect("it was built")
    }
}

/// What is printed: the message and those of its sources, of which none may say what was said before.
fn said_once(error: &BuildError) -> String {
    let mut said = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let why = cause.to_string();
        assert!(!said.contains(&why), "said twice: {said}: {why}");
        said = format!("{said}: {why}");
        source = cause.source();
    }
    said
}

fn size_of_f(built: &Built) -> u64 {
    built.fs.root().lookup(&Call::own(), "f".as_ref()).unwrap().attr.size
}

#[test]
fn a_directory_is_served_as_it_is() {
    let fixture = Fixture::new();
    let built = build(&fixture.mount(fixture.origin())).unwrap();
    assert_eq!(size_of_f(&built), 5);
    assert!(built.caches.is_empty());
    assert_eq!(built.mountpoint, fixture.path("mnt"));
}

#[test]
fn caches_stack_and_each_has_its_store() {
    let fixture = Fixture::new();
    let inner = fixture.cache(fixture.origin(), "warm");
    let built = build(&fixture.mount(fixture.cache(inner, "hot"))).unwrap();
    assert_eq!(size_of_f(&built), 5);
    let stores: Vec<_> = built.caches.iter().map(|cache| cache.store.clone()).collect();
    assert_eq!(stores, [fixture.path("hot"), fixture.path("warm")], "the outermost first");
    let origin = fixture.path("origin").display().to_string();
    assert_eq!(built.caches[1].origin, origin);
    assert_eq!(built.caches[0].origin, format!("cache of {origin}"));
    assert_eq!(fs::metadata(fixture.path("hot")).unwrap().permissions().mode() & 0o777, 0o700);
    built.shutdown();
}

#[test]
fn a_store_has_one_mount_until_that_is_gone() {
    let fixture = Fixture::new();
    let config = fixture.mount(fixture.cache(fixture.origin(), "store"));
    let built = build(&config).unwrap();
    let error = fixture.refused(&config);
    let pid = std::process::id();
    let mountpoint = fixture.path("mnt");
    // Nothing was ever mounted there: as after `umount --lazy` while programs use the mount.
    assert!(
        matches!(&error, BuildError::StoreLingers { pid: owner, .. } if *owner == pid.to_string()),
        "{error}"
    );
    let said = error.to_string();
    assert!(said.contains(&format!("whose mount at {} is gone", mountpoint.display())), "{said}");
    assert!(!error.is_usage());
    built.shutdown();
    drop(built);
    build(&config).unwrap().shutdown();
}

#[test]
fn two_caches_of_one_stack_cannot_share_a_store() {
    let fixture = Fixture::new();
    let inner = fixture.cache(fixture.origin(), "store");
    let error = fixture.refused(&fixture.mount(fixture.cache(inner, "store")));
    assert!(matches!(error, BuildError::Overlap { .. }) && error.is_usage(), "{error}");
}

#[test]
fn paths_that_cannot_be_are_wrong_usage_and_name_the_culprit() {
    let fixture = Fixture::new();
    let cache = |store: &str| fixture.mount(fixture.cache(fixture.origin(), store));
    let cases: Vec<(MountConfig, &str)> = vec![
        (MountConfig { mountpoint: fixture.path("no"), ..cache("s") }, "mount point"),
        (MountConfig { mountpoint: fixture.path("origin/f"), ..cache("s") }, "mount point"),
        (fixture.mount(FsConfig::Dir(DirConfig { source: fixture.path("no") })), "origin"),
        (cache("no/store"), "store"),
        (cache("origin/store"), "lies in the origin"),
        (cache("mnt/store"), "lies in the mount point"),
        (cache("origin/f"), "store"),
        (fixture.mount(FsConfig::Dir(DirConfig { source: fixture.path("mnt") })), "lies in"),
    ];
    for (config, part) in cases {
        let error = fixture.refused(&config);
        assert!(error.is_usage() && error.to_string().contains(part), "{part}: {error}");
        said_once(&error);
    }
    for litter in ["origin/store", "mnt/store", "s"] {
        assert!(!fixture.path(litter).exists(), "{litter} was made for a stack that is refused");
    }
}

#[test]
fn a_directory_with_other_files_is_no_store_and_stays_as_it_was() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("disk")).unwrap();
    fs::create_dir(fixture.path("disk/lost+found")).unwrap();
    fs::write(fixture.path("disk/thesis.tex"), "").unwrap();
    let config = fixture.mount(fixture.cache(fixture.origin(), "disk"));
    let error = fixture.refused(&config);
    assert!(error.is_usage() && error.to_string().contains("thesis.tex"), "{error}");
    assert_eq!(fs::read_dir(fixture.path("disk")).unwrap().count(), 2);
    fs::remove_file(fixture.path("disk/thesis.tex")).unwrap();
    build(&config).unwrap().shutdown();
}

#[test]
fn a_store_of_another_origin_or_version_is_refused_with_the_way_out() {
    let fixture = Fixture::new();
    build(&fixture.mount(fixture.cache(fixture.origin(), "my store"))).unwrap().shutdown();
    fs::create_dir(fixture.path("other")).unwrap();
    let other = || FsConfig::Dir(DirConfig { source: fixture.path("other") });
    let error = fixture.refused(&fixture.mount(fixture.cache(other(), "my store")));
    let said = said_once(&error);
    let origin = fixture.path("origin").display().to_string();
    assert!(error.is_usage() && said.contains(&origin) && !said.contains("busy"), "{said}");
    let command = format!("rm -r '{}'", fixture.path("my store").display());
    assert!(said.contains(&command), "{said}");
    fs::write(fixture.path("my store/store"), "something else").unwrap();
    let error = fixture.refused(&fixture.mount(fixture.cache(fixture.origin(), "my store")));
    let said = said_once(&error);
    assert!(error.is_usage() && said.contains(&command) && !said.contains("os error"), "{said}");
    // What it says to do helps.
    fs::remove_dir_all(fixture.path("my store")).unwrap();
    build(&fixture.mount(fixture.cache(other(), "my store"))).unwrap().shutdown();
}

#[test]
fn no_command_is_offered_that_would_remove_something_else() {
    assert!(removal(Path::new("/nvme/hither-1")).ends_with("rm -r /nvme/hither-1"));
    assert!(removal(Path::new("/a b/$(c)")).ends_with("rm -r '/a b/$(c)'"));
    assert!(removal(Path::new("/it's")).ends_with(r"rm -r '/it'\''s'"));
    use std::os::unix::ffi::OsStrExt;
    for path in [&b"/a\nb"[..], b"/a\xff"] {
        let said = removal(Path::new(std::ffi::OsStr::from_bytes(path)));
        assert!(!said.contains("rm"), "{said}");
    }
}

#[test]
fn what_the_mount_hides_is_counted_and_an_empty_origin_does_not_hide_files() {
    let fixture = Fixture::new();
    let cached = || fixture.mount(fixture.cache(fixture.origin(), "store"));
    let built = build(&cached()).unwrap();
    assert_eq!(built.hidden, 0);
    built.shutdown();
    drop(built);
    for name in ["mnt/a", "mnt/b"] {
        fs::write(fixture.path(name), "").unwrap();
    }
    let built = build(&cached()).unwrap();
    assert_eq!(built.hidden, 2);
    built.shutdown();
    drop(built);
    fs::remove_file(fixture.path("origin/f")).unwrap();
    for fs in [fixture.origin(), fixture.cache(fixture.origin(), "new")] {
        let error = fixture.refused(&fixture.mount(fs));
        assert!(matches!(error, BuildError::Swapped { .. }) && error.is_usage(), "{error}");
        assert!(said_once(&error).contains("swap"), "{error}");
    }
    assert!(!fixture.path("new").exists(), "no store is bound to an origin that was not meant");
    fs::remove_file(fixture.path("mnt/a")).unwrap();
    fs::remove_file(fixture.path("mnt/b")).unwrap();
    build(&cached()).unwrap().shutdown();
}

#[test]
fn where_a_store_cannot_be_made_the_missing_directory_is_named() {
    let fixture = Fixture::new();
    let error = fixture.refused(&fixture.mount(fixture.cache(fixture.origin(), "no/such/store")));
    let said = said_once(&error);
    let (store, parent) = (fixture.path("no/such/store"), fixture.path("no/such"));
    assert!(said.contains(&*store.to_string_lossy()) && error.is_usage(), "{said}");
    assert!(said.contains(&format!("{} does not exist", parent.display())), "{said}");
}

#[test]
fn every_message_says_its_cause_once() {
    let io = || io::Error::from_raw_os_error(13);
    let (store, path) = (PathBuf::from("/s"), PathBuf::from("/p"));
    let with_cause = || Story(hither_vfs::Error::with_cause(Errno::IO, "the story"));
    for error in [
        BuildError::Unusable { role: "store", path: path.clone(), source: io() },
        BuildError::Lock { store: store.clone(), source: io() },
        BuildError::Dir { role: "store", path, source: with_cause() },
        BuildError::Cache { store: store.clone(), source: Story(Errno::IO.into()) },
        BuildError::Cache { store, source: with_cause() },
    ] {
        let said = said_once(&error);
        assert!(said.matches("os error").count() + said.matches("the story").count() == 1, "{said}");
    }
}

#[test]
fn settings_reach_the_cache() {
    let fixture = Fixture::new();
    let FsConfig::Cache(mut cache) = fixture.cache(fixture.origin(), "store") else { unreachable!() };
    cache.settings.capacity = Some(Size(1000));
    cache.settings.rules = "bypass size>{1G}".parse().unwrap();
    let built = build(&fixture.mount(FsConfig::Cache(cache.clone()))).unwrap();
    assert_eq!(built.caches[0].cache.rules(), cache.settings.rules);
    assert_eq!(built.caches[0].low_water_bytes(), Some(850));
    built.shutdown();
    cache.settings.fetches = 0;
    assert!(fixture.refused(&fixture.mount(FsConfig::Cache(cache))).is_usage());
}
