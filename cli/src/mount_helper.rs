//! Being `mount.hither`: what mount(8) and fstab say, said again as the flags of `hither mount`.
//!
//! ```text
//! /lustre/proj  /mnt/proj  hither  store=/nvme/hither,capacity=500G,nosuid,_netdev  0 0
//! ```
//!
//! Options have the names of the flags, without dashes; a comma inside a value is written `\,` or in double quotes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use clap::CommandFactory;
use hither_stack::MountFlag;

use crate::args::Cli;
use crate::failure::usage;

/// How mount(8) calls us.
pub const NAMES: [&str; 2] = ["mount.hither", "mount.fuse.hither"];

/// Options that are for mount(8), systemd or nobody.
const IGNORED: &[&str] = &[
    "rw",
    "defaults",
    "auto",
    "noauto",
    "user",
    "nouser",
    "users",
    "owner",
    "group",
    "_netdev",
    "nofail",
    "suid",
    "dev",
    "exec",
    "async",
    "atime",
    "diratime",
    "norelatime",
    "nostrictatime",
    "nolazytime",
    "loud",
    "silent",
];

/// Their values do not matter either.
const IGNORED_PREFIXES: &[&str] = &["x-", "X-", "comment=", "helper=", "uhelper=", "uid=0", "gid=0"];

/// What mount(8) asks for.
#[derive(Debug, Default)]
struct Request {
    source: Option<OsString>,
    mountpoint: Option<OsString>,
    options: Vec<Vec<u8>>,
    fake: bool,
    sloppy: bool,
}

/// The arguments of `hither` that `arguments` (without the program's name) stand for; `None` if nothing is to be done.
///
/// # Errors
///
/// Wrong usage.
pub fn translate(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<Option<Vec<OsString>>> {
    let request = read(arguments)?;
    let translated = request.translate()?;
    Ok((!request.fake).then_some(translated))
}

fn read(mut arguments: impl Iterator<Item = OsString>) -> anyhow::Result<Request> {
    let mut request = Request::default();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy().into_owned();
        let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            match (&request.source, &request.mountpoint) {
                (None, _) => request.source = Some(argument),
                (Some(_), None) => request.mountpoint = Some(argument),
                _ => {
                    return Err(usage(format!(
                        "`{text}` is too much: mount.hither SOURCE DIRECTORY [-o OPTIONS]"
                    )));
                }
            }
            continue;
        };
        for (at, letter) in letters.char_indices() {
            match letter {
                'f' => request.fake = true,
                's' => request.sloppy = true,
                'n' | 'v' | 'r' | 'w' => {}
                'o' | 't' => {
                    // Its value is the rest of the word or the next one.
                    let rest = argument.as_bytes().get(at + 2..).unwrap_or_default();
                    let value = match rest {
                        [] => arguments.next().ok_or_else(|| usage(format!("-{letter} needs a value")))?,
                        rest => OsStr::from_bytes(rest).to_owned(),
                    };
                    if letter == 'o' {
                        request.options.extend(split(value.as_bytes()));
                    }
                    break;
                }
                other => return Err(usage(format!("mount.hither does not know -{other}"))),
            }
        }
        if letters.contains('r') && !letters.contains('o') && !letters.contains('t') {
            request.options.push(b"ro".to_vec());
        }
    }
    Ok(request)
}

/// Splits options at commas that are neither escaped nor in double quotes; both marks are left out.
fn split(options: &[u8]) -> Vec<Vec<u8>> {
    let mut split = vec![Vec::new()];
    let mut quoted = false;
    let mut bytes = options.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let taken = match byte {
            b'"' => {
                quoted = !quoted;
                continue;
            }
            b',' if !quoted => {
                split.push(Vec::new());
                continue;
            }
            b'\\' if bytes.peek() == Some(&b',') => bytes.next().unwrap_or(byte),
            other => other,
        };
        if let Some(last) = split.last_mut() {
            last.push(taken);
        }
    }
    split.retain(|option| !option.is_empty());
    split
}

impl Request {
    fn translate(&self) -> anyhow::Result<Vec<OsString>> {
        let (Some(source), Some(mountpoint)) = (&self.source, &self.mountpoint) else {
            return Err(usage("usage: mount.hither SOURCE DIRECTORY [-sfnv] [-o OPTIONS]"));
        };
        let source = source.as_bytes().strip_prefix(b"hither#").unwrap_or(source.as_bytes());
        let source = OsStr::from_bytes(source);
        let has = |key: &str| self.options.iter().any(|option| name(option) == key.as_bytes());
        let kind = match self.value("kind") {
            Some(kind) => kind,
            None if has("config") => OsStr::new("config"),
            None if has("store") => OsStr::new("cache"),
            None => {
                return Err(usage(
                    "where should copies be kept? Give the option store=DIR for a cached mount, kind=dir for one \
                     without a cache, or config=FILE,name=NAME",
                ));
            }
        };
        let mut arguments: Vec<OsString> = vec!["mount".into()];
        match kind.to_str() {
            Some("config") => {
                arguments.extend(self.flags("config")?);
                arguments.extend([OsString::from("--expect"), mountpoint.clone()]);
                arguments.push("--".into());
                arguments.extend(self.value("name").map(OsStr::to_owned));
            }
            Some("cache") => {
                arguments.extend(["cache".into(), "--origin".into(), source.to_owned()]);
                arguments.extend(self.flags("cache")?);
                arguments.extend(["--".into(), mountpoint.clone()]);
            }
            Some("dir") => {
                arguments.push("dir".into());
                arguments.extend(self.flags("dir")?);
                arguments.extend(["--".into(), source.to_owned(), mountpoint.clone()]);
            }
            _ => return Err(usage(format!("kind={} must be cache or dir", Path::new(kind).display()))),
        }
        Ok(arguments)
    }

    fn value(&self, key: &str) -> Option<&OsStr> {
        let start = format!("{key}=");
        self.options.iter().find_map(|option| option.strip_prefix(start.as_bytes())).map(OsStr::from_bytes)
    }

    /// The flags that the options stand for, where `kind` has them.
    fn flags(&self, kind: &str) -> anyhow::Result<Vec<OsString>> {
        let known = flag_names(kind);
        let mut flags = Vec::new();
        for option in &self.options {
            let name = String::from_utf8_lossy(name(option)).into_owned();
            let text = String::from_utf8_lossy(option);
            if ["kind", "name"].contains(&name.as_str())
                || IGNORED.contains(&text.as_ref())
                || IGNORED_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
            {
                continue;
            }
            if MountFlag::ALL.iter().any(|flag| flag.name() == text) {
                flags.push(format!("--mount-flags={text}").into());
            } else if text == "ro" {
                flags.push("--read-only".into());
            } else if known.contains(&name) {
                flags.push(OsString::from_vec([b"--", option.as_slice()].concat()));
            } else if !self.sloppy {
                return Err(usage(format!(
                    "unknown mount option `{text}` (see `hither mount {kind} --help`)"
                )));
            }
        }
        Ok(flags)
    }
}

fn name(option: &[u8]) -> &[u8] {
    option.split(|byte| *byte == b'=').next().unwrap_or_default()
}

/// The long flags of `hither mount KIND`, without those that are no option of a mount.
fn flag_names(kind: &str) -> Vec<String> {
    let command = Cli::command();
    let mount = command.find_subcommand("mount");
    let command = mount.and_then(|mount| mount.find_subcommand(kind)).or(mount);
    let flags = command.into_iter().flat_map(clap::Command::get_arguments).filter(|flag| !flag.is_hide_set());
    let names = flags.filter_map(|flag| flag.get_long()).map(str::to_owned);
    names.filter(|name| !["origin", "foreground", "help"].contains(&name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{USAGE, code_of};

    fn translated(line: &[&str]) -> Vec<String> {
        let arguments = translate(line.iter().map(OsString::from)).unwrap().unwrap();
        arguments.into_iter().map(|argument| argument.into_string().unwrap()).collect()
    }

    fn refused(line: &[&str]) -> String {
        let error = translate(line.iter().map(OsString::from)).unwrap_err();
        assert_eq!(code_of(&error), USAGE);
        error.to_string()
    }

    #[test]
    fn a_cache_from_fstab() {
        let options =
            "rw,kind=cache,store=/nvme,capacity=500G,immutable,nosuid,nodev,_netdev,x-systemd.automount,ro";
        let arguments = translated(&["/lustre/proj", "/mnt/proj", "-v", "-o", options]);
        assert_eq!(
            arguments.join(" "),
            "mount cache --origin /lustre/proj --store=/nvme --capacity=500G --immutable --mount-flags=nosuid \
             --mount-flags=nodev --read-only -- /mnt/proj"
        );
    }

    #[test]
    fn the_kind_follows_from_the_options_and_hither_may_stand_before_the_source() {
        assert_eq!(
            translated(&["hither#/a", "/m", "-ostore=/s"]).join(" "),
            "mount cache --origin /a --store=/s -- /m"
        );
        assert_eq!(translated(&["/a", "/m", "-o", "kind=dir"]).join(" "), "mount dir -- /a /m");
        assert_eq!(
            translated(&["/a", "/m", "-r", "-t", "hither", "-okind=dir"]).join(" "),
            "mount dir --read-only -- /a /m"
        );
        for options in ["rw", "stor=/s", "kindd=dir"] {
            let said = refused(&["/a", "/m", "-o", options]);
            assert!(said.contains("store=DIR") && said.contains("kind=dir"), "{said}");
        }
        let config = translated(&["proj", "/m", "-n", "-o", "config=/etc/hither.toml,name=proj,nofail"]);
        assert_eq!(config.join(" "), "mount --config=/etc/hither.toml --expect /m -- proj");
    }

    #[test]
    fn commas_in_values_are_escaped_or_quoted() {
        for options in
            [r"store=/s,rule=uid={1\,2}", r#"store=/s,rule="uid={1,2}""#, r#""store=/s","rule=uid={1,2}""#]
        {
            let arguments = translated(&["/a", "/m", "-o", options]);
            assert_eq!(arguments[4..6], ["--store=/s", "--rule=uid={1,2}"], "{options}");
        }
        assert!(split(b",,").is_empty());
        assert_eq!(split(b"a\\b\\"), [b"a\\b\\"]);
    }

    #[test]
    fn what_is_translated_is_understood_by_the_command_line() {
        use clap::Parser;
        for options in
            ["store=/s,revalidate=60,metrics=9101,noatime,passthrough=off,quota=projid 1=5G", "config=/c"]
        {
            let mut line = vec!["hither".to_owned()];
            line.extend(translated(&["/a", "/m", "-o", options]));
            Cli::try_parse_from(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        }
    }

    #[test]
    fn wrong_usage_is_named_unless_sloppy() {
        assert!(refused(&["/a", "/m", "-o", "store=/s,revalidat=1"]).contains("`revalidat=1`"));
        assert!(refused(&["/a", "/m", "-o", "kind=dir,foreground"]).contains("`foreground`"));
        assert!(refused(&["/a", "/m", "-o", "store=/s,detached"]).contains("`detached`"));
        assert!(
            refused(&["/a", "/m", "-o", "kind=dir,revalidate=1"]).contains("unknown"),
            "a dir has no such flag"
        );
        assert!(refused(&["/a", "/m", "-o", "kind=disk"]).contains("cache or dir"));
        assert!(refused(&["/a"]).contains("usage"));
        assert!(refused(&["/a", "/m", "/x"]).contains("too much"));
        assert!(refused(&["/a", "/m", "-o"]).contains("needs a value"));
        assert!(refused(&["/a", "/m", "-N", "1"]).contains("-N"));
        let sloppy = translated(&["/a", "/m", "-s", "-o", "unheard=of,kind=dir"]);
        assert_eq!(sloppy.join(" "), "mount dir -- /a /m");
    }

    #[test]
    fn a_fake_mount_does_nothing_but_is_checked() {
        assert!(translate(["/a", "/m", "-f", "-okind=dir"].iter().map(OsString::from)).unwrap().is_none());
        assert!(refused(&["/a", "/m", "-f", "-o", "kind=dir,nonsense"]).contains("nonsense"));
    }
}
