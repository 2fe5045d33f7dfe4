//! What a mount is made of: the one schema that flags, fstab options and `hither.toml` all fill in.
//!
//! Every field but the nested file systems is read by serde under its name in kebab case; `docs/CONFIG.md` explains
//! them to people. A key that is added here is a key of the file at once; the command line's test reminds of its flag.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use hither_rules::{Rule, RuleSet};
use serde::Deserialize;
use serde::de::{self, Deserializer};

use crate::units::{Period, Share, Size};

mod file;
mod keys;

pub use file::{ConfigError, parse};
pub use keys::keys_of;

/// One mount: where it is, how the kernel sees it, and the tree of file systems behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct MountConfig {
    /// The directory that it covers; absolute.
    pub mountpoint: PathBuf,
    /// How it is mounted.
    pub options: MountOptions,
    /// What is mounted.
    pub fs: FsConfig,
}

/// How a file system is mounted, whatever it is.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MountOptions {
    /// Whether users other than the one who mounts may use it. Root's mounts always have it.
    pub allow_other: bool,
    /// Refuse every change.
    pub read_only: bool,
    /// Whether the kernel may read and write local copies by itself.
    pub passthrough: Passthrough,
    /// How requests come from the kernel.
    pub transport: Transport,
    /// Threads that take requests from `/dev/fuse`; `None` lets the front end choose.
    pub threads: Option<usize>,
    /// How long a request may take until it is answered EIO; `None`: 10 s with a cache, else as long as it takes.
    pub origin_timeout: Option<Period>,
    /// What the kernel reads ahead of a sequential reader; `None`: its default.
    pub read_ahead: Option<Size>,
    /// Further flags of the mount.
    pub mount_flags: Vec<MountFlag>,
    /// Where Prometheus may ask for metrics.
    pub metrics: Option<MetricsAddress>,
    /// The log file of a daemon, instead of the journal.
    #[serde(deserialize_with = "some_absolute_path")]
    pub log: Option<PathBuf>,
    /// What is logged.
    pub log_level: LogLevel,
}

impl MountOptions {
    /// Whether the options make sense.
    ///
    /// # Errors
    ///
    /// What does not, for the person who wrote it.
    pub fn check(&self) -> Result<(), String> {
        if let Some(threads) = self.threads.filter(|threads| !(1..=MAX_THREADS).contains(threads)) {
            return Err(format!("`threads` is {threads}: it must be from 1 to {MAX_THREADS}"));
        }
        if self.origin_timeout == Some(Period(Duration::ZERO)) {
            return Err(
                "`origin-timeout` is 0: nothing would be answered in time (`inf` waits for ever)".to_owned()
            );
        }
        if let Some(read_ahead) = self.read_ahead.filter(|size| *size > MAX_READ_AHEAD) {
            return Err(format!("`read-ahead` is {read_ahead}: it must be at most {MAX_READ_AHEAD}"));
        }
        Ok(())
    }
}

/// Most threads that take requests: far beyond the processors of a machine each only costs memory.
pub const MAX_THREADS: usize = 256;

/// Most that the kernel is told to read ahead.
pub const MAX_READ_AHEAD: Size = Size(1 << 30);

/// Most fetches from the origin at the same time: each has a thread and a buffer.
pub const MAX_FETCHES: usize = 1024;

/// The shortest time between two syncs of a store, which would do nothing else otherwise.
pub const MIN_SYNC_EVERY: Period = Period(Duration::from_millis(10));

/// The time allowed with a cache where nobody says another.
const ORIGIN_TIMEOUT: Duration = Duration::from_secs(10);

impl MountConfig {
    /// How long a request may take until it is answered EIO; `None`: as long as it takes.
    pub fn deadline(&self) -> Option<Duration> {
        let default = match self.fs {
            FsConfig::Dir(_) => Duration::MAX,
            FsConfig::Cache(_) => ORIGIN_TIMEOUT,
        };
        let chosen = self.options.origin_timeout.map_or(default, |Period(period)| period);
        (chosen < Duration::MAX).then_some(chosen)
    }
}

/// Whether the kernel may read and write local copies by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Passthrough {
    /// If kernel and privileges allow it.
    #[default]
    Auto,
    /// Never: every read goes through the daemon or the page cache.
    Off,
}

/// How requests come from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Over io_uring if the kernel allows it, else through `/dev/fuse`.
    #[default]
    Auto,
    /// Through `/dev/fuse`.
    Dev,
    /// Over io_uring, or not at all.
    Uring,
}

/// A flag of `mount(8)` that any file system can have; see there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MountFlag {
    /// Set-id bits have no effect.
    NoSuid,
    /// Device nodes cannot be opened.
    NoDev,
    /// Nothing can be executed.
    NoExec,
    /// Reading does not change the time of last access
    NoAtime,
    /// nor that of a directory,
    NoDirAtime,
    /// or only where it would be older than that of the last change,
    RelAtime,
    /// or always.
    StrictAtime,
    /// Times are kept in memory for a while.
    LazyTime,
    /// Every change is made durable before it returns
    Sync,
    /// or every change of a directory.
    DirSync,
}

impl MountFlag {
    /// Every flag.
    pub const ALL: [MountFlag; 10] = [
        MountFlag::NoSuid,
        MountFlag::NoDev,
        MountFlag::NoExec,
        MountFlag::NoAtime,
        MountFlag::NoDirAtime,
        MountFlag::RelAtime,
        MountFlag::StrictAtime,
        MountFlag::LazyTime,
        MountFlag::Sync,
        MountFlag::DirSync,
    ];

    /// As `mount(8)` has it.
    pub fn name(self) -> &'static str {
        match self {
            MountFlag::NoSuid => "nosuid",
            MountFlag::NoDev => "nodev",
            MountFlag::NoExec => "noexec",
            MountFlag::NoAtime => "noatime",
            MountFlag::NoDirAtime => "nodiratime",
            MountFlag::RelAtime => "relatime",
            MountFlag::StrictAtime => "strictatime",
            MountFlag::LazyTime => "lazytime",
            MountFlag::Sync => "sync",
            MountFlag::DirSync => "dirsync",
        }
    }
}

/// What is logged: a message of its level or a graver one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// Something is not as it should be.
    Warn,
    /// What happened to the mount as a whole.
    #[default]
    Info,
    /// What may explain a behaviour.
    Debug,
    /// Every request.
    Trace,
}

/// Where metrics are served: `PORT` (of the loopback interface) or `ADDRESS:PORT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricsAddress(pub SocketAddr);

impl FromStr for MetricsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let loopback = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let port = text.strip_prefix("localhost:").or(text.strip_prefix(':')).unwrap_or(text);
        let address = port.parse().map(loopback).or_else(|_| text.parse());
        address
            .map(MetricsAddress)
            .map_err(|_| format!("`{text}` is not an address: write 9101 or 127.0.0.1:9101"))
    }
}

impl fmt::Display for MetricsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for MetricsAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A file system: one of the layers and backends, with those inside it.
#[derive(Debug, Clone, PartialEq)]
pub enum FsConfig {
    /// A directory of this machine.
    Dir(DirConfig),
    /// A cache in front of another file system. Boxed, being far larger.
    Cache(Box<CacheConfig>),
}

impl FsConfig {
    /// The `type` that a file calls it by.
    pub fn kind(&self) -> &'static str {
        match self {
            FsConfig::Dir(_) => "dir",
            FsConfig::Cache(_) => "cache",
        }
    }
}

/// A directory of this machine, as it is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DirConfig {
    /// The directory; absolute.
    #[serde(deserialize_with = "absolute_path")]
    pub source: PathBuf,
}

/// A cache of `origin`.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheConfig {
    /// What is cached.
    pub origin: FsConfig,
    /// How.
    pub settings: CacheSettings,
}

/// The settings of a cache: those of [`hither_cache::Options`] as people write them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CacheSettings {
    /// The directory on a local disk that holds the copies; absolute. Made if it is missing.
    #[serde(deserialize_with = "absolute_path")]
    pub store: PathBuf,
    /// How long what the origin said is believed; `None` leaves it to the cache.
    #[serde(default)]
    pub revalidate: Option<Period>,
    /// Nothing at the origin ever changes: what it said once is believed for ever.
    #[serde(default)]
    pub immutable: bool,
    /// Larger files are not cached.
    #[serde(default = "unlimited")]
    pub max_file: Size,
    /// Smaller files are not cached.
    #[serde(default)]
    pub min_file: Size,
    /// Files up to this size are fetched whole as soon as they are opened.
    #[serde(default = "default_whole_file")]
    pub whole_file: Size,
    /// Most bytes that the copies may take; without it only `min_free` bounds them.
    #[serde(default)]
    pub capacity: Option<Size>,
    /// Eviction begins above this share of the capacity
    #[serde(default = "default_high_water")]
    pub high_water: Share,
    /// and ends below this one.
    #[serde(default = "default_low_water")]
    pub low_water: Share,
    /// The share of the store's disk that stays free.
    #[serde(default = "default_min_free")]
    pub min_free: Share,
    /// How old the last change of a file must be before it is cached.
    #[serde(default = "default_settle")]
    pub settle: Period,
    /// How often what was fetched is made safe from a power loss.
    #[serde(default = "default_sync_every")]
    pub sync_every: Period,
    /// Fetches from the origin at the same time.
    #[serde(default = "default_fetches")]
    pub fetches: usize,
    /// Which files are cached, in order; none means all.
    #[serde(default, deserialize_with = "rules")]
    pub rules: RuleSet,
    /// Most bytes for the files of a project.
    #[serde(default, deserialize_with = "quotas")]
    pub quota: BTreeMap<Project, Size>,
}

impl CacheSettings {
    /// The defaults, with copies in `store`.
    pub fn new(store: PathBuf) -> Self {
        CacheSettings {
            store,
            revalidate: None,
            immutable: false,
            max_file: unlimited(),
            min_file: Size(0),
            whole_file: default_whole_file(),
            capacity: None,
            high_water: default_high_water(),
            low_water: default_low_water(),
            min_free: default_min_free(),
            settle: default_settle(),
            sync_every: default_sync_every(),
            fetches: default_fetches(),
            rules: RuleSet::default(),
            quota: BTreeMap::new(),
        }
    }

    /// Whether the settings make sense together.
    ///
    /// # Errors
    ///
    /// What does not, for the person who wrote it.
    pub fn check(&self) -> Result<(), String> {
        if self.immutable && self.revalidate.is_some() {
            return Err("`immutable` means never to ask again: leave `revalidate` out".to_owned());
        }
        if self.low_water > self.high_water {
            let (low, high) = (self.low_water, self.high_water);
            return Err(format!("`low-water` ({low}) is above `high-water` ({high})"));
        }
        if self.min_file > self.max_file {
            let (min, max) = (self.min_file, self.max_file);
            return Err(format!("`min-file` ({min}) is above `max-file` ({max}): nothing would be cached"));
        }
        if !(1..=MAX_FETCHES).contains(&self.fetches) {
            return Err(format!("`fetches` is {}: it must be from 1 to {MAX_FETCHES}", self.fetches));
        }
        if self.sync_every < MIN_SYNC_EVERY {
            return Err(format!("`sync-every` is {}: it must be at least {MIN_SYNC_EVERY}", self.sync_every));
        }
        let nothing = |key: &str, value: &dyn fmt::Display| {
            Err(format!(
                "`{key}` is {value}: nothing would be cached (`hither mount dir` mounts without a cache)"
            ))
        };
        match self {
            CacheSettings { capacity: Some(Size(0)), .. } => nothing("capacity", &Size(0)),
            CacheSettings { max_file: Size(0), .. } => nothing("max-file", &Size(0)),
            CacheSettings { high_water: Share(0.0), .. } => nothing("high-water", &self.high_water),
            CacheSettings { min_free: Share(1.0), .. } => nothing("min-free", &self.min_free),
            _ => Ok(()),
        }
    }

    /// The same as the cache takes it. `origin_name` and `instance` are what they are there.
    pub fn to_options(&self, origin_name: String, instance: [u8; 16]) -> hither_cache::Options {
        let defaults = hither_cache::Options::default();
        let revalidate = self.revalidate.map_or(defaults.revalidate, |Period(period)| period);
        hither_cache::Options {
            origin_name,
            instance,
            rules: self.rules.clone(),
            revalidate: if self.immutable { Duration::MAX } else { revalidate },
            max_file: self.max_file.0,
            min_file: self.min_file.0,
            whole_file: self.whole_file.0,
            capacity: self.capacity.map(|Size(bytes)| bytes),
            high_water: self.high_water.0,
            low_water: self.low_water.0,
            min_free: self.min_free.0,
            quotas: self.quota.iter().map(|(project, size)| (project.0, size.0)).collect(),
            settle: self.settle.0,
            sync_every: self.sync_every.0,
            fetches: self.fetches,
        }
    }
}

// The defaults are those of the cache itself, so that there is one place for them.

fn unlimited() -> Size {
    Size(hither_cache::Options::default().max_file)
}

fn default_whole_file() -> Size {
    Size(hither_cache::Options::default().whole_file)
}

fn default_high_water() -> Share {
    Share(hither_cache::Options::default().high_water)
}

fn default_low_water() -> Share {
    Share(hither_cache::Options::default().low_water)
}

fn default_min_free() -> Share {
    Share(hither_cache::Options::default().min_free)
}

fn default_settle() -> Period {
    Period(hither_cache::Options::default().settle)
}

fn default_sync_every() -> Period {
    Period(hither_cache::Options::default().sync_every)
}

fn default_fetches() -> usize {
    hither_cache::Options::default().fetches
}

/// A project by its number, written `projid 100`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Project(pub u32);

impl FromStr for Project {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = text.trim().strip_prefix("projid").map(str::trim).and_then(|id| id.parse().ok());
        id.map(Project).ok_or_else(|| format!("`{text}` is not a project: write `projid 100`"))
    }
}

impl fmt::Display for Project {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "projid {}", self.0)
    }
}

fn absolute(path: PathBuf) -> Result<PathBuf, String> {
    if path.is_absolute() {
        return Ok(path);
    }
    Err(format!("`{}` must be an absolute path: begin it with /", path.display()))
}

fn absolute_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    absolute(PathBuf::deserialize(deserializer)?).map_err(de::Error::custom)
}

fn some_absolute_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    absolute_path(deserializer).map(Some)
}

/// A list of rules of which some may have no name yet.
///
/// # Errors
///
/// Two have the same name.
pub fn rule_set(rules: &[Rule]) -> Result<RuleSet, hither_rules::ParseError> {
    // Read at one go, since names are given only once those that were chosen are known.
    rules.iter().map(|rule| format!("{rule}\n")).collect::<String>().parse()
}

fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RuleSet, D::Error> {
    struct Text(Rule);

    impl<'de> Deserialize<'de> for Text {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            String::deserialize(deserializer)?.parse().map(Text).map_err(de::Error::custom)
        }
    }

    let rules: Vec<Rule> =
        Vec::<Text>::deserialize(deserializer)?.into_iter().map(|Text(rule)| rule).collect();
    rule_set(&rules).map_err(de::Error::custom)
}

fn quotas<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Project, Size>, D::Error> {
    let texts = BTreeMap::<String, Size>::deserialize(deserializer)?;
    let quotas = texts.into_iter().map(|(project, size)| Ok((project.parse()?, size)));
    quotas.collect::<Result<_, String>>().map_err(de::Error::custom)
}

#[cfg(test)]
mod tests;
