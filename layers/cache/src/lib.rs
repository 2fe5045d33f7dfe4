//! A persistent cache of an origin on a local store.
