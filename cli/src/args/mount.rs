//! `hither mount`: flags that fill in the same configuration as a file does.

use std::ffi::OsString;
use std::path::{self, Path, PathBuf};

use anyhow::Context;
use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hither_rules::Rule;
use hither_stack::units::{Period, Share, Size};
use hither_stack::{
    CacheConfig, CacheSettings, DirConfig, FsConfig, LogLevel, MetricsAddress, MountConfig, MountFlag,
    MountOptions, Passthrough, Project, Transport, config,
};

use crate::failure::usage;

/// Mount a cached (or plain) view of a directory.
///
/// Returns as soon as the mount answers; a daemon goes on serving it until `hither umount`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    /// Read the mount from this file.
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<PathBuf>,
    /// Which mount of the file; may be left out if there is only one.
    #[arg(value_name = "NAME", requires = "config")]
    name: Option<String>,
    /// The mount point that the file must give it: what fstab says.
    #[arg(long, hide = true, value_name = "MNT", requires = "config")]
    expect: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    #[command(subcommand)]
    kind: Option<Kind>,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// A cached view: files read once are read from a local disk from then on.
    ///
    /// The mount shows the origin's files, names and permissions. What a program reads is kept as a copy in the store
    /// and served from there until the file changes at the origin. Writes go to the origin at once. The store survives
    /// unmounting, crashes and reboots.
    #[command(after_help = CACHE_EXAMPLE)]
    Cache(Box<CacheArgs>),
    /// A plain view of a directory, without a cache: to compare with.
    Dir(DirArgs),
}

const CACHE_EXAMPLE: &str = "\
Example: cache what project 100 reads, but no scratch files, in at most 500 GiB:

  hither mount cache --origin /lustre/proj --store /nvme/hither --capacity 500G \\
      --rule 'bypass fname={*.tmp}' --rule 'projid={100}' /mnt/proj";

#[derive(Debug, clap::Args)]
struct DirArgs {
    /// The directory to show.
    #[arg(value_name = "SRC")]
    source: PathBuf,
    /// Where to mount it: an existing directory.
    #[arg(value_name = "MNT")]
    mountpoint: PathBuf,
    #[command(flatten)]
    options: OptionArgs,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, clap::Args)]
struct CacheArgs {
    /// Where to mount it: an existing directory.
    #[arg(value_name = "MNT")]
    mountpoint: PathBuf,
    /// The slow directory that is to be cached.
    #[arg(long, value_name = "DIR")]
    origin: PathBuf,
    /// The directory on a fast local disk that holds the copies; made if it is missing.
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
    #[command(flatten)]
    freshness: FreshnessArgs,
    #[command(flatten)]
    choice: ChoiceArgs,
    #[command(flatten)]
    space: SpaceArgs,
    #[command(flatten)]
    options: OptionArgs,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "How fresh")]
#[group(id = "freshness", multiple = true)]
struct FreshnessArgs {
    /// How long to believe what the origin said of a file before asking again [default: 1s].
    #[arg(long, value_name = "TIME", conflicts_with = "immutable")]
    revalidate: Option<Period>,
    /// Nothing at the origin ever changes: never ask twice.
    #[arg(long)]
    immutable: bool,
    /// Cache a file only if its last change is at least this old [default: 2s].
    #[arg(long, value_name = "TIME")]
    settle: Option<Period>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Which files")]
struct ChoiceArgs {
    /// A rule that chooses files, for example `projid={100}&fname={*.h5}`; may be repeated. The first that matches
    /// decides; without any, all files are cached.
    #[arg(long = "rule", value_name = "RULE")]
    rules: Vec<Rule>,
    /// Do not cache files larger than this.
    #[arg(long, value_name = "SIZE")]
    max_file: Option<Size>,
    /// Do not cache files smaller than this.
    #[arg(long, value_name = "SIZE")]
    min_file: Option<Size>,
    /// Fetch files up to this size whole as soon as they are opened; of larger ones only what is read [default: 1G].
    #[arg(long, value_name = "SIZE")]
    whole_file: Option<Size>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "How much space")]
struct SpaceArgs {
    /// Most bytes that copies may take [default: what --min-free leaves].
    #[arg(long, value_name = "SIZE")]
    capacity: Option<Size>,
    /// Most bytes for the files of a project, for example `projid 100=50G`; may be repeated.
    #[arg(long, value_name = "PROJECT=SIZE", value_parser = quota)]
    quota: Vec<(Project, Size)>,
    /// Begin to evict when copies take more than this share of the capacity [default: 95%].
    #[arg(long, value_name = "SHARE")]
    high_water: Option<Share>,
    /// Evict until they take less than this share [default: 85%].
    #[arg(long, value_name = "SHARE")]
    low_water: Option<Share>,
    /// Keep this share of the store's disk free [default: 5%].
    #[arg(long, value_name = "SHARE")]
    min_free: Option<Share>,
    /// How often to make copies safe from a power loss [default: 5s].
    #[arg(long, value_name = "TIME")]
    sync_every: Option<Period>,
    /// Fetch from the origin this many times at once [default: 16].
    #[arg(long, value_name = "N")]
    fetches: Option<usize>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "How it is mounted")]
struct OptionArgs {
    /// Let other users use the mount. Root's mounts always do; for others /etc/fuse.conf must allow it.
    #[arg(long)]
    allow_other: bool,
    /// Refuse every change.
    #[arg(long)]
    read_only: bool,
    /// Whether the kernel may read local copies by itself: `off` sends every read through the daemon.
    #[arg(long, value_name = "WHEN", value_parser = passthrough(), default_value = "auto")]
    passthrough: Passthrough,
    /// How long a program may wait for an answer until it gets an error [default: 10s with a cache, else inf].
    #[arg(long, value_name = "TIME")]
    origin_timeout: Option<Period>,
    /// What the kernel reads ahead of a sequential reader [default: 128K].
    #[arg(long, value_name = "SIZE")]
    read_ahead: Option<Size>,
    /// How requests come from the kernel: `auto` is io_uring where it is switched on, else /dev/fuse.
    #[arg(long, value_name = "HOW", value_parser = transport(), default_value = "auto", env = "HITHER_TRANSPORT")]
    transport: Transport,
    /// Threads that take requests from /dev/fuse [default: one a processor, 2 to 16].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Further flags of the mount, separated by commas.
    #[arg(long, value_name = "FLAG", value_delimiter = ',', value_parser = mount_flag())]
    mount_flags: Vec<MountFlag>,
    /// Serve metrics to Prometheus at this address; a port alone listens on this machine only.
    #[arg(long, value_name = "[ADDR:]PORT")]
    metrics: Option<MetricsAddress>,
    /// Log to this file instead of the journal.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// How much to log.
    #[arg(long, value_name = "LEVEL", value_parser = log_level(), default_value = "info")]
    log_level: LogLevel,
}

/// How this run goes on once the mount is up; no part of the configuration.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct RunArgs {
    /// Stay, and log to the terminal; Ctrl-C unmounts.
    #[arg(long)]
    pub foreground: bool,
    /// Be the daemon: told by the process that waits for it on standard output.
    #[arg(long, hide = true, conflicts_with = "foreground")]
    pub detached: bool,
}

fn quota(text: &str) -> Result<(Project, Size), String> {
    let (project, size) = text.split_once('=').ok_or("write for example `projid 100=50G`")?;
    Ok((project.parse()?, size.parse().map_err(|error: hither_stack::units::UnitError| error.to_string())?))
}

fn passthrough() -> impl TypedValueParser<Value = Passthrough> {
    PossibleValuesParser::new(["auto", "off"]).map(|word| match word.as_str() {
        "off" => Passthrough::Off,
        _ => Passthrough::Auto,
    })
}

fn transport() -> impl TypedValueParser<Value = Transport> {
    PossibleValuesParser::new(["auto", "dev", "uring"]).map(|word| match word.as_str() {
        "dev" => Transport::Dev,
        "uring" => Transport::Uring,
        _ => Transport::Auto,
    })
}

fn mount_flag() -> impl TypedValueParser<Value = MountFlag> {
    PossibleValuesParser::new(MountFlag::ALL.map(MountFlag::name))
        .try_map(|word| MountFlag::ALL.into_iter().find(|flag| flag.name() == word).ok_or("no such flag"))
}

fn log_level() -> impl TypedValueParser<Value = LogLevel> {
    PossibleValuesParser::new(["error", "warn", "info", "debug", "trace"]).map(|word| match word.as_str() {
        "error" => LogLevel::Error,
        "warn" => LogLevel::Warn,
        "debug" => LogLevel::Debug,
        "trace" => LogLevel::Trace,
        _ => LogLevel::Info,
    })
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    path::absolute(path).with_context(|| format!("no absolute path for {}", path.display()))
}

impl Args {
    /// What is to be mounted, and how the run goes on. Relative paths count from the current directory.
    ///
    /// # Errors
    ///
    /// Wrong usage, or a file that cannot be read or is wrong.
    pub fn resolve(self) -> anyhow::Result<(MountConfig, RunArgs)> {
        match (self.kind, self.config) {
            (Some(Kind::Cache(args)), _) => args.resolve(),
            (Some(Kind::Dir(args)), _) => args.resolve(),
            (None, Some(file)) => {
                let config = of_file(&file, self.name.as_deref())?;
                if let Some(expected) = self.expect.filter(|expected| *expected != config.mountpoint) {
                    let (expected, found) = (expected.display(), config.mountpoint.display());
                    let file = file.display();
                    return Err(usage(format!("{file} mounts at {found}, but fstab says {expected}")));
                }
                Ok((config, self.run))
            }
            (None, None) => Err(unsaid()),
        }
    }
}

/// Whether a command line that cannot be read is of a mount that does not say of what; clap would explain something
/// else then.
pub fn is_unsaid(arguments: &[OsString]) -> bool {
    let is_config = |word: &OsString| word.to_string_lossy().starts_with("--config");
    match arguments.split_first() {
        Some((command, words)) if command == "mount" => {
            !words.iter().any(|word| word == "cache" || word == "dir" || is_config(word))
        }
        _ => false,
    }
}

/// What to say of it.
pub fn unsaid() -> anyhow::Error {
    usage(
        "mount what? `hither mount cache --origin DIR --store DIR MNT`, `hither mount dir SRC MNT`, or \
         `hither mount --config FILE [NAME]` (see `hither mount --help`)",
    )
}

fn of_file(file: &Path, name: Option<&str>) -> anyhow::Result<MountConfig> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| usage(format!("cannot read the configuration {}: {error}", file.display())))?;
    let mut mounts = config::parse(&text, file)?;
    let names = || mounts.keys().cloned().collect::<Vec<_>>().join(", ");
    let name = match name {
        Some(name) => name.to_owned(),
        None if mounts.len() == 1 => names(),
        None => {
            return Err(usage(format!(
                "{} describes several mounts: name one of {}",
                file.display(),
                names()
            )));
        }
    };
    let known = names();
    mounts
        .remove(&name)
        .ok_or_else(|| usage(format!("{} has no mount `{name}`: it has {known}", file.display())))
}

impl DirArgs {
    fn resolve(self) -> anyhow::Result<(MountConfig, RunArgs)> {
        let fs = FsConfig::Dir(DirConfig { source: absolute(&self.source)? });
        let mountpoint = absolute(&self.mountpoint)?;
        Ok((MountConfig { mountpoint, options: self.options.resolve()?, fs }, self.run))
    }
}

impl CacheArgs {
    fn resolve(self) -> anyhow::Result<(MountConfig, RunArgs)> {
        let defaults = CacheSettings::new(absolute(&self.store)?);
        let settings = CacheSettings {
            revalidate: self.freshness.revalidate,
            immutable: self.freshness.immutable,
            settle: self.freshness.settle.unwrap_or(defaults.settle),
            max_file: self.choice.max_file.unwrap_or(defaults.max_file),
            min_file: self.choice.min_file.unwrap_or(defaults.min_file),
            whole_file: self.choice.whole_file.unwrap_or(defaults.whole_file),
            rules: config::rule_set(&self.choice.rules).map_err(|error| usage(error.to_string()))?,
            capacity: self.space.capacity,
            quota: self.space.quota.into_iter().collect(),
            high_water: self.space.high_water.unwrap_or(defaults.high_water),
            low_water: self.space.low_water.unwrap_or(defaults.low_water),
            min_free: self.space.min_free.unwrap_or(defaults.min_free),
            sync_every: self.space.sync_every.unwrap_or(defaults.sync_every),
            fetches: self.space.fetches.unwrap_or(defaults.fetches),
            store: defaults.store,
        };
        let origin = FsConfig::Dir(DirConfig { source: absolute(&self.origin)? });
        let options = self.options.resolve()?;
        let fs = FsConfig::Cache(Box::new(CacheConfig { origin, settings }));
        Ok((MountConfig { mountpoint: absolute(&self.mountpoint)?, options, fs }, self.run))
    }
}

impl OptionArgs {
    fn resolve(self) -> anyhow::Result<MountOptions> {
        Ok(MountOptions {
            allow_other: self.allow_other,
            read_only: self.read_only,
            passthrough: self.passthrough,
            transport: self.transport,
            threads: self.threads,
            origin_timeout: self.origin_timeout,
            read_ahead: self.read_ahead,
            mount_flags: self.mount_flags,
            metrics: self.metrics,
            log: self.log.as_deref().map(absolute).transpose()?,
            log_level: self.log_level,
        })
    }
}
