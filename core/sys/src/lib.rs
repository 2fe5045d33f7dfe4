//! System calls that need unsafe, each behind a safe function.
