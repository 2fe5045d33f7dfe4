//! What Lustre's `sanity-pcc` expects of rules: tests 13a to 13c, 33, 34 and 41, on the same rules and the
//! same files.

use hither_rules::{Action, RuleSet, Subject};

const MIB: u64 = 1 << 20;

/// Is the file cached, under one rule?
fn cached(rule: &str, file: Subject<'_>) -> bool {
    let rules: RuleSet = rule.parse().expect(rule);
    rules.decide(&file).action == Action::Cache
}

fn file(name: &str) -> Subject<'_> {
    Subject { name: name.as_bytes(), ..Subject::default() }
}

#[test]
fn test_13a_user_or_group() {
    assert!(cached("uid={500}", Subject { uid: 500, ..file("f") }));
    assert!(!cached("uid={500}", Subject { uid: 501, gid: 500, projid: 500, ..file("f") }));
    assert!(cached("gid={500}", Subject { uid: 500, gid: 500, ..file("f") }));
    assert!(!cached("gid={500}", Subject { uid: 500, gid: 0, ..file("f") }));
}

#[test]
fn test_13b_wildcards() {
    let rule = "fname={*.h5 suffix.* Mid*dle}";
    for name in ["prefix.h5", "suffix.doc", "MidPADdle"] {
        assert!(cached(rule, file(name)), "{name}");
    }
    for name in ["Midpad", "h5", "prefix.h5x", "suffix"] {
        assert!(!cached(rule, file(name)), "{name}");
    }
}

#[test]
fn test_13c_project_and_name_or_user_and_group() {
    let rule = "projid={100 200}&fname={*.h5},uid={500}&gid={1000}";
    for projid in [100, 200] {
        assert!(!cached(rule, Subject { projid, ..file("notcache") }));
        assert!(cached(rule, Subject { projid, ..file("autocache.h5") }));
    }
    assert!(!cached(rule, Subject { projid: 300, ..file("autocache.h5") }));
    assert!(cached(rule, Subject { uid: 500, gid: 1000, ..file("ugidcache") }));
    assert!(!cached(rule, Subject { uid: 500, gid: 500, ..file("ugidcache") }));
}

#[test]
fn test_33_size() {
    let sized = |size| Subject { size, ..file("myfile.doc") };
    let table: &[(&str, &[(u64, bool)])] = &[
        ("fname={*.doc}&size<{1M}", &[(2 * MIB, false), (MIB, false), (MIB - 1, true), (MIB / 2, true)]),
        (
            "fname={*.doc}&size<{5M}&size>{3M}",
            &[
                (MIB / 2, false),
                (3 * MIB, false),
                (3 * MIB + 1, true),
                (4 * MIB, true),
                (5 * MIB, false),
                (6 * MIB, false),
            ],
        ),
        (
            "fname={*.doc}&size={5M 3M}",
            &[(5 * MIB, true), (4 * MIB, false), (3 * MIB, true), (3 * MIB + 1, false)],
        ),
    ];
    for (rule, sizes) in table {
        for &(size, expected) in *sizes {
            assert_eq!(cached(rule, sized(size)), expected, "{rule} of {size} bytes");
        }
    }
    assert!(!cached("fname={*.doc}&size<{1M}", file("myfile.txt")));
}

#[test]
fn test_34_ranges_of_projects() {
    let table: &[(&str, &[(u32, bool)])] = &[
        ("projid>{100}", &[(0, false), (99, false), (100, false), (101, true)]),
        ("projid<{100}", &[(101, false), (102, false), (100, false), (99, true)]),
        (
            "projid<{120}&projid>{110}",
            &[(99, false), (105, false), (110, false), (121, false), (120, false), (115, true)],
        ),
        // The same range as a value.
        ("projid={111-119}", &[(110, false), (111, true), (119, true), (120, false)]),
    ];
    for (rule, projects) in table {
        for &(projid, expected) in *projects {
            let subject = Subject { projid, ..file("f") };
            assert_eq!(cached(rule, subject), expected, "{rule} of project {projid}");
        }
    }
}

#[test]
fn test_41_age() {
    let now = 1_700_000_000;
    let modified = |mtime| Subject { age_s: Subject::age_s(now, mtime), ..file("f") };
    assert!(!cached("mtime>{1m}", modified(now)));
    assert!(!cached("mtime>{1m}", modified(now - 60)));
    assert!(cached("mtime>{1m}", modified(now - 61)));
    assert!(cached("mtime>{1m}", modified(now - 120)));
    // Lustre subtracts without a sign, so a file from the future is the oldest of all; here it is new.
    assert!(!cached("mtime>{1m}", modified(now + 3_600)));
    assert!(cached("mtime<{1m}", modified(now + 3_600)));
}

/// `fname={*a*a...*b*}` keeps Lustre's recursive matcher busy for ever.
#[test]
fn a_name_of_255_bytes_against_many_stars() {
    let rule = format!("fname={{{}b*}}", "*a".repeat(100));
    let name = "a".repeat(255);
    assert!(!cached(&rule, file(&name)));
    assert!(cached(&rule, file(&format!("{}b", "a".repeat(254)))));
}
