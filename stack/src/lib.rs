//! From a configuration to a built tree of file systems.
