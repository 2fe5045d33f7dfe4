//! A file system in memory: the model and the quickest inner file system.
