//! Framing: where each record begins and ends, and nothing more.
//!
//! Only headers are read. A size that cannot be ends the walk with an error that says where; what
//! came before it is good.

use crate::abi::RecordType;
use crate::bytes::read_early;
use crate::endian::Endian;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{HEADER_SIZE, RawRecord, RecordHeader};

/// The records in a piece of the data stream, in file order.
///
/// After an error there is nothing more; [`Frames::offset`] is then where the bad record begins.
/// ```
/// use recrep_format::abi::RecordType;
/// use recrep_format::endian::Endian;
/// use recrep_format::read::Frames;
///
/// // A FINISHED_ROUND, and the beginning of another record.
/// let bytes = [68, 0, 0, 0, 0, 0, 8, 0, 1, 0, 0];
/// let mut frames = Frames::new(&bytes, 1000, Endian::Little);
/// let round = frames.next().unwrap().unwrap();
/// assert_eq!((round.header.kind, round.offset), (RecordType::FINISHED_ROUND, 1000));
/// let error = frames.next().unwrap().unwrap_err();
/// assert_eq!(error.offset, 1008);
/// assert!(frames.next().is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    left: &'a [u8],
    offset: u64,
    endian: Endian,
    done: bool,
    /// Number of bytes at the end that were not read early.
    unread: usize,
}

/// Number of bytes that are read early, at once. A header is found only after the one before it was
/// read, and records have any size, so the processor would wait for each: of records of 150 bytes a
/// walk takes a quarter of the time.
const EARLY: usize = 8 << 10;

/// Size in bytes from which on a record is read when its turn comes.
const LONG: usize = 2048;

/// Size of a cache line in bytes.
const LINE: usize = 64;

impl<'a> Frames<'a> {
    /// Returns the records in `bytes`, which begin at byte `offset` of the file.
    pub fn new(bytes: &'a [u8], offset: u64, endian: Endian) -> Self {
        Self { left: bytes, offset, endian, done: false, unread: usize::MAX }
    }

    /// Returns the offset of the next record.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the byte order.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Returns the bytes that were not walked yet.
    pub fn left(&self) -> &'a [u8] {
        self.left
    }
}

/// Returns the record at the beginning of `bytes`, which lie at `offset`;
/// [`ErrorKind::Truncated`] if the bytes end before it does.
#[inline]
fn frame(bytes: &[u8], offset: u64, endian: Endian) -> Result<RawRecord<'_>> {
    let Some((head, _)) = bytes.split_first_chunk::<HEADER_SIZE>() else {
        return Err(Error::truncated(
            offset,
            "a record header",
            HEADER_SIZE as u64,
            bytes.len() as u64,
        ));
    };
    let header = RecordHeader::read(*head, endian);
    let size = header.len();
    if size < HEADER_SIZE {
        let kind = ErrorKind::RecordSize { kind: header.kind.0, size: header.size };
        return Err(Error::new(offset, kind));
    }
    let Some((own, rest)) = bytes.split_at_checked(size) else {
        return Err(Error::truncated(offset, "a record", size as u64, bytes.len() as u64));
    };
    let payload_len = if has_payload(header.kind) { payload_len(header, own, endian) } else { 0 };
    let Some(payload) = usize::try_from(payload_len).ok().and_then(|len| rest.get(..len)) else {
        return Err(Error::truncated(
            offset,
            "the data after a record",
            payload_len,
            rest.len() as u64,
        ));
    };
    Ok(RawRecord { header, offset, bytes: own, payload })
}

/// Returns whether data follows records of this type.
#[inline]
fn has_payload(kind: RecordType) -> bool {
    matches!(kind, RecordType::AUXTRACE | RecordType::TRACING_DATA) || kind.is_simpleperf()
}

/// Returns the number of bytes of data behind a record; 0 for types without, and for a record too
/// short to say.
#[cold]
fn payload_len(header: RecordHeader, bytes: &[u8], endian: Endian) -> u64 {
    match header.kind {
        RecordType::AUXTRACE => endian.u64_at(bytes, HEADER_SIZE).unwrap_or(0),
        RecordType::TRACING_DATA => {
            let len = u64::from(endian.u32_at(bytes, HEADER_SIZE).unwrap_or(0));
            // simpleperf counts the data in the record's size; perf does not, and pads it to 8
            // bytes.
            let is_inside = bytes.len() as u64 >= HEADER_SIZE as u64 + 4 + len;
            if is_inside { 0 } else { len.next_multiple_of(8) }
        }
        _ => header.simpleperf_data_len(),
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<RawRecord<'a>>;

    // A call would pass each record through memory.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.done || self.left.is_empty() {
            return None;
        }
        if self.left.len() <= self.unread {
            self.read_early();
        }
        if let Some((head, _)) = self.left.split_first_chunk::<HEADER_SIZE>() {
            let header = RecordHeader::read(*head, self.endian);
            let size = usize::from(header.size);
            let is_plain = size >= HEADER_SIZE && !has_payload(header.kind);
            if let Some((bytes, left)) = self.left.split_at_checked(size).filter(|_| is_plain) {
                let offset = self.offset;
                (self.left, self.offset) = (left, offset + size as u64);
                return Some(Ok(RawRecord { header, offset, bytes, payload: &[] }));
            }
        }
        Some(self.unusual())
    }
}

impl<'a> Frames<'a> {
    /// Reads the next bytes early, unless the next record is so long that its other bytes would be
    /// read in vain.
    #[cold]
    fn read_early(&mut self) {
        let is_long = |head: &[u8; HEADER_SIZE]| {
            usize::from(RecordHeader::read(*head, self.endian).size) > LONG
        };
        let len = if self.left.first_chunk().is_some_and(is_long) { 1 } else { EARLY };
        read_early(self.left.iter().take(len).step_by(LINE).map(|byte| u64::from(*byte)));
        self.unread = self.left.len().saturating_sub(len);
    }

    /// Returns the next record if data follows it, or the error.
    #[cold]
    fn unusual(&mut self) -> Result<RawRecord<'a>> {
        let item = frame(self.left, self.offset, self.endian);
        match &item {
            Ok(raw) => {
                let len = raw.bytes.len() + raw.payload.len();
                self.left = self.left.get(len..).unwrap_or_default();
                self.offset += len as u64;
            }
            Err(_) => self.done = true,
        }
        item
    }
}

impl std::iter::FusedIterator for Frames<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Encoder;

    fn record(e: &mut Encoder, kind: RecordType, body: &[u8]) {
        let size = u16::try_from(HEADER_SIZE + body.len()).unwrap();
        RecordHeader { kind, misc: 0, size }.encode(e);
        e.bytes(body);
    }

    #[test]
    fn both_orders_find_the_same_records() {
        for endian in [Endian::Little, Endian::Big] {
            let mut e = Encoder::new(endian);
            record(&mut e, RecordType::COMM, &[1; 16]);
            record(&mut e, RecordType::FINISHED_ROUND, &[]);
            let mut aux = Encoder::new(endian);
            aux.u64(3);
            aux.bytes(&[0; 32]);
            record(&mut e, RecordType::AUXTRACE, aux.as_bytes());
            e.bytes(b"abc");
            record(&mut e, RecordType::SAMPLE, &[2; 8]);
            let all: Vec<_> = Frames::new(e.as_bytes(), 100, endian).map(Result::unwrap).collect();
            let kinds: Vec<_> = all.iter().map(|r| r.header.kind).collect();
            assert_eq!(
                kinds,
                [
                    RecordType::COMM,
                    RecordType::FINISHED_ROUND,
                    RecordType::AUXTRACE,
                    RecordType::SAMPLE
                ]
            );
            assert_eq!(all[2].payload, b"abc");
            assert_eq!(all[1].offset, 124);
            assert_eq!(all[3].offset, 100 + 24 + 8 + 48 + 3);
        }
    }

    #[test]
    fn simpleperf_counts_tracing_data_in_the_size_and_has_long_records() {
        for endian in [Endian::Little, Endian::Big] {
            let mut e = Encoder::new(endian);
            let mut tracing = Encoder::new(endian);
            tracing.u32(16);
            tracing.bytes(&[3; 20]);
            record(&mut e, RecordType::TRACING_DATA, tracing.as_bytes());
            // 0x1_0004 bytes: more than 16 bits can say, and the low half is less than a header.
            RecordHeader { kind: RecordType::SIMPLEPERF_KERNEL_SYMBOL, misc: 1, size: 4 }
                .encode(&mut e);
            e.bytes(&[4; 0x1_0004 - 8]);
            record(&mut e, RecordType::SIMPLEPERF_EVENT_ID, &[0; 8]);
            record(&mut e, RecordType::SAMPLE, &[2; 8]);
            let all: Vec<_> = Frames::new(e.as_bytes(), 0, endian).map(Result::unwrap).collect();
            let lens: Vec<_> = all.iter().map(|raw| (raw.bytes.len(), raw.payload.len())).collect();
            assert_eq!(lens, [(32, 0), (8, 0xfffc), (16, 0), (16, 0)]);
            let cut = Frames::new(&e.as_bytes()[..100], 0, endian).last().unwrap().unwrap_err();
            assert_eq!((cut.offset, cut.kind.code()), (32, "truncated"));
        }
    }

    #[test]
    fn sizes_that_cannot_be_end_the_walk_with_their_place() {
        let mut e = Encoder::new(Endian::Little);
        record(&mut e, RecordType::COMM, &[]);
        RecordHeader { kind: RecordType::SAMPLE, misc: 0, size: 0 }.encode(&mut e);
        record(&mut e, RecordType::COMM, &[]);
        let mut frames = Frames::new(e.as_bytes(), 0, Endian::Little);
        assert!(frames.next().unwrap().is_ok());
        let error = frames.next().unwrap().unwrap_err();
        assert_eq!((error.offset, error.kind.code()), (8, "bad-record-size"));
        assert_eq!(frames.offset(), 8);
        assert!(frames.next().is_none());
    }

    #[test]
    fn a_cut_anywhere_gives_whole_records_and_one_error() {
        let mut e = Encoder::new(Endian::Little);
        record(&mut e, RecordType::COMM, &[1; 16]);
        record(&mut e, RecordType::EXIT, &[2; 32]);
        for cut in 0..e.len() {
            let items: Vec<_> = Frames::new(&e.as_bytes()[..cut], 0, Endian::Little).collect();
            let whole = items.iter().filter(|i| i.is_ok()).count();
            assert_eq!(whole, usize::from(cut >= 24));
            assert_eq!(items.len() - whole, usize::from(cut != 0 && cut != 24), "cut at {cut}");
        }
    }
}
