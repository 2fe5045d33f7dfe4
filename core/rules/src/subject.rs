//! What a rule may ask about a file: the fields by name, and their values for one open.

/// A property of a file, or of the open that brought it here, that a rule can test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// User id of the process that opens the file.
    Uid,
    /// Primary group id of the process that opens the file.
    Gid,
    /// Project id of the file.
    Projid,
    /// Size of the file.
    Size,
    /// Time since the file's last modification.
    Mtime,
    /// Last component of the path.
    Fname,
    /// Path below the root of the mount.
    Path,
}

impl Field {
    /// Every field, in the order in which messages and documents name them.
    pub const ALL: [Field; 7] =
        [Field::Uid, Field::Gid, Field::Projid, Field::Size, Field::Mtime, Field::Fname, Field::Path];

    /// The word that stands for the field in a rule.
    pub const fn name(self) -> &'static str {
        match self {
            Field::Uid => "uid",
            Field::Gid => "gid",
            Field::Projid => "projid",
            Field::Size => "size",
            Field::Mtime => "mtime",
            Field::Fname => "fname",
            Field::Path => "path",
        }
    }

    /// The field that `word` names. `filename` is Lustre's other word for `fname`.
    pub(crate) fn named(word: &str) -> Option<Field> {
        match word {
            "filename" => Some(Field::Fname),
            _ => Field::ALL.into_iter().find(|field| field.name() == word),
        }
    }
}

/// The fields that something asks for, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fields(u8);

impl Fields {
    pub(crate) const fn only(field: Field) -> Self {
        Self(1 << field as u8)
    }

    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn contains(self, field: Field) -> bool {
        self.0 & Self::only(field).0 != 0
    }
}

/// One file as one open sees it: the input of every decision.
///
/// Fields that the rules do not ask for ([`RuleSet::needs`](crate::RuleSet::needs)) may hold anything, so a
/// caller need not fetch a project id or put a path together for nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subject<'a> {
    /// User id of the opener.
    pub uid: u32,
    /// Primary group id of the opener.
    pub gid: u32,
    /// Project id of the file, 0 where the file system has none.
    pub projid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Whole seconds since the last modification, by [`Subject::age_s`].
    pub age_s: u64,
    /// The name under which the file was opened, without any directory. Any bytes.
    pub name: &'a [u8],
    /// The path under which the file was opened, relative to the root of the mount; a leading slash is
    /// ignored. `None` where the file has no path (O_TMPFILE, or unlinked): then every test of `path` is
    /// false.
    pub path: Option<&'a [u8]>,
}

impl Subject<'_> {
    /// Age in seconds of a file last modified at `mtime_s`, when the clock shows `now_s` (both in seconds
    /// since 1970).
    ///
    /// A time of modification that lies ahead, as skewed clocks make it, counts as age 0.
    pub const fn age_s(now_s: i64, mtime_s: i64) -> u64 {
        if mtime_s > now_s { 0 } else { now_s.abs_diff(mtime_s) }
    }

    /// The value of a numeric field; `None` for a textual one.
    pub(crate) fn number(&self, field: Field) -> Option<u64> {
        match field {
            Field::Uid => Some(self.uid.into()),
            Field::Gid => Some(self.gid.into()),
            Field::Projid => Some(self.projid.into()),
            Field::Size => Some(self.size),
            Field::Mtime => Some(self.age_s),
            Field::Fname | Field::Path => None,
        }
    }

    /// The value of a textual field; `None` for a numeric one, and for a path that is not there.
    pub(crate) fn text(&self, field: Field) -> Option<&[u8]> {
        match field {
            Field::Fname => Some(self.name),
            Field::Path => self.path.map(|path| path.strip_prefix(b"/").unwrap_or(path)),
            Field::Uid | Field::Gid | Field::Projid | Field::Size | Field::Mtime => None,
        }
    }
}
