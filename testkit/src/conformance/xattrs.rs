//! Extended attributes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use hither_vfs::{Errno, Node, XattrFlags};

use super::{Subject, Test, tests};
use crate::check::{Failure, Outcome, equal, holds, refused, refused_with_one_of};

pub(super) const TESTS: &[Test] = tests![
    a_value_is_kept_byte_for_byte [Xattrs],
    create_and_replace_say_what_is_there [Xattrs],
    a_missing_attribute_is_no_data [Xattrs],
    all_names_are_listed [Xattrs],
    names_may_be_any_bytes [Xattrs],
    names_of_no_namespace_are_refused [Xattrs],
    names_too_long_are_refused [Xattrs],
    directories_have_attributes_and_symlinks_have_none [Xattrs, Symlinks],
    attributes_belong_to_the_file_and_not_its_name [Xattrs, HardLinks],
    an_attribute_moves_the_time_of_status [Xattrs],
];

const SET: XattrFlags = XattrFlags::empty();

fn key(name: &str) -> &OsStr {
    OsStr::new(name)
}

/// The names of the `user` namespace, sorted: a security module may add others.
fn listed(s: &Subject, node: &dyn Node) -> Result<Vec<OsString>, Failure> {
    let mut names = node.listxattr(s.client.call())?;
    names.retain(|name| name.as_bytes().starts_with(b"user."));
    names.sort();
    Ok(names)
}

fn file(s: &Subject) -> Result<std::sync::Arc<dyn Node>, Failure> {
    s.client.write("f", b"")?;
    Ok(s.client.node("f")?)
}

fn a_value_is_kept_byte_for_byte(s: &Subject) -> Outcome {
    let (node, call) = (file(s)?, s.client.call());
    let all_bytes: Vec<u8> = (0..=255).collect();
    for value in [&b""[..], b"text", b"\0", &all_bytes, &[0xff; 2000]] {
        node.setxattr(call, key("user.k"), value, SET)?;
        equal(node.getxattr(call, key("user.k"))?, value)?;
        equal(s.client.node("f")?.getxattr(call, key("user.k"))?, value)?;
    }
    equal(listed(s, &*node)?, ["user.k"])
}

fn create_and_replace_say_what_is_there(s: &Subject) -> Outcome {
    let (node, call, k) = (file(s)?, s.client.call(), key("user.k"));
    refused(node.setxattr(call, k, b"1", XattrFlags::REPLACE), Errno::NODATA)?;
    node.setxattr(call, k, b"1", XattrFlags::CREATE)?;
    refused(node.setxattr(call, k, b"2", XattrFlags::CREATE), Errno::EXIST)?;
    equal(node.getxattr(call, k)?, b"1")?;
    node.setxattr(call, k, b"3", XattrFlags::REPLACE)?;
    equal(node.getxattr(call, k)?, b"3")
}

fn a_missing_attribute_is_no_data(s: &Subject) -> Outcome {
    let (node, call, k) = (file(s)?, s.client.call(), key("user.k"));
    refused(node.getxattr(call, k), Errno::NODATA)?;
    refused(node.removexattr(call, k), Errno::NODATA)?;
    equal(listed(s, &*node)?.len(), 0)?;
    node.setxattr(call, k, b"1", SET)?;
    node.removexattr(call, k)?;
    refused(node.getxattr(call, k), Errno::NODATA)?;
    refused(node.removexattr(call, k), Errno::NODATA)?;
    equal(listed(s, &*node)?.len(), 0)
}

fn all_names_are_listed(s: &Subject) -> Outcome {
    let node = file(s)?;
    let name = |index| OsString::from(format!("user.a name of some length {index}"));
    let names: Vec<OsString> = (10..40).map(name).collect();
    for (index, name) in names.iter().enumerate() {
        node.setxattr(s.client.call(), name, &[index as u8], SET)?;
        equal(listed(s, &*node)?.len(), index + 1)?;
    }
    equal(listed(s, &*node)?, names.as_slice())?;
    for name in &names[..10] {
        node.removexattr(s.client.call(), name)?;
    }
    equal(listed(s, &*node)?, &names[10..])
}

fn names_may_be_any_bytes(s: &Subject) -> Outcome {
    let node = file(s)?;
    let name = OsStr::from_bytes(b"user.\xff\x01 /=\n\xc3");
    node.setxattr(s.client.call(), name, b"v", SET)?;
    equal(node.getxattr(s.client.call(), name)?, b"v")?;
    equal(listed(s, &*node)?, [name])
}

fn names_of_no_namespace_are_refused(s: &Subject) -> Outcome {
    let (node, call) = (file(s)?, s.client.call());
    for name in ["plain", "nowhere.k"] {
        refused(node.setxattr(call, key(name), b"v", SET), Errno::OPNOTSUPP)?;
        refused_with_one_of(node.getxattr(call, key(name)), &[Errno::OPNOTSUPP, Errno::NODATA])?;
    }
    refused(node.setxattr(call, key("user."), b"v", SET), Errno::INVAL)?;
    equal(listed(s, &*node)?.len(), 0)
}

fn names_too_long_are_refused(s: &Subject) -> Outcome {
    let (node, call) = (file(s)?, s.client.call());
    let longest = format!("user.{}", "n".repeat(250));
    node.setxattr(call, key(&longest), b"v", SET)?;
    equal(node.getxattr(call, key(&longest))?, b"v")?;
    let longer = format!("{longest}n");
    refused(node.setxattr(call, key(&longer), b"v", SET), Errno::RANGE)?;
    refused(node.getxattr(call, key(&longer)), Errno::RANGE)
}

fn directories_have_attributes_and_symlinks_have_none(s: &Subject) -> Outcome {
    let call = s.client.call();
    let directory = s.client.mkdir("d", 0o755)?.node;
    directory.setxattr(call, key("user.k"), b"v", SET)?;
    equal(s.client.node("d")?.getxattr(call, key("user.k"))?, b"v")?;
    file(s)?.setxattr(call, key("user.k"), b"of the file", SET)?;
    let link = s.client.symlink("f", "l")?.node;
    refused(link.setxattr(call, key("user.k"), b"v", SET), Errno::PERM)?;
    refused_with_one_of(link.getxattr(call, key("user.k")), &[Errno::NODATA, Errno::PERM])?;
    equal(listed(s, &*link)?.len(), 0)
}

fn attributes_belong_to_the_file_and_not_its_name(s: &Subject) -> Outcome {
    let call = s.client.call();
    file(s)?.setxattr(call, key("user.k"), b"v", SET)?;
    s.client.link("f", "g")?;
    equal(s.client.node("g")?.getxattr(call, key("user.k"))?, b"v")?;
    s.client.rename("g", "h", hither_vfs::RenameFlags::empty())?;
    equal(s.client.node("h")?.getxattr(call, key("user.k"))?, b"v")?;
    s.client.write("new", b"")?;
    s.client.rename("new", "h", hither_vfs::RenameFlags::empty())?;
    refused(s.client.node("h")?.getxattr(call, key("user.k")), Errno::NODATA)
}

fn an_attribute_moves_the_time_of_status(s: &Subject) -> Outcome {
    let node = file(s)?;
    let before = node.getattr(s.client.call())?;
    std::thread::sleep(Duration::from_millis(25));
    node.setxattr(s.client.call(), key("user.k"), b"v", SET)?;
    let after = node.getattr(s.client.call())?;
    holds(after.ctime > before.ctime, "ctime moves")?;
    equal(after.mtime, before.mtime)
}
