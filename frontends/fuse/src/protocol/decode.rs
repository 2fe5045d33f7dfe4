//! Requests, read in place: fixed parts by value, names and bytes borrowed from the buffer. Total: any bytes give a
//! request or a reason, never a panic. What is unknown is kept as a number, to be answered with ENOSYS.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::abi::{
    AccessIn, BatchForgetIn, CopyFileRangeIn, CreateIn, EXT_GROUPS, ExtHeader, FallocateIn, FlushIn,
    ForgetIn, ForgetOne, FsyncIn, GetattrIn, GetxattrIn, InHeader, InitInShort, InterruptIn, IoctlIn, LinkIn,
    LkIn, LseekIn, MkdirIn, MknodIn, OpenIn, ReadIn, ReleaseIn, Rename2In, RenameIn, SetattrIn, SetxattrIn,
    SetxattrInShort, StatxIn, WriteIn, init_flags, opcode,
};
use super::wire::{Pad, Wire};

/// Names longer than this are never asked for by a kernel (`FUSE_NAME_MAX`).
const NAME_MAX: usize = 1024;
/// Extended attribute names (`XATTR_NAME_MAX`).
const XATTR_NAME_MAX: usize = 255;

/// A message as it came: `/dev/fuse` gives it in one piece, io_uring gives the fixed part of the operation apart from
/// what follows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    header: &'a [u8],
    fixed: Option<&'a [u8]>,
    rest: &'a [u8],
}

impl<'a> Message<'a> {
    /// A message in one piece.
    pub(crate) fn whole(bytes: &'a [u8]) -> Self {
        let (header, rest) = bytes.split_at(bytes.len().min(InHeader::SIZE));
        Message { header, fixed: None, rest }
    }

    /// Its header, if it is long enough.
    pub(crate) fn header(&self) -> Option<InHeader> {
        InHeader::take(&mut { self.header })
    }

    /// A message whose operation's fixed part, with any bytes behind it, came apart from what follows.
    pub(crate) fn apart(header: &'a [u8], fixed: &'a [u8], rest: &'a [u8]) -> Self {
        Message { header, fixed: Some(fixed), rest }
    }
}

/// What the first exchange settled about the form of requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dialect {
    /// SETXATTR has the longer structure.
    pub(crate) setxattr_ext: bool,
}

/// Why a message is no request. The header is there if it could be read, so that it can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) Option<InHeader>);

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request<'a> {
    pub(crate) header: InHeader,
    pub(crate) operation: Operation<'a>,
    /// A supplementary group of the caller that decides what may be created (`FUSE_CREATE_SUPP_GROUP`).
    pub(crate) group: Option<u32>,
}

/// What is asked. Names are those of the opcodes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation<'a> {
    Init {
        major: u32,
        minor: u32,
        max_readahead: u32,
        flags: u64,
    },
    Destroy,
    Interrupt {
        unique: u64,
    },
    Forget {
        count: u64,
    },
    BatchForget {
        nodes: Forgets<'a>,
    },
    Lookup {
        name: &'a OsStr,
    },
    Getattr(GetattrIn),
    Statx(StatxIn),
    Setattr(SetattrIn),
    Readlink,
    Symlink {
        name: &'a OsStr,
        target: &'a OsStr,
    },
    Mknod {
        name: &'a OsStr,
        args: MknodIn,
    },
    Mkdir {
        name: &'a OsStr,
        args: MkdirIn,
    },
    Unlink {
        name: &'a OsStr,
    },
    Rmdir {
        name: &'a OsStr,
    },
    Rename {
        name: &'a OsStr,
        new_parent: u64,
        new_name: &'a OsStr,
        flags: u32,
    },
    Link {
        node: u64,
        name: &'a OsStr,
    },
    Open(OpenIn),
    Create {
        name: &'a OsStr,
        args: CreateIn,
    },
    Tmpfile {
        args: CreateIn,
    },
    Read(ReadIn),
    Write {
        args: WriteIn,
        data: &'a [u8],
    },
    Flush(FlushIn),
    Release(ReleaseIn),
    Fsync(FsyncIn),
    Fallocate(FallocateIn),
    Lseek(LseekIn),
    CopyFileRange {
        args: CopyFileRangeIn,
        wide: bool,
    },
    Opendir(OpenIn),
    Readdir {
        args: ReadIn,
        plus: bool,
    },
    Releasedir(ReleaseIn),
    Fsyncdir(FsyncIn),
    Statfs,
    Syncfs,
    Access {
        mask: u32,
    },
    Getxattr {
        name: &'a OsStr,
        size: u32,
    },
    Setxattr {
        name: &'a OsStr,
        value: &'a [u8],
        args: SetxattrIn,
    },
    Listxattr {
        size: u32,
    },
    Removexattr {
        name: &'a OsStr,
    },
    Getlk(LkIn),
    Setlk {
        args: LkIn,
        wait: bool,
    },
    Ioctl(IoctlIn),
    /// Known, and answered with ENOSYS: the kernel does it itself or does not need it.
    Unserved,
    /// From a newer kernel.
    Unknown,
}

/// The nodes of a BATCH_FORGET.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Forgets<'a>(&'a [u8]);

impl Iterator for Forgets<'_> {
    type Item = ForgetOne;

    fn next(&mut self) -> Option<ForgetOne> {
        ForgetOne::take(&mut self.0)
    }
}

/// Reads a message.
pub(crate) fn decode(message: Message<'_>, dialect: Dialect) -> Result<Request<'_>, Malformed> {
    let header = message.header().ok_or(Malformed(None))?;
    let mut rest = message.rest;
    let extensions = usize::from(header.total_extlen) * 8;
    let group = match rest.len().checked_sub(extensions) {
        Some(at) => {
            let (body, extensions) = rest.split_at(at);
            rest = body;
            supplementary_group(extensions)
        }
        None => return Err(Malformed(Some(header))),
    };
    let body = Body { fixed: message.fixed, rest };
    let operation = operation(header.opcode, body, dialect).ok_or(Malformed(Some(header)))?;
    Ok(Request { header, operation, group })
}

/// The first group of an extension of that type.
fn supplementary_group(mut extensions: &[u8]) -> Option<u32> {
    while let Some(header) = ExtHeader::take(&mut extensions) {
        let length = (header.size as usize).checked_sub(ExtHeader::SIZE)?;
        let mut extension = extensions.get(..length)?;
        if header.kind == EXT_GROUPS {
            let count = u32::take(&mut extension)?;
            return if count == 0 { None } else { u32::take(&mut extension) };
        }
        extensions = extensions.get(length..)?;
    }
    None
}

/// What follows the header.
struct Body<'a> {
    fixed: Option<&'a [u8]>,
    rest: &'a [u8],
}

impl<'a> Body<'a> {
    /// The operation's fixed structure.
    fn fixed<T: Wire>(&mut self) -> Option<T> {
        match &mut self.fixed {
            Some(fixed) => T::take(fixed),
            None => T::take(&mut self.rest),
        }
    }

    /// A string up to its NUL.
    fn string(&mut self, max: usize) -> Option<&'a OsStr> {
        let end = self.rest.iter().take(max + 1).position(|byte| *byte == 0)?;
        let (string, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..)?;
        Some(OsStr::from_bytes(string))
    }

    /// One component of a path. Whatever else would be an error of the kernel; the layers rely on it.
    fn name(&mut self) -> Option<&'a OsStr> {
        let name = self.string(NAME_MAX)?;
        let bytes = name.as_bytes();
        let is_name = !bytes.is_empty() && bytes != b"." && bytes != b".." && !bytes.contains(&b'/');
        is_name.then_some(name)
    }

    fn xattr_name(&mut self) -> Option<&'a OsStr> {
        self.string(XATTR_NAME_MAX).filter(|name| !name.is_empty())
    }

    /// Bytes, as many as announced.
    fn data(&mut self, length: u32) -> Option<&'a [u8]> {
        self.rest.get(..length as usize)
    }
}

fn operation<'a>(code: u32, mut body: Body<'a>, dialect: Dialect) -> Option<Operation<'a>> {
    use Operation as Op;
    Some(match code {
        opcode::LOOKUP => Op::Lookup { name: body.name()? },
        opcode::GETATTR => Op::Getattr(body.fixed()?),
        opcode::STATX => Op::Statx(body.fixed()?),
        opcode::SETATTR => Op::Setattr(body.fixed()?),
        opcode::OPEN => Op::Open(body.fixed()?),
        opcode::READ => Op::Read(body.fixed()?),
        opcode::WRITE => {
            let args: WriteIn = body.fixed()?;
            Op::Write { data: body.data(args.size)?, args }
        }
        opcode::FLUSH => Op::Flush(body.fixed()?),
        opcode::RELEASE => Op::Release(body.fixed()?),
        opcode::FSYNC => Op::Fsync(body.fixed()?),
        opcode::FALLOCATE => Op::Fallocate(body.fixed()?),
        opcode::LSEEK => Op::Lseek(body.fixed()?),
        opcode::COPY_FILE_RANGE => Op::CopyFileRange { args: body.fixed()?, wide: false },
        opcode::COPY_FILE_RANGE_64 => Op::CopyFileRange { args: body.fixed()?, wide: true },
        opcode::OPENDIR => Op::Opendir(body.fixed()?),
        opcode::READDIR => Op::Readdir { args: body.fixed()?, plus: false },
        opcode::READDIRPLUS => Op::Readdir { args: body.fixed()?, plus: true },
        opcode::RELEASEDIR => Op::Releasedir(body.fixed()?),
        opcode::FSYNCDIR => Op::Fsyncdir(body.fixed()?),
        opcode::FORGET => Op::Forget { count: body.fixed::<ForgetIn>()?.nlookup },
        opcode::BATCH_FORGET => {
            let count = body.fixed::<BatchForgetIn>()?.count as usize;
            Op::BatchForget { nodes: Forgets(body.rest.get(..count.checked_mul(ForgetOne::SIZE)?)?) }
        }
        opcode::INTERRUPT => Op::Interrupt { unique: body.fixed::<InterruptIn>()?.unique },
        opcode::INIT => init(&mut body)?,
        opcode::DESTROY => Op::Destroy,
        opcode::STATFS => Op::Statfs,
        opcode::SYNCFS => Op::Syncfs,
        opcode::ACCESS => Op::Access { mask: body.fixed::<AccessIn>()?.mask },
        opcode::GETLK => Op::Getlk(body.fixed()?),
        opcode::SETLK => Op::Setlk { args: body.fixed()?, wait: false },
        opcode::SETLKW => Op::Setlk { args: body.fixed()?, wait: true },
        opcode::IOCTL => Op::Ioctl(body.fixed()?),
        opcode::BMAP | opcode::POLL | opcode::NOTIFY_REPLY => Op::Unserved,
        _ => {
            return naming(code, &mut body).or_else(|| xattrs(code, body, dialect)).or_else(|| unknown(code));
        }
    })
}

/// Operations that make, move and remove names. `None` also if the code is none of them.
fn naming<'a>(code: u32, body: &mut Body<'a>) -> Option<Operation<'a>> {
    use Operation as Op;
    Some(match code {
        opcode::READLINK => Op::Readlink,
        opcode::SYMLINK => Op::Symlink { name: body.name()?, target: body.string(usize::MAX - 1)? },
        opcode::MKNOD => Op::Mknod { args: body.fixed()?, name: body.name()? },
        opcode::MKDIR => Op::Mkdir { args: body.fixed()?, name: body.name()? },
        opcode::CREATE => Op::Create { args: body.fixed()?, name: body.name()? },
        // A name follows that means nothing.
        opcode::TMPFILE => Op::Tmpfile { args: body.fixed()? },
        opcode::UNLINK => Op::Unlink { name: body.name()? },
        opcode::RMDIR => Op::Rmdir { name: body.name()? },
        opcode::LINK => Op::Link { node: body.fixed::<LinkIn>()?.oldnodeid, name: body.name()? },
        opcode::RENAME => {
            let new_parent = body.fixed::<RenameIn>()?.newdir;
            Op::Rename { new_parent, flags: 0, name: body.name()?, new_name: body.name()? }
        }
        opcode::RENAME2 => {
            let args: Rename2In = body.fixed()?;
            Op::Rename {
                new_parent: args.newdir,
                flags: args.flags,
                name: body.name()?,
                new_name: body.name()?,
            }
        }
        _ => return None,
    })
}

fn xattrs<'a>(code: u32, mut body: Body<'a>, dialect: Dialect) -> Option<Operation<'a>> {
    use Operation as Op;
    Some(match code {
        opcode::GETXATTR => Op::Getxattr { size: body.fixed::<GetxattrIn>()?.size, name: body.xattr_name()? },
        opcode::LISTXATTR => Op::Listxattr { size: body.fixed::<GetxattrIn>()?.size },
        opcode::REMOVEXATTR => Op::Removexattr { name: body.xattr_name()? },
        opcode::SETXATTR => {
            let args: SetxattrIn = if dialect.setxattr_ext {
                body.fixed()?
            } else {
                let SetxattrInShort { size, flags } = body.fixed()?;
                SetxattrIn { size, flags, setxattr_flags: 0, padding: Pad }
            };
            Op::Setxattr { name: body.xattr_name()?, value: body.data(args.size)?, args }
        }
        _ => return None,
    })
}

/// A code that is not known here is answered, one that is known but came malformed is not an operation.
fn unknown<'a>(code: u32) -> Option<Operation<'a>> {
    opcode::name(code).is_none().then_some(Operation::Unknown)
}

fn init<'a>(body: &mut Body<'a>) -> Option<Operation<'a>> {
    let args: InitInShort = body.fixed()?;
    let mut flags = u64::from(args.flags);
    if flags & init_flags::INIT_EXT != 0 {
        let high: u32 = body.fixed()?;
        flags |= u64::from(high) << 32;
    }
    let InitInShort { major, minor, max_readahead, .. } = args;
    Some(Operation::Init { major, minor, max_readahead, flags })
}

#[cfg(test)]
pub(crate) mod tests;
