//! The command line: that it is sound, that its flags and the keys of a file are the same, that help helps.

use std::collections::BTreeSet;

use clap::CommandFactory;
use hither_stack::config::keys_of;
use hither_stack::units::Period;
use hither_stack::{CacheConfig, CacheSettings, DirConfig, FsConfig, MountConfig, MountOptions};

use super::*;

fn command(path: &[&str]) -> clap::Command {
    let mut command = Cli::command();
    command.build();
    path.iter().fold(command, |command, name| command.find_subcommand(name).expect(name).clone())
}

#[test]
fn the_definitions_are_sound() {
    Cli::command().debug_assert();
}

/// Every key of a file has its flag and every flag its key: one way to say a thing.
#[test]
fn flags_and_keys_are_the_same() {
    let flags = |kind: &str| -> BTreeSet<String> {
        let command = command(&["mount", kind]);
        let flags =
            command.get_arguments().filter(|flag| !flag.is_hide_set()).filter_map(|flag| flag.get_long());
        flags.filter(|flag| !["help", "foreground"].contains(flag)).map(str::to_owned).collect()
    };
    let keys = |keys: &[&[&str]]| -> BTreeSet<String> {
        // One rule a flag, but a list of them in a file.
        keys.concat().into_iter().map(|key| if key == "rules" { "rule" } else { key }.to_owned()).collect()
    };
    let options = keys_of::<MountOptions>();
    assert!(options.len() > 5, "{options:?}");
    assert_eq!(flags("cache"), keys(&[&["origin"], options, keys_of::<CacheSettings>()]));
    // Its source is an argument.
    let mut dir = keys(&[options, keys_of::<DirConfig>()]);
    assert!(dir.remove("source"));
    assert_eq!(flags("dir"), dir);
}

#[test]
fn every_command_and_flag_has_help() {
    fn check(command: &clap::Command) {
        assert!(command.get_about().is_some(), "{}", command.get_name());
        for flag in command.get_arguments().filter(|flag| !flag.is_hide_set()) {
            assert!(flag.get_help().is_some(), "{} {:?}", command.get_name(), flag.get_id());
        }
        command.get_subcommands().for_each(check);
    }
    check(&command(&[]));
}

#[test]
fn help_begins_with_an_example_that_is_right() {
    let help = command(&[]).render_help().to_string();
    let examples: Vec<&str> = help.lines().filter(|line| line.starts_with("  hither ")).collect();
    assert_eq!(examples.len(), 3, "{help}");
    for example in examples {
        let words = example.split('#').next().unwrap().split_whitespace();
        Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{example}: {error}"));
    }
}

/// What help says of a default is what happens without the flag.
#[test]
fn help_tells_the_true_defaults() {
    let command = command(&["mount", "cache"]);
    let told = |flag: &str| {
        let found = command.get_arguments().find(|other| other.get_long() == Some(flag));
        let help = found.and_then(|flag| flag.get_help()).unwrap().to_string();
        help.rsplit_once("[default: ").unwrap().1.trim_end_matches(['.', ']']).to_owned()
    };
    let settings = CacheSettings::new("/s".into());
    let options = settings.to_options(String::new(), [0; 16]);
    assert_eq!(told("revalidate"), Period(options.revalidate).to_string());
    assert_eq!(told("settle"), settings.settle.to_string());
    assert_eq!(told("whole-file"), settings.whole_file.to_string());
    assert_eq!(told("high-water"), settings.high_water.to_string());
    assert_eq!(told("low-water"), settings.low_water.to_string());
    assert_eq!(told("min-free"), settings.min_free.to_string());
    assert_eq!(told("sync-every"), settings.sync_every.to_string());
    assert_eq!(told("fetches"), settings.fetches.to_string());
    let fs = FsConfig::Cache(Box::new(CacheConfig {
        origin: FsConfig::Dir(DirConfig { source: "/o".into() }),
        settings,
    }));
    let mount = MountConfig { mountpoint: "/m".into(), options: MountOptions::default(), fs };
    let deadline = Period(mount.deadline().unwrap()).to_string();
    assert_eq!(told("origin-timeout"), format!("{deadline} with a cache, else inf"));
}

/// Commands that the documents show can be typed as they are.
#[test]
fn the_commands_of_the_documents_are_right() {
    let mut commands = 0;
    for text in [include_str!("../../../README.md"), include_str!("../../../docs/CONFIG.md")] {
        for line in text.lines().filter(|line| line.starts_with("hither ")) {
            let words = line.split(['#', '>']).next().unwrap().split_whitespace();
            Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
            commands += 1;
        }
    }
    assert!(commands >= 6, "{commands}");
}
