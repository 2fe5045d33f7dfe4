//! From a configuration to a built tree of file systems: the one place that knows every layer and backend.
//!
//! [`config`] is the schema, which flags and `hither.toml` fill in alike; [`build`] turns it into a [`Built`] tree,
//! having checked that its directories exist and do not lie in one another, and having locked the stores it uses.

mod build;
pub mod config;
mod instance;
mod lock;
mod paths;
pub mod units;

pub use build::{BuildError, Built, BuiltCache, Story, build};
pub use config::{
    CacheConfig, CacheSettings, ConfigError, DirConfig, FsConfig, LogLevel, MetricsAddress, MountConfig,
    MountFlag, MountOptions, Passthrough, Project, Transport,
};
pub use lock::StoreLock;
