//! Steps of scripts, and the trace that they wrote.

use std::sync::{Mutex, MutexGuard};

use recrep_format::record::Body;

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Writes trace, in pieces if it does not fit.
    Trace(Vec<u8>),
    /// Writes as much trace as fits, drops the rest, and stops if anything was dropped.
    TraceOrStop(Vec<u8>),
    /// Writes trace with these flags in its AUX record, which report a problem.
    Flagged(u64, Vec<u8>),
    /// Writes a record, with its counter's trailer.
    Record(Body<'static>),
    /// Puts the head of the data ring where it cannot be.
    BreakHead,
    /// Waits until this many bytes of the area have been read in total.
    AwaitRead(u64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    pub trace: Vec<u8>,
    /// Number of bytes that did not fit.
    pub lost: u64,
    /// Number of AUX records.
    pub records: u64,
    /// Number of records that did not fit into the data ring.
    pub lost_records: u64,
}

/// Locks a mutex, poisoned or not, as a panicked thread has already failed its test.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
