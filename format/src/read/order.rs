//! Records in order of time.
//!
//! A recorder drains one ring after another, so records of different CPUs lie in the file out of order. What it promises is
//! the round: after it has drained every ring once, it writes FINISHED_ROUND, and whatever it reads from then on is newer
//! than all that was read one round before.
//!
//! ```text
//!   file     a1 a4 b2 b3 | a5 a8 b6 b7 | a9 b10 …      a, b: rings; numbers: times; |: FINISHED_ROUND
//!   newest             4             8
//!   returned              (nothing)     1 2 3 4    5 6 7 8
//! ```
//!
//! So at the end of a round all records are returned that are not newer than the newest one at the end of the round
//! before. Records of equal time are returned in the order of the file.
//!
//! - A record without a time (of an event without TIME, of perf's own types, or with the time 0 or all ones, as
//!   synthesized records have it) is returned where it stands in the file, before the records that wait.
//! - A record that is older than one already returned comes with the next ones; [`Ordered::late`] counts it.
//! - If more than [`Ordered::with_limit`] bytes wait, as in a stream without rounds, the older half is returned.
//! - The files of a directory have no rounds. Of them the one is read whose newest record is the oldest.
//!
//! A record that waits is copied; the copies of a round lie together, and their memory is used again.

use std::io::Read;

use super::recording::{RecordRef, Recording};
use crate::abi::RecordType;
use crate::error::Result;
use crate::read::frames::frame;

/// The records of a [`Recording`] in order of time, in bounded memory.
/// ```
/// use recrep_format::read::Recording;
///
/// fn times(input: impl std::io::Read) -> recrep_format::error::Result<Vec<u64>> {
///     let mut records = Recording::new(input)?.ordered();
///     let mut times = Vec::new();
///     while let Some(record) = records.next_record() {
///         times.extend(record?.time());
///     }
///     Ok(times)
/// }
/// # assert_eq!(times(&b"PERFILE2\x10\0\0\0\0\0\0\0"[..]), Ok(vec![]));
/// ```
#[derive(Debug)]
pub struct Ordered<R> {
    recording: Recording<R>,
    /// Newest time in each stream, and whether it goes on.
    streams: Vec<Ahead>,
    waiting: Waiting,
    /// Newest time at the end of the round before.
    round: u64,
    /// Number of records that were older than one already returned.
    late: u64,
    limit: usize,
    next: Next,
}

/// How far a stream was read.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    newest: u64,
    is_done: bool,
}

/// What follows the record that was returned last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Read,
    /// The round ended with that record.
    EndRound,
    Finished,
}

impl<R: Read> Ordered<R> {
    /// Default limit of the records that wait, in bytes.
    const LIMIT: usize = 256 << 20;

    pub(super) fn new(recording: Recording<R>) -> Self {
        let streams = vec![Ahead { newest: 0, is_done: false }; recording.stream_count()];
        let waiting = Waiting::default();
        Self { recording, streams, waiting, round: 0, late: 0, limit: Self::LIMIT, next: Next::Read }
    }

    /// Sets the number of bytes of records that may wait, 256 MiB by default. perf's rounds need as much as all its rings
    /// together; where less is allowed, records may be late.
    #[must_use]
    pub fn with_limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Returns the recording.
    #[must_use]
    pub fn recording(&self) -> &Recording<R> {
        &self.recording
    }

    /// Returns the number of records that came after a newer one.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Returns the next record; `None` at the end. The record is there until the next call.
    ///
    /// An error is returned where it is met in the file; the records that wait follow it.
    pub fn next_record(&mut self) -> Option<Result<RecordRef<'_>>> {
        loop {
            if let Some(at) = self.waiting.next() {
                return Some(self.waiting_record(at));
            }
            match self.next {
                Next::Finished => return None,
                Next::EndRound => {
                    self.next = Next::Read;
                    self.waiting.release(self.round);
                    self.round = self.waiting.newest;
                    continue;
                }
                Next::Read => {}
            }
            let Some(stream) = self.oldest() else {
                self.next = Next::Finished;
                self.waiting.release(u64::MAX);
                continue;
            };
            let place = match self.recording.advance(stream) {
                Ok(Some(place)) => place,
                outcome => {
                    let ended = matches!(outcome, Ok(None));
                    if let Some(ahead) = self.streams.get_mut(stream) {
                        ahead.is_done = ended;
                    }
                    match outcome {
                        Err(error) => return Some(Err(error)),
                        Ok(_) => continue,
                    }
                }
            };
            match self.wait(stream, place) {
                Ok(true) => {}
                Ok(false) => return Some(self.recording.record(stream, place)),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Has a record wait for its turn; returns `false` if it is to be returned at once.
    #[inline]
    fn wait(&mut self, stream: usize, place: super::stream::Place) -> Result<bool> {
        let record = self.recording.record(stream, place)?;
        let Some(time) = record.time().filter(|time| !matches!(*time, 0 | u64::MAX)) else {
            if record.kind() == RecordType::FINISHED_ROUND {
                self.next = Next::EndRound;
            }
            return Ok(false);
        };
        if let Some(ahead) = self.streams.get_mut(stream) {
            ahead.newest = ahead.newest.max(time);
        }
        self.late += u64::from(time < self.waiting.returned);
        self.waiting.add(time, &record);
        if self.waiting.len() > self.limit {
            self.waiting.release_half();
        }
        Ok(true)
    }

    /// Returns the stream that was read least far.
    #[inline]
    fn oldest(&self) -> Option<usize> {
        match &self.streams[..] {
            [only] => (!only.is_done).then_some(0),
            streams => {
                let going = streams.iter().enumerate().filter(|(_, ahead)| !ahead.is_done);
                going.min_by_key(|(_, ahead)| ahead.newest).map(|(stream, _)| stream)
            }
        }
    }

    fn waiting_record(&self, at: usize) -> Result<RecordRef<'_>> {
        let (bytes, offset, stream) = self.waiting.record(at);
        let raw = frame(bytes, offset, self.recording.endian())?;
        Ok(RecordRef { raw, attrs: self.recording.attrs(), stream })
    }
}

/// Records that wait for their turn.
#[derive(Debug, Default)]
struct Waiting {
    /// The records: those before `next` were returned, those before `ready` are to be returned, in order of time.
    records: Vec<Copied>,
    next: usize,
    ready: usize,
    chunks: Chunks,
    /// Newest time of all records.
    newest: u64,
    /// Newest time of the records that were returned.
    returned: u64,
}

/// A record that was copied to a chunk.
#[derive(Clone, Copy, Debug)]
struct Copied {
    time: u64,
    offset: u64,
    chunk: u32,
    start: u32,
    len: u16,
    stream: u16,
}

impl Waiting {
    fn add(&mut self, time: u64, record: &RecordRef<'_>) {
        self.newest = self.newest.max(time);
        let bytes = record.raw.bytes;
        let (chunk, start) = self.chunks.add(bytes);
        // A record has at most 65,535 bytes, as its header tells; so have streams a number that small.
        let (len, stream) = (record.raw.header.size, u16::try_from(record.stream).unwrap_or(u16::MAX));
        self.records.push(Copied { time, offset: record.raw.offset, chunk, start, len, stream });
    }

    /// Returns the number of bytes held.
    fn len(&self) -> usize {
        self.chunks.len + self.records.len() * size_of::<Copied>()
    }

    /// Makes the records ready that are not newer than `time`, and forgets those that were returned.
    fn release(&mut self, time: u64) {
        self.sort();
        self.ready = self.records.partition_point(|record| record.time <= time);
    }

    /// Makes the older half of the records ready.
    fn release_half(&mut self) {
        self.sort();
        let middle = self.records.get(self.records.len() / 2).map_or(0, |record| record.time);
        self.ready = self.records.partition_point(|record| record.time <= middle);
    }

    fn sort(&mut self) {
        for record in self.records.drain(..self.ready) {
            self.chunks.release(record.chunk);
        }
        self.next = 0;
        // Stable, and fast where rings follow one another: each is a run.
        self.records.sort_by_key(|record| record.time);
    }

    /// Returns the index of the next record that is ready.
    #[inline]
    fn next(&mut self) -> Option<usize> {
        let at = self.next;
        if at == self.ready {
            return None;
        }
        self.next += 1;
        self.returned = self.returned.max(self.records.get(at)?.time);
        Some(at)
    }

    /// Returns the bytes, offset and stream of a record.
    fn record(&self, at: usize) -> (&[u8], u64, usize) {
        let Some(record) = self.records.get(at) else { return (&[], 0, 0) };
        (self.chunks.get(record), record.offset, usize::from(record.stream))
    }
}

/// Memory of the records that wait.
#[derive(Debug, Default)]
struct Chunks {
    all: Vec<Chunk>,
    /// Chunk that is being filled, and chunks whose memory is free.
    current: Option<u32>,
    free: Vec<u32>,
    /// Number of bytes of all chunks in use.
    len: usize,
}

#[derive(Debug, Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// Number of records that were not released.
    records: usize,
}

impl Chunks {
    /// Length of a chunk in bytes.
    const CHUNK: usize = 1 << 20;

    /// Copies a record; returns its chunk and its place there.
    fn add(&mut self, bytes: &[u8]) -> (u32, u32) {
        let fits = |chunk: &Chunk| chunk.bytes.len() + bytes.len() <= Self::CHUNK;
        let current = self.current.filter(|chunk| self.all.get(*chunk as usize).is_some_and(fits));
        let number = current.unwrap_or_else(|| self.begin());
        let Some(chunk) = self.all.get_mut(number as usize) else { return (0, 0) };
        let start = u32::try_from(chunk.bytes.len()).unwrap_or(0);
        chunk.bytes.extend_from_slice(bytes);
        chunk.records += 1;
        self.len += bytes.len();
        (number, start)
    }

    /// Begins a chunk, with the memory of a free one if there is one.
    fn begin(&mut self) -> u32 {
        let before = self.current;
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push(Chunk { bytes: Vec::with_capacity(Self::CHUNK), records: 0 });
            u32::try_from(self.all.len() - 1).unwrap_or(0)
        });
        self.current = Some(number);
        before.into_iter().for_each(|chunk| self.reuse(chunk));
        number
    }

    fn get(&self, record: &Copied) -> &[u8] {
        let bytes = self.all.get(record.chunk as usize).map_or(&[][..], |chunk| &chunk.bytes);
        bytes.get(record.start as usize..).and_then(|rest| rest.get(..usize::from(record.len))).unwrap_or_default()
    }

    /// Releases a record of a chunk.
    fn release(&mut self, number: u32) {
        if let Some(chunk) = self.all.get_mut(number as usize) {
            chunk.records -= 1;
        }
        if self.current != Some(number) {
            self.reuse(number);
        }
    }

    /// Frees the memory of a chunk if all its records were released.
    fn reuse(&mut self, number: u32) {
        if let Some(chunk) = self.all.get_mut(number as usize).filter(|chunk| chunk.records == 0) {
            self.len -= chunk.bytes.len();
            chunk.bytes.clear();
            self.free.push(number);
        }
    }
}
