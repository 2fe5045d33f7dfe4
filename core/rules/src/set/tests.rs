//! The order of rules, their names, and lists as text.

use super::*;

fn set(text: &str) -> RuleSet {
    text.parse().unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn names(set: &RuleSet) -> Vec<&str> {
    set.rules().iter().filter_map(Rule::name).collect()
}

fn decide<'a>(set: &'a RuleSet, name: &str) -> (Action, Option<&'a str>) {
    let decision = set.decide(&Subject { name: name.as_bytes(), ..Default::default() });
    (decision.action, decision.rule.and_then(Rule::name))
}

#[test]
fn the_first_match_wins() {
    let rules = set("no: bypass fname={*.tmp}\nkeep: pin fname={a*}\nrest: cache fname={*.h5 *.tmp}");
    assert_eq!(decide(&rules, "a.tmp"), (Action::Bypass, Some("no")));
    assert_eq!(decide(&rules, "a.h5"), (Action::Pin, Some("keep")));
    assert_eq!(decide(&rules, "b.h5"), (Action::Cache, Some("rest")));

    let reversed = set("rest: cache fname={*.h5 *.tmp}\nkeep: pin fname={a*}\nno: bypass fname={*.tmp}");
    assert_eq!(decide(&reversed, "a.tmp"), (Action::Cache, Some("rest")));
    assert_eq!(decide(&reversed, "a.h5"), (Action::Cache, Some("rest")));
}

#[test]
fn no_rules_cache_everything_and_some_rules_only_what_they_say() {
    assert_eq!(decide(&RuleSet::default(), "x"), (Action::Cache, None));
    assert_eq!(decide(&set("# only a comment\n\n"), "x"), (Action::Cache, None));
    assert_eq!(decide(&set("fname={*.h5}"), "x"), (Action::Bypass, None));
    assert_eq!(decide(&set("bypass fname={*.h5}"), "x"), (Action::Bypass, None));
    assert_eq!(decide(&set("bypass fname={*.h5}\ncache all"), "x"), (Action::Cache, Some("r2")));
}

#[test]
fn needs_follow_every_change() {
    let mut rules = set("uid={1}&!(projid={7},fname={a})");
    assert!(rules.needs(Field::Uid) && rules.needs(Field::Projid) && rules.needs(Field::Fname));
    assert!(!rules.needs(Field::Path) && !rules.needs(Field::Gid) && !rules.needs(Field::Mtime));
    rules.add("paths: path={a/**}".parse().unwrap(), None).unwrap();
    assert!(rules.needs(Field::Path));
    rules.remove("paths").unwrap();
    assert!(!rules.needs(Field::Path) && rules.needs(Field::Projid));
    assert!(!Field::ALL.iter().any(|&field| set("all").needs(field)));
}

#[test]
fn rules_are_added_in_place_and_removed_by_name() {
    let mut rules = RuleSet::default();
    let mut add = |text: &str, before| rules.add(text.parse().unwrap(), before);
    assert_eq!(add("uid={1}", None).unwrap(), "r1");
    assert_eq!(add("uid={2}", None).unwrap(), "r2");
    assert_eq!(add("first: uid={3}", Some("r1")).unwrap(), "first");
    assert_eq!(add("uid={4}", Some("r2")).unwrap(), "r3");
    assert_eq!(add("r1: uid={5}", None), Err(EditError::NameTaken("r1".into())));
    assert_eq!(add("uid={5}", Some("none")), Err(EditError::NoSuchRule("none".into())));
    assert_eq!(names(&rules), ["first", "r1", "r3", "r2"]);

    assert_eq!(rules.remove("r1").unwrap().to_string(), "r1: cache uid={1}");
    assert_eq!(rules.remove("r1"), Err(EditError::NoSuchRule("r1".into())));
    assert_eq!(names(&rules), ["first", "r3", "r2"]);
    assert_eq!(rules.add("uid={9}".parse().unwrap(), None).unwrap(), "r4");
}

#[test]
fn given_names_step_aside_for_chosen_ones() {
    assert_eq!(names(&set("all\nr1: all\nall")), ["r2", "r1", "r3"]);
    let high = "r4294967295: all\nr4294967296: all\nr99999999999: all\nall";
    assert_eq!(names(&set(high)).last(), Some(&"r4294967297"));
}

#[test]
fn a_list_is_read_as_it_is_shown() {
    let rules = set("# projects\r\n\n  uid={1}\r\n\tx: bypass path={\"a b/**\"}\n#all\npin fname={#*#}");
    let shown = "r1: cache uid={1}\nx: bypass path={\"a b/**\"}\nr2: pin fname={#*#}\n";
    assert_eq!(rules.to_string(), shown);
    assert_eq!(set(shown), rules);
}

#[test]
fn errors_name_the_line() {
    let error = "uid={1}\n\n  guid={1}".parse::<RuleSet>().unwrap_err();
    assert_eq!((error.line(), error.offset(), error.text()), (Some(3), 2, "  guid={1}"));
    assert!(error.to_string().starts_with("line 3: expected a field"), "{error}");

    let error = "x: all\n x: uid={1}".parse::<RuleSet>().unwrap_err();
    assert_eq!((error.line(), error.offset()), (Some(2), 1));
    assert_eq!(error.expected(), "a name that no rule above has");
}
