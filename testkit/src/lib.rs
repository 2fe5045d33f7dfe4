//! Conformance, model, differential tests and faults, for every file system of ours.
