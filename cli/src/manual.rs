//! The manual: a page for each command, made from the flag definitions, in the sections that manual pages have.

use std::io::{self, Write};

use clap::Command;
use clap_mangen::Man;

use crate::args::{EXAMPLE, EXIT_CODES};

/// The page that the others belong to.
pub const MAIN: &str = "hither.1";

/// One page.
pub struct Page {
    /// `hither-mount.1`
    pub file: String,
    /// For `man(1)`.
    pub text: Vec<u8>,
}

/// The page of a command and those of all below it.
pub fn pages(command: Command) -> io::Result<Vec<Page>> {
    let mut command = command;
    command.build();
    let mut pages = Vec::new();
    collect(&command, None, &mut pages)?;
    Ok(pages)
}

fn collect(command: &Command, above: Option<&Command>, pages: &mut Vec<Page>) -> io::Result<()> {
    pages.push(page(command, above)?);
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        collect(below, Some(command), pages)?;
    }
    Ok(())
}

fn name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn page(command: &Command, above: Option<&Command>) -> io::Result<Page> {
    let name = name(command);
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .source(concat!("hither ", env!("CARGO_PKG_VERSION")))
        .manual("hither manual");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    synopsis(command, &mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    examples(command, above.is_none(), &mut text)?;
    exit_status(&mut text)?;
    see_also(command, above, &mut text)?;
    Ok(Page { file: format!("{name}.1"), text })
}

/// As `--help` writes it; how each flag is called stands below.
fn synopsis(command: &Command, text: &mut Vec<u8>) -> io::Result<()> {
    let usage = command.clone().render_usage().to_string();
    let lines = usage.trim_start_matches("Usage:").lines().map(str::trim).filter(|line| !line.is_empty());
    writeln!(text, ".SH SYNOPSIS\n.nf")?;
    lines.map(plain).try_for_each(|line| writeln!(text, "{line}"))?;
    writeln!(text, ".fi")
}

/// What `--help` shows before (the main page) or after all else.
fn examples(command: &Command, is_main: bool, text: &mut Vec<u8>) -> io::Result<()> {
    let example = match is_main {
        true => Some(EXAMPLE.to_owned()),
        false => command.get_after_help().map(ToString::to_string),
    };
    let Some(example) = example else { return Ok(()) };
    writeln!(text, ".SH EXAMPLES\n.nf")?;
    example.lines().map(plain).try_for_each(|line| writeln!(text, "{line}"))?;
    writeln!(text, ".fi")
}

fn exit_status(text: &mut Vec<u8>) -> io::Result<()> {
    writeln!(text, ".SH \"EXIT STATUS\"")?;
    EXIT_CODES.iter().try_for_each(|(code, meaning)| writeln!(text, ".TP\n{code}\n{}", plain(meaning)))
}

/// The page above and its other parts, or the programs that have to do with all.
fn see_also(command: &Command, above: Option<&Command>, text: &mut Vec<u8>) -> io::Result<()> {
    let mut others: Vec<String> = match above {
        Some(above) => {
            let beside = above.get_subcommands().filter(|beside| !beside.is_hide_set()).map(name);
            std::iter::once(name(above)).chain(beside.filter(|beside| *beside != name(command))).collect()
        }
        None => command.get_subcommands().map(name).collect(),
    };
    let mut pages: Vec<String> = others.drain(..).map(|other| format!("{other}(1)")).collect();
    if above.is_none() {
        pages.extend(["mount(8)", "fstab(5)", "fuse(4)", "fusermount3(1)"].map(str::to_owned));
    }
    writeln!(text, ".SH \"SEE ALSO\"\n{}", plain(&pages.join(", ")))
}

/// A line of text that means nothing else to troff.
fn plain(line: &str) -> String {
    let escaped = line.replace('\\', r"\e").replace('-', r"\-");
    match escaped.starts_with(['.', '\'']) {
        true => format!(r"\&{escaped}"),
        false => escaped,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_page_has_the_sections_of_a_manual_page_and_links_that_lead_somewhere() {
        let pages = pages(Cli::command()).unwrap();
        let files: Vec<&str> = pages.iter().map(|page| page.file.as_str()).collect();
        assert_eq!(files[0], MAIN);
        for expected in ["hither-mount-cache.1", "hither-cache-rules-add.1", "hither-umount.1"] {
            assert!(files.contains(&expected), "{files:?}");
        }
        for page in &pages {
            let text = std::str::from_utf8(&page.text).unwrap();
            for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "\"EXIT STATUS\"", "\"SEE ALSO\""] {
                assert_eq!(text.matches(&format!(".SH {section}\n")).count(), 1, "{}: {section}", page.file);
            }
            assert!(!text.contains("EXTRA") && !text.contains("<\\-\\-"), "{}", page.file);
            let links = text.split(".SH \"SEE ALSO\"\n").nth(1).unwrap().trim().split(", ");
            for link in links.filter(|link| link.starts_with("hither")) {
                let file = format!("{}.1", link.trim_end_matches("(1)").replace("\\-", "-"));
                assert!(files.contains(&file.as_str()), "{}: {link}", page.file);
            }
        }
        let main = std::str::from_utf8(&pages[0].text).unwrap();
        for line in EXAMPLE.lines() {
            assert!(main.contains(&plain(line)), "{line}");
        }
    }

    #[test]
    fn the_exit_codes_are_those_of_the_program() {
        use crate::failure::{DONE, FAILED, USAGE};
        assert_eq!(EXIT_CODES.map(|(code, _)| code), [DONE, FAILED, USAGE].map(|code| code.to_string()));
    }

    #[test]
    fn no_line_is_taken_for_a_command() {
        assert_eq!(plain(".SH"), r"\&.SH");
        assert_eq!(plain("'x"), r"\&'x");
        assert_eq!(plain(r"a \ --b"), r"a \e \-\-b");
    }
}
