//! A directory that is to be an origin or a store: what its file system can do.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use hither_stack::units::Size;
use hither_sys::handles::FileHandle;
use hither_sys::lease::ReadLease;
use hither_sys::project::project_id;
use rustix::fs::{XattrFlags, fsetxattr, getxattr, ioctl_ficlone, statvfs};
use rustix::io::Errno;

use super::Finding;

const XATTR: &str = "user.hither.probe";

/// Looks at a directory, and tries what leaves a trace on files of our own that are removed again.
pub fn look(path: &Path) -> Vec<Finding> {
    let mut findings = match File::open(path).and_then(|file| Ok((file.metadata()?.is_dir(), file))) {
        Err(error) => vec![
            Finding::no("directory", error.to_string(), "name one that exists and that you may read")
                .needed(),
        ],
        Ok((false, _)) => vec![Finding::no("directory", "is none", "name a directory").needed()],
        Ok((true, directory)) => {
            let mut findings = vec![space(path), handles(&directory), projects(&directory)];
            findings.extend(files(path));
            findings
        }
    };
    for finding in &mut findings {
        finding.directory = Some(path.display().to_string());
    }
    findings
}

fn space(path: &Path) -> Finding {
    match statvfs(path) {
        Ok(told) => {
            let (free, all) = (told.f_bavail * told.f_frsize, told.f_blocks * told.f_frsize);
            Finding::yes("space", format!("{} free of {}", Size(free), Size(all)))
        }
        Err(error) => Finding::no("space", error.to_string(), "the file system does not tell"),
    }
}

fn handles(directory: &File) -> Finding {
    match FileHandle::of(directory.as_fd()) {
        Ok(_) => Finding::yes("file handles", "files are known for ever, whatever they are called"),
        Err(error) => Finding::no(
            "file handles",
            error.to_string(),
            "as an origin: files are known by path and number, and one that is renamed there is fetched anew",
        ),
    }
}

fn projects(directory: &File) -> Finding {
    match project_id(directory.as_fd()) {
        Ok(Some(id)) => Finding::yes("project ids", format!("that of this directory is {id}")),
        Ok(None) => Finding::no(
            "project ids",
            "none",
            "as an origin: rules on projid and quotas have nothing to go by; use path={...} instead",
        ),
        Err(error) => {
            Finding::no("project ids", error.to_string(), "rules on projid and quotas will not work")
        }
    }
}

/// What can only be tried on a file.
fn files(path: &Path) -> Vec<Finding> {
    let probe = match Probe::new(path) {
        Ok(probe) => probe,
        Err(error) => {
            let advice = "as a store it must be writable; as an origin it need not be";
            return vec![Finding::no("writing", error.to_string(), advice), xattrs_read_only(path)];
        }
    };
    vec![Finding::yes("writing", "works"), xattrs(&probe.file), leases(&probe.path), reflinks(&probe)]
}

fn xattrs_read_only(path: &Path) -> Finding {
    let mut value = [0; 16];
    xattr_finding(match getxattr(path, XATTR, &mut value[..]) {
        Ok(_) | Err(Errno::NODATA) => Ok(()),
        Err(error) => Err(error),
    })
}

fn xattrs(file: &File) -> Finding {
    xattr_finding(fsetxattr(file, XATTR, b"1", XattrFlags::empty()))
}

fn xattr_finding(tried: rustix::io::Result<()>) -> Finding {
    match tried {
        Ok(()) => Finding::yes("extended attributes", "work"),
        Err(error) => Finding::no(
            "extended attributes",
            error.to_string(),
            "as an origin: programs that set them get the same error through the mount",
        ),
    }
}

/// A store tells by a lease whether a program that outlived a killed daemon still writes to a copy.
fn leases(path: &Path) -> Finding {
    let taken = File::open(path).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    match taken.and_then(ReadLease::take) {
        Ok(Some(_)) => Finding::yes("leases", "work"),
        Ok(None) => Finding::no("leases", "somebody writes to a file that was just made", "what is it?"),
        Err(error) => Finding::no(
            "leases",
            error.to_string(),
            "as a store: copies of a daemon that was killed are not trusted and fetched anew; use a local disk",
        ),
    }
}

fn reflinks(probe: &Probe) -> Finding {
    let cloned = probe.sibling().and_then(|(_keep, file)| Ok(ioctl_ficlone(&file, &probe.file)?));
    match cloned {
        Ok(()) => Finding::yes("reflinks", "work"),
        Err(error) => Finding::no("reflinks", error.to_string(), "not used by this version").unused(),
    }
}

/// A file of our own; removed when dropped.
struct Probe {
    path: PathBuf,
    file: File,
}

impl Probe {
    fn new(directory: &Path) -> io::Result<Self> {
        let path = directory.join(format!(".hither-doctor-{:x}", hither_rt::random::u64()));
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        let written = file.write_all(&[1; 4096]);
        // A lease is refused while anybody has the file open for writing, also us.
        let reopened = written.and_then(|()| File::open(&path));
        match reopened {
            Ok(file) => Ok(Probe { path, file }),
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// An empty file beside it, open for writing.
    fn sibling(&self) -> io::Result<(Probe, File)> {
        let probe = Probe::new(self.path.parent().unwrap_or(Path::new(".")))?;
        let file = OpenOptions::new().write(true).truncate(true).open(&probe.path)?;
        Ok((probe, file))
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
