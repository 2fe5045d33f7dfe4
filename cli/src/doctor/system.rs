//! The kernel and the programs and files around FUSE.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rustix::process::geteuid;

use super::Finding;
use crate::output;

/// The first kernel with FUSE passthrough.
const PASSTHROUGH_SINCE: (u32, u32) = (6, 9);

/// Looks at everything that needs no mount.
pub fn look() -> Vec<Finding> {
    vec![device(), kernel(), io_uring(), helper(), allow_other()]
}

fn device() -> Finding {
    const NAME: &str = "/dev/fuse";
    match OpenOptions::new().read(true).write(true).open(NAME) {
        Ok(_) => Finding::yes(NAME, "can be opened").needed(),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let advice = "users need access to the device: chmod 666 /dev/fuse (root; udev does it where it runs)";
            Finding::no(NAME, error.to_string(), advice).needed()
        }
        Err(error) => Finding::no(
            NAME,
            error.to_string(),
            "nothing can be mounted without it: load the module (modprobe fuse), or give the container the device \
             (docker run --device /dev/fuse --cap-add SYS_ADMIN)",
        )
        .needed(),
    }
}

fn kernel() -> Finding {
    const NAME: &str = "kernel";
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    match version(&release) {
        Some(version) if version < PASSTHROUGH_SINCE => Finding::no(
            NAME,
            release,
            "Linux 6.9 or later lets the kernel read cached files by itself; until then the daemon serves them",
        ),
        _ => Finding::yes(NAME, release),
    }
}

/// `6.18.44-x` is 6.18.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The module parameter that lets daemons have FUSE requests over io_uring.
const URING_SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";

fn io_uring() -> Finding {
    const NAME: &str = "FUSE over io_uring";
    if let Err(error) = hither_sys::fuse_ring::may_have_rings() {
        let advice = "small requests are served faster with it: sysctl kernel.io_uring_disabled=0; in a \
                      container the seccomp profile must allow it";
        return Finding::no(NAME, format!("this process may not use io_uring: {error}"), advice);
    }
    match is_switched_on() {
        Ok(true) => Finding::yes(NAME, "switched on"),
        Ok(false) => Finding::no(
            NAME,
            "switched off",
            "small requests are served faster with it: hither doctor --fix (root) switches it on until the next \
             boot, the line `options fuse enable_uring=1` in /etc/modprobe.d/fuse.conf for good",
        ),
        Err(_) => {
            Finding::no(NAME, "the kernel has none", "small requests are served faster with it: Linux 6.14")
        }
    }
}

fn is_switched_on() -> io::Result<bool> {
    Ok(matches!(fs::read_to_string(URING_SWITCH)?.trim(), "Y" | "1"))
}

/// Switches on what can be switched on.
pub fn fix() -> anyhow::Result<()> {
    if let Ok(true) = is_switched_on() {
        return Ok(());
    }
    match fs::write(URING_SWITCH, "Y") {
        Ok(()) => Ok(output::line("switched on FUSE over io_uring; mounts made from now on have it")?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            anyhow::bail!(
                "this kernel has no FUSE over io_uring (Linux 6.14), or the module is not loaded: modprobe fuse"
            )
        }
        Err(error) => Err(error).with_context(|| format!("cannot write to {URING_SWITCH} (only root can)")),
    }
}

fn helper() -> Finding {
    const NAME: &str = "fusermount3";
    let needed = !geteuid().is_root();
    let advice =
        "users other than root need it to mount: install it (Debian: apt install fuse3), set-user-id root";
    let finding = match in_path(NAME) {
        None => Finding::no(NAME, "not found", advice),
        Some(path) => match fs::metadata(&path) {
            Ok(found) if found.permissions().mode() & 0o4000 != 0 => {
                Finding::yes(NAME, path.display().to_string())
            }
            Ok(_) => Finding::no(NAME, format!("{} is not set-user-id", path.display()), advice),
            Err(error) => Finding::no(NAME, format!("{}: {error}", path.display()), advice),
        },
    };
    if needed { finding.needed() } else { finding }
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|path| path.is_file())
}

fn allow_other() -> Finding {
    const NAME: &str = "user_allow_other";
    const FILE: &str = "/etc/fuse.conf";
    let text = fs::read_to_string(FILE).unwrap_or_default();
    if text.lines().any(|line| line.trim() == NAME) {
        return Finding::yes(NAME, format!("set in {FILE}"));
    }
    let found =
        if Path::new(FILE).exists() { "not set in /etc/fuse.conf" } else { "there is no /etc/fuse.conf" };
    Finding::no(
        NAME,
        found,
        "--allow-other needs it where it is not root that mounts: add the line user_allow_other to /etc/fuse.conf",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_every_style_have_a_version() {
        assert_eq!(version("6.18.44"), Some((6, 18)));
        assert_eq!(version("5.14.0-427.el9.x86_64"), Some((5, 14)));
        assert_eq!(version("6.9-rc1"), Some((6, 9)));
        assert_eq!(version("odd"), None);
        assert!(version("6.10.0") > Some(PASSTHROUGH_SINCE));
    }
}
