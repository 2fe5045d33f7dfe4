//! Suites, unmodified programs and crashes, on real mounts.
