//! Where tests run: a fresh directory on tmpfs and, as root, on an ext4 image, served in each mode of finding nodes.

use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use hither_dir::{Dir, Handles, Options};

/// A directory that is served, and its path on the host.
pub struct Ground {
    pub dir: Arc<Dir>,
    pub what: String,
    temp: tempfile::TempDir,
}

impl Ground {
    pub fn on(below: &Path, options: Options) -> Self {
        let temp = tempfile::tempdir_in(below).unwrap();
        let what = format!("{} {options:?}", below.display());
        Ground { dir: Dir::open(temp.path(), options).unwrap(), what, temp }
    }

    pub fn root(&self) -> &Path {
        self.temp.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }
}

/// Runs a test on every ground: tmpfs and ext4, with and without handles, with many descriptors and with one.
pub fn on_each(test: impl Fn(&Ground)) {
    on_each_with(Options::default(), test);
}

pub fn on_each_with(options: Options, test: impl Fn(&Ground)) {
    let mut grounds = vec![PathBuf::from("/dev/shm")];
    grounds.extend(ext4().map(Path::to_owned));
    for below in &grounds {
        for handles in [Handles::Auto, Handles::Never] {
            for descriptors in [4096, 1] {
                let ground = Ground::on(below, Options { handles, descriptors, ..options.clone() });
                eprintln!("on {}", ground.what);
                test(&ground);
            }
        }
    }
}

/// A mounted ext4 image, shared by the tests of this process; `None` (and a line that says so) for an ordinary user or
/// where the tools are missing.
pub fn ext4() -> Option<&'static Path> {
    static EXT4: OnceLock<Option<PathBuf>> = OnceLock::new();
    EXT4.get_or_init(|| {
        let mounted = mount_ext4();
        if let Err(why) = &mounted {
            eprintln!("skipped: no ext4 ({why})");
        }
        mounted.ok()
    })
    .as_deref()
}

/// The mount is a detached one: it has no place in the tree of mounts, and it, its loop device and its image end with
/// this process, whatever becomes of the test.
fn mount_ext4() -> Result<PathBuf, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("not root".to_owned());
    }
    let image = tempfile::NamedTempFile::new_in("/dev/shm").map_err(|error| error.to_string())?;
    image.as_file().set_len(256 << 20).map_err(|error| error.to_string())?;
    let features = ["-q", "-F", "-I", "256", "-O", "project,quota"];
    run(Command::new("mkfs.ext4").args(features).arg(image.path()))?;
    let device = run(Command::new("losetup").args(["-f", "--show"]).arg(image.path()))?;
    let mounted = mount_detached(device.trim());
    // While it is in use, this only says that it may go when it no longer is.
    run(Command::new("losetup").arg("-d").arg(device.trim()))?;
    let fd = mounted.map_err(|errno| format!("mount of {device}: {errno}"))?;
    Ok(PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), fd.into_raw_fd())))
}

fn mount_detached(device: &str) -> rustix::io::Result<OwnedFd> {
    use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
    let context = rustix::mount::fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "source", device)?;
    rustix::mount::fsconfig_create(context.as_fd())?;
    rustix::mount::fsmount(context.as_fd(), FsMountFlags::empty(), MountAttrFlags::empty())
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}
