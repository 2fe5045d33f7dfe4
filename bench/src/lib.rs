//! Side by side measurements: raw, ours, peers.
