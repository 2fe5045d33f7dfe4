//! Every call of the trait: past the script, then on to the inner object.

use std::any::Any;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use hither_vfs::locks::LockTable;
use hither_vfs::{
    Attr, Backing, Call, Created, DirEntry, DirHandle, DirSink, Entry, Epoch, FallocateFlags, Handle,
    Identity, Node, OFlags, PersistentId, RenameFlags, Result, SeekTo, SetAttr, WriteAt, XattrFlags,
};

use super::Kind;
use super::faulty::{FaultyDirHandle, FaultyHandle, FaultyNode, Shared, inner_handle, inner_node};
use super::script::{Site, Tamper};

impl FaultyNode {
    fn pass(&self, kind: Kind, call: &Call, name: Option<&OsStr>) -> Result<()> {
        let node = Some(self.inner.identity());
        let site = Site { kind, node, name, patience: &call.patience };
        self.shared.script.pass(&site).map(drop)
    }

    fn entry(&self, inner: Result<Entry>) -> Result<Entry> {
        inner.map(|entry| self.shared.entry(entry))
    }
}

impl Node for FaultyNode {
    fn identity(&self) -> Identity {
        self.inner.identity()
    }

    fn persistent_id(&self, call: &Call) -> Result<Option<PersistentId>> {
        self.pass(Kind::PersistentId, call, None)?;
        self.inner.persistent_id(call)
    }

    fn locks(&self) -> &LockTable {
        self.inner.locks()
    }

    fn getattr(&self, call: &Call) -> Result<Attr> {
        self.pass(Kind::Getattr, call, None)?;
        self.inner.getattr(call)
    }

    fn setattr(&self, call: &Call, set: &SetAttr, handle: Option<&dyn Handle>) -> Result<Attr> {
        self.pass(Kind::Setattr, call, None)?;
        let handle = handle.map(|handle| inner_handle(&self.shared, handle)).transpose()?;
        self.inner.setattr(call, set, handle)
    }

    fn access(&self, call: &Call, mask: u32) -> Result<()> {
        self.pass(Kind::Access, call, None)?;
        self.inner.access(call, mask)
    }

    fn readlink(&self, call: &Call) -> Result<OsString> {
        self.pass(Kind::Readlink, call, None)?;
        self.inner.readlink(call)
    }

    fn open(&self, call: &Call, flags: OFlags, at: Epoch) -> Result<Arc<dyn Handle>> {
        self.pass(Kind::Open, call, None)?;
        let handle = self.inner.open(call, flags, at)?;
        Ok(self.shared.handle(handle, self.inner.identity()))
    }

    fn opendir(&self, call: &Call) -> Result<Arc<dyn DirHandle>> {
        self.pass(Kind::Opendir, call, None)?;
        let (inner, node) = (self.inner.opendir(call)?, self.inner.identity());
        Ok(Arc::new(FaultyDirHandle { inner, node, shared: self.shared.clone() }))
    }

    fn lookup(&self, call: &Call, name: &OsStr) -> Result<Entry> {
        self.pass(Kind::Lookup, call, Some(name))?;
        self.entry(self.inner.lookup(call, name))
    }

    fn create(&self, call: &Call, name: &OsStr, flags: OFlags, mode: u32) -> Result<Created> {
        self.pass(Kind::Create, call, Some(name))?;
        Ok(self.shared.created(self.inner.create(call, name, flags, mode)?))
    }

    fn tmpfile(&self, call: &Call, flags: OFlags, mode: u32) -> Result<Created> {
        self.pass(Kind::Tmpfile, call, None)?;
        Ok(self.shared.created(self.inner.tmpfile(call, flags, mode)?))
    }

    fn mkdir(&self, call: &Call, name: &OsStr, mode: u32) -> Result<Entry> {
        self.pass(Kind::Mkdir, call, Some(name))?;
        self.entry(self.inner.mkdir(call, name, mode))
    }

    fn mknod(&self, call: &Call, name: &OsStr, mode: u32, rdev: u64) -> Result<Entry> {
        self.pass(Kind::Mknod, call, Some(name))?;
        self.entry(self.inner.mknod(call, name, mode, rdev))
    }

    fn symlink(&self, call: &Call, name: &OsStr, target: &OsStr) -> Result<Entry> {
        self.pass(Kind::Symlink, call, Some(name))?;
        self.entry(self.inner.symlink(call, name, target))
    }

    fn link(&self, call: &Call, name: &OsStr, node: &dyn Node) -> Result<Entry> {
        self.pass(Kind::Link, call, Some(name))?;
        self.entry(self.inner.link(call, name, inner_node(&self.shared, node)?))
    }

    fn unlink(&self, call: &Call, name: &OsStr) -> Result<()> {
        self.pass(Kind::Unlink, call, Some(name))?;
        self.inner.unlink(call, name)
    }

    fn rmdir(&self, call: &Call, name: &OsStr) -> Result<()> {
        self.pass(Kind::Rmdir, call, Some(name))?;
        self.inner.rmdir(call, name)
    }

    fn rename(
        &self,
        call: &Call,
        name: &OsStr,
        new_parent: &dyn Node,
        new_name: &OsStr,
        flags: RenameFlags,
    ) -> Result<()> {
        self.pass(Kind::Rename, call, Some(name))?;
        self.inner.rename(call, name, inner_node(&self.shared, new_parent)?, new_name, flags)
    }

    fn getxattr(&self, call: &Call, name: &OsStr) -> Result<Vec<u8>> {
        self.pass(Kind::Getxattr, call, Some(name))?;
        self.inner.getxattr(call, name)
    }

    fn setxattr(&self, call: &Call, name: &OsStr, value: &[u8], flags: XattrFlags) -> Result<()> {
        self.pass(Kind::Setxattr, call, Some(name))?;
        self.inner.setxattr(call, name, value, flags)
    }

    fn listxattr(&self, call: &Call) -> Result<Vec<OsString>> {
        self.pass(Kind::Listxattr, call, None)?;
        self.inner.listxattr(call)
    }

    fn removexattr(&self, call: &Call, name: &OsStr) -> Result<()> {
        self.pass(Kind::Removexattr, call, Some(name))?;
        self.inner.removexattr(call, name)
    }

    fn project_id(&self, call: &Call) -> Result<u32> {
        self.pass(Kind::ProjectId, call, None)?;
        self.inner.project_id(call)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl FaultyHandle {
    fn pass(&self, kind: Kind, call: &Call) -> Result<Tamper> {
        let site = Site { kind, node: Some(self.node), name: None, patience: &call.patience };
        self.shared.script.pass(&site)
    }

    /// Runs a call that writes up to `length` bytes and returns how many it wrote, within the script's space.
    fn spend(&self, length: u64, write: impl FnOnce(u64) -> Result<u64>) -> Result<u64> {
        let taken = self.shared.script.take_space(length)?;
        let written = write(taken);
        self.shared.script.note_written(taken, *written.as_ref().unwrap_or(&0));
        written
    }
}

impl Handle for FaultyHandle {
    fn read(&self, call: &Call, buf: &mut [u8], offset: u64) -> Result<usize> {
        let tamper = self.pass(Kind::Read, call)?;
        let length = tamper.at_most.map_or(buf.len(), |most| most.min(buf.len()));
        let got = self.inner.read(call, &mut buf[..length], offset)?;
        if let Some(bit) = tamper.flip_bit.filter(|_| got > 0) {
            buf[bit / 8 % got] ^= 1 << (bit % 8);
        }
        self.shared.script.note_read(got);
        Ok(got)
    }

    fn write(&self, call: &Call, data: &[u8], at: WriteAt) -> Result<usize> {
        let tamper = self.pass(Kind::Write, call)?;
        let length = tamper.at_most.map_or(data.len(), |most| most.min(data.len()));
        let written = self
            .spend(length as u64, |length| Ok(self.inner.write(call, &data[..length as usize], at)? as u64));
        Ok(written? as usize)
    }

    fn flush(&self, call: &Call) -> Result<()> {
        self.pass(Kind::Flush, call)?;
        self.inner.flush(call)
    }

    fn fsync(&self, call: &Call, datasync: bool) -> Result<()> {
        self.pass(Kind::Fsync, call)?;
        self.inner.fsync(call, datasync)
    }

    fn fallocate(&self, call: &Call, flags: FallocateFlags, offset: u64, length: u64) -> Result<()> {
        self.pass(Kind::Fallocate, call)?;
        self.inner.fallocate(call, flags, offset, length)
    }

    fn seek(&self, call: &Call, offset: u64, to: SeekTo) -> Result<u64> {
        self.pass(Kind::Seek, call)?;
        self.inner.seek(call, offset, to)
    }

    fn copy_range(
        &self,
        call: &Call,
        offset: u64,
        to: &dyn Handle,
        to_offset: u64,
        length: u64,
    ) -> Result<u64> {
        self.pass(Kind::CopyRange, call)?;
        let to = inner_handle(&self.shared, to)?;
        self.spend(length, |length| self.inner.copy_range(call, offset, to, to_offset, length))
    }

    fn backing(&self) -> Option<Backing> {
        if self.shared.backings { self.inner.backing() } else { None }
    }

    fn keep_cache(&self) -> bool {
        self.inner.keep_cache()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl FaultyDirHandle {
    fn pass(&self, kind: Kind, call: &Call) -> Result<()> {
        let site = Site { kind, node: Some(self.node), name: None, patience: &call.patience };
        self.shared.script.pass(&site).map(drop)
    }
}

impl DirHandle for FaultyDirHandle {
    fn read(&self, call: &Call, from: u64, plus: bool, sink: &mut dyn DirSink) -> Result<()> {
        self.pass(Kind::Readdir, call)?;
        self.inner.read(call, from, plus, &mut Wrapping { sink, shared: &self.shared })
    }

    fn fsync(&self, call: &Call, datasync: bool) -> Result<()> {
        self.pass(Kind::FsyncDir, call)?;
        self.inner.fsync(call, datasync)
    }
}

/// Hands entries on with our nodes in place of the inner ones.
struct Wrapping<'a> {
    sink: &'a mut dyn DirSink,
    shared: &'a Arc<Shared>,
}

impl DirSink for Wrapping<'_> {
    fn entry(&mut self, entry: DirEntry<'_>, found: Option<Entry>) -> bool {
        self.sink.entry(entry, found.map(|found| self.shared.entry(found)))
    }
}
