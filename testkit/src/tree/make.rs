//! Making a tree from a seed: the same seed and shape make the same tree, whatever the machine.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, RngCore, SeedableRng};
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};

/// What a tree is to be like.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Files, links and special files together.
    pub entries: usize,
    /// Directories, besides the root.
    pub directories: usize,
    /// How deep directories nest at most.
    pub depth: usize,
    /// Bytes of the largest file. Sizes are spread over orders of magnitude: most files are small.
    pub largest_bytes: u64,
    /// Names of any bytes, some 255 bytes long; otherwise letters and digits.
    pub odd_names: bool,
    /// Symbolic links, hard links, FIFOs; files with holes.
    pub odd_files: bool,
    /// Extended attributes of the `user` namespace on some files and directories.
    pub xattrs: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Shape {
            entries: 300,
            directories: 30,
            depth: 6,
            largest_bytes: 1 << 20,
            odd_names: true,
            odd_files: true,
            xattrs: true,
        }
    }
}

/// What was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Regular files, by their paths below the root. Hard links are counted once.
    pub files: Vec<PathBuf>,
    /// Bytes of all regular files.
    pub bytes: u64,
    /// Everything but the root.
    pub entries: usize,
}

/// Permission bits that leave the owner the right to read.
const MODES: [u32; 5] = [0o644, 0o600, 0o755, 0o444, 0o640];

/// When files were changed last, in seconds since 1970: some day of this range.
const TIMES: std::ops::Range<i64> = 1_000_000_000..1_700_000_000;

struct Maker<'a> {
    root: &'a Path,
    shape: &'a Shape,
    random: StdRng,
    made: Made,
    /// Directories by depth: paths below the root.
    directories: Vec<(usize, PathBuf)>,
    serial: usize,
}

/// Makes a tree in a directory, which is made too if it is not there (and must be empty if it is).
pub fn make(root: &Path, seed: u64, shape: &Shape) -> io::Result<Made> {
    fs::create_dir_all(root)?;
    if fs::read_dir(root)?.next().is_some() {
        return Err(io::Error::other(format!("{} is not empty", root.display())));
    }
    let random = StdRng::seed_from_u64(seed);
    let directories = vec![(0, PathBuf::new())];
    let mut maker = Maker { root, shape, random, made: Made::default(), directories, serial: 0 };
    for _ in 0..shape.directories {
        maker.directory()?;
    }
    for _ in 0..shape.entries {
        maker.entry()?;
    }
    maker.finish_directories()?;
    Ok(maker.made)
}

impl Maker<'_> {
    fn directory(&mut self) -> io::Result<()> {
        let deepest = self.shape.depth;
        let able: Vec<usize> =
            (0..self.directories.len()).filter(|index| self.directories[*index].0 < deepest).collect();
        let Some(parent) = able.choose(&mut self.random) else { return Ok(()) };
        let (depth, parent) = self.directories[*parent].clone();
        let path = parent.join(self.name());
        fs::create_dir(self.root.join(&path))?;
        self.maybe_xattrs(&path)?;
        self.directories.push((depth + 1, path));
        self.made.entries += 1;
        Ok(())
    }

    fn entry(&mut self) -> io::Result<()> {
        let parent = self.random.random_range(0..self.directories.len());
        let name = self.name();
        let path = self.directories[parent].1.join(name);
        self.made.entries += 1;
        match self.random.random_range(0..20) {
            0 if self.shape.odd_files => self.symlink(&path),
            1 if self.shape.odd_files && !self.made.files.is_empty() => self.hard_link(&path),
            2 if self.shape.odd_files => self.fifo(&path),
            3 if self.shape.odd_files => self.sparse_file(&path),
            _ => self.file(&path),
        }
    }

    /// A name that no other entry has: it ends with a serial number.
    fn name(&mut self) -> OsString {
        self.serial += 1;
        let serial = format!("{}", self.serial).into_bytes();
        let mut name: Vec<u8> = match self.random.random_range(0..10) {
            0 if self.shape.odd_names => (0..255 - serial.len()).map(|_| self.byte()).collect(),
            1..4 if self.shape.odd_names => (0..10).map(|_| self.byte()).collect(),
            _ => (0..8).map(|_| self.random.random_range(b'a'..=b'z')).collect(),
        };
        name.extend(serial);
        OsString::from_vec(name)
    }

    /// Any byte that may be in a name.
    fn byte(&mut self) -> u8 {
        loop {
            let byte = self.random.random();
            if byte != 0 && byte != b'/' {
                return byte;
            }
        }
    }

    /// Each order of magnitude is equally likely; one file in ten is empty.
    fn size(&mut self) -> u64 {
        if self.random.random_ratio(1, 10) {
            return 0;
        }
        let bits = u64::BITS - self.shape.largest_bytes.leading_zeros();
        let limit = 1u64.checked_shl(self.random.random_range(0..=bits)).unwrap_or(u64::MAX);
        self.random.random_range(0..limit.max(2)).min(self.shape.largest_bytes)
    }

    fn file(&mut self, path: &Path) -> io::Result<()> {
        let size = self.size();
        let mut file = io::BufWriter::new(fs::File::create_new(self.root.join(path))?);
        // Half text that compresses, half bytes that do not.
        let text = self.random.random_bool(0.5);
        let (mut left, mut block) = (size, vec![0; 64 * 1024]);
        while left > 0 {
            let piece = left.min(block.len() as u64) as usize;
            self.random.fill_bytes(&mut block[..piece]);
            if text {
                block[..piece].iter_mut().for_each(|byte| *byte = b'a' + *byte % 16);
            }
            file.write_all(&block[..piece])?;
            left -= piece as u64;
        }
        file.into_inner().map_err(io::IntoInnerError::into_error)?;
        self.finish_file(path, size)
    }

    fn sparse_file(&mut self, path: &Path) -> io::Result<()> {
        use std::os::unix::fs::FileExt;
        let file = fs::File::create_new(self.root.join(path))?;
        let size = self.size();
        file.set_len(size)?;
        for _ in 0..3 {
            let offset = self.random.random_range(0..size.max(1));
            let length = 100.min(size - offset.min(size));
            file.write_all_at(&vec![b'x'; length as usize], offset)?;
        }
        self.finish_file(path, size)
    }

    fn finish_file(&mut self, path: &Path, size: u64) -> io::Result<()> {
        self.maybe_xattrs(path)?;
        let mode = MODES.choose(&mut self.random).copied().unwrap_or(0o644);
        rustix::fs::chmod(self.root.join(path), Mode::from_raw_mode(mode))?;
        self.set_time(path)?;
        self.made.files.push(path.to_owned());
        self.made.bytes += size;
        Ok(())
    }

    fn symlink(&mut self, path: &Path) -> io::Result<()> {
        let target = match self.made.files.choose(&mut self.random) {
            // Up to the root and down again: right wherever the tree is.
            Some(file) if self.random.random_bool(0.7) => {
                let up = path.components().count() - 1;
                (0..up).map(|_| Path::new("..")).collect::<PathBuf>().join(file)
            }
            _ => PathBuf::from(self.name()),
        };
        std::os::unix::fs::symlink(target, self.root.join(path))?;
        self.set_time(path)
    }

    fn hard_link(&mut self, path: &Path) -> io::Result<()> {
        let Some(file) = self.made.files.choose(&mut self.random) else { return Ok(()) };
        fs::hard_link(self.root.join(file), self.root.join(path))
    }

    fn fifo(&mut self, path: &Path) -> io::Result<()> {
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, self.root.join(path), FileType::Fifo, mode, 0)?;
        self.set_time(path)
    }

    fn maybe_xattrs(&mut self, path: &Path) -> io::Result<()> {
        if !self.shape.xattrs || !self.random.random_ratio(1, 5) {
            return Ok(());
        }
        for index in 0..self.random.random_range(1..4) {
            let mut value = vec![0; self.random.random_range(0..200)];
            self.random.fill_bytes(&mut value);
            let name = format!("user.test.{index}");
            rustix::fs::lsetxattr(self.root.join(path), name, &value, XattrFlags::empty())?;
        }
        Ok(())
    }

    fn set_time(&mut self, path: &Path) -> io::Result<()> {
        let sec = self.random.random_range(TIMES);
        let time = Timespec { tv_sec: sec, tv_nsec: self.random.random_range(0..1_000_000_000) };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, self.root.join(path), &times, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(())
    }

    /// Times of directories come last, since every entry moves them.
    fn finish_directories(&mut self) -> io::Result<()> {
        for (_, path) in std::mem::take(&mut self.directories) {
            self.set_time(&path)?;
        }
        Ok(())
    }
}
