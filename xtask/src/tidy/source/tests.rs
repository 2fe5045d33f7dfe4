//! Files that break each rule, and files that only look as if they did.

use super::check;
use crate::tidy::{File, house::House};

/// The lines of what is found in a file of `text` at `path`.
fn lines(path: &str, text: &str) -> Vec<usize> {
    let file = File { path: path.to_owned(), text: Some(text.to_owned()) };
    check(&file, &House::load().unwrap()).iter().map(|finding| finding.line).collect()
}

const NONE: [usize; 0] = [];

#[test]
fn a_file_without_a_header_is_found() {
    assert_eq!(lines("a.rs", "fn f() {}\n"), [1]);
    assert_eq!(lines("a.rs", "\n//! Late.\n"), [1]);
    assert_eq!(lines("a.rs", "//!\n//! An empty first line.\n"), [1]);
    assert_eq!(lines("a.rs", ""), [1]);
    assert_eq!(lines("a.rs", "//! One job.\n"), NONE);
    assert_eq!(lines("a.md", "no Rust"), NONE);
}

#[test]
fn a_file_of_801_lines_before_its_tests_is_found() {
    let lines_of = |count: usize| format!("//! Long.\n{}", "// line\n".repeat(count - 1));
    let tests = "#[cfg(test)]\nmod tests {\n    // more\n}\n";
    assert_eq!(lines("a/b.rs", &lines_of(801)), [801]);
    assert_eq!(lines("a/b.rs", &(lines_of(801) + tests)), [801]);
    assert_eq!(lines("a/b.rs", &(lines_of(801) + "#[cfg(test)]\nmod tests;\n")), [801]);
    assert_eq!(lines("a/b.rs", &lines_of(800)), NONE);
    assert_eq!(lines("a/b.rs", &(lines_of(800) + tests)), NONE);
    assert_eq!(lines("a/b/tests.rs", &lines_of(2000)), NONE);
}

#[test]
fn a_function_of_71_lines_is_found_wherever_it_is() {
    let body = |lines: usize| "let _ = 1;\n".repeat(lines - 2);
    assert_eq!(lines("a.rs", &format!("//! F.\nfn f() {{\n{}}}\n", body(71))), [2]);
    assert_eq!(lines("a.rs", &format!("//! F.\nfn f() {{\n{}}}\n", body(70))), NONE);
    assert_eq!(lines("a.rs", &format!("//! F.\nimpl S {{\n/// Doc.\nfn f() {{\n{}}}\n}}\n", body(71))), [4]);
    assert_eq!(lines("a.rs", &format!("//! F.\ntrait T {{\nfn f() {{\n{}}}\n}}\n", body(71))), [3]);
    assert_eq!(lines("a.rs", &format!("//! F.\nmod m {{\npub fn f() {{\n{}}}\n}}\n", body(71))), [3]);
}

#[test]
fn unsafe_outside_its_folders_is_found_in_every_form() {
    for code in [
        "fn f() { unsafe { g() } }",
        "unsafe fn f() {}",
        "unsafe impl Send for S {}",
        "unsafe extern \"C\" {}",
        "#[unsafe(no_mangle)] fn f() {}",
        "macro_rules! m { () => { unsafe { g() } } }",
    ] {
        let text = format!("//! U.\n{code}\n");
        assert_eq!(lines("layers/cache/src/a.rs", &text), [2], "{code}");
        assert_eq!(lines("core/system/src/a.rs", &text), [2], "{code}");
        assert_eq!(lines("core/sys/src/a.rs", &text), NONE, "{code}");
    }
    let text = "//! No unsafe here.\n#![forbid(unsafe_code)]\nconst S: &str = \"unsafe\"; // unsafe\n";
    assert_eq!(lines("layers/cache/src/a.rs", text), NONE);
}

#[test]
fn a_lint_silenced_without_a_reason_is_found() {
    for attribute in [
        "#![allow(dead_code)]",
        "#[allow(dead_code, reason = \"no\")] fn f() {}",
        "#[expect(dead_code)] fn f() {}",
        "#[cfg_attr(test, allow(dead_code))] fn f() {}",
        "macro_rules! m { () => { #[allow(dead_code)] fn f() {} } }",
    ] {
        assert_eq!(lines("a.rs", &format!("//! L.\n{attribute}\n")), [2], "{attribute}");
    }
    for fine in [
        "#[expect(dead_code, reason = \"the next reader of this format needs it\")] fn f() {}",
        "#[cfg_attr(test, expect(dead_code, reason = \"tests only\"))] fn f() {}",
        "#[doc = \"allow(dead_code)\"] fn allow() { allow(1); x.expect(\"set by new\"); }",
        "/// `#[allow(dead_code)]`\nfn f() {}",
        "#[derive(Debug)] #[allowed(x)] struct S;",
    ] {
        assert_eq!(lines("a.rs", &format!("//! L.\n{fine}\n")), NONE, "{fine}");
    }
}

#[test]
fn what_is_not_rust_is_found_where_it_ends_to_be() {
    assert_eq!(lines("a.rs", "//! R.\nfn f( {}\n"), [2]);
    assert_eq!(lines("a.rs", "//! R.\nfn f() {\n"), [2]);
}
