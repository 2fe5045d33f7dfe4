//! Patterns against tables of names and paths, against a naive model, and against the clock.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::cursor::Cursor;
use crate::error::ParseError;

fn read(text: &str, path: bool) -> Result<Glob, ParseError> {
    let mut cursor = Cursor::new(text);
    let glob = if path { Glob::read_path(&mut cursor, true) } else { Glob::read_name(&mut cursor, true) }?;
    assert_eq!(cursor.peek(), None, "{text}: not read to the end");
    Ok(glob)
}

fn name(pattern: &str) -> Glob {
    read(pattern, false).unwrap()
}

fn path(pattern: &str) -> Glob {
    read(pattern, true).unwrap()
}

/// Each pattern, a name that it matches and one that it does not.
#[test]
fn names_by_pattern() {
    let table: &[(&str, &[u8], &[u8])] = &[
        ("a.txt", b"a.txt", b"a-txt"),
        ("*", b"anything", b"with/slash"),
        ("*", b"", b"/"),
        ("*.h5", b".h5", b"h5"),
        ("*.h5", b"x.h5.h5", b"x.h5~"),
        ("Mid*dle", b"Middle", b"Midd"),
        ("suffix.*", b"suffix.doc", b"suffixdoc"),
        ("***", b"any", b"a/b"),
        ("?", b"x", b""),
        ("??", b"xy", b"x"),
        ("[abc]", b"b", b"d"),
        ("[a-c]x", b"cx", b"dx"),
        ("[!a-c]", b"d", b"b"),
        ("[^a-c]", b"^", b"c"),
        ("[a^]", b"^", b"b"),
        ("[]a]", b"]", b"b"),
        ("[!]a]", b"b", b"]"),
        ("[a-]", b"-", b"b"),
        ("[-a]", b"-", b"b"),
        ("[a\\-c]", b"-", b"b"),
        ("[[]x", b"[x", b"x"),
        ("[*]", b"*", b"a"),
        ("[\\x80-\\xff]", b"\xe9", b"e"),
        ("\\*", b"*", b"a"),
        ("\\[a\\]", b"[a]", b"a"),
        ("a\\ b", b"a b", b"a\\ b"),
        ("\"a b, {c}\"", b"a b, {c}", b"a"),
        ("\"*.h5\"", b"x.h5", b"x.nc"),
        ("\"\\\"\\\\\"", b"\"\\", b"\""),
        ("\\xff\\x00*", b"\xff\0x", b"\xff"),
        ("caf\u{e9}", "caf\u{e9}".as_bytes(), b"cafe"),
        // One byte, not one character.
        ("caf??", "caf\u{e9}".as_bytes(), b"caf\xe9"),
        ("(1)&!", b"(1)&!", b"1"),
    ];
    for &(pattern, yes, no) in table {
        let glob = name(pattern);
        assert!(glob.matches(yes), "{pattern} should match {yes:?}");
        assert!(!glob.matches(no), "{pattern} should not match {no:?}");
    }
}

#[test]
fn paths_by_pattern() {
    let table: &[(&str, &[&str], &[&str])] = &[
        ("tmp/**", &["tmp/a", "tmp/a/b", "tmp/.x"], &["tmp", "tmpa", "a/tmp/b"]),
        ("/tmp/**", &["tmp/a"], &["a/tmp/b"]),
        ("tmp/*", &["tmp/a"], &["tmp/a/b"]),
        ("**/tmp/**", &["tmp/a", "x/tmp/a", "x/y/tmp/a/b"], &["tmp", "xtmp/a", "x/tmpa"]),
        ("**/*.o", &["a.o", "x/a.o", "x/y/a.o"], &["a.c", "a.o/x"]),
        ("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb", "b"]),
        ("a/**/**/b", &["a/b", "a/x/y/b"], &["ab"]),
        ("**", &["a", "a/b/c"], &[]),
        ("**.o", &["a.o", "x/y/a.o"], &["a.c"]),
        ("a**b", &["ab", "a/x/b", "axb"], &["a/x", "b"]),
        ("a**/b", &["a/b", "ax/b", "a/x/b"], &["ab", "b"]),
        ("a?b", &["axb"], &["a/b"]),
        ("a[!x]b", &["ayb"], &["a/b", "axb"]),
        ("a[.-0]b", &["a.b", "a0b"], &["a/b"]),
        ("*/x", &["a/x"], &["x", "a/b/x"]),
        ("run/[0-9]*/out.h5", &["run/12/out.h5"], &["run/x/out.h5", "run/1/2/out.h5"]),
        ("...", &["..."], &[]),
        ("a.", &["a."], &[]),
        (".a", &[".a"], &[]),
    ];
    for &(pattern, yes, no) in table {
        let glob = path(pattern);
        for text in yes {
            assert!(glob.matches(text.as_bytes()), "{pattern} should match {text}");
        }
        for text in no {
            assert!(!glob.matches(text.as_bytes()), "{pattern} should not match {text}");
        }
    }
}

/// Patterns that would never match, and slips of the pen: where, and a word of what was expected.
#[test]
fn refused_patterns() {
    let table = [
        (false, "\"\"", 0, "not empty"),
        (false, "a/b", 1, "path={...}"),
        (false, "[!/]", 2, "path={...}"),
        (false, "a\\x2fb", 1, "path={...}"),
        (false, "x[ab", 1, "closes this `[`"),
        (false, "[]", 0, "closes this `[`"),
        (false, "[!]", 0, "closes this `[`"),
        (false, "[c-a]", 1, "low to high"),
        (false, "[[:digit:]]", 1, "by name"),
        (false, "[\u{e9}]", 1, "ASCII"),
        (false, "[a-\u{e9}]", 3, "ASCII"),
        (false, "[!\\x00-\\xff]", 0, "some byte"),
        (false, "*.{h5", 2, "{*.h5 *.nc}"),
        (false, "a\"b", 1, "in quotes"),
        (false, "\"abc", 4, "closing"),
        (false, "\\n", 1, "hexadecimal"),
        (false, "\\xg0", 1, "hexadecimal"),
        (false, "\\x0", 1, "hexadecimal"),
        (false, "\\", 1, "hexadecimal"),
        (true, "/", 0, "dir/**"),
        (true, "tmp/", 0, "dir/**"),
        (true, "a//b", 0, "dir/**"),
        (true, "./a", 0, "dir/**"),
        (true, "a/../b", 0, "dir/**"),
        (true, "**/", 0, "dir/**"),
        (true, "**/..", 0, "dir/**"),
        (true, "[/]", 0, "some byte"),
    ];
    for (is_path, pattern, offset, expected) in table {
        let error = read(pattern, is_path).expect_err(pattern);
        assert_eq!(error.offset(), offset, "{pattern}: {error}");
        assert!(error.expected().contains(expected), "{pattern}: {error}");
    }
}

#[test]
fn one_form_for_each_pattern() {
    let table = [
        (false, "***", "*"),
        (false, "[a]", "a"),
        (false, "[*]", "\\*"),
        (false, "[\\x00-\\xff]", "?"),
        (false, "[cabd]", "[a-d]"),
        (false, "[ba]", "[ab]"),
        (false, "[!a]", "[!a]"),
        (false, "[^!^-]", "[!\\!\\-\\^]"),
        (false, "\"plain\"", "plain"),
        (false, "a\\ b", "\"a b\""),
        (false, "\\x41\\xc3\\xa9\\xe9", "A\u{e9}\\xe9"),
        (false, "\\x0a", "\\x0a"),
        (false, "a\\!\\&\\]", "a!&]"),
        (true, "/a/***/**/b", "a/**/b"),
        (true, "[!/x]", "[!x]"),
    ];
    for (is_path, pattern, canonical) in table {
        let glob = read(pattern, is_path).unwrap();
        assert_eq!(glob.to_string(), canonical, "{pattern}");
        assert_eq!(read(canonical, is_path).unwrap(), glob, "{pattern}");
    }
}

/// States beyond the first word: a pattern of each length around its end.
#[test]
fn long_patterns_match_like_short_ones() {
    for length in 60..70 {
        let head = "a".repeat(length);
        let glob = path(&format!("{head}*b/**"));
        for (tail, expected) in [("b/c", true), ("xxb/c/d", true), ("b", false), ("/b/c", false)] {
            assert_eq!(glob.matches(format!("{head}{tail}").as_bytes()), expected, "{length} {tail}");
            assert!(!glob.matches(format!("{}{tail}", &head[1..]).as_bytes()), "{length} {tail}");
        }
    }
}

#[test]
fn patterns_are_bounded() {
    let longest = "a".repeat(MAX_ELEMENTS);
    assert!(path(&longest).matches(longest.as_bytes()));
    assert!(!path(&longest).matches(&longest.as_bytes()[1..]));
    let error = read(&format!("{longest}a"), true).unwrap_err();
    assert_eq!(error.expected(), "a pattern of at most 1023 characters");
}

/// A matcher that tries one way after another needs longer than the age of the universe for any of these.
#[test]
fn no_pattern_explodes() {
    let start = Instant::now();
    let long = "a".repeat(4095);
    for pattern in ["*a", "**a", "?*", "**/*a"] {
        // A class, because a literal end would be compared first, and that is that.
        let glob = path(&format!("{}[bc]", pattern.repeat(150)));
        assert!(!glob.matches(long.as_bytes()), "{pattern}");
        let dirs = "a/".repeat(2047);
        assert!(!glob.matches(dirs.as_bytes()), "{pattern}");
    }
    assert!(start.elapsed() < Duration::from_secs(20), "took {:?}", start.elapsed());
}

/// Tries every way: the meaning of a pattern, in the words of its definition.
fn model(elements: &[Element], text: &[u8]) -> bool {
    let Some((element, rest)) = elements.split_first() else { return text.is_empty() };
    let ends = 0..=text.len();
    let one = |fits: &dyn Fn(u8) -> bool| text.first().is_some_and(|&b| fits(b)) && model(rest, &text[1..]);
    match element {
        Element::Byte(byte) => one(&|b| b == *byte),
        Element::One => one(&|b| b != b'/'),
        Element::Class(class) => one(&|b| b != b'/' && class.contains(b)),
        Element::Star => {
            ends.into_iter().any(|end| !text[..end].contains(&b'/') && model(rest, &text[end..]))
        }
        Element::Globstar => ends.into_iter().any(|end| model(rest, &text[end..])),
        Element::Dirs => {
            ends.into_iter().any(|end| (end == 0 || text[end - 1] == b'/') && model(rest, &text[end..]))
        }
    }
}

/// A value in quotes, of everything that has a meaning in one and much that has none.
fn quoted() -> impl Strategy<Value = String> {
    "\"([ -~\u{e9}\u{8a9e}\u{85}\t]|\\\\x[0-9a-f]{2}|\\[.{1,4}\\]|\\*\\*/){1,12}\""
}

/// A name of any bytes.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![1..b'/', b'0'..], 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn matches_as_the_model_says(
        pattern in "([ab*?/]|\\*\\*/|\\[ab\\]|\\[!a\\]){1,8}",
        text in "[ab/]{0,8}",
    ) {
        if let Ok(glob) = read(&pattern, true) {
            let expected = model(&glob.elements, text.as_bytes());
            prop_assert_eq!(glob.matches(text.as_bytes()), expected);
            prop_assert_eq!(glob.matches_with::<1>(text.as_bytes()), expected);
            prop_assert_eq!(glob.matches_with::<WORDS>(text.as_bytes()), expected);
        }
    }

    #[test]
    fn prints_what_compiles_to_itself(pattern in quoted(), is_path: bool) {
        let mut cursor = Cursor::new(&pattern);
        let read_one = if is_path { Glob::read_path } else { Glob::read_name };
        if let Ok(glob) = read_one(&mut cursor, true) {
            prop_assert_eq!(read(&glob.to_string(), is_path), Ok(glob));
        }
    }

    #[test]
    fn a_literal_matches_itself_only(name in bytes(), other in bytes()) {
        let quoted: String = name.iter().map(|byte| format!("\\x{byte:02x}")).collect();
        let glob = read(&quoted, false).unwrap();
        prop_assert!(glob.matches(&name));
        prop_assert_eq!(glob.matches(&other), name == other);
        prop_assert!(read(&glob.to_string(), false).unwrap().matches(&name));
    }
}
