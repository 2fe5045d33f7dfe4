//! The kernel's side of FUSE (`linux/fuse.h`, versions 7.31 to 7.45): its structures, requests decoded without copies,
//! answers encoded, the first exchange. Nothing here does I/O or knows a file system.

pub(crate) mod abi;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod init;
pub(crate) mod wire;
