//! What `hither.toml` may say, and what is said where it is wrong.

use std::path::Path;

use super::*;

const FULL: &str = r#"
[mount.proj]
mountpoint = "/mnt/proj"
type = "cache"
origin = "/lustre/proj"
store = "/nvme/hither"
revalidate = "500ms"
max-file = "100G"
min-file = "4K"
whole-file = 1048576
capacity = "500G"
high-water = 0.9
low-water = "80%"
min-free = "5%"
settle = 3
sync-every = "10s"
fetches = 8
rules = ["bypass fname={*.tmp}", "big: cache projid={100}"]
quota = { "projid 100" = "50G" }
allow-other = true
read-only = true
passthrough = "off"
threads = 3
origin-timeout = "1m"
mount-flags = ["nosuid", "nodev"]
metrics = "9101"
log = "/var/log/hither.log"
log-level = "debug"
read-ahead = "2M"
transport = "dev"

[mount.plain]
mountpoint = "/mnt/plain"
type = "dir"
source = "/data"
"#;

fn read(text: &str) -> Result<BTreeMap<String, MountConfig>, ConfigError> {
    parse(text, Path::new("hither.toml"))
}

/// Line, column and message of the error that `text` must give.
fn wrong(text: &str) -> (usize, usize, String) {
    let error = read(text).unwrap_err();
    (error.line, error.column, error.to_string())
}

#[test]
fn every_key_arrives() {
    let mounts = read(FULL).unwrap();
    assert_eq!(mounts.keys().collect::<Vec<_>>(), ["plain", "proj"]);
    let proj = &mounts["proj"];
    assert_eq!(proj.mountpoint, Path::new("/mnt/proj"));
    assert_eq!(
        proj.options,
        MountOptions {
            allow_other: true,
            read_only: true,
            passthrough: Passthrough::Off,
            transport: Transport::Dev,
            threads: Some(3),
            origin_timeout: Some(Period(Duration::from_secs(60))),
            read_ahead: Some(Size(2 << 20)),
            mount_flags: vec![MountFlag::NoSuid, MountFlag::NoDev],
            metrics: Some(MetricsAddress("127.0.0.1:9101".parse().unwrap())),
            log: Some("/var/log/hither.log".into()),
            log_level: LogLevel::Debug,
        }
    );
    let FsConfig::Cache(cache) = &proj.fs else { panic!("{:?}", proj.fs) };
    assert_eq!(cache.origin, FsConfig::Dir(DirConfig { source: "/lustre/proj".into() }));
    let CacheSettings { rules, quota, .. } = &cache.settings;
    assert_eq!(rules.to_string(), "r1: bypass fname={*.tmp}\nbig: cache projid={100}\n");
    assert_eq!(*quota, BTreeMap::from([(Project(100), Size(50 << 30))]));
    let expected = CacheSettings {
        revalidate: Some(Period(Duration::from_millis(500))),
        max_file: Size(100 << 30),
        min_file: Size(4096),
        whole_file: Size(1 << 20),
        capacity: Some(Size(500 << 30)),
        high_water: Share(0.9),
        low_water: Share(0.8),
        min_free: Share(0.05),
        settle: Period(Duration::from_secs(3)),
        sync_every: Period(Duration::from_secs(10)),
        fetches: 8,
        rules: rules.clone(),
        quota: quota.clone(),
        ..CacheSettings::new("/nvme/hither".into())
    };
    assert_eq!(cache.settings, expected);
    assert_eq!(mounts["plain"].fs, FsConfig::Dir(DirConfig { source: "/data".into() }));
    assert_eq!(mounts["plain"].options, MountOptions::default());
    assert_eq!(mounts["plain"].deadline(), None);
    assert_eq!(proj.deadline(), Some(Duration::from_secs(60)));
    let unsaid = MountConfig { options: MountOptions::default(), ..proj.clone() };
    assert_eq!(unsaid.deadline(), Some(ORIGIN_TIMEOUT));
}

#[test]
fn an_origin_may_be_a_stack_of_its_own() {
    let text = r#"
[mount.m]
mountpoint = "/mnt"
type = "cache"
store = "/dev/shm/hot"
[mount.m.origin]
type = "cache"
origin = { type = "dir", source = "/nfs" }
store = "/ssd/warm"
"#;
    let mounts = read(text).unwrap();
    let FsConfig::Cache(outer) = &mounts["m"].fs else { panic!() };
    let FsConfig::Cache(inner) = &outer.origin else { panic!() };
    assert_eq!(inner.origin, FsConfig::Dir(DirConfig { source: "/nfs".into() }));
    assert_eq!(inner.settings, CacheSettings::new("/ssd/warm".into()));
    let (line, column, message) = wrong(&text.replace("/ssd/warm\"", "/ssd/warm\"\nread-only = true"));
    assert_eq!((line, column), (10, 1), "a mount's key has no place inside: {message}");
}

#[test]
fn unknown_keys_are_named_with_their_place_and_what_was_meant() {
    let (line, column, message) = wrong(&FULL.replace("revalidate =", "  revalidat ="));
    assert_eq!((line, column), (7, 3));
    let expected = "hither.toml:7:3: unknown key `revalidat` in [mount.proj]: did you mean `revalidate`?\n  \
                    7 |   revalidat = \"500ms\"\n    |   ^";
    assert_eq!(message, expected);
    let (line, column, message) = wrong(&FULL.replace("source =", "colour ="));
    assert_eq!((line, column), (35, 1));
    assert!(message.contains("it may have mountpoint, allow-other,"), "{message}");
    assert!(!message.contains("store"), "keys of another type are not offered: {message}");
    let (line, column, message) = wrong("[mounts.x]\n");
    assert_eq!((line, column), (1, 2));
    assert!(message.contains("did you mean `mount`?"), "{message}");
}

#[test]
fn every_other_mistake_has_its_place_too() {
    for (from, to, line, column, expected) in [
        ("\"500ms\"", "\"half\"", 7, 14, "`half` is not a time"),
        ("\"100G\"", "true", 8, 12, "expected a size: write 512"),
        ("high-water = 0.9", "high-water = 95", 12, 14, "`95` is not a share"),
        ("\"cache\"", "\"cash\"", 4, 8, "the type of [mount.proj] must be \"dir\" or \"cache\""),
        ("type = \"cache\"\n", "", 2, 1, "[mount.proj] has no `type`"),
        ("origin = \"/lustre/proj\"\n", "", 2, 1, "[mount.proj] has no `origin`"),
        ("store = \"/nvme/hither\"\n", "", 2, 1, "[mount.proj] has no `store`"),
        ("source = \"/data\"\n", "", 32, 1, "missing field `source`"),
        ("mountpoint = \"/mnt/proj\"\n", "", 2, 1, "[mount.proj] has no `mountpoint`"),
        ("\"/mnt/proj\"", "\"mnt/proj\"", 3, 14, "`mnt/proj` must be an absolute path"),
        ("\"/nvme/hither\"", "\"hither\"", 6, 9, "`hither` must be an absolute path"),
        ("\"/lustre/proj\"", "\"proj\"", 5, 10, "`proj` must be an absolute path"),
        (
            "\"/lustre/proj\"",
            "7",
            5,
            10,
            "the origin of [mount.proj] must be a table, but is of type integer",
        ),
        ("{*.tmp}", "{*.tmp", 18, 9, "expected"),
        ("\"bypass fname", "\"big: bypass fname", 18, 9, "a name that no rule above has"),
        ("\"projid 100\" =", "\"project 100\" =", 19, 9, "`project 100` is not a project"),
        ("threads = 3", "threads = -3", 23, 11, "invalid value"),
        ("\"nodev\"", "\"nodevs\"", 25, 26, "unknown variant `nodevs`"),
        ("\"9101\"", "\"some:where\"", 26, 11, "`some:where` is not an address"),
        ("fetches = 8", "fetches = 8\nfetches = 9", 18, 1, "duplicate key"),
        ("fetches = 8", "fetches = = 8", 17, 11, ""),
        ("[mount.plain]", "[mount.plain", 32, 13, ""),
    ] {
        let text = FULL.replacen(from, to, 1);
        assert_ne!(text, FULL, "{from}");
        let (at_line, at_column, message) = wrong(&text);
        assert!(message.contains(expected), "{to}: {message}");
        assert_eq!((at_line, at_column), (line, column), "{to}: {message}");
    }
    assert!(wrong("").2.contains("begin one with [mount.NAME]"));
    assert!(wrong("[mount]\nx = 1\n").2.contains("[mount.x] must be a table"));
}

#[test]
fn no_text_makes_it_panic() {
    // Every prefix of a good file, and every file with one character gone: quick, and it hits each state.
    for (at, c) in FULL.char_indices() {
        let _ = read(&FULL[..at]);
        let _ = read(&format!("{}{}", &FULL[..at], &FULL[at + c.len_utf8()..]));
    }
    for odd in ["\u{0}", "é = 1", "mount = 3", "[mount.\"\"]\ntype = \"dir\"", "[[mount.x]]", "\u{feff}"] {
        assert!(read(odd).is_err(), "{odd:?}");
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let settings = CacheSettings::new("/s".into());
    assert_eq!(settings.check(), Ok(()));
    let refused = |change: fn(&mut CacheSettings)| {
        let mut settings = settings.clone();
        change(&mut settings);
        settings.check().unwrap_err()
    };
    assert!(
        refused(|s| (s.immutable, s.revalidate) = (true, Some(Period::default()))).contains("revalidate")
    );
    assert!(refused(|s| (s.high_water, s.low_water) = (Share(0.5), Share(0.6))).contains("low-water"));
    assert!(refused(|s| (s.min_file, s.max_file) = (Size(2), Size(1))).contains("min-file"));
    assert_eq!(MountOptions::default().check(), Ok(()));
    let none = MountOptions { origin_timeout: Some(Period(Duration::ZERO)), ..MountOptions::default() };
    assert!(none.check().unwrap_err().contains("origin-timeout"));
}

#[test]
fn numbers_that_nothing_would_come_of_are_refused_with_their_bounds() {
    let check = |change: &dyn Fn(&mut CacheSettings)| {
        let mut settings = CacheSettings::new("/s".into());
        change(&mut settings);
        settings.check()
    };
    for fetches in [0, MAX_FETCHES + 1, usize::MAX] {
        let said = check(&|s| s.fetches = fetches).unwrap_err();
        assert!(said.contains("`fetches`") && said.contains("from 1 to 1024"), "{said}");
    }
    for fetches in [1, MAX_FETCHES] {
        check(&|s| s.fetches = fetches).unwrap();
    }
    assert!(check(&|s| s.capacity = Some(Size(0))).unwrap_err().contains("`capacity` is 0: nothing"));
    assert!(check(&|s| s.max_file = Size(0)).unwrap_err().contains("`max-file` is 0: nothing"));
    assert!(check(&|s| (s.high_water, s.low_water) = (Share(0.0), Share(0.0))).is_err());
    assert!(check(&|s| s.min_free = Share(1.0)).unwrap_err().contains("`min-free` is 100%"));
    assert!(check(&|s| s.sync_every = Period(Duration::from_millis(9))).unwrap_err().contains("10ms"));
    check(&|s| (s.min_free, s.sync_every) = (Share(0.0), MIN_SYNC_EVERY)).unwrap();
    let options =
        |threads, read_ahead| MountOptions { threads, read_ahead, ..MountOptions::default() }.check();
    for threads in [0, MAX_THREADS + 1, 100_000] {
        let said = options(Some(threads), None).unwrap_err();
        assert!(said.contains("`threads`") && said.contains("from 1 to 256"), "{said}");
    }
    options(Some(MAX_THREADS), Some(MAX_READ_AHEAD)).unwrap();
    options(Some(1), Some(Size(0))).unwrap();
    assert!(
        options(None, Some(Size(5 << 40))).unwrap_err().contains("`read-ahead` is 5T: it must be at most 1G")
    );
}

/// `docs/CONFIG.md`, which is for people, and what it shows and lists.
const GUIDE: &str = include_str!("../../../docs/CONFIG.md");

#[test]
fn the_example_of_the_guide_is_right_and_shows_the_defaults() {
    let example = GUIDE.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let mounts = read(example).unwrap();
    assert_eq!(mounts.keys().collect::<Vec<_>>(), ["images", "plain", "proj"]);
    let FsConfig::Cache(proj) = &mounts["proj"].fs else { panic!() };
    let defaults = CacheSettings::new("/nvme/hither".into());
    let chosen = CacheSettings {
        revalidate: None,
        rules: RuleSet::default(),
        max_file: defaults.max_file,
        capacity: None,
        quota: BTreeMap::new(),
        ..proj.settings.clone()
    };
    assert_eq!(chosen, defaults, "what the example does not choose is said with its default");
    assert_eq!(proj.settings.revalidate.unwrap().0, hither_cache::Options::default().revalidate);
    for mount in mounts.values() {
        if let FsConfig::Cache(cache) = &mount.fs {
            cache.settings.check().unwrap();
        }
    }
}

#[test]
fn the_guide_lists_every_key_with_its_default() {
    let rows: Vec<&str> = GUIDE.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |key: &str| {
        let quoted = format!("`{key}`");
        let found = rows.iter().find(|row| row.split('|').nth(1).is_some_and(|cell| cell.contains(&quoted)));
        *found.unwrap_or_else(|| panic!("docs/CONFIG.md does not list {key}"))
    };
    let special = ["mountpoint", "type", "origin"];
    let keys = [&special[..], keys_of::<MountOptions>(), keys_of::<DirConfig>(), keys_of::<CacheSettings>()]
        .concat();
    assert!(keys.len() > 20);
    keys.iter().for_each(|key| assert!(row(key).len() > key.len()));
    let defaults = CacheSettings::new("/s".into());
    let cell = |key: &str| row(key).split('|').nth(2).unwrap().trim().replace(['`', '"'], "");
    assert_eq!(cell("revalidate"), Period(hither_cache::Options::default().revalidate).to_string());
    assert_eq!(cell("settle"), defaults.settle.to_string());
    assert_eq!(cell("sync-every"), defaults.sync_every.to_string());
    assert_eq!(cell("whole-file"), defaults.whole_file.to_string());
    assert_eq!(cell("fetches"), defaults.fetches.to_string());
    assert_eq!(cell("high-water"), format!("{}, {}", defaults.high_water.0, defaults.low_water.0));
    assert_eq!(cell("min-free"), defaults.min_free.to_string());
}
