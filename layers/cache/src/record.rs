//! The files of a store that are not copies: records, the list of sessions, the store's own label. Bytes as described
//! in `docs/formats/store.md`; encoding and decoding only, no I/O.

use std::collections::BTreeMap;

use hither_vfs::{PersistentId, Timestamp};
use xxhash_rust::xxh3::xxh3_64;

use crate::version::Version;

const VERSION: u32 = 1;
const RECORD_MAGIC: &[u8; 8] = b"HITHERCP";
const SYNCED_MAGIC: &[u8; 8] = b"HITHERSY";
const LABEL_MAGIC: &[u8; 8] = b"HITHERST";
const FLAG_PINNED: u32 = 1;

/// Bytes that one checksum stands for; also the unit of a fetch.
pub const CHUNK: u64 = 1 << 20;

/// Names a copy's files: a hash of the file's persistent id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// The key of a file.
    pub fn of(id: &PersistentId) -> Self {
        let mut key = [0; 16];
        key.copy_from_slice(&blake3::hash(&id.0).as_bytes()[..16]);
        Key(key)
    }

    /// 32 hex digits.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// From 32 lower-case hex digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        if text.len() != 32 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        let mut key = [0; 16];
        for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Key(key))
    }
}

/// Numbers what is made in a session, copies and records each on their own: session * 2^32 + counter. Never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Serial(pub u64);

impl Serial {
    /// The `counter`th of a session.
    pub fn new(session: u32, counter: u32) -> Self {
        Serial(u64::from(session) << 32 | u64::from(counter))
    }

    /// The mount that made it.
    pub fn session(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Which of that mount.
    pub fn counter(self) -> u32 {
        self.0 as u32
    }
}

/// What makes a data file a valid copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Spared by eviction.
    pub pinned: bool,
    /// Which data file.
    pub serial: Serial,
    /// Which record: numbers them in the order in which they became valid.
    pub commit: Serial,
    /// The life of the page cache that it was written into.
    pub instance: [u8; 16],
    /// The version whose bytes it holds.
    pub version: Version,
    /// Project of the file, for quotas.
    pub projid: u32,
    /// The file.
    pub id: PersistentId,
    /// Below the mount point, when the copy was made; for messages.
    pub path: Vec<u8>,
    /// XXH3-64 of each [`CHUNK`] bytes.
    pub checksums: Vec<u64>,
}

/// How many chunks a file of that size has.
pub fn chunks_of(size: u64) -> u64 {
    size.div_ceil(CHUNK)
}

/// The checksum of a chunk.
pub fn checksum(chunk: &[u8]) -> u64 {
    xxh3_64(chunk)
}

impl Record {
    /// The bytes of `KEY.rec`.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new(RECORD_MAGIC);
        out.u32(if self.pinned { FLAG_PINNED } else { 0 });
        out.u64(self.serial.0);
        out.u64(self.commit.0);
        out.bytes(&self.instance);
        out.u64(self.version.size);
        out.time(self.version.mtime);
        out.time(self.version.ctime);
        out.u32(self.projid);
        out.u32(CHUNK as u32);
        out.short(&self.id.0);
        out.short(&self.path);
        out.u32(self.checksums.len() as u32);
        for checksum in &self.checksums {
            out.u64(*checksum);
        }
        out.seal()
    }

    /// From the bytes of `KEY.rec`; `None` for anything but a whole record of this version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::open(bytes, RECORD_MAGIC)?;
        let flags = from.u32()?;
        let serial = Serial(from.u64()?);
        let commit = Serial(from.u64()?);
        let instance = from.take(16)?.try_into().ok()?;
        let version = Version { size: from.u64()?, mtime: from.time()?, ctime: from.time()? };
        let projid = from.u32()?;
        if u64::from(from.u32()?) != CHUNK {
            return None;
        }
        let id = PersistentId(from.short()?.into());
        let path = from.short()?.to_vec();
        let count = from.u32()?;
        if u64::from(count) != chunks_of(version.size) {
            return None;
        }
        let checksums = (0..count).map(|_| from.u64()).collect::<Option<Vec<_>>>()?;
        let pinned = flags & FLAG_PINNED != 0;
        from.is_empty().then_some(Record {
            pinned,
            serial,
            commit,
            instance,
            version,
            projid,
            id,
            path,
            checksums,
        })
    }
}

/// Which records survive a power loss: for each session the first counter that may not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synced(pub BTreeMap<u32, u32>);

impl Synced {
    /// Whether a sync covered that record.
    pub fn covers(&self, commit: Serial) -> bool {
        self.0.get(&commit.session()).is_some_and(|end| commit.counter() < *end)
    }

    /// The bytes of `synced`.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new(SYNCED_MAGIC);
        out.u32(self.0.len() as u32);
        for (session, end) in &self.0 {
            out.u32(*session);
            out.u32(*end);
        }
        out.seal()
    }

    /// From the bytes of `synced`.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::open(bytes, SYNCED_MAGIC)?;
        let count = from.u32()?;
        let sessions =
            (0..count).map(|_| Some((from.u32()?, from.u32()?))).collect::<Option<BTreeMap<_, _>>>()?;
        from.is_empty().then_some(Synced(sessions))
    }
}

/// The bytes of `store`: the name of the origin.
pub fn encode_label(origin: &str) -> Vec<u8> {
    let mut out = Writer::new(LABEL_MAGIC);
    out.u32(origin.len() as u32);
    out.bytes(origin.as_bytes());
    out.seal()
}

/// The name of the origin from the bytes of `store`.
pub fn decode_label(bytes: &[u8]) -> Option<String> {
    let mut from = Reader::open(bytes, LABEL_MAGIC)?;
    let length = from.u32()? as usize;
    let name = String::from_utf8(from.take(length)?.to_vec()).ok()?;
    from.is_empty().then_some(name)
}

/// Appends fields; the checksum comes last.
struct Writer(Vec<u8>);

impl Writer {
    fn new(magic: &[u8; 8]) -> Self {
        let mut writer = Writer(magic.to_vec());
        writer.u32(VERSION);
        writer
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn short(&mut self, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(usize::from(u16::MAX))];
        self.bytes(&(bytes.len() as u16).to_le_bytes());
        self.bytes(bytes);
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    fn time(&mut self, time: Timestamp) {
        self.bytes(&time.sec.to_le_bytes());
        self.u32(time.nsec);
    }

    fn seal(mut self) -> Vec<u8> {
        let sum = xxh3_64(&self.0);
        self.u64(sum);
        self.0
    }
}

/// Takes fields off the front; every step may find the bytes too short.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Behind magic and version, with the checksum checked and cut off.
    fn open(bytes: &'a [u8], magic: &[u8; 8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<8>()?;
        if xxh3_64(body) != u64::from_le_bytes(*sum) {
            return None;
        }
        let mut reader = Reader(body);
        (reader.take(8)? == magic && reader.u32()? == VERSION).then_some(reader)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn short(&mut self) -> Option<&'a [u8]> {
        let length = u16::from_le_bytes(self.take(2)?.try_into().ok()?);
        self.take(usize::from(length))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn time(&mut self) -> Option<Timestamp> {
        let sec = i64::from_le_bytes(self.take(8)?.try_into().ok()?);
        Some(Timestamp { sec, nsec: self.u32()? })
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            pinned: true,
            serial: Serial::new(3, 7),
            commit: Serial::new(4, 1),
            instance: [9; 16],
            version: Version {
                size: 3 * CHUNK - 1,
                mtime: Timestamp { sec: -5, nsec: 999_999_999 },
                ctime: Timestamp { sec: 1 << 40, nsec: 1 },
            },
            projid: 100,
            id: PersistentId(Box::from(&b"\x01\x00handle"[..])),
            path: b"a/\xff".to_vec(),
            checksums: vec![1, 2, u64::MAX],
        }
    }

    #[test]
    fn records_come_back_as_they_were() {
        assert_eq!(Record::decode(&record().encode()), Some(record()));
        let synced = Synced(BTreeMap::from([(1, 5), (3, 7)]));
        assert_eq!(Synced::decode(&synced.encode()), Some(synced.clone()));
        assert!(synced.covers(Serial::new(1, 4)) && !synced.covers(Serial::new(1, 5)));
        assert!(!synced.covers(Serial::new(2, 0)));
        assert_eq!(decode_label(&encode_label("/lustre/ü")).as_deref(), Some("/lustre/ü"));
        assert_eq!(Key::from_hex(&Key([0xab; 16]).hex()), Some(Key([0xab; 16])));
        assert_eq!(Key::from_hex(&"AB".repeat(16)), None);
    }

    #[test]
    fn no_damage_goes_unnoticed() {
        let bytes = record().encode();
        for length in 0..bytes.len() {
            assert_eq!(Record::decode(&bytes[..length]), None, "cut at {length}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Record::decode(&flipped), None, "bit {bit}");
        }
    }

    /// The bytes on disk are a promise to old stores: this record was written by version 1.
    #[test]
    fn version_1_is_read() {
        let sum = xxh3_64(&record().encode());
        assert_eq!(sum, 0x14e8_89f3_77cb_cd3d, "the format changed: give it a new version");
    }
}
