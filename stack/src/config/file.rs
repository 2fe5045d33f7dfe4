//! `hither.toml`: strict, and exact about where something is wrong.
//!
//! A mount's table holds the mount's own keys and those of the file system that its `type` names, side by side. serde
//! cannot both flatten and refuse unknown keys, nor keep positions through a tagged enum, so the table is split here,
//! by the keys that serde itself names, and each part is read strictly by its own type.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::{CacheConfig, CacheSettings, DirConfig, FsConfig, MountConfig, MountOptions, absolute, keys_of};

/// How alike two keys must be (Jaro-Winkler, 0 to 1) for one to be offered for the other.
const ALIKE: f64 = 0.8;

/// What is wrong in a configuration file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    message: String,
    excerpt: String,
}

impl fmt::Display for ConfigError {
    /// `FILE:LINE:COLUMN: message`, and below it the line with a caret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file.display(), self.line, self.column, self.message)?;
        if self.excerpt.trim().is_empty() {
            return Ok(());
        }
        let number = self.line.to_string();
        let (margin, indent) = (" ".repeat(number.len()), " ".repeat(self.column.saturating_sub(1)));
        let shown: String = self.excerpt.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        write!(f, "\n  {number} | {shown}\n  {margin} | {indent}^")
    }
}

/// An error at a place in the text.
struct Misplaced {
    span: Range<usize>,
    message: String,
}

type Result<T, E = Misplaced> = std::result::Result<T, E>;

fn misplaced(span: Range<usize>, message: impl Into<String>) -> Misplaced {
    Misplaced { span, message: message.into() }
}

impl From<toml::de::Error> for Misplaced {
    fn from(error: toml::de::Error) -> Self {
        misplaced(error.span().unwrap_or(0..0), error.message())
    }
}

/// Reads the mounts of a configuration file, by name. `file` is for messages only.
///
/// # Errors
///
/// What is no TOML, what is unknown, missing or of a wrong form, with line and column.
pub fn parse(text: &str, file: &Path) -> Result<BTreeMap<String, MountConfig>, ConfigError> {
    mounts(text).map_err(|Misplaced { span, message }| {
        let before = text.get(..span.start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let excerpt = text.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
        ConfigError {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            message,
            excerpt: excerpt.to_owned(),
        }
    })
}

fn mounts(text: &str) -> Result<BTreeMap<String, MountConfig>> {
    let mut root = Table::new(DeTable::parse(text)?, "the file".to_owned());
    root.refuse_unknown(&["mount"])?;
    let Some(mounts) = root.take("mount") else {
        return Err(misplaced(0..0, "no mount is described: begin one with [mount.NAME]"));
    };
    let mounts = Table::of_value(mounts, "[mount]".to_owned())?;
    let named = mounts.entries.into_iter().map(|(name, value)| {
        let name = name.into_inner().into_owned();
        let table = Table::of_value(value, format!("[mount.{name}]"))?;
        Ok((name, mount(table)?))
    });
    named.collect()
}

fn mount(mut table: Table<'_>) -> Result<MountConfig> {
    let own = keys_of::<MountOptions>();
    let kind = kind_of(&table)?;
    let known: Vec<&str> = ["mountpoint"].iter().chain(own).chain(kind.keys()).copied().collect();
    table.refuse_unknown(&known)?;
    let mountpoint = table.take("mountpoint").ok_or_else(|| table.missing("mountpoint"))?;
    let span = mountpoint.span();
    let mountpoint = absolute(read(mountpoint)?).map_err(|message| misplaced(span, message))?;
    let options = table.split_off(own).read()?;
    Ok(MountConfig { mountpoint, options, fs: fs_of_table(table, kind)? })
}

/// The types that a table may have.
#[derive(Clone, Copy)]
enum Kind {
    Dir,
    Cache,
}

impl Kind {
    const ALL: [(&str, Kind); 2] = [("dir", Kind::Dir), ("cache", Kind::Cache)];

    /// Every key of a table of this type, `type` among them.
    fn keys(self) -> Vec<&'static &'static str> {
        let (special, own): (&'static [&'static str], _) = match self {
            Kind::Dir => (&["type"], keys_of::<DirConfig>()),
            Kind::Cache => (&["type", "origin"], keys_of::<CacheSettings>()),
        };
        special.iter().chain(own).collect()
    }
}

fn kind_of(table: &Table<'_>) -> Result<Kind> {
    let Some(value) = table.get("type") else { return Err(table.missing("type")) };
    let named = value.get_ref().as_str().unwrap_or_default();
    let known = Kind::ALL.into_iter().find(|(name, _)| *name == named);
    known.map(|(_, kind)| kind).ok_or_else(|| {
        let names: Vec<_> = Kind::ALL.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        misplaced(value.span(), format!("the type of {} must be {}", table.place, names.join(" or ")))
    })
}

fn fs_of_table(mut table: Table<'_>, kind: Kind) -> Result<FsConfig> {
    table.take("type");
    match kind {
        Kind::Dir => Ok(FsConfig::Dir(table.read()?)),
        Kind::Cache => {
            let origin = table.take("origin").ok_or_else(|| table.missing("origin"))?;
            let origin = fs_of_value(origin, format!("the origin of {}", table.place))?;
            if table.get("store").is_none() {
                return Err(table.missing("store"));
            }
            let settings = table.read()?;
            Ok(FsConfig::Cache(Box::new(CacheConfig { origin, settings })))
        }
    }
}

/// A text is a directory; a table is any file system.
fn fs_of_value(value: Spanned<DeValue<'_>>, place: String) -> Result<FsConfig> {
    if value.get_ref().is_str() {
        let span = value.span();
        let source = absolute(read(value)?).map_err(|message| misplaced(span, message))?;
        return Ok(FsConfig::Dir(DirConfig { source }));
    }
    let table = Table::of_value(value, place)?;
    let kind = kind_of(&table)?;
    let known: Vec<&str> = kind.keys().into_iter().copied().collect();
    table.refuse_unknown(&known)?;
    fs_of_table(table, kind)
}

fn read<T: DeserializeOwned>(value: Spanned<DeValue<'_>>) -> Result<T> {
    let span = value.span();
    T::deserialize(ValueDeserializer::from(value)).map_err(|error| {
        let error = Misplaced::from(error);
        // Errors that know no place of their own lie somewhere in the value.
        if error.span.is_empty() { misplaced(span, error.message) } else { error }
    })
}

/// A table of the file, with where it begins and what messages call it.
struct Table<'a> {
    entries: DeTable<'a>,
    span: Range<usize>,
    place: String,
}

impl<'a> Table<'a> {
    fn new(table: Spanned<DeTable<'a>>, place: String) -> Self {
        Table { span: table.span(), entries: table.into_inner(), place }
    }

    fn of_value(value: Spanned<DeValue<'a>>, place: String) -> Result<Self> {
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(entries) => Ok(Table { entries, span, place }),
            other => {
                Err(misplaced(span, format!("{place} must be a table, but is of type {}", other.type_str())))
            }
        }
    }

    fn get(&self, key: &str) -> Option<&Spanned<DeValue<'a>>> {
        self.entries.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    fn take(&mut self, key: &str) -> Option<Spanned<DeValue<'a>>> {
        self.split_off(&[key]).entries.into_iter().next().map(|(_, value)| value)
    }

    /// Moves the entries with one of these keys into a table of their own.
    fn split_off(&mut self, keys: &[&str]) -> Self {
        let entries = std::mem::take(&mut self.entries);
        let (these, others) =
            entries.into_iter().partition(|(name, _)| keys.contains(&name.get_ref().as_ref()));
        self.entries = others;
        Table { entries: these, span: self.span.clone(), place: self.place.clone() }
    }

    fn read<T: DeserializeOwned>(self) -> Result<T> {
        read(Spanned::new(self.span, DeValue::Table(self.entries)))
    }

    fn missing(&self, key: &str) -> Misplaced {
        misplaced(self.span.clone(), format!("{} has no `{key}`", self.place))
    }

    /// The first unknown key, in the order of the text, is an error, with the key that was probably meant.
    fn refuse_unknown(&self, known: &[&str]) -> Result<()> {
        let unknown = self.entries.keys().filter(|name| !known.contains(&name.get_ref().as_ref()));
        let Some(first) = unknown.min_by_key(|name| name.span().start) else { return Ok(()) };
        let name = first.get_ref();
        let nearest = known
            .iter()
            .map(|known| (strsim::jaro_winkler(known, name), known))
            .filter(|(alike, _)| *alike >= ALIKE)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let hint = match nearest {
            Some((_, known)) => format!("did you mean `{known}`?"),
            None => format!("it may have {}", known.join(", ")),
        };
        Err(misplaced(first.span(), format!("unknown key `{name}` in {}: {hint}", self.place)))
    }
}
