//! Any tree, printed, parses to the same tree; and it means what its parts mean.

use proptest::prelude::*;

use super::*;
use crate::cursor::Cursor;
use crate::number::Span;

fn span(max: u64) -> impl Strategy<Value = Span> {
    let edges = prop_oneof![0..=max, 0..=20_u64.min(max), Just(max), Just(max & !0xf_ffff)];
    (edges.clone(), edges).prop_map(|(a, b)| Span { first: a.min(b), last: a.max(b) })
}

fn number(field: Field, max: u64) -> impl Strategy<Value = Node> {
    prop_oneof![
        prop::collection::vec(span(max), 1..4).prop_map(Compare::In),
        (1..=max).prop_map(Compare::Below),
        (0..max).prop_map(Compare::Above),
    ]
    .prop_map(move |compare| Node::Number(field, compare))
}

fn age() -> impl Strategy<Value = Node> {
    prop_oneof![(1..=u64::MAX).prop_map(Compare::Below), (0..=9_u64).prop_map(|n| Compare::Above(n * 86_400))]
        .prop_map(|compare| Node::Number(Field::Mtime, compare))
}

fn glob(path: bool) -> impl Strategy<Value = Glob> {
    let pieces = "\"([a-c.*?&,{}() !]|\u{e9}|\\\\x[0-9a-f]{2}|\\[[a-c!-]{1,3}\\]|\\*\\*/){1,8}\"";
    pieces.prop_filter_map("not a pattern", move |text| {
        let mut cursor = Cursor::new(&text);
        if path { Glob::read_path(&mut cursor, true) } else { Glob::read_name(&mut cursor, true) }.ok()
    })
}

fn node() -> impl Strategy<Value = Node> {
    let ids = prop_oneof![Just(Field::Uid), Just(Field::Gid), Just(Field::Projid)];
    let leaf = prop_oneof![
        1 => Just(Node::All),
        4 => ids.prop_flat_map(|field| number(field, u32::MAX.into())),
        2 => number(Field::Size, u64::MAX),
        2 => age(),
        2 => prop::collection::vec(glob(false), 1..3).prop_map(|globs| Node::Text(Field::Fname, globs)),
        2 => prop::collection::vec(glob(true), 1..3).prop_map(|globs| Node::Text(Field::Path, globs)),
    ];
    leaf.prop_recursive(6, 24, 4, |inner| {
        let many = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![inner.prop_map(Node::negate), many.clone().prop_map(Node::and), many.prop_map(Node::or)]
    })
}

/// Evaluates a tree by laws of logic other than those the product uses: not by De Morgan, lists by counting.
fn model(node: &Node, subject: &Subject<'_>) -> bool {
    let count = |nodes: &[Node]| nodes.iter().filter(|node| model(node, subject)).count();
    match node {
        Node::Not(inner) => match inner.as_ref() {
            Node::And(nodes) => count(nodes) < nodes.len(),
            Node::Or(nodes) => count(nodes) == 0,
            leaf => !model(leaf, subject),
        },
        Node::And(nodes) => count(nodes) == nodes.len(),
        Node::Or(nodes) => count(nodes) > 0,
        leaf => Expr(leaf.clone()).matches(subject),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn prints_what_parses_to_itself(node in node()) {
        let expr = Expr(node);
        let text = expr.to_string();
        let parsed = text.parse::<Expr>().map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&parsed, &expr);
        prop_assert_eq!(parsed.to_string(), text);
    }

    #[test]
    fn means_what_logic_says(
        node in node(),
        uid in 0..4_u32,
        size: u64,
        age_s in 0..900_000_u64,
        name in "[a-c.]{1,3}",
    ) {
        let path = format!("a/{name}");
        let subject = Subject {
            uid, gid: uid, projid: uid, size, age_s, name: name.as_bytes(), path: Some(path.as_bytes()),
        };
        let expr = Expr(node);
        prop_assert_eq!(expr.matches(&subject), model(&expr.0, &subject));
        // A field that is not needed may hold anything.
        let mut blind = subject;
        if !expr.needs(Field::Path) { blind.path = None }
        if !expr.needs(Field::Fname) { blind.name = b"other" }
        if !expr.needs(Field::Uid) { blind.uid = u32::MAX }
        if !expr.needs(Field::Gid) { blind.gid = u32::MAX }
        if !expr.needs(Field::Projid) { blind.projid = u32::MAX }
        if !expr.needs(Field::Size) { blind.size = 0 }
        if !expr.needs(Field::Mtime) { blind.age_s = 0 }
        prop_assert_eq!(expr.matches(&blind), expr.matches(&subject));
    }
}

fn matches(text: &str, subject: Subject<'_>) -> bool {
    text.parse::<Expr>().unwrap().matches(&subject)
}

#[test]
fn and_binds_tighter_than_or() {
    for (uid, gid, projid, expected) in [(1, 0, 0, true), (0, 2, 3, true), (0, 2, 0, false), (1, 2, 0, true)]
    {
        let subject = Subject { uid, gid, projid, ..Default::default() };
        assert_eq!(matches("uid=1,gid=2&projid=3", subject), expected);
        assert_eq!(matches("gid=2&projid=3,uid=1", subject), expected);
    }
    assert!(!matches("(uid=1,gid=2)&projid=3", Subject { uid: 1, ..Default::default() }));
}

#[test]
fn spans_hold_both_ends() {
    for (projid, expected) in [(99, false), (100, true), (150, true), (200, true), (201, false), (300, true)]
    {
        assert_eq!(
            matches("projid={100-200 300}", Subject { projid, ..Default::default() }),
            expected,
            "{projid}"
        );
    }
    let max = Subject { size: u64::MAX, uid: u32::MAX, ..Default::default() };
    assert!(matches("size={0-18446744073709551615B}&uid=4294967295", max));
}

#[test]
fn a_file_without_a_path_is_below_no_directory() {
    assert!(!matches("path={**}", Subject::default()));
    assert!(matches("!path={**}", Subject::default()));
    assert!(matches("path={tmp/*}", Subject { path: Some(b"/tmp/a"), ..Default::default() }));
}

#[test]
fn all_is_all() {
    assert!(matches("all", Subject::default()));
    assert!(!matches("!all", Subject::default()));
}

#[test]
fn ages_do_not_wrap() {
    assert_eq!(Subject::age_s(1_000, 940), 60);
    assert_eq!(Subject::age_s(1_000, 1_001), 0);
    assert_eq!(Subject::age_s(1_000, -1_000), 2_000);
    assert_eq!(Subject::age_s(i64::MAX, i64::MIN), u64::MAX);
    assert_eq!(Subject::age_s(i64::MIN, i64::MAX), 0);
}
