//! What a Rust file must be: opened by what it is for, of a size one can read, without `unsafe` outside its folders,
//! and without a lint silenced for no reason.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::Visit;

use super::house::House;
use super::{File, Finding};

/// Finds what is wrong with `file`, if it is Rust.
pub fn check(file: &File, house: &House) -> Vec<Finding> {
    let Some(text) = file.text.as_ref().filter(|_| file.path.ends_with(".rs")) else { return Vec::new() };
    let mut source = Source { path: &file.path, house, findings: Vec::new() };
    let (parsed, tokens) = match (syn::parse_file(text), text.parse::<TokenStream>()) {
        (Ok(parsed), Ok(tokens)) => (parsed, tokens),
        (Err(error), _) => {
            source.find(error.span().start().line, format!("not Rust: {error}"));
            return source.findings;
        }
        (_, Err(error)) => {
            source.find(error.span().start().line, format!("not Rust: {error}"));
            return source.findings;
        }
    };
    source.check_header(text);
    source.check_length(text, &parsed);
    source.check_tokens(tokens);
    source.visit_file(&parsed);
    source.findings
}

/// The file under check.
struct Source<'a> {
    path: &'a str,
    house: &'a House,
    findings: Vec<Finding>,
}

impl Source<'_> {
    fn find(&mut self, line: usize, message: impl Into<String>) {
        self.findings.push(Finding::new(self.path, line, message));
    }

    /// The first line says what the file is for.
    fn check_header(&mut self, text: &str) {
        let first = text.lines().next().unwrap_or_default();
        if first.strip_prefix("//!").is_none_or(|says| says.trim().is_empty()) {
            self.find(1, "opens without a `//!`; say in one sentence what the file is for");
        }
    }

    /// The lines before the tests. Tests in a file of their own have no limit.
    fn check_length(&mut self, text: &str, parsed: &syn::File) {
        if self.path.ends_with("/tests.rs") {
            return;
        }
        let tests = parsed.items.iter().find_map(tests_line);
        let lines = tests.map_or_else(|| text.lines().count(), |line| line - 1);
        let limit = self.house.size.file_lines;
        if lines > limit {
            let message =
                format!("{lines} lines before its tests, over {limit}; give each job a file of its own");
            self.find(limit + 1, message);
        }
    }

    fn check_function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let start = signature.span().start().line;
        let lines = block.brace_token.span.close().end().line - start + 1;
        let limit = self.house.size.function_lines;
        if lines > limit {
            let name = &signature.ident;
            self.find(
                start,
                format!("`{name}` has {lines} lines, over {limit}; cut it where it changes its subject"),
            );
        }
    }

    /// Looks at every token, those that macros take included.
    fn check_tokens(&mut self, tokens: TokenStream) {
        let mut hash = false;
        for token in tokens {
            match token {
                TokenTree::Group(group) if hash && group.delimiter() == Delimiter::Bracket => {
                    hash = false;
                    self.check_attribute(group.stream());
                }
                TokenTree::Group(group) => {
                    hash = false;
                    self.check_tokens(group.stream());
                }
                TokenTree::Ident(word) => {
                    hash = false;
                    self.check_unsafe(&word);
                }
                TokenTree::Punct(mark) => hash = mark.as_char() == '#' || (hash && mark.as_char() == '!'),
                TokenTree::Literal(_) => hash = false,
            }
        }
    }

    /// An attribute silences a lint only by `expect` with a reason: it ends when its reason does.
    fn check_attribute(&mut self, tokens: TokenStream) {
        let mut word: Option<proc_macro2::Ident> = None;
        for token in tokens {
            let (TokenTree::Group(group), Some(name)) = (&token, &word) else {
                word = if let TokenTree::Ident(name) = token { Some(name) } else { None };
                continue;
            };
            let line = name.span().start().line;
            if name == "allow" {
                self.find(line, "a lint silenced by `allow`; write `expect(lint, reason = \"...\")`");
            } else if name == "expect" && !has_word(group.stream(), "reason") {
                self.find(line, "an `expect` without a reason; write `expect(lint, reason = \"...\")`");
            } else if name == "cfg_attr" {
                self.check_attribute(group.stream());
            } else if name == "unsafe" {
                self.check_unsafe(name);
            }
            word = None;
        }
    }

    fn check_unsafe(&mut self, word: &proc_macro2::Ident) {
        let is_inside = |folder: &String| {
            self.path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        if word == "unsafe" && !self.house.unsafe_code.folders.iter().any(is_inside) {
            let folders = self.house.unsafe_code.folders.join(", ");
            self.find(word.span().start().line, format!("`unsafe` here; call a safe function of {folders}"));
        }
    }
}

impl<'ast> Visit<'ast> for Source<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.check_function(&item.sig, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.check_function(&item.sig, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.check_function(&item.sig, block);
        }
        syn::visit::visit_trait_item_fn(self, item);
    }
}

/// The line at which `item` starts, attributes included, if it is a module of tests with a body.
fn tests_line(item: &syn::Item) -> Option<usize> {
    let syn::Item::Mod(module) = item else { return None };
    let first = module.attrs.iter().find(|attribute| is_for_tests(attribute))?;
    module.content.is_some().then(|| first.span().start().line)
}

/// Whether `attribute` leaves its item to tests.
pub fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    list.path.is_ident("cfg") && has_word(list.tokens.clone(), "test")
}

/// Whether `word` is among `tokens`, not inside a group.
fn has_word(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| matches!(token, TokenTree::Ident(ident) if ident == word))
}

#[cfg(test)]
mod tests;
