//! An ordered list of rules, of which the first that matches decides.

use std::fmt;
use std::str::FromStr;

use crate::error::{EditError, ParseError};
use crate::rule::{Action, Rule};
use crate::subject::{Field, Fields, Subject};

/// The rules of a cache, in order.
///
/// Without any rule every file is cached: that is what somebody wants who mounts a cache and says nothing
/// more. As soon as there are rules they are the whole answer, and a file that none of them means is not
/// cached, as in Lustre; `cache all` at the end turns that round.
///
/// As text it is a rule a line; empty lines, and lines that begin with `#`, say nothing. What is displayed
/// parses to an equal list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleSet {
    /// All named, no two alike.
    rules: Vec<Rule>,
    needs: Fields,
}

/// What the rules say about a file, and which of them said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision<'a> {
    /// What to do with the file.
    pub action: Action,
    /// The first rule that matched. `None` if none did: the action is then `cache` where there are no rules
    /// at all, and `bypass` where there are some.
    pub rule: Option<&'a Rule>,
}

impl RuleSet {
    /// The rules in the order in which they are asked.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// May the value of `field` decide about a file? If not, a caller may leave it out of the [`Subject`].
    pub fn needs(&self, field: Field) -> bool {
        self.needs.contains(field)
    }

    /// What to do with this file: the action of the first rule that means it.
    pub fn decide(&self, subject: &Subject<'_>) -> Decision<'_> {
        let rule = self.rules.iter().find(|rule| rule.matches(subject));
        let unmatched = if self.rules.is_empty() { Action::Cache } else { Action::Bypass };
        Decision { action: rule.map_or(unmatched, Rule::action), rule }
    }

    /// Adds a rule, before the one named `before` or at the end, and returns its name: a rule without one is
    /// called `r1`, `r2` and so on, by the first number above those in use.
    ///
    /// # Errors
    ///
    /// [`EditError::NameTaken`] if another rule has the name, [`EditError::NoSuchRule`] if there is no
    /// `before`.
    pub fn add(&mut self, mut rule: Rule, before: Option<&str>) -> Result<String, EditError> {
        let at = before.map_or(Ok(self.rules.len()), |name| self.position(name))?;
        let name = match rule.name.take() {
            Some(name) if self.position(&name).is_ok() => return Err(EditError::NameTaken(name)),
            Some(name) => name,
            None => fresh_name(&self.rules),
        };
        rule.name = Some(name.clone());
        self.rules.insert(at, rule);
        self.needs = needs(&self.rules);
        Ok(name)
    }

    /// Removes and returns the rule with this name.
    ///
    /// # Errors
    ///
    /// [`EditError::NoSuchRule`] if there is none.
    pub fn remove(&mut self, name: &str) -> Result<Rule, EditError> {
        let rule = self.rules.remove(self.position(name)?);
        self.needs = needs(&self.rules);
        Ok(rule)
    }

    fn position(&self, name: &str) -> Result<usize, EditError> {
        let at = self.rules.iter().position(|rule| rule.name() == Some(name));
        at.ok_or_else(|| EditError::NoSuchRule(name.to_owned()))
    }
}

impl FromStr for RuleSet {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut rules: Vec<Rule> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim_ascii().is_empty() || line.trim_ascii_start().starts_with('#') {
                continue;
            }
            let rule = line.parse::<Rule>().map_err(|error| error.in_line(number))?;
            if rule.name.is_some() && rules.iter().any(|other| other.name == rule.name) {
                let name_at = line.len().saturating_sub(line.trim_ascii_start().len());
                let error = ParseError::new(line, name_at, "a name that no rule above has");
                return Err(error.in_line(number));
            }
            rules.push(rule);
        }
        // Names are given once all those that were chosen are known.
        while let Some(at) = rules.iter().position(|rule| rule.name.is_none()) {
            let fresh = fresh_name(&rules);
            if let Some(rule) = rules.get_mut(at) {
                rule.name = Some(fresh);
            }
        }
        let needs = needs(&rules);
        Ok(Self { rules, needs })
    }
}

impl fmt::Display for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.iter().try_for_each(|rule| writeln!(f, "{rule}"))
    }
}

/// `r1`, or one more than the highest such name in use.
fn fresh_name(rules: &[Rule]) -> String {
    let number = |rule: &Rule| rule.name()?.strip_prefix('r')?.parse::<u32>().ok();
    let mut next = rules.iter().filter_map(number).map(u64::from).max().unwrap_or(0);
    loop {
        next += 1;
        let name = format!("r{next}");
        // A chosen name may be a number too high to count from.
        if rules.iter().all(|rule| rule.name() != Some(&name)) {
            return name;
        }
    }
}

fn needs(rules: &[Rule]) -> Fields {
    rules.iter().map(|rule| rule.expr().fields()).fold(Fields::default(), Fields::union)
}

#[cfg(test)]
mod tests;
