//! What scripts are made of, and what is kept of them.

use std::sync::{Mutex, MutexGuard};

use recrep_format::record::Body;

/// What a thread does.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Writes trace, in pieces where there is not so much room.
    Trace(Vec<u8>),
    /// Writes as much trace as there is room for, loses the rest, and stops if something was lost.
    TraceOrStop(Vec<u8>),
    /// Writes trace and says that something was wrong with it: these flags are in the AUX record.
    Flagged(u64, Vec<u8>),
    /// Writes a record, with the trailer that its counter gives it.
    Record(Body<'static>),
    /// Waits until so many bytes in all were read of the area.
    AwaitRead(u64),
}

/// What an area was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    /// The trace that was written.
    pub trace: Vec<u8>,
    /// How many bytes there was no room for.
    pub lost: u64,
    /// How many AUX records told of it.
    pub records: u64,
    /// How many records the data ring had no room for.
    pub lost_records: u64,
}

/// A thread that panicked has failed its test already.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
