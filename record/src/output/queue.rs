//! Records on their way to a file: a queue between those who drain rings and the thread that
//! writes.
//!
//! ```text
//!  drain threads ─ push ─▶ | batch | batch | batch | ─ next ─▶ writer ─▶ file
//!                    waits where there are too many bytes       └ wrote: the bytes are free again, the counts are the file's
//! ```
//!
//! A disk that takes nothing for a moment costs nothing as long as the queue has room. When it is
//! full, whoever drains waits, the rings fill up, and the kernel counts what they have no room for.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::tally::Counts;
use super::unwind::Chains;
use crate::messages::error::{Error, Result};

/// Buffers that are kept for reuse, so that the kernel does not zero their pages again and again.
const SPARE: usize = 8;
/// A buffer that is kept is no longer than this.
const SPARE_BYTES: usize = 2 << 20;

/// Bytes that belong together in a file.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The bytes.
    pub(super) bytes: Vec<u8>,
    /// Number of bytes at the start that may be compressed.
    pub(super) packable: usize,
    pub(super) counts: Counts,
    /// `true` if its place in the file is to be known.
    pub(super) is_trace: bool,
    /// Number of the file, among those of the writer.
    pub(super) file: usize,
    /// Number of rounds that were over when it was drained, if its samples are to be unwound.
    pub(super) round: Option<u64>,
}

/// Contents of the files by now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub counts: Counts,
    /// Places of AUX trace.
    pub traces: Vec<u64>,
    /// Number of batches that had to wait for room.
    pub stalls: u64,
    /// Callchains that were unwound.
    pub(crate) chains: Chains,
}

impl Written {
    pub(super) fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.traces.extend(&other.traces);
        self.stalls += other.stalls;
        self.chains.add(&other.chains);
    }
}

/// The batches that wait.
#[derive(Debug)]
pub(super) struct Queue {
    /// Number of bytes that may wait.
    most: usize,
    state: Mutex<QueueState>,
    /// There is a batch, or there will be none.
    filled: Condvar,
    /// There is more room, or an error.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    batches: VecDeque<Batch>,
    /// Bytes that wait or are being written.
    bytes: usize,
    spare: Vec<Vec<u8>>,
    is_closed: bool,
    /// Number of rounds that are over.
    rounds: u64,
    /// Threads waiting for room or for the queue to drain.
    waiting: usize,
    failed: Option<Error>,
    written: Written,
}

impl Queue {
    /// Creates a queue for this many bytes; a single batch may be longer.
    pub(super) fn new(most: usize) -> Self {
        Self { most, state: Mutex::default(), filled: Condvar::new(), emptied: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        // Nothing is done under the lock that could panic halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies parts into one buffer.
    pub(super) fn gather(&self, parts: &[IoSlice<'_>]) -> Vec<u8> {
        let mut bytes = self.state().spare.pop().unwrap_or_default();
        bytes.reserve_exact(parts.iter().map(|part| part.len()).sum());
        for part in parts {
            bytes.extend_from_slice(part);
        }
        bytes
    }

    /// Appends a batch, when there is room for it.
    pub(super) fn push(&self, batch: Batch) -> Result<()> {
        let length = batch.bytes.len();
        let mut state = self.state();
        let is_full = |state: &QueueState| {
            state.failed.is_none() && state.bytes > 0 && state.bytes + length > self.most
        };
        if is_full(&state) {
            state.written.stalls += 1;
            state = self.wait(state, is_full);
        }
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        state.bytes += length;
        state.batches.push_back(batch);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits until all batches are written, and returns what is in the files then.
    pub(super) fn settle(&self) -> Result<Written> {
        let state = self.wait(self.state(), |state| state.failed.is_none() && state.bytes > 0);
        state.failed.clone().map_or_else(|| Ok(state.written.clone()), Err)
    }

    /// Waits for batches to be written. Meanwhile none is held.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, QueueState>,
        waits: impl Fn(&QueueState) -> bool,
    ) -> MutexGuard<'a, QueueState> {
        state.waiting += 1;
        self.filled.notify_all();
        let state = self.emptied.wait_while(state, |state| waits(state));
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    /// Says how many rounds are over, so that batches that were held may be written.
    pub(super) fn end_round(&self, rounds: u64) {
        self.state().rounds = rounds;
        self.filled.notify_all();
    }

    /// Returns what is in the files by now.
    pub(super) fn written(&self) -> Written {
        self.state().written.clone()
    }

    /// Says that no more batches come.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.filled.notify_all();
    }

    /// Returns the next batch, when there is one; `None` after the last one, and after an error.
    pub(super) fn next(&self) -> Option<Batch> {
        let waits = |state: &mut QueueState| {
            let is_empty = state.batches.front().is_none_or(|first| state.holds(first, self.most));
            is_empty && !state.is_closed && state.failed.is_none()
        };
        let mut state =
            self.filled.wait_while(self.state(), waits).unwrap_or_else(PoisonError::into_inner);
        state.batches.pop_front()
    }

    /// Says that a batch is in its file, at this place.
    pub(super) fn wrote(&self, batch: Batch, at: u64, chains: &Chains) {
        let mut state = self.state();
        state.written.chains.add(chains);
        state.bytes -= batch.bytes.len();
        state.written.counts.add(&batch.counts);
        if batch.is_trace {
            state.written.traces.push(at);
        }
        let mut bytes = batch.bytes;
        if state.spare.len() < SPARE && bytes.capacity() <= SPARE_BYTES {
            bytes.clear();
            state.spare.push(bytes);
        }
        drop(state);
        self.emptied.notify_all();
    }

    /// Ends the writing: no batch that waits is written any more.
    pub(super) fn fail(&self, why: Error) {
        let mut state = self.state();
        state.failed.get_or_insert(why);
        state.batches.clear();
        drop(state);
        self.filled.notify_all();
        self.emptied.notify_all();
    }
}

impl QueueState {
    /// Returns whether a batch is not to be written yet: records that are older than its samples
    /// may be in the rings until the round after its own is over.
    fn holds(&self, batch: &Batch, most: usize) -> bool {
        let is_early = batch.round.is_some_and(|round| self.rounds < round + 2);
        is_early && self.waiting == 0 && self.bytes <= most / 2
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn batch(length: usize) -> Batch {
        let counts = Counts { samples: 1, ..Counts::default() };
        Batch {
            bytes: vec![1; length],
            counts,
            is_trace: length.is_multiple_of(2),
            ..Batch::default()
        }
    }

    #[test]
    fn what_is_written_is_counted_and_its_room_is_free_again() {
        let queue = Queue::new(100);
        for length in [60, 40] {
            queue.push(batch(length)).unwrap();
        }
        thread::scope(|scope| {
            let third = scope.spawn(|| queue.push(batch(41)));
            thread::sleep(Duration::from_millis(20));
            assert!(!third.is_finished(), "there is no room");
            queue.wrote(queue.next().unwrap(), 8, &Chains::default());
            third.join().unwrap().unwrap();
        });
        assert_eq!(queue.written().counts.samples, 1);
        queue.close();
        while let Some(batch) = queue.next() {
            queue.wrote(batch, 9, &Chains::default());
        }
        let written = queue.settle().unwrap();
        assert_eq!((written.counts.samples, written.traces, written.stalls), (3, vec![8, 9], 1));
    }

    #[test]
    fn a_batch_that_is_longer_than_the_queue_passes_alone() {
        let queue = Queue::new(10);
        queue.push(batch(1000)).unwrap();
        thread::scope(|scope| {
            let second = scope.spawn(|| queue.push(batch(1000)));
            queue.wrote(queue.next().unwrap(), 0, &Chains::default());
            second.join().unwrap().unwrap();
        });
        assert_eq!(queue.state().bytes, 1000);
    }

    #[test]
    fn an_error_reaches_whoever_waits() {
        let queue = Queue::new(10);
        queue.push(batch(10)).unwrap();
        let why = || Error::Unwritable("the disk is full".to_owned());
        thread::scope(|scope| {
            let second = scope.spawn(|| queue.push(batch(10)));
            thread::sleep(Duration::from_millis(20));
            queue.fail(why());
            assert_eq!(second.join().unwrap().unwrap_err().to_string(), why().to_string());
        });
        assert!(queue.next().is_none() && queue.settle().is_err() && queue.push(batch(1)).is_err());
        assert_eq!(queue.written().counts, Counts::default());
    }

    #[test]
    fn a_batch_of_a_round_is_held_until_the_next_round_is_over() {
        let queue = Queue::new(100);
        let next = |queue: &Queue| {
            let state = queue.state();
            let held = state.batches.front().map(|first| state.holds(first, queue.most));
            drop(state);
            (held == Some(false)).then(|| queue.next().unwrap().bytes.len())
        };
        for (length, round) in [(10, Some(0)), (11, None), (12, Some(1)), (30, Some(1))] {
            queue.push(Batch { bytes: vec![0; length], round, ..Batch::default() }).unwrap();
        }
        let held = queue.state();
        assert!(held.bytes > 50, "so that the first is not held for lack of room");
        drop(held);
        assert_eq!(next(&queue), Some(10));
        queue.wrote(batch(10), 0, &Chains::default());
        queue.wrote(batch(10), 0, &Chains::default());
        assert_eq!((next(&queue), next(&queue)), (Some(11), None));
        queue.end_round(2);
        assert_eq!(next(&queue), None);
        queue.end_round(3);
        assert_eq!((next(&queue), next(&queue)), (Some(12), Some(30)));
        queue.push(Batch { bytes: vec![0; 1], round: Some(9), ..Batch::default() }).unwrap();
        assert_eq!(next(&queue), None);
        queue.close();
        assert_eq!(queue.next().unwrap().bytes.len(), 1);
    }

    #[test]
    fn nothing_is_held_from_who_waits_for_room_or_for_the_end() {
        let queue = Queue::new(100);
        let of = |length| Batch { round: Some(7), bytes: vec![0; length], ..Batch::default() };
        queue.push(of(40)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                while let Some(batch) = queue.next() {
                    queue.wrote(batch, 0, &Chains::default());
                }
            });
            queue.push(of(70)).unwrap();
            queue.settle().unwrap();
            queue.close();
        });
    }

    #[test]
    fn buffers_are_used_again() {
        let queue = Queue::new(1 << 20);
        queue.push(Batch { bytes: vec![0; 5000], ..Batch::default() }).unwrap();
        queue.wrote(queue.next().unwrap(), 0, &Chains::default());
        let again = queue.gather(&[IoSlice::new(b"ab"), IoSlice::new(b"c")]);
        assert_eq!((again.as_slice(), again.capacity()), (&b"abc"[..], 5000));
    }
}
