//! Texts of every kind: the parser answers each, and what it accepts it can say again.

use hither_rules::{ParseError, Rule, RuleSet, Subject};
use proptest::prelude::*;

/// Everything that must hold of a text, whatever it is. True if it is a rule.
fn check(text: &str) -> Result<bool, TestCaseError> {
    if let Ok(set) = text.parse::<RuleSet>() {
        prop_assert_eq!(set.to_string().parse::<RuleSet>(), Ok(set.clone()));
        set.decide(&Subject { name: text.as_bytes(), path: Some(text.as_bytes()), ..Default::default() });
    }
    match text.parse::<Rule>() {
        Ok(rule) => {
            let shown = rule.to_string();
            prop_assert_eq!(shown.parse::<Rule>(), Ok(rule.clone()), "{}", shown);
            prop_assert!(!shown.contains(char::is_control), "{}", shown);
            rule.matches(&Subject {
                name: text.as_bytes(),
                path: Some(text.as_bytes()),
                ..Default::default()
            });
            Ok(true)
        }
        Err(error) => check_message(text, &error).map(|()| false),
    }
}

/// Three lines, none wider than a terminal, and a place in the text.
fn check_message(text: &str, error: &ParseError) -> Result<(), TestCaseError> {
    prop_assert!(text.is_char_boundary(error.offset()), "{:?}", error);
    let message = error.to_string();
    let lines: Vec<&str> = message.lines().collect();
    prop_assert_eq!(lines.len(), 3, "{}", message);
    prop_assert!(lines[2].trim_start_matches(' ') == "^" && lines[2].len() < 80, "{}", message);
    Ok(())
}

/// Words of the language in any order, which come far deeper into the parser than characters in any order do.
fn soup() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "uid",
        "gid",
        "projid",
        "size",
        "mtime",
        "fname",
        "filename",
        "path",
        "all",
        "not",
        "not ",
        "!",
        "cache ",
        "pin ",
        "bypass ",
        "n:",
        "=",
        "<",
        ">",
        "={",
        "}",
        "{",
        "(",
        ")",
        "&",
        ",",
        " ",
        "\t",
        "\n",
        "#",
        "\"",
        "\\",
        "*",
        "**",
        "**/",
        "/",
        "?",
        "[",
        "]",
        "[!",
        "-",
        "\\x",
        "ff",
        "0",
        "1",
        "100-200",
        "4294967295",
        "5M",
        "1y",
        "B",
        "a",
        ".h5",
        "é",
        "語",
        "\u{301}",
        "\0",
        "\u{85}",
        "\u{a0}",
    ]);
    prop::collection::vec(words, 0..24).prop_map(|words| words.concat())
}

/// Rules as people write them, with the liberties that the language leaves them.
fn written() -> impl Strategy<Value = String> {
    let value = "[1-9][0-9]{0,6}";
    let test = prop_oneof![
        ("uid|gid|projid", "[=<>]", value).prop_map(|(field, op, value)| format!("{field}{op}{value}")),
        ("uid|gid|projid", value, "[ ,]{1,3}", value)
            .prop_map(|(f, a, gap, b)| format!("{f}={{{a}{gap}{b}}}")),
        ("size", "[=<>]", value, "[BKMGTkmgt]?|[KMG]iB")
            .prop_map(|(f, op, n, unit)| format!("{f} {op} {n}{unit}")),
        ("[<>]", value, "[smhdwy]?").prop_map(|(op, n, unit)| format!("mtime{op}{{ {n}{unit} }}")),
        ("fname|filename", "[a-z*?.]{1,6}").prop_map(|(field, glob)| format!("{field}={glob}")),
        ("[a-z]{1,4}", "/\\*\\*|/\\*|\\.o|/\\*\\*/x").prop_map(|(dir, rest)| format!("path={{{dir}{rest}}}")),
        "[a-z {},&()]{1,6}".prop_map(|name| format!("fname={{\"{name}\"}}")),
    ];
    let expr = test.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            ("!|not |not\t!", inner.clone()).prop_map(|(not, inner)| format!("{not}({inner})")),
            (inner.clone(), " ?[&,] ?", inner.clone()).prop_map(|(a, join, b)| format!("{a}{join}{b}")),
            inner.prop_map(|inner| format!("( {inner} )")),
        ]
    });
    ("([a-z0-9]{1,5}: ?)?", "((cache|pin|bypass) )?", expr).prop_map(|(name, action, e)| name + &action + &e)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn any_words_are_answered(text in soup()) {
        check(&text)?;
    }

    #[test]
    fn rules_as_written_are_accepted(text in written()) {
        prop_assert!(check(&text)?, "{}", text.parse::<Rule>().unwrap_err());
    }
}
