//! Cutting of traces at the ends of records.

use std::ops::Range;

use recrep_trace::spe::{Packet, PacketError, Record, RecordReader};

use crate::decode::queues::{TraceQueue, TraceStretch};

/// Usual length of a part in bytes.
const PART: u64 = 256 << 10;

/// Most bytes of a packet that lies across two slices.
const LONGEST: u64 = 16;

/// What a record's samples take from the records before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    /// Thread that the last context packet names.
    pub context: Option<u32>,
    /// Last timestamp.
    pub timestamp: Option<u64>,
    /// Number of records.
    pub records: u64,
}

impl Before {
    /// Takes a record into account.
    pub(super) fn pass(&mut self, record: &Record) {
        self.context = record.context.or(self.context);
        self.timestamp = record.timestamp.or(self.timestamp);
        self.records += 1;
    }
}

/// A part of a stretch, from the end of one record to that of another.
#[derive(Debug)]
pub(super) struct SpePart {
    pub queue: usize,
    pub stretch: usize,
    /// Offsets in the stretch.
    pub range: Range<u64>,
    pub before: Before,
}

/// Parts of a ring's trace.
#[derive(Debug, Default)]
pub(super) struct RingParts {
    pub parts: Vec<SpePart>,
    /// `true` if any record says which thread it is of.
    pub has_contexts: bool,
}

impl RingParts {
    /// Cuts the trace of a ring, whose number is `queue`.
    pub(super) fn cut(queue: usize, ring: &TraceQueue<'_>) -> Self {
        let (mut all, mut before) = (Self::default(), Before::default());
        for (number, stretch) in ring.stretches.iter().enumerate() {
            let mut reader = RecordReader::default();
            let mut part = SpePart { queue, stretch: number, range: 0..0, before };
            let mut packets = Packets::new(stretch, 0..stretch.len);
            while let Some(packet) = packets.next() {
                match packet.map(|packet| reader.take(&packet)) {
                    Ok(None) => {}
                    Ok(Some(record)) => {
                        before.pass(&record);
                        let at = packets.at;
                        if at - part.range.start >= PART {
                            let next = SpePart { range: at..at, before, ..part };
                            all.parts.push(SpePart { range: part.range.start..at, ..part });
                            part = next;
                        }
                    }
                    Err(_) => reader.reset(),
                }
            }
            if stretch.len > part.range.start {
                all.parts.push(SpePart { range: part.range.start..stretch.len, ..part });
            }
        }
        all.has_contexts = before.context.is_some();
        all
    }
}

/// Packets of a range of a stretch. After bytes that are no packet, it goes on at the next byte.
#[derive(Debug)]
pub(super) struct Packets<'s> {
    stretch: &'s TraceStretch<'s>,
    /// Bytes at `at`, up to the end of their slice.
    slice: &'s [u8],
    /// Offset of the next packet in the stretch.
    pub at: u64,
    end: u64,
}

impl<'s> Packets<'s> {
    pub(super) fn new(stretch: &'s TraceStretch<'s>, range: Range<u64>) -> Self {
        Self { stretch, slice: &[], at: range.start, end: range.end }
    }

    fn pass(&mut self, len: usize) {
        self.slice = self.slice.get(len..).unwrap_or_default();
        self.at += len as u64;
    }
}

impl Iterator for Packets<'_> {
    type Item = Result<Packet, PacketError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        if self.slice.is_empty() {
            self.slice = self.stretch.slice_at(self.at);
        }
        let offset = self.stretch.start + self.at;
        let mut read = Packet::read(self.slice, offset);
        if read == Err(PacketError::Incomplete) {
            // The packet may go on in the next slice.
            read = Packet::read(&self.stretch.bytes(self.at..self.at + LONGEST), offset);
        }
        match read {
            Ok((packet, len)) => {
                self.pass(len);
                Some(Ok(packet))
            }
            Err(error) => {
                self.pass(1);
                Some(Err(error))
            }
        }
    }
}
