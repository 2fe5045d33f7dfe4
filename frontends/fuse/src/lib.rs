//! The FUSE front end: decode, call, encode.
