//! Where tests run: a fresh directory on tmpfs and, as root, on an ext4 image, served in each mode of finding nodes.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use hither_vfs::{Call, DirEntry, DirSink, Entry, Errno, FileKind, Handle, Node, Result as VfsResult};

use hither_dir::{Dir, Handles, Options};

/// A directory that is served, and its path on the host.
pub struct Ground {
    pub dir: Arc<Dir>,
    pub options: Options,
    temp: tempfile::TempDir,
    /// As the kernel shows it for descriptors.
    real: PathBuf,
}

impl Ground {
    pub fn on(below: &Path, options: Options) -> Self {
        let temp = tempfile::tempdir_in(below).unwrap();
        let fd = std::fs::File::open(temp.path()).unwrap();
        let real = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap();
        Ground { dir: Dir::open(temp.path(), options.clone()).unwrap(), options, temp, real }
    }

    pub fn root(&self) -> &Path {
        self.temp.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// All names of a directory, the dots too.
    pub fn names(&self, of: &Arc<dyn Node>) -> Vec<OsString> {
        let mut list = List::default();
        of.opendir(&Call::own()).unwrap().read(&Call::own(), 0, false, &mut list).unwrap();
        list.entries.into_iter().map(|entry| entry.name).collect()
    }

    /// How many descriptors this process has that lead below the directory.
    pub fn descriptors(&self) -> usize {
        let fds = std::fs::read_dir("/proc/self/fd").unwrap();
        let leads = |link: std::io::Result<PathBuf>| link.is_ok_and(|link| link.starts_with(&self.real));
        fds.filter(|fd| leads(std::fs::read_link(fd.as_ref().unwrap().path()))).count()
    }
}

/// Runs a test on every ground: tmpfs and ext4, with and without handles, with many descriptors and with one.
pub fn on_each(test: impl Fn(&Ground)) {
    on_each_with(Options::default(), test);
}

pub fn on_each_with(options: Options, test: impl Fn(&Ground)) {
    let mut grounds = vec![PathBuf::from("/dev/shm")];
    grounds.extend(["ext4", "xfs", "btrfs"].into_iter().filter_map(image));
    for below in &grounds {
        for handles in [Handles::Auto, Handles::Never] {
            for descriptors in [4096, 1] {
                let ground = Ground::on(below, Options { handles, descriptors, ..options.clone() });
                eprintln!("on {}: {handles:?} handles, {descriptors} descriptors", below.display());
                test(&ground);
            }
        }
    }
}

/// A file system of that type on an image, one for all tests of this process; `None` (and a line that says so) for an
/// ordinary user, or where the kernel or the tools do not know it.
pub fn image(fs: &'static str) -> Option<PathBuf> {
    static IMAGES: Mutex<BTreeMap<&str, Option<PathBuf>>> = Mutex::new(BTreeMap::new());
    let mut images = IMAGES.lock().unwrap();
    let made = images.entry(fs).or_insert_with(|| match why_not(fs) {
        None => Some(mount_image(fs).unwrap_or_else(|why| panic!("{fs}: {why}"))),
        Some(why) => {
            eprintln!("skipped on {fs}: {why}");
            None
        }
    });
    made.clone()
}

fn why_not(fs: &str) -> Option<&'static str> {
    let known = std::fs::read_to_string("/proc/filesystems").unwrap();
    if !rustix::process::geteuid().is_root() {
        Some("not root")
    } else if !known.lines().any(|line| line.split_whitespace().last() == Some(fs)) {
        Some("the kernel does not have it")
    } else if Command::new(format!("mkfs.{fs}")).arg("-V").output().is_err() {
        Some("there is no mkfs for it")
    } else {
        None
    }
}

/// The mount is a detached one: it has no place in the tree of mounts, and it, its loop device and its image end with
/// this process, whatever becomes of the test.
fn mount_image(fs: &str) -> Result<PathBuf, String> {
    let image = tempfile::NamedTempFile::new_in("/dev/shm").map_err(|error| error.to_string())?;
    image.as_file().set_len(320 << 20).map_err(|error| error.to_string())?;
    run(Command::new(format!("mkfs.{fs}")).arg("-q").arg(image.path()))?;
    let device = run(Command::new("losetup").args(["-f", "--show"]).arg(image.path()))?;
    let mounted = mount_detached(fs, device.trim());
    // While it is in use, this only says that it may go when it no longer is.
    run(Command::new("losetup").arg("-d").arg(device.trim()))?;
    let fd = mounted.map_err(|errno| format!("mount of {device}: {errno}"))?;
    Ok(PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), fd.into_raw_fd())))
}

fn mount_detached(fs: &str, device: &str) -> rustix::io::Result<OwnedFd> {
    use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
    let context = rustix::mount::fsopen(fs, FsOpenFlags::FSOPEN_CLOEXEC)?;
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

/// A name.
pub fn name(of: &str) -> &OsStr {
    OsStr::new(of)
}

/// The errno of a call that must fail.
pub fn failed<T>(result: VfsResult<T>) -> Errno {
    match result {
        Ok(_) => panic!("the call succeeded"),
        Err(error) => error.errno(),
    }
}

/// All bytes of an open file.
pub fn whole(handle: &dyn Handle) -> Vec<u8> {
    let (mut bytes, mut buf) = (Vec::new(), vec![0; 1 << 20]);
    loop {
        match handle.read(&Call::own(), &mut buf, bytes.len() as u64).unwrap() {
            0 => return bytes,
            count => bytes.extend(&buf[..count]),
        }
    }
}

/// An ACL as the kernel wants it: version, then for each entry its tag, permissions and id.
pub fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// Takes entries until it has `room` of them.
pub struct List {
    pub entries: Vec<Listed>,
    pub room: usize,
}

pub struct Listed {
    pub name: OsString,
    pub ino: u64,
    pub kind: FileKind,
    pub next: u64,
    pub found: Option<Entry>,
}

impl Default for List {
    fn default() -> Self {
        List { entries: Vec::new(), room: usize::MAX }
    }
}

impl List {
    pub fn get(&self, name: &str) -> &Listed {
        self.entries.iter().find(|entry| entry.name == name).unwrap()
    }
}

impl DirSink for List {
    fn entry(&mut self, entry: DirEntry<'_>, found: Option<Entry>) -> bool {
        if self.entries.len() == self.room {
            return false;
        }
        let DirEntry { name, ino, kind, next } = entry;
        self.entries.push(Listed { name: name.to_owned(), ino, kind, next, found });
        true
    }
}
