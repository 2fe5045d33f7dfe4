//! Which files may be cached now: rules, limits, settled versions, room.

use hither_rules::{Action, Field, Subject};
use hither_vfs::{Attr, Call, Timestamp};

use crate::counters::Counters;
use crate::evict;
use crate::index::{Reservation, space_of};
use crate::node::CacheNode;
use crate::version::Version;

/// Why a file is not cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A rule says so, or none says that it should be.
    Rule,
    /// `--min-file`, `--max-file`, or empty.
    Size,
    /// Changed too recently, being changed, or being written.
    Unsettled,
    /// No room.
    Full,
    /// The project's quota is used up.
    Quota,
    /// The origin cannot say which file it is for ever.
    Nameless,
}

impl Refusal {
    /// Adds to the numbers that `status` shows.
    pub(crate) fn count(self, counters: &Counters) {
        match self {
            Refusal::Rule | Refusal::Size | Refusal::Nameless => counters.bypassed_by_rule.add(1),
            Refusal::Unsettled => counters.bypassed_unsettled.add(1),
            Refusal::Full | Refusal::Quota => counters.bypassed_full.add(1),
        }
    }

    /// For a person.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Refusal::Rule => "no rule says that it should be cached (hither cache rules list)",
            Refusal::Size => "it is empty, or outside --min-file and --max-file",
            Refusal::Unsettled => "it is being written, or was changed less than 2 s ago",
            Refusal::Full => "the store has no room (hither status; hither cache evict, or a larger store)",
            Refusal::Quota => "the quota of its project is used up",
            Refusal::Nameless => "the origin's file system gives no lasting identity for it",
        }
    }
}

impl CacheNode {
    /// Whether the file may be cached if there is room: whether it would be pinned, and its project.
    pub(crate) fn eligible(&self, call: &Call, attr: &Attr, asked: bool) -> Result<(bool, u32), Refusal> {
        let options = &self.shared.options;
        if attr.size == 0 || (!asked && (attr.size < options.min_file || attr.size > options.max_file)) {
            return Err(Refusal::Size);
        }
        if !Version::of(attr).is_settled(Timestamp::now(), options.settle) {
            return Err(Refusal::Unsettled);
        }
        self.judge(call, attr, asked)
    }

    /// What the rules say: whether it is pinned, and its project if somebody has to know it.
    fn judge(&self, call: &Call, attr: &Attr, asked: bool) -> Result<(bool, u32), Refusal> {
        let rules = self.shared.rules.read();
        let by_project = rules.needs(Field::Projid) || !self.shared.options.quotas.is_empty();
        let projid = if by_project { self.origin.project_id(call).unwrap_or(0) } else { 0 };
        if rules.rules().is_empty() {
            return Ok((false, projid));
        }
        let name = self.name().unwrap_or_default();
        let path = rules.needs(Field::Path).then(|| self.path());
        let subject = Subject {
            uid: call.caller.uid,
            gid: call.caller.gid,
            projid,
            size: attr.size,
            age_s: Subject::age_s(Timestamp::now().sec, attr.mtime.sec),
            name: name.as_encoded_bytes(),
            path: path.as_deref(),
        };
        match rules.decide(&subject).action {
            Action::Cache => Ok((false, projid)),
            Action::Pin => Ok((true, projid)),
            Action::Bypass if asked => Ok((false, projid)),
            Action::Bypass => Err(Refusal::Rule),
        }
    }

    /// Room for a file of a project, made by evicting others.
    pub(crate) fn reserve(&self, size: u64, projid: u32) -> Result<Reservation, Refusal> {
        self.make_room(size, projid)?;
        Ok(self.shared.index.reserve(size, projid))
    }

    fn make_room(&self, size: u64, projid: u32) -> Result<(), Refusal> {
        let shared = &self.shared;
        if let Some(quota) = shared.options.quotas.get(&projid) {
            let fits = || shared.index.project_bytes(projid).saturating_add(space_of(size)) <= *quota;
            if space_of(size) > *quota || !evict::until(shared, Some(projid), fits) {
                return Err(Refusal::Quota);
            }
        }
        if evict::could_fit(shared, size) && evict::until(shared, None, || evict::has_room_for(shared, size))
        {
            Ok(())
        } else {
            Err(Refusal::Full)
        }
    }
}
