//! Borrowed view of an area's unread bytes, and of the records in it.

use std::ops::Range;

use recrep_format::endian::Endian;
use recrep_format::read::Frames;
use recrep_format::record::{HEADER_SIZE, RawRecord, RecordHeader};

/// Unread bytes in order: those up to the end of the area, then those that wrapped to its
/// beginning.
#[derive(Clone, Copy, Debug)]
pub struct Pending<'r> {
    pub first: &'r [u8],
    /// The second half; empty if nothing wraps.
    pub second: &'r [u8],
    head: u64,
}

impl<'r> Pending<'r> {
    pub(crate) fn new(first: &'r [u8], second: &'r [u8], head: u64) -> Self {
        Self { first, second, head }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.first.len() + self.second.len()
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.second.is_empty()
    }

    /// Returns the bytes up to a mark that was made before.
    pub fn until(&self, mark: Mark) -> Self {
        // A head that went back since, which it must not, is an error of the next look at the ring.
        let head = mark.0.min(self.head);
        let later = usize::try_from(self.head - head).unwrap_or(usize::MAX);
        let all = self.len().saturating_sub(later);
        let (first, second) = self.part(0..all);
        Self { first, second, head }
    }

    /// Returns the two halves of a part.
    pub fn part(&self, part: Range<usize>) -> (&'r [u8], &'r [u8]) {
        let length = self.first.len();
        let behind = part.start.saturating_sub(length)..part.end.saturating_sub(length);
        (part_of(self.first, part), part_of(self.second, behind))
    }

    /// Calls `each` for the records, in order. Their offsets count from the first; one that wraps
    /// is copied into `scratch`. Returns the number of bytes up to the end of the last record:
    /// fewer than there are if what follows is no record.
    #[inline]
    pub fn records(&self, scratch: &mut Vec<u8>, mut each: impl FnMut(&RawRecord<'_>)) -> usize {
        let mut walk = |bytes, offset| {
            let mut frames = Frames::new(bytes, offset, Endian::NATIVE);
            while let Some(Ok(record)) = frames.next() {
                each(&record);
            }
            frames.left().len()
        };
        let mut whole = self.first.len() - walk(self.first, 0);
        let rest = self.first.get(whole..).unwrap_or_default();
        if let Some(header) = rest.first_chunk::<HEADER_SIZE>() {
            let size = usize::from(RecordHeader::read(*header, Endian::NATIVE).size);
            let (_, end) = self.part(whole..whole + size);
            scratch.clear();
            scratch.extend_from_slice(rest);
            scratch.extend_from_slice(end);
            whole += scratch.len() - walk(scratch, whole as u64);
        }
        match whole.checked_sub(self.first.len()).and_then(|begun| self.second.get(begun..)) {
            Some(second) => self.len() - walk(second, whole as u64),
            None => whole,
        }
    }

    /// Returns the mark to pass to `Ring::release`.
    pub fn mark(&self) -> Mark {
        Mark(self.head)
    }
}

fn part_of(half: &[u8], part: Range<usize>) -> &[u8] {
    half.get(part.start..part.end.min(half.len())).unwrap_or_default()
}

/// Position up to which a ring was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub(super) u64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::fake_ring::fake_record;

    /// The words of a stream's records and what remains, where the ring wraps at `cut`.
    fn walked(stream: &[u8], cut: usize) -> (Vec<Vec<u8>>, usize) {
        let mut records = Vec::new();
        let pending = Pending::new(&stream[..cut], &stream[cut..], stream.len() as u64);
        let whole = pending.records(&mut Vec::new(), |record| {
            let begun: usize = records.iter().map(Vec::len).sum();
            assert_eq!(record.offset, begun as u64);
            records.push(record.bytes.to_vec());
        });
        (records, stream.len() - whole)
    }

    #[test]
    fn records_are_the_same_wherever_the_ring_wraps() {
        let records =
            [fake_record(9, &[1, 2, 3]), fake_record(68, &[]), fake_record(2, &[4, 5, 6, 7])];
        let stream = records.concat();
        for cut in (0..=stream.len()).step_by(8) {
            assert_eq!(walked(&stream, cut), (records.to_vec(), 0), "wraps at {cut}");
            // The last record lacks a word; then it has a size that cannot be.
            let short = &stream[..stream.len() - 8];
            assert_eq!(
                walked(short, cut.min(short.len())),
                (records[..2].to_vec(), 32),
                "wraps at {cut}"
            );
            let mut zero = stream.clone();
            let last = zero.len() - 40;
            zero[last + 6..last + 8].fill(0);
            assert_eq!(walked(&zero, cut), (records[..2].to_vec(), 40), "wraps at {cut}");
        }
    }

    #[test]
    fn parts_and_what_was_there_before() {
        let pending = Pending::new(b"abc", b"defg", 107);
        assert_eq!(pending.part(1..6), (&b"bc"[..], &b"def"[..]));
        assert_eq!(pending.part(4..7), (&b""[..], &b"efg"[..]));
        let before = pending.until(Mark(104));
        assert_eq!(
            (before.first, before.second, before.mark()),
            (&b"abc"[..], &b"d"[..], Mark(104))
        );
        assert_eq!(pending.until(Mark(102)).len(), 2);
        assert_eq!(pending.until(Mark(109)).mark(), Mark(107));
    }
}
