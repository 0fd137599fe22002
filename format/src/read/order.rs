//! Order of time.

use super::record_ref::RecordRef;
use super::recording::Recording;
use super::stream::{Found, HeldRecord};
use super::window::Input;
use crate::abi::RecordType;
use crate::error::Result;

/// The records of a [`Recording`] in order of time, in bounded memory.
///
/// A recorder drains one ring after another, so records of different CPUs lie in the file out of
/// order. What it promises is the round: after it has drained every ring once, it writes
/// FINISHED_ROUND, and whatever it reads from then on is newer than all that was read one round
/// before.
///
/// ```text
///   file     a1 a4 b2 b3 | a5 a8 b6 b7 | a9 b10 …      a, b: rings; numbers: times; |: FINISHED_ROUND
///   newest             4             8
///   returned              (nothing)     1 2 3 4    5 6 7 8
/// ```
///
/// So at the end of a round all records are returned that are not newer than the newest one at the
/// end of the round before. Records of equal time are returned in the order of reading.
///
/// - A record without a time (of an event without TIME, of perf's own types, or with the time 0 or
///   all ones, as synthesized records have it) is returned where it stands in the file, before the
///   records that wait.
/// - A record that is older than one already returned comes with the next ones;
///   [`late`](Self::late) counts it.
/// - If more than [`with_limit`](Self::with_limit) bytes wait, as in a stream without rounds, the
///   older half is returned; all, if the blocks of memory that they keep, with what lies between
///   them, have four times as much.
/// - The files of a directory have no rounds. Of them the one is read whose newest record is the
///   oldest.
///
/// A record that waits stays where it was read; the memory is used again when all records in it
/// were returned.
///
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
pub struct Ordered<I> {
    recording: Recording<I>,
    /// Newest time in each stream.
    newest: Vec<u64>,
    waiting: Waiting,
    /// Newest time at the end of the round before.
    round: u64,
    /// Number of records that were older than one already returned.
    late: u64,
    limit: usize,
    next: Next,
}

/// The step after the record that was returned last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Read,
    /// The round ended with that record.
    EndRound,
    Finished,
}

impl<I: Input> Recording<I> {
    /// Returns the records in order of time.
    #[must_use]
    pub fn ordered(self) -> Ordered<I> {
        let newest = vec![0; self.stream_count()];
        let (waiting, limit) = (Waiting::default(), Ordered::<I>::LIMIT);
        Ordered { recording: self, newest, waiting, round: 0, late: 0, limit, next: Next::Read }
    }
}

impl<I: Input> Ordered<I> {
    /// Default limit of the records that wait, in bytes.
    const LIMIT: usize = 256 << 20;
    /// Number of bytes of blocks that may be kept whatever the limit.
    const MIN_PINNED: usize = 64 << 20;

    /// Sets the number of bytes of records that may wait, 256 MiB by default. perf's rounds need as
    /// much as all its rings together; where less is allowed, records may be late.
    #[must_use]
    pub fn with_limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Returns the recording.
    pub fn recording(&self) -> &Recording<I> {
        &self.recording
    }

    /// Returns the number of records that came after a newer one.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Returns the next record; `None` at the end. The record is there until the next call.
    ///
    /// An error is returned where it is met in the file; the records that wait follow it. As with
    /// [`Recording::next_record`], the reading then goes on with the next file of a directory, or
    /// ends.
    #[inline]
    pub fn next_record(&mut self) -> Option<Result<RecordRef<'_>>> {
        loop {
            if let Some(record) = self.waiting.next() {
                let found = self.recording.held(usize::from(record.stream), record.held);
                let len = found.as_ref().map_or(0, |found| found.raw.bytes.len());
                self.waiting.bytes -= len + size_of::<WaitingRecord>();
                return Some(found);
            }
            match self.next {
                Next::Finished => return None,
                Next::EndRound => {
                    self.next = Next::Read;
                    let round = self.round;
                    self.release(|_| round);
                    self.round = self.newest.iter().copied().max().unwrap_or(0);
                    continue;
                }
                Next::Read => {}
            }
            let Some(stream) = self.oldest() else {
                self.next = Next::Finished;
                self.release(|_| u64::MAX);
                continue;
            };
            match self.recording.advance(stream) {
                Ok(Some(found)) if self.waits(stream, found) => {}
                Ok(Some(found)) => return Some(self.recording.found(stream, found)),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Has a record wait for its turn; returns `false` if it is to be returned at once.
    #[inline]
    fn waits(&mut self, stream: usize, found: Found) -> bool {
        let Some(time) = self.recording.found(stream, found).ok().and_then(|record| record.time())
        else {
            if found.header.kind == RecordType::FINISHED_ROUND {
                self.next = Next::EndRound;
            }
            return false;
        };
        let (Some(held), Ok(number)) = (self.recording.hold(stream, found), u16::try_from(stream))
        else {
            return false;
        };
        if let Some(newest) = self.newest.get_mut(stream) {
            *newest = time.max(*newest);
        }
        self.late += u64::from(time < self.waiting.returned);
        self.waiting.records.push(WaitingRecord { time, held, stream: number });
        self.waiting.bytes += found.len + size_of::<WaitingRecord>();
        if self.waiting.bytes > self.limit {
            self.release(|records| records.get(records.len() / 2).map_or(0, |record| record.time));
        } else if self.recording.pinned() > self.limit.saturating_mul(4).max(Self::MIN_PINNED) {
            // Few records among much else: one keeps a whole block, so only all of them give it
            // back.
            self.release(|_| u64::MAX);
        }
        true
    }

    /// Makes the records ready that are not newer than a time, which may depend on the sorted
    /// records, and forgets those that were returned.
    fn release(&mut self, until: impl Fn(&[WaitingRecord]) -> u64) {
        let Waiting { records, next, ready, .. } = &mut self.waiting;
        for record in records.drain(..*ready) {
            self.recording.release(usize::from(record.stream), record.held);
        }
        // Stable, and fast where rings follow one another: each is a run.
        records.sort_by_key(|record| record.time);
        let time = until(records);
        *ready = records.partition_point(|record| record.time <= time);
        *next = 0;
    }

    /// Returns the stream that was read least far.
    #[inline]
    fn oldest(&self) -> Option<usize> {
        let going =
            self.newest.iter().enumerate().filter(|(stream, _)| !self.recording.is_done(*stream));
        going.min_by_key(|(_, newest)| **newest).map(|(stream, _)| stream)
    }
}

/// Records that wait for their turn.
#[derive(Debug, Default)]
struct Waiting {
    /// The records: those before `next` were returned, those before `ready` are to be returned, in
    /// order of time.
    records: Vec<WaitingRecord>,
    next: usize,
    ready: usize,
    /// Number of bytes of the records that wait.
    bytes: usize,
    /// Newest time of the records that were returned.
    returned: u64,
}

/// A record that waits.
#[derive(Clone, Copy, Debug)]
struct WaitingRecord {
    time: u64,
    held: HeldRecord,
    stream: u16,
}

impl Waiting {
    /// Returns the next record that is ready.
    #[inline]
    fn next(&mut self) -> Option<WaitingRecord> {
        if self.next == self.ready {
            return None;
        }
        let record = *self.records.get(self.next)?;
        self.next += 1;
        self.returned = self.returned.max(record.time);
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use super::*;
    use crate::abi::{AttrFlags, SampleType};
    use crate::attr::Attr;
    use crate::bytes::{Encoder, U64s};
    use crate::endian::Endian;
    use crate::read::Magic;
    use crate::record::{Body, HeaderAttr, RecordHeader};

    /// Pieces of a pipe without rounds: a small sample, then a large record without a time.
    struct Sparse {
        piece: Vec<u8>,
        at: usize,
        left: usize,
    }

    impl Read for Sparse {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            if self.at == self.piece.len() && self.left > 0 {
                (self.at, self.left) = (0, self.left - 1);
            }
            let len = (&self.piece[self.at..]).read(to)?;
            self.at += len;
            Ok(len)
        }
    }

    #[test]
    fn few_records_among_much_else_do_not_keep_it() {
        let mut e = Encoder::new(Endian::Little);
        e.bytes(&Magic::bytes(Endian::Little));
        e.u64(16);
        let attr = Attr {
            sample_type: SampleType::TIME,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        };
        let ids = U64s::new(&[], Endian::Little);
        crate::record::Record::new(0, Body::HeaderAttr(HeaderAttr { attr, ids }))
            .encode(&mut e)
            .unwrap();
        let mut piece = Encoder::new(Endian::Little);
        RecordHeader { kind: RecordType::SAMPLE, misc: 2, size: 16 }.encode(&mut piece);
        piece.u64(77);
        for _ in 0..4 {
            RecordHeader { kind: RecordType(99), misc: 0, size: 65_528 }.encode(&mut piece);
            piece.padded(&[], 65_520);
        }
        let pieces = Sparse { piece: piece.into_bytes(), at: 0, left: 1000 };
        let head = e.into_bytes();
        let mut records = Recording::new(head.chain(pieces)).unwrap().ordered();
        let (mut samples, mut most) = (0, 0);
        records.limit = 1 << 20;
        while let Some(record) = records.next_record() {
            samples += u32::from(record.unwrap().kind() == RecordType::SAMPLE);
            most = most.max(records.recording.pinned());
        }
        assert_eq!(samples, 1001);
        let limit = Ordered::<super::super::Reader<Sparse>>::MIN_PINNED;
        assert!((limit..limit + (1 << 20)).contains(&most), "{most}");
    }
}
