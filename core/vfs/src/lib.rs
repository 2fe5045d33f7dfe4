//! The file system trait that every storey above speaks.
