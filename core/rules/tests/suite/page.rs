//! `docs/RULES.md` says what the code does: its lists parse, its mistakes are reported as shown.

use hither_rules::{RuleSet, Subject};

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/RULES.md"));

/// The fenced blocks of one kind, each with the line (from 1) on which it begins.
fn blocks(kind: &str) -> Vec<(usize, String)> {
    let fence = format!("```{kind}");
    let mut lines = PAGE.lines().enumerate();
    let mut blocks = Vec::new();
    while let Some((at, line)) = lines.next() {
        if line == fence {
            let body = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
            blocks.push((at + 2, body.map(|line| format!("{line}\n")).collect()));
        }
    }
    blocks
}

#[test]
fn every_list_parses() {
    let blocks = blocks("rules");
    assert!(blocks.len() >= 4, "the page has lost its examples");
    for (line, block) in blocks {
        let set: RuleSet = block.parse().unwrap_or_else(|error| panic!("RULES.md, block at {line}: {error}"));
        assert!(!set.rules().is_empty(), "RULES.md, block at {line}: no rule");
        assert_eq!(set.to_string().parse(), Ok(set));
    }
}

#[test]
fn every_mistake_is_reported_as_shown() {
    let blocks = blocks("rules-error");
    assert!(blocks.len() >= 3, "the page has lost its mistakes");
    for (line, block) in blocks {
        let (_, shown) = block.split_once('\n').expect("a message and a rule");
        let rule = shown.lines().next().expect("a rule under the message").trim_start();
        let error = rule.parse::<RuleSet>().expect_err(rule);
        let message = error.to_string().replacen("line 1: ", "", 1);
        assert_eq!(message.trim_end(), block.trim_end(), "RULES.md, block at {line}");
    }
}

/// The first list of the page, and the files of which the page says what becomes of them.
#[test]
fn the_first_list_does_what_the_page_says() {
    let rules: RuleSet = blocks("rules")[0].1.parse().unwrap();
    let table = PAGE.lines().skip_while(|line| !line.starts_with("| file |")).skip(2);
    let rows: Vec<Vec<&str>> = table
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert!(rows.len() >= 5, "the page has lost its table");
    for row in rows {
        let path = row[0].trim_matches('`');
        let number = |at: usize| row[at].parse().unwrap_or(0);
        let subject = Subject {
            projid: number(1),
            size: u64::from(number(2)) << 20,
            name: path.rsplit('/').next().unwrap().as_bytes(),
            path: Some(path.as_bytes()),
            ..Default::default()
        };
        let decision = rules.decide(&subject);
        let by = decision.rule.and_then(|rule| rule.name()).unwrap_or("none");
        assert_eq!((decision.action.name(), by), (row[3], row[4].trim_matches('`')), "{path}");
    }
}
