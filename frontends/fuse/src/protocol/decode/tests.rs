//! The decoder reads what a kernel writes, and survives what none does.

use proptest::prelude::*;

use super::*;
use crate::protocol::abi::{FileLock, OpenOut};

const EXT: Dialect = Dialect { setxattr_ext: true };

/// A message as `/dev/fuse` gives it.
pub(crate) fn message(code: u32, extension: &[u8], fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut body = Vec::new();
    fill(&mut body);
    body.extend_from_slice(extension);
    let header = InHeader {
        len: (InHeader::SIZE + body.len()) as u32,
        opcode: code,
        unique: 42,
        nodeid: 7,
        uid: 1,
        gid: 2,
        pid: 3,
        total_extlen: (extension.len() / 8) as u16,
        padding: Pad,
    };
    let mut bytes = Vec::new();
    header.put(&mut bytes);
    bytes.extend_from_slice(&body);
    bytes
}

fn read(bytes: &[u8]) -> Request<'_> {
    decode(Message::whole(bytes), EXT).expect("a valid message")
}

#[test]
fn names_are_borrowed_and_rules_of_names_hold() {
    let bytes = message(opcode::LOOKUP, &[], |body| body.extend_from_slice(b"caf\xe9\0"));
    let request = read(&bytes);
    assert_eq!(request.operation, Operation::Lookup { name: OsStr::from_bytes(b"caf\xe9") });
    assert_eq!((request.header.unique, request.header.nodeid, request.header.uid), (42, 7, 1));
    for bad in [&b""[..], b"\0", b".\0", b"..\0", b"a/b\0", b"no end"] {
        let bytes = message(opcode::LOOKUP, &[], |body| body.extend_from_slice(bad));
        assert!(decode(Message::whole(&bytes), EXT).is_err(), "{bad:?}");
    }
}

#[test]
fn two_names_and_their_structure() {
    let bytes = message(opcode::RENAME2, &[], |body| {
        Rename2In { newdir: 9, flags: 1, padding: Pad }.put(body);
        body.extend_from_slice(b"old\0new\0");
    });
    let (name, new_name) = (OsStr::new("old"), OsStr::new("new"));
    assert_eq!(read(&bytes).operation, Operation::Rename { name, new_parent: 9, new_name, flags: 1 });
}

#[test]
fn a_write_carries_as_many_bytes_as_it_says() {
    let args = WriteIn { fh: 1, offset: 2, size: 3, ..WriteIn::default() };
    let whole = message(opcode::WRITE, &[], |body| {
        args.put(body);
        body.extend_from_slice(b"abc");
    });
    assert_eq!(read(&whole).operation, Operation::Write { args, data: b"abc" });
    let cut = message(opcode::WRITE, &[], |body| {
        args.put(body);
        body.extend_from_slice(b"ab");
    });
    assert!(decode(Message::whole(&cut), EXT).is_err());
}

#[test]
fn setxattr_has_two_forms() {
    let name = OsStr::new("user.a");
    let long = message(opcode::SETXATTR, &[], |body| {
        SetxattrIn { size: 1, flags: 2, setxattr_flags: 1, padding: Pad }.put(body);
        body.extend_from_slice(b"user.a\0v");
    });
    let args = SetxattrIn { size: 1, flags: 2, setxattr_flags: 1, padding: Pad };
    assert_eq!(read(&long).operation, Operation::Setxattr { name, value: b"v", args });
    let short = message(opcode::SETXATTR, &[], |body| {
        SetxattrInShort { size: 1, flags: 2 }.put(body);
        body.extend_from_slice(b"user.a\0v");
    });
    let args = SetxattrIn { setxattr_flags: 0, ..args };
    let request = decode(Message::whole(&short), Dialect { setxattr_ext: false }).unwrap();
    assert_eq!(request.operation, Operation::Setxattr { name, value: b"v", args });
}

#[test]
fn forgets_come_one_by_one() {
    let bytes = message(opcode::BATCH_FORGET, &[], |body| {
        BatchForgetIn { count: 2, dummy: Pad }.put(body);
        for nodeid in [5, 6] {
            ForgetOne { nodeid, nlookup: nodeid * 10 }.put(body);
        }
    });
    let Operation::BatchForget { nodes } = read(&bytes).operation else { panic!() };
    assert_eq!(nodes.map(|one| (one.nodeid, one.nlookup)).collect::<Vec<_>>(), [(5, 50), (6, 60)]);
    let lying =
        message(opcode::BATCH_FORGET, &[], |body| BatchForgetIn { count: u32::MAX, dummy: Pad }.put(body));
    assert!(decode(Message::whole(&lying), EXT).is_err());
}

#[test]
fn the_group_behind_a_create_is_found() {
    let mut extension = Vec::new();
    ExtHeader { size: 16, kind: 5 }.put(&mut extension);
    1_u64.put(&mut extension);
    ExtHeader { size: 16, kind: EXT_GROUPS }.put(&mut extension);
    1_u32.put(&mut extension);
    100_u32.put(&mut extension);
    let args = CreateIn { flags: 1, mode: 0o644, umask: 0o22, open_flags: 0 };
    let bytes = message(opcode::CREATE, &extension, |body| {
        args.put(body);
        body.extend_from_slice(b"name\0\0\0\0");
    });
    let request = read(&bytes);
    assert_eq!(request.group, Some(100));
    assert_eq!(request.operation, Operation::Create { name: OsStr::new("name"), args });
}

#[test]
fn the_first_message_of_old_and_new_kernels() {
    let short = InitInShort { major: 7, minor: 31, max_readahead: 1, flags: 3 };
    let old = message(opcode::INIT, &[], |body| short.put(body));
    assert_eq!(read(&old).operation, Operation::Init { major: 7, minor: 31, max_readahead: 1, flags: 3 });
    let flags = 3 | init_flags::INIT_EXT;
    let new = message(opcode::INIT, &[], |body| {
        InitInShort { flags: flags as u32, ..short }.put(body);
        (1_u32 << 5).put(body);
        Pad::<44>.put(body);
    });
    let expected = Operation::Init { major: 7, minor: 31, max_readahead: 1, flags: flags | 1 << 37 };
    assert_eq!(read(&new).operation, expected);
}

#[test]
fn what_is_unknown_is_an_operation_and_what_is_cut_is_not() {
    let newer = message(77, &[], |body| body.extend_from_slice(b"whatever"));
    assert_eq!(read(&newer).operation, Operation::Unknown);
    let cut = message(opcode::OPEN, &[], |body| 0_u32.put(body));
    assert!(matches!(decode(Message::whole(&cut), EXT), Err(Malformed(Some(header))) if header.unique == 42));
    assert_eq!(decode(Message::whole(&newer[..39]), EXT), Err(Malformed(None)));
}

#[test]
fn the_fixed_part_may_come_apart_from_the_rest() {
    let args = WriteIn { fh: 1, size: 3, ..WriteIn::default() };
    let bytes = message(opcode::WRITE, &[], |_| {});
    let mut fixed = Vec::new();
    args.put(&mut fixed);
    fixed.resize(128, 0);
    let apart = Message { header: &bytes, fixed: Some(&fixed), rest: b"abc" };
    assert_eq!(decode(apart, EXT).unwrap().operation, Operation::Write { args, data: b"abc" });
}

/// One valid message of every operation.
pub(crate) fn one_of_each() -> Vec<Vec<u8>> {
    let name = |body: &mut Vec<u8>| body.extend_from_slice(b"name\0");
    let mut all = vec![
        message(opcode::SYMLINK, &[], |body| body.extend_from_slice(b"name\0target\0")),
        message(opcode::WRITE, &[], |body| {
            WriteIn { size: 5, ..WriteIn::default() }.put(body);
            body.extend_from_slice(b"12345");
        }),
        message(opcode::SETXATTR, &[], |body| {
            SetxattrIn { size: 5, ..SetxattrIn::default() }.put(body);
            body.extend_from_slice(b"user.x\0value");
        }),
        message(opcode::BATCH_FORGET, &[], |body| {
            BatchForgetIn { count: 1, dummy: Pad }.put(body);
            ForgetOne { nodeid: 1, nlookup: 1 }.put(body);
        }),
        message(opcode::SETLKW, &[], |body| {
            LkIn { lk: FileLock { end: 5, ..FileLock::default() }, ..LkIn::default() }.put(body);
        }),
        message(opcode::RENAME, &[], |body| {
            RenameIn { newdir: 1 }.put(body);
            name(body);
            name(body);
        }),
    ];
    for code in [opcode::LOOKUP, opcode::UNLINK, opcode::RMDIR, opcode::REMOVEXATTR] {
        all.push(message(code, &[], name));
    }
    for code in
        [opcode::MKNOD, opcode::MKDIR, opcode::CREATE, opcode::TMPFILE, opcode::LINK, opcode::GETXATTR]
    {
        all.push(message(code, &[], |body| {
            let sizes = [(opcode::MKDIR, 8), (opcode::LINK, 8), (opcode::GETXATTR, 8)];
            let size = sizes.iter().find(|(of, _)| *of == code).map_or(16, |(_, size)| *size);
            body.resize(size, 0);
            name(body);
        }));
    }
    // Operations of a fixed structure only; 128 bytes are enough for each.
    for code in 1..opcode::END as u32 {
        if opcode::name(code).is_some() && !all.iter().any(|bytes| bytes[4..8] == code.to_ne_bytes()) {
            all.push(message(code, &[], |body| body.resize(128, 0)));
        }
    }
    all
}

#[test]
fn every_operation_has_a_valid_message() {
    for bytes in one_of_each() {
        let request = decode(Message::whole(&bytes), EXT);
        let code = u32::from_ne_bytes(*bytes[4..].first_chunk().unwrap());
        // 128 zeros are an empty name, which is none.
        assert!(request.is_ok() || code == opcode::RENAME2, "{:?}", opcode::name(code));
    }
    assert_eq!(OpenOut::SIZE, 16);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400), ext in any::<bool>()) {
        let _ = decode(Message::whole(&bytes), Dialect { setxattr_ext: ext });
    }

    #[test]
    fn any_body_of_any_operation_is_read_or_refused(
        code in 0_u32..64,
        extension in 0_u16..40,
        body in proptest::collection::vec(any::<u8>(), 0..200),
        fixed in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..140)),
    ) {
        let mut bytes = message(code, &[], |into| into.extend_from_slice(&body));
        bytes[36..38].copy_from_slice(&extension.to_ne_bytes());
        if let Ok(Request { operation: Operation::BatchForget { nodes }, .. }) = decode(Message::whole(&bytes), EXT) {
            prop_assert!(nodes.count() <= body.len() / 16);
        }
        let apart = Message { header: &bytes[..40], fixed: fixed.as_deref(), rest: &body };
        let _ = decode(apart, EXT);
    }

    #[test]
    fn damaged_messages_are_read_or_refused(
        which in any::<prop::sample::Index>(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let all = one_of_each();
        let mut bytes = which.get(&all).clone();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = decode(Message::whole(&bytes), EXT);
        bytes.truncate(cut.index(bytes.len()));
        let _ = decode(Message::whole(&bytes), EXT);
    }
}
