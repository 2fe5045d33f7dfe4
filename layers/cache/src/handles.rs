//! Open files of the cache: one kind for copies, one for what the daemon serves, one for writers.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use hither_vfs::{
    Attr, Backing, Call, Errno, Error, FallocateFlags, Handle, OFlags, Result, SeekTo, WriteAt,
};

use crate::file::Mode;
use crate::node::CacheNode;
use crate::open_copies::OpenCopy;
use crate::version::Version;

/// Counts as an open of the file for as long as it lives.
struct Opened {
    node: Arc<CacheNode>,
    is_backed: bool,
}

impl Opened {
    fn new(node: Arc<CacheNode>, is_backed: bool) -> Self {
        let mut file = node.file.lock();
        file.opens += 1;
        file.backed_opens += u64::from(is_backed);
        drop(file);
        Opened { node, is_backed }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut file = self.node.file.lock();
        file.opens = file.opens.saturating_sub(1);
        file.backed_opens = file.backed_opens.saturating_sub(u64::from(self.is_backed));
        if file.opens == 0 && matches!(file.mode, Mode::Filling(_)) {
            drop(file);
            self.node.shared.fill_is_idle(Arc::downgrade(&self.node));
        }
    }
}

/// The file at the origin, for a handle that needs it only now and then.
struct AtOrigin(OnceLock<Arc<dyn Handle>>);

impl AtOrigin {
    fn new(open: Option<Arc<dyn Handle>>) -> Self {
        AtOrigin(open.map_or_else(OnceLock::new, OnceLock::from))
    }

    fn get(&self, node: &CacheNode, call: &Call) -> Result<&Arc<dyn Handle>> {
        if let Some(open) = self.0.get() {
            return Ok(open);
        }
        call.patience.check()?;
        let open = node.origin_result(node.origin.open(call, OFlags::RDONLY, 0))?;
        Ok(self.0.get_or_init(|| open))
    }
}

/// The origin's handle behind one of ours, opened if need be; `None` for handles that are not ours.
pub(crate) fn at_origin(handle: &dyn Handle, call: &Call) -> Result<Option<Arc<dyn Handle>>> {
    let any = handle.as_any();
    if let Some(writer) = any.downcast_ref::<WriterHandle>() {
        return Ok(Some(writer.origin.clone()));
    }
    if let Some(served) = any.downcast_ref::<ServedHandle>() {
        return served.origin.get(&served.opened.node, call).map(|origin| Some(origin.clone()));
    }
    if let Some(backed) = any.downcast_ref::<BackedHandle>() {
        return backed.origin.get(&backed.opened.node, call).map(|origin| Some(origin.clone()));
    }
    Ok(None)
}

/// Copies between the origin's files behind two of our handles.
fn copy_range(
    from: &dyn Handle,
    call: &Call,
    offset: u64,
    to: &dyn Handle,
    to_offset: u64,
    length: u64,
) -> Result<u64> {
    call.patience.check()?;
    let Some(writer) = to.as_any().downcast_ref::<WriterHandle>() else {
        let is_ours = at_origin(to, call)?.is_some();
        return Err(if is_ours { Errno::BADF } else { Errno::XDEV }.into());
    };
    let source = at_origin(from, call)?.ok_or(Errno::XDEV)?;
    let node = writer.node();
    node.changing_bytes(call, || {
        node.origin_result(source.copy_range(call, offset, &*writer.origin, to_offset, length))
    })
}

/// An open of a copy: the version that it was opened with, until it is closed.
pub(crate) struct BackedHandle {
    opened: Opened,
    copy: Arc<OpenCopy>,
    /// Attributes of the version.
    attr: Attr,
    origin: AtOrigin,
}

impl BackedHandle {
    pub(crate) fn new(node: Arc<CacheNode>, copy: Arc<OpenCopy>, attr: Attr) -> Self {
        BackedHandle { opened: Opened::new(node, true), copy, attr, origin: AtOrigin::new(None) }
    }

    /// The store cannot read the copy: as long as the origin has the same version, its bytes are as good.
    fn read_at_origin(&self, call: &Call, buf: &mut [u8], offset: u64, failure: Error) -> Result<usize> {
        let node = &self.opened.node;
        call.patience.check()?;
        node.shared.store_failed(&failure);
        let dropped = node.file.lock().unback();
        node.let_go(dropped, "the copy cannot be read");
        node.end_copy(call);
        let is_same = Version::of(&node.origin_attr(call)?) == Version::of(&self.attr);
        if !is_same {
            return Err(failure);
        }
        node.origin_result(self.origin.get(node, call)?.read(call, buf, offset))
    }
}

impl Handle for BackedHandle {
    fn read(&self, call: &Call, buf: &mut [u8], offset: u64) -> Result<usize> {
        let shared = &self.opened.node.shared;
        let read = match shared.store.read_data(&*self.copy.data, buf, offset) {
            Err(failure) => self.read_at_origin(call, buf, offset, failure)?,
            read => read?,
        };
        shared.counters.served_bytes.add(read as u64);
        Ok(read)
    }

    fn write(&self, _call: &Call, _data: &[u8], _at: WriteAt) -> Result<usize> {
        Err(Errno::BADF.into())
    }

    fn flush(&self, _call: &Call) -> Result<()> {
        Ok(())
    }

    fn fsync(&self, _call: &Call, _datasync: bool) -> Result<()> {
        Ok(())
    }

    fn fallocate(&self, _call: &Call, _flags: FallocateFlags, _offset: u64, _length: u64) -> Result<()> {
        Err(Errno::BADF.into())
    }

    fn seek(&self, _call: &Call, offset: u64, to: SeekTo) -> Result<u64> {
        self.copy.data.seek(self.opened.node.shared.store.call(), offset, to)
    }

    fn copy_range(
        &self,
        call: &Call,
        offset: u64,
        to: &dyn Handle,
        to_offset: u64,
        length: u64,
    ) -> Result<u64> {
        copy_range(self, call, offset, to, to_offset, length)
    }

    fn backing(&self) -> Option<Backing> {
        self.copy.data.backing()
    }

    fn keep_cache(&self) -> bool {
        // One nodeid stands for one copy, whose bytes never change.
        true
    }

    /// Nothing is asked: where the file is another version now, its size and times are those of the copy all the same.
    fn getattr(&self, _call: &Call) -> Result<Option<Attr>> {
        let known = self.opened.node.file.lock().known.map_or(self.attr, |known| known.attr);
        if known.size == self.attr.size && known.mtime == self.attr.mtime {
            return Ok(Some(known));
        }
        let Attr { size, blocks, mtime, ctime, .. } = self.attr;
        Ok(Some(Attr { size, blocks, mtime, ctime, ..known }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An open for reading that we serve, from whatever the file is at each read.
pub(crate) struct ServedHandle {
    opened: Opened,
    origin: AtOrigin,
    keep_cache: bool,
}

impl ServedHandle {
    pub(crate) fn new(node: Arc<CacheNode>, origin: Option<Arc<dyn Handle>>, keep_cache: bool) -> Self {
        ServedHandle { opened: Opened::new(node, false), origin: AtOrigin::new(origin), keep_cache }
    }

    fn read_somewhere(&self, call: &Call, buf: &mut [u8], offset: u64) -> Result<usize> {
        let node = &self.opened.node;
        let mode = node.file.lock().mode.clone();
        match mode {
            Mode::Filling(fill) => {
                if let Some(read) = fill.read(node, call, buf, offset)? {
                    return Ok(read);
                }
            }
            Mode::Backed(backing) => {
                let shared = &node.shared;
                match shared
                    .open_copy(&backing)
                    .and_then(|copy| shared.store.read_data(&*copy.data, buf, offset))
                {
                    Ok(read) => return Ok(read),
                    Err(error) => shared.store_failed(&error),
                }
            }
            Mode::Direct => {}
        }
        call.patience.check()?;
        node.origin_result(self.origin.get(node, call)?.read(call, buf, offset))
    }
}

impl Handle for ServedHandle {
    fn read(&self, call: &Call, buf: &mut [u8], offset: u64) -> Result<usize> {
        let read = self.read_somewhere(call, buf, offset)?;
        self.opened.node.shared.counters.served_bytes.add(read as u64);
        Ok(read)
    }

    fn write(&self, _call: &Call, _data: &[u8], _at: WriteAt) -> Result<usize> {
        Err(Errno::BADF.into())
    }

    fn flush(&self, _call: &Call) -> Result<()> {
        Ok(())
    }

    fn fsync(&self, call: &Call, datasync: bool) -> Result<()> {
        let node = &self.opened.node;
        node.origin_result(self.origin.get(node, call)?.fsync(call, datasync))
    }

    fn fallocate(&self, _call: &Call, _flags: FallocateFlags, _offset: u64, _length: u64) -> Result<()> {
        Err(Errno::BADF.into())
    }

    fn seek(&self, call: &Call, offset: u64, to: SeekTo) -> Result<u64> {
        call.patience.check()?;
        let node = &self.opened.node;
        node.origin_result(self.origin.get(node, call)?.seek(call, offset, to))
    }

    fn copy_range(
        &self,
        call: &Call,
        offset: u64,
        to: &dyn Handle,
        to_offset: u64,
        length: u64,
    ) -> Result<u64> {
        copy_range(self, call, offset, to, to_offset, length)
    }

    fn backing(&self) -> Option<Backing> {
        None
    }

    fn keep_cache(&self) -> bool {
        self.keep_cache
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Counts as a writer of the file for as long as it lives.
pub(crate) struct Writer(Opened);

impl Drop for Writer {
    fn drop(&mut self) {
        let node = &self.0.node;
        let mut file = node.file.lock();
        file.writers = file.writers.saturating_sub(1);
        file.forget_known(node.shared.next_stamp());
    }
}

impl Writer {
    /// The open succeeded at the origin.
    pub(crate) fn opened(self, origin: Arc<dyn Handle>) -> WriterHandle {
        WriterHandle { writer: self, origin }
    }
}

/// An open for writing (and perhaps reading): all of it goes to the origin.
pub(crate) struct WriterHandle {
    writer: Writer,
    origin: Arc<dyn Handle>,
}

impl WriterHandle {
    /// The file has admitted a writer: from here on it is counted back when it ends.
    pub(crate) fn begin(node: Arc<CacheNode>) -> Writer {
        Writer(Opened::new(node, false))
    }

    fn node(&self) -> &Arc<CacheNode> {
        &self.writer.0.node
    }

    fn changing<T>(&self, call: &Call, change: impl FnOnce(&dyn Handle) -> Result<T>) -> Result<T> {
        let node = self.node();
        node.changing_bytes(call, || node.origin_result(change(&*self.origin)))
    }

    fn asking<T>(&self, call: &Call, ask: impl FnOnce(&dyn Handle) -> Result<T>) -> Result<T> {
        call.patience.check()?;
        self.node().origin_result(ask(&*self.origin))
    }
}

impl Handle for WriterHandle {
    fn read(&self, call: &Call, buf: &mut [u8], offset: u64) -> Result<usize> {
        let read = self.asking(call, |origin| origin.read(call, buf, offset))?;
        self.node().shared.counters.served_bytes.add(read as u64);
        Ok(read)
    }

    fn write(&self, call: &Call, data: &[u8], at: WriteAt) -> Result<usize> {
        self.changing(call, |origin| origin.write(call, data, at))
    }

    fn flush(&self, call: &Call) -> Result<()> {
        self.asking(call, |origin| origin.flush(call))
    }

    fn fsync(&self, call: &Call, datasync: bool) -> Result<()> {
        self.asking(call, |origin| origin.fsync(call, datasync))
    }

    fn fallocate(&self, call: &Call, flags: FallocateFlags, offset: u64, length: u64) -> Result<()> {
        self.changing(call, |origin| origin.fallocate(call, flags, offset, length))
    }

    fn seek(&self, call: &Call, offset: u64, to: SeekTo) -> Result<u64> {
        self.asking(call, |origin| origin.seek(call, offset, to))
    }

    fn copy_range(
        &self,
        call: &Call,
        offset: u64,
        to: &dyn Handle,
        to_offset: u64,
        length: u64,
    ) -> Result<u64> {
        copy_range(self, call, offset, to, to_offset, length)
    }

    fn backing(&self) -> Option<Backing> {
        None
    }

    fn keep_cache(&self) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
