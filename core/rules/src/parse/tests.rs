//! What parses, to what; what does not, where and why.

use super::*;

/// A rule as it is written, and in its canonical form.
#[test]
fn accepted_rules() {
    let table = [
        ("projid={100 200}&fname={*.h5},uid={1001}", "cache projid={100 200}&fname={*.h5},uid={1001}"),
        // The example of Lustre's manual page, which Lustre's own parser refuses.
        ("projid={500,1000}&fname={*.h5},uid=1001", "cache projid={500 1000}&fname={*.h5},uid={1001}"),
        (" \t cache  uid = 0 & gid = { 1 , 2 } \n", "cache uid={0}&gid={1 2}"),
        ("uid={1,, 2 ,}", "cache uid={1 2}"),
        ("uid={10-20 5-5}", "cache uid={10-20 5}"),
        ("filename=*.doc&size<1M", "cache fname={*.doc}&size<{1M}"),
        ("size<{5}&size>{3}", "cache size<{5M}&size>{3M}"),
        ("size={0 512B 1k 2048K 1MiB 3g 1T 1P}", "cache size={0B 512B 1K 2M 1M 3G 1T 1P}"),
        ("size=1-5M", "cache size={1M-5M}"),
        ("size>1025B", "cache size>{1025B}"),
        ("mtime>90", "cache mtime>{90s}"),
        ("mtime>{60s}&mtime<{52w}", "cache mtime>{1m}&mtime<{1y}"),
        ("mtime<36h&mtime>{0}", "cache mtime<{36h}&mtime>{0s}"),
        ("uid>0&uid<4294967295", "cache uid>{0}&uid<{4294967295}"),
        ("bypass path={/tmp/** **/*.o}", "bypass path={tmp/** **/*.o}"),
        ("pin all", "pin all"),
        ("all", "cache all"),
        ("big: cache size>1G", "big: cache size>{1G}"),
        ("no-1.x_:uid=1", "no-1.x_: cache uid={1}"),
        ("cache: cache all", "cache: cache all"),
        ("cache(uid=1)", "cache uid={1}"),
        ("!uid=0", "cache !uid={0}"),
        ("not uid=0&gid=1", "cache !uid={0}&gid={1}"),
        ("not(uid=0,gid=1)", "cache !(uid={0},gid={1})"),
        ("! not ! !uid=0", "cache uid={0}"),
        ("!(!(uid=0))", "cache uid={0}"),
        ("(uid=0,gid=1)&size<1", "cache (uid={0},gid={1})&size<{1M}"),
        ("((uid=0)),((gid=1,gid=2))", "cache uid={0},gid={1},gid={2}"),
        ("(uid=0&(gid=1&size<1))", "cache uid={0}&gid={1}&size<{1M}"),
        ("!(uid=0&gid=1)", "cache !(uid={0}&gid={1})"),
        ("fname=\"a b\"", "cache fname={\"a b\"}"),
        ("fname={\"a b\" c\\,d x&y(1)!}", "cache fname={\"a b\" \"c,d\" x&y(1)!}"),
        ("fname={=x}", "cache fname={=x}"),
        ("fname=\u{8a9e}*", "cache fname={\u{8a9e}*}"),
    ];
    for (text, canonical) in table {
        let parsed = rule(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        assert_eq!(parsed.to_string(), canonical, "{text}");
        assert_eq!(rule(canonical).unwrap(), parsed, "{text}");
    }
}

/// A text that is no rule, where it stops to be one, and what the message must say.
#[test]
fn refused_rules() {
    let table = [
        ("", 0, TERM),
        ("   ", 3, TERM),
        ("cache", 5, TERM),
        ("big:", 4, TERM),
        ("#x", 0, TERM),
        ("projd={1}", 0, TERM),
        ("UID=1", 0, TERM),
        ("cache cache all", 6, TERM),
        ("uid=1,", 6, TERM),
        ("uid=1&&gid=1", 6, TERM),
        ("&uid=1", 0, TERM),
        ("!", 1, TERM),
        ("()", 1, TERM),
        ("big : all", 0, TERM),
        ("uid", 3, OPERATOR),
        ("uid 1", 4, OPERATOR),
        ("uid!=1", 3, OPERATOR),
        ("uid:1", 4, LIST),
        ("uid=500,1000", 8, LIST),
        ("uid=", 4, VALUE),
        ("uid={}", 5, VALUE),
        ("uid={, }", 7, VALUE),
        ("uid={1", 6, "a blank, `,` or `}` after the value"),
        ("uid={1 ", 7, VALUE),
        ("uid<{}", 5, VALUE),
        ("uid=}", 4, VALUE),
        ("uid==1", 4, VALUE_NOT_OPERATOR),
        ("size<=1M", 5, VALUE_NOT_OPERATOR),
        ("size<{1M 2M}", 9, "`}`: `<` and `>` take one value"),
        ("uid<1-5", 5, "the end of the value"),
        ("uid<{1-5}", 6, "a blank, `,` or `}` after the value"),
        ("uid=1|gid=1", 5, "the end of the value"),
        ("uid=1 gid=1", 6, "`&` (and), `,` (or) or the end of the rule"),
        ("uid=1)", 5, "`&` (and), `,` (or) or the end of the rule"),
        ("(uid=1", 6, "`&` (and), `,` (or) or `)`"),
        ("(uid=1 all)", 7, "`&` (and), `,` (or) or `)`"),
        ("uid={alice}", 5, "an id: a whole number up to 4294967295"),
        ("uid=-1", 4, "an id: a whole number up to 4294967295"),
        ("uid=0x10", 4, "an id: a whole number up to 4294967295"),
        ("gid={1 4294967296}", 7, "an id: a whole number up to 4294967295"),
        ("uid=99999999999999999999", 4, "an id: a whole number up to 4294967295"),
        ("projid={200-100}", 8, "a range from low to high"),
        ("projid={200-}", 12, "an id: a whole number up to 4294967295"),
        ("uid<0", 4, "a value above 0: nothing is below it"),
        ("uid>4294967295", 4, "a lower value: nothing is above this one"),
        ("size>1MB", 5, "a size: a whole number and B, K, M, G, T or P (of 1024; MiB if left out)"),
        ("size>1.5G", 6, "the end of the value"),
        ("size>16384P", 5, "a size: a whole number and B, K, M, G, T or P (of 1024; MiB if left out)"),
        ("mtime>1M", 6, "an age: a whole number and s, m, h, d, w or y (seconds if left out)"),
        ("mtime={1d}", 5, "`<` or `>`: an age goes on growing, so it is never equal"),
        ("fname<{a}", 5, "`=`: names and paths have no order"),
        ("path>x", 4, "`=`: names and paths have no order"),
        ("fname={a/b}", 8, "a name, which has no `/` (for paths, see path={...})"),
        ("fname={\"a\"b}", 10, "a blank, `,` or `}` after the value"),
    ];
    for (text, offset, expected) in table {
        let error = rule(text).expect_err(text);
        assert_eq!((error.offset(), error.expected()), (offset, expected), "{text}\n{error}");
    }
}

#[test]
fn the_message_shows_the_rule_and_the_place() {
    let error = rule("cache projid={100}&fnam={*.h5}").unwrap_err();
    let shown = "expected a field (uid, gid, projid, size, mtime, fname, path), `all`, `!` or `(`\n  \
                 cache projid={100}&fnam={*.h5}\n  \
                 \u{20}                  ^";
    assert_eq!(error.to_string(), shown);
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| format!("{}uid=1{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(expr(&nested(MAX_NESTING)).unwrap().to_string(), "uid={1}");
    let error = expr(&nested(MAX_NESTING + 1)).unwrap_err();
    assert_eq!((error.offset(), error.expected()), (32, "at most 32 parentheses inside each other"));
    // A million of each would overflow the stack of whoever recursed into them.
    for opening in ["(", "!(", "not(", "uid=1&(", "uid=1,!("] {
        assert!(expr(&opening.repeat(1_000_000)).is_err());
    }
    assert_eq!(expr(&format!("{}uid=1", "!".repeat(1_000_001))).unwrap().to_string(), "!uid={1}");
    assert_eq!(expr(&"not ".repeat(1_000_000)).unwrap_err().expected(), TERM);
    // Side by side is not inside each other.
    assert!(expr(&vec!["(uid=1)"; 1000].join(",")).is_ok());
}

#[test]
fn an_alternation_of_every_depth_prints_and_evaluates() {
    let mut text = "uid=1".to_owned();
    for _ in 0..MAX_NESTING {
        text = format!("!(gid=1,{text})");
    }
    let deep = expr(&text).unwrap();
    assert_eq!(expr(&deep.to_string()).unwrap(), deep);
    assert!(deep.matches(&crate::Subject { uid: 1, ..Default::default() }));
}
