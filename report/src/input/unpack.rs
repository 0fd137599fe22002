//! Unpacking of compressed data sections.
//!
//! COMPRESSED and COMPRESSED2 records (containers) hold pieces of one zstd stream. Each is replaced
//! by the records that it unpacks to; a record that starts in one piece and ends in a later one
//! comes where it ends. Messages about unpacked records give offsets in the unpacked section.
//!
//! Where the stream has several zstd frames, as `rec` writes it, these are unpacked on all cores:
//!
//! ```text
//!   │ frame 1            │ frame 2            │ frame 3      …     stream
//!   │ container│container│ container│container│ container    …     records
//!   └ section 1 ─────────┴ section 2 ─────────┴ section 3    …     each by one core
//! ```
//!
//! A container in the middle of a frame can look like the begin of one, and a frame can end within
//! a record. So a section counts only if all before it ended with a frame and a record; otherwise
//! what unpacked the section before goes on with it. The result is that of one core that unpacks
//! all.
//!
//! What is unpacked can be many times as large as the file. Of a section that is a frame or
//! several, the caller may keep only what it needs at once ([`UnpackedPart::Packed`]); its records are
//! unpacked again where they are read.

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use recrep_format::endian::Endian;
use recrep_format::error::{Error, Result};
pub(crate) use recrep_format::read::UnpackBuffer;
use recrep_format::read::{Decompressor, Frames, Unpacking, most_of_section};
use recrep_format::record::RawRecord;

use crate::query::Warning;

/// Usual minimum length of a section but the last, in packed bytes: tiny frames are not worth a
/// section each.
pub(crate) const MIN_SECTION: usize = 4 << 10;

/// Records of a data section that begin where a frame may begin.
#[derive(Debug, Default)]
pub(crate) struct Section<'a> {
    records: Vec<RawRecord<'a>>,
    /// Their length in bytes.
    packed: usize,
}

impl Section<'_> {
    /// Unpacks it as if nothing were before it, and returns what `skim` keeps of it instead of its
    /// bytes. `None` if unpacking fails, or gives more than the section's share of what the file
    /// may unpack to.
    fn alone<K>(
        &self,
        endian: Endian,
        buffer: &mut UnpackBuffer,
        skim: impl Fn(&[u8]) -> Option<K>,
    ) -> Option<(Unpacking, Option<K>)> {
        let mut unpacking = buffer.unpacking(endian, most_of_section(self.packed));
        unpack_all(&mut unpacking, &self.records).ok()?;
        let mut skimmed = None;
        if unpacking.is_at_end() {
            buffer.take_decompressor(&mut unpacking);
            skimmed = skim(unpacking.as_bytes());
        }
        if skimmed.is_some() {
            buffer.take_bytes(&mut unpacking);
        }
        unpacking.shrink_to_fit();
        Some((unpacking, skimmed))
    }

    /// Unpacks a section of which only a part was kept.
    pub(crate) fn unpack<'b>(&self, endian: Endian, buffer: &'b mut UnpackBuffer) -> &'b [u8] {
        let mut unpacking = buffer.unpacking(endian, usize::MAX);
        // It succeeded before.
        let _unchanged = unpack_all(&mut unpacking, &self.records);
        buffer.keep(unpacking)
    }
}

/// Unpacks records up to the first that cannot be, or after which no record can come.
fn unpack_all(unpacking: &mut Unpacking, records: &[RawRecord<'_>]) -> Result<()> {
    for raw in records {
        unpacking.unpack(raw)?;
        if unpacking.is_stuck() {
            break;
        }
    }
    Ok(())
}

/// A part of a stream's records: it begins with a record.
#[derive(Debug)]
pub(crate) enum UnpackedPart<'a, K> {
    /// All its bytes.
    Kept(Cow<'a, [u8]>),
    /// Where it is unpacked from, and what was kept of it.
    Packed(Section<'a>, K),
    /// What it is decoded from.
    Decoded(DecodedPart<'a>),
}

/// Records that are decoded from what is no records, such as the traces of processors. They are
/// decoded each time that they are read.
pub(crate) trait RecordSource: Debug + Send + Sync {
    /// Returns the number of bytes that each part is decoded from.
    fn parts(&self) -> Vec<usize>;

    /// Appends the records of a part.
    fn decode(&self, part: usize, into: &mut Vec<u8>);

    /// Returns the events of which a record is a sum of samples: STREAM_ID is their number.
    fn summed_events(&self) -> Range<usize>;

    /// Returns the number of samples in the parts that were decoded so far.
    fn samples(&self) -> u64;

    /// Returns what the parts that were decoded so far lack.
    fn warnings(&self) -> Vec<Warning>;
}

/// A part of the records of a source.
#[derive(Clone, Debug)]
pub(crate) struct DecodedPart<'a> {
    source: Arc<dyn RecordSource + 'a>,
    number: usize,
    /// Number of bytes that it is decoded from.
    pub(crate) size: usize,
}

impl<'a> DecodedPart<'a> {
    /// Returns all parts of a source.
    pub(crate) fn all(source: &Arc<dyn RecordSource + 'a>) -> Vec<Self> {
        let sizes = source.parts().into_iter().enumerate();
        sizes.map(|(number, size)| Self { source: Arc::clone(source), number, size }).collect()
    }

    /// Decodes the records.
    pub(crate) fn decode<'b>(&self, buffer: &'b mut UnpackBuffer) -> &'b [u8] {
        let bytes = buffer.cleared();
        self.source.decode(self.number, bytes);
        bytes
    }
}

/// A stream of records without its containers.
#[derive(Debug, Default)]
pub(crate) struct Unpacked<'a, K> {
    pub parts: Vec<UnpackedPart<'a, K>>,
    /// Number of COMPRESSED containers; COMPRESSED2 ones do not count, as in perf's statistics.
    pub containers: u64,
    /// Error that ended unpacking early.
    pub damage: Option<Error>,
}

/// Unpacks a data section, in sections of `least` or more packed bytes. `skim` gets the records of
/// a section and returns what to keep of them; `None` for all.
pub(crate) fn unpack<'a, K: Default + Send>(
    frames: Frames<'a>,
    endian: Endian,
    least: usize,
    skim: impl Fn(&[u8]) -> Option<K> + Sync,
) -> Unpacked<'a, K> {
    let packed = frames.left().len();
    let mut sections: Vec<Section<'_>> = vec![Section::default()];
    let mut unpacked = Unpacked::default();
    for raw in frames {
        match raw {
            Ok(raw) => {
                let piece = raw.compressed_piece(endian).and_then(Result::ok);
                let is_long = sections.last().is_some_and(|section| section.packed >= least);
                if is_long && piece.is_some_and(Decompressor::may_begin_frame) {
                    sections.push(Section::default());
                }
                if let Some(section) = sections.last_mut() {
                    section.packed += raw.bytes.len();
                    section.records.push(raw);
                }
            }
            Err(error) => unpacked.damage = Some(error),
        }
    }
    let alone: Vec<_> = sections
        .par_iter()
        .map_init(UnpackBuffer::default, |buffer, section| section.alone(endian, buffer, &skim))
        .collect();
    match unpacked.join(packed, endian, sections.into_iter().zip(alone)) {
        Ok(true) => {}
        Ok(false) => unpacked.damage = None,
        Err(error) => unpacked.damage = Some(error),
    }
    unpacked
}

impl<'a, K> Unpacked<'a, K> {
    /// Joins the sections of `packed` bytes, each with what was unpacked from it alone, unless that
    /// failed. Returns whether they are all of the data: what comes after bytes that are no records
    /// does not matter.
    fn join(
        &mut self,
        packed: usize,
        endian: Endian,
        sections: impl Iterator<Item = (Section<'a>, Option<(Unpacking, Option<K>)>)>,
    ) -> Result<bool> {
        let mut all = Unpacking::new(packed, endian);
        let mut outcome = Ok(());
        for (section, alone) in sections {
            match alone.and_then(|(next, skimmed)| Some((all.follow(next)?, skimmed))) {
                Some((before, skimmed)) => {
                    self.push(before);
                    self.parts
                        .extend(skimmed.map(|skimmed| UnpackedPart::Packed(section, skimmed)));
                }
                None => outcome = unpack_all(&mut all, &section.records),
            }
            if outcome.is_err() || all.is_stuck() {
                break;
            }
        }
        let is_whole = !all.is_stuck();
        self.push(all);
        outcome.map(|()| is_whole)
    }

    fn push(&mut self, part: Unpacking) {
        self.containers += part.containers();
        let bytes = part.into_bytes();
        if !bytes.is_empty() {
            self.parts.push(UnpackedPart::Kept(bytes.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use recrep_format::abi::RecordType;
    use recrep_format::bytes::Encoder;
    use recrep_format::record::RecordHeader;

    use super::*;

    /// Appends a record with this payload.
    fn record(into: &mut Vec<u8>, kind: RecordType, payload: &[u8]) {
        let mut e = Encoder::new(Endian::Little);
        let size = u16::try_from(8 + payload.len()).unwrap();
        RecordHeader { kind, misc: 0, size }.encode(&mut e);
        e.bytes(payload);
        into.extend(e.into_bytes());
    }

    /// Returns a data section: `lens` are the lengths of the records; `cuts` are those of the bytes
    /// in each frame, of the compressed bytes in each container, and how many containers come
    /// between records that are not compressed.
    fn section(lens: &[u16], [frame, container, between]: [usize; 3]) -> (Vec<u8>, Vec<u8>) {
        let mut plain = Vec::new();
        for (number, len) in (0u8..).zip(lens) {
            record(&mut plain, RecordType::COMM, &vec![number; usize::from(*len)]);
        }
        let packed = plain.chunks(frame).map(|frame| zstd::bulk::compress(frame, 1).unwrap());
        let mut data = Vec::new();
        let containers = packed
            .flat_map(|frame| frame.chunks(container).map(<[u8]>::to_vec).collect::<Vec<_>>());
        for (number, piece) in containers.enumerate() {
            record(&mut data, RecordType::COMPRESSED, &piece);
            if number % between == 0 {
                record(&mut data, RecordType::FINISHED_ROUND, &[]);
            }
        }
        (data, plain)
    }

    fn keep_all(_: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// Returns the bytes of each part, which were all kept when it was skimmed; what is unpacked
    /// again must be these.
    fn bytes(unpacked: &Unpacked<'_, Vec<u8>>) -> Vec<Vec<u8>> {
        let mut buffer = UnpackBuffer::default();
        let of_part = |part: &UnpackedPart<'_, Vec<u8>>| match part {
            UnpackedPart::Kept(bytes) => bytes.to_vec(),
            UnpackedPart::Decoded(_) => unreachable!(),
            UnpackedPart::Packed(section, skimmed) => {
                assert_eq!(section.unpack(Endian::Little, &mut buffer), skimmed);
                skimmed.clone()
            }
        };
        unpacked.parts.iter().map(of_part).collect()
    }

    proptest! {
        #[test]
        fn frames_unpacked_side_by_side_give_the_bytes_of_one_stream(
            lens in prop::collection::vec(0u16..300, 0..40),
            frame in 1usize..3000,
            container in 1usize..500,
            between in 1usize..9,
            least in 1usize..200,
            damage in prop::option::of(any::<usize>()),
            cut in prop::option::of(any::<usize>()),
        ) {
            let (mut data, plain) = section(&lens, [frame, container, between]);
            let is_damaged = damage.is_some() || cut.is_some();
            if let Some(at) = damage.filter(|_| !data.is_empty()) {
                let at = at % data.len();
                data[at] ^= 0x55;
            }
            data.truncate(cut.map_or(data.len(), |cut| cut % (data.len() + 1)));
            let frames = || Frames::new(&data, 1000, Endian::Little);
            let skim = |bytes: &[u8]| bytes.len().is_multiple_of(3).then(|| bytes.to_vec());
            let found = unpack(frames(), Endian::Little, least, skim);
            // The same by one core.
            let (records, damage): (Vec<_>, Vec<_>) = frames().partition(Result::is_ok);
            let records: Vec<_> = records.into_iter().flatten().collect();
            let mut all = Unpacking::new(data.len(), Endian::Little);
            let outcome = unpack_all(&mut all, &records);
            let damage = damage.into_iter().find_map(Result::err).filter(|_| !all.is_stuck());
            let damage = outcome.err().or(damage).map(|error| error.to_string());
            prop_assert_eq!(found.damage.as_ref().map(ToString::to_string), damage);
            prop_assert!(bytes(&found).concat() == all.as_bytes());
            prop_assert_eq!(found.containers, all.containers());
            // And what was compressed, without what is between.
            if !is_damaged {
                let inner = Frames::new(all.as_bytes(), 0, Endian::Little).map(Result::unwrap);
                let inner = inner.filter(|raw| raw.header.kind == RecordType::COMM);
                prop_assert!(inner.flat_map(|raw| raw.bytes.to_vec()).collect::<Vec<_>>() == plain);
            }
        }
    }

    #[test]
    fn a_frame_that_ends_with_a_record_ends_a_part() {
        let (data, plain) = section(&[92; 10], [200, 500, 100]);
        let unpacked = unpack(Frames::new(&data, 0, Endian::Little), Endian::Little, 1, keep_all);
        assert_eq!(
            bytes(&unpacked).iter().map(Vec::len).collect::<Vec<_>>(),
            [208, 200, 200, 200, 200]
        );
        assert_eq!(bytes(&unpacked).concat().len(), plain.len() + 8);
        assert!(unpacked.damage.is_none());
    }

    #[test]
    fn a_small_file_may_unpack_to_more_than_its_sections() {
        let (data, plain) = section(&[60_000; 40], [1_200_000, 500, 100]);
        assert!(most_of_section(data.len()) < plain.len());
        let unpacked = unpack(Frames::new(&data, 0, Endian::Little), Endian::Little, 1, keep_all);
        assert_eq!(bytes(&unpacked).concat().len(), plain.len() + 8);
        assert!(unpacked.damage.is_none());
    }

    #[test]
    fn what_looks_like_a_frame_in_the_middle_of_one_is_no_part() {
        // Bytes that zstd stores as they are, cut where they are the magic number of a frame.
        let magic = 0xfd2f_b528_u32.to_le_bytes();
        let mut plain = Vec::new();
        record(&mut plain, RecordType::COMM, &[[1, 2, 3, 4].as_slice(), &magic].concat());
        let frame = zstd::bulk::compress(&plain, 1).unwrap();
        let at = (1..).find(|at| frame[*at..].starts_with(&magic)).unwrap();
        let mut data = Vec::new();
        for piece in [&frame[..at], &frame[at..]] {
            record(&mut data, RecordType::COMPRESSED, piece);
        }
        let unpacked = unpack(Frames::new(&data, 0, Endian::Little), Endian::Little, 1, keep_all);
        assert_eq!((bytes(&unpacked), unpacked.containers), (vec![plain], 2));
    }
}
