//! A file and its parts: header, attrs with their ids, data, features.
//!
//! ```text
//! | header 104 | ids … | attrs: (attr, ids section) … | data: records … | feature table | features … |
//!                 ^-----------'         the table: one section for each set feature bit, in bit order
//! ```
//!
//! Nothing is believed that the file's true size does not bear. What can be mended is, with a
//! [`Warning`]: a data section that reaches past the end (a copy that was cut), a data size of 0 (a
//! recorder that was killed before it could write it), features past the end.

use super::header::{FileHeader, PIPE_HEADER_SIZE, Section};
use super::parts::{self, Warning};
use super::pipe;
use crate::attr::AttrTable;
use crate::bytes::Cursor;
use crate::endian::Endian;
use crate::error::Result;
use crate::feature::{Feature, FeatureId};
use crate::read::{Frames, Unpacked};
use crate::wire::Wire;

/// Mode of a stream: how its parts are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By the header at the start (seekable).
    File,
    /// As records (streamed).
    Pipe,
}

/// A perf.data file, in file mode or in pipe mode.
/// ```
/// use recrep_format::feature::Hostname;
/// use recrep_format::read::File;
///
/// fn describe(bytes: &[u8]) -> recrep_format::error::Result<()> {
///     let file = File::parse(bytes)?;
///     for entry in file.attrs.entries() {
///         println!("{:?} samples {:?}", entry.name, entry.attr.sample_type);
///     }
///     if let Some(host) = file.feature::<Hostname<'_>>() {
///         println!("recorded on {}", host?.0.to_text());
///     }
///     for raw in file.unpacked().records() {
///         let raw = raw?;
///         println!("{:#x} {} {:?}", raw.offset, raw.header.kind, file.attrs.decode(&raw)?.body);
///     }
///     for warning in &file.warnings {
///         println!("byte {}: {}", warning.offset, warning.message);
///     }
///     Ok(())
/// }
/// # assert!(describe(b"PERFILE2").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct File<'a> {
    bytes: &'a [u8],
    /// The byte order of the whole file.
    pub endian: Endian,
    /// File mode or pipe mode.
    pub mode: Mode,
    /// The header as it stands; in pipe mode as if the data were one section.
    pub header: FileHeader,
    /// The attrs.
    pub attrs: AttrTable,
    /// The data section as far as it is really there.
    pub data: Section,
    /// The features that are wholly there: which, and where.
    pub features: Vec<(FeatureId, Section)>,
    /// Defects of the file that could be mended.
    pub warnings: Vec<Warning>,
}

impl<'a> File<'a> {
    /// Reads the parts of a file; no record is looked at, unless simpleperf wrote it.
    ///
    /// # Errors
    /// Returns an error if it is not a perf.data file, or its header or attrs cannot be read.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let endian = parts::endian_of(bytes)?;
        if parts::is_pipe(bytes, endian) {
            return Ok(Self::of_pipe(bytes, endian));
        }
        let header = FileHeader::decode(&mut Cursor::new(bytes, 0, endian), "perf.data header")?;
        let len = bytes.len() as u64;
        let attrs = AttrTable::new(parts::attrs(bytes, &header, endian)?, endian);
        let mut warnings = Vec::new();
        let Section { offset, size } = header.data;
        let there = len.saturating_sub(offset);
        let mut data = Section { offset: offset.min(len), size: size.min(there) };
        if parts::is_unfinished(bytes, &header, endian) {
            warnings.push(parts::unfinished());
            data.size = there;
        } else if size > there {
            warnings.push(parts::cut_data(size, there, len));
        }
        let features = parts::features(bytes, &header, endian, &mut warnings);
        let mut file =
            Self { bytes, endian, mode: Mode::File, header, attrs, data, features, warnings };
        if file.is_of_simpleperf() {
            file.learn_of_simpleperf();
        }
        file.name_events();
        Ok(file)
    }

    /// Returns a pipe-mode stream as a file whose data section is all that follows its short
    /// header.
    fn of_pipe(bytes: &'a [u8], endian: Endian) -> Self {
        let start = PIPE_HEADER_SIZE.min(bytes.len());
        let data = Section { offset: start as u64, size: (bytes.len() - start) as u64 };
        let header = FileHeader::of_pipe(endian, data.size);
        let (attrs, features, warnings) =
            (AttrTable::new(Vec::new(), endian), Vec::new(), Vec::new());
        let mut file =
            Self { bytes, endian, mode: Mode::Pipe, header, attrs, data, features, warnings };
        // What ends the walk early is found again, and told, by whoever reads the records.
        for raw in file.records().map_while(Result::ok) {
            match pipe::learn(&raw, &mut file.attrs) {
                Ok(held) => file.take(held),
                Err(error) => file.warnings.push(pipe::left_out(raw.header.kind, &error)),
            }
        }
        file.name_events();
        file
    }

    /// Returns whether Android's simpleperf recorded it.
    pub fn is_of_simpleperf(&self) -> bool {
        self.features.iter().any(|(id, _)| id.is_of_simpleperf())
    }

    /// Finds what simpleperf leaves among the records: formats of tracepoints, and ids of counters.
    fn learn_of_simpleperf(&mut self) {
        for raw in self.records().map_while(Result::ok) {
            let held = pipe::learn_of_simpleperf(&raw, &mut self.attrs);
            self.take(held);
        }
    }

    /// Takes a feature that a record holds, unless there is one with its number.
    fn take(&mut self, held: Option<pipe::HeldFeature<'_>>) {
        let Some(pipe::HeldFeature { id, offset, bytes }) = held else { return };
        if self.features.iter().all(|(have, _)| *have != id) {
            self.features.push((id, Section { offset, size: bytes.len() as u64 }));
        }
    }

    fn name_events(&mut self) {
        let (desc, tracing, meta) = (self.feature(), self.feature(), self.feature());
        self.attrs
            .take_names(desc.and_then(Result::ok).as_ref(), tracing.and_then(Result::ok).as_ref());
        self.attrs.take_simpleperf_names(meta.and_then(Result::ok).as_ref());
    }

    /// Returns the whole file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the bytes of the data section.
    pub fn data_bytes(&self) -> &'a [u8] {
        self.data.of(self.bytes).unwrap_or_default()
    }

    /// Returns the records of the data section as they stand, in file order.
    pub fn records(&self) -> Frames<'a> {
        Frames::new(self.data_bytes(), self.data.offset, self.endian)
    }

    /// Returns the records of the data section with those that were compressed in the place of
    /// their containers.
    pub fn unpacked(&self) -> Unpacked<'a> {
        Unpacked::of_frames(self.records())
    }

    /// Returns a cursor over the section of a feature; `None` where the file does not have it.
    pub fn feature_cursor(&self, id: FeatureId) -> Option<Cursor<'a>> {
        let (_, section) = self.features.iter().find(|(have, _)| *have == id)?;
        Some(Cursor::new(section.of(self.bytes)?, section.offset, self.endian))
    }

    /// Returns a feature, decoded; `None` where the file does not have it.
    pub fn feature<F: Feature<'a>>(&self) -> Option<Result<F>> {
        self.feature_cursor(F::ID).map(|mut c| F::of_section(&mut c))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::abi::{RecordType, SampleType};
    use crate::attr::{Attr, AttrEntry, AttrIndex};
    use crate::bytes::Encoder;
    use crate::feature::SimpleperfMetaInfo;
    use crate::record::RecordHeader;
    use crate::write::{FeatureWriter, FileWriter};

    fn file(records: &[u8]) -> Vec<u8> {
        let entry = AttrEntry { attr: Attr::default(), ids: vec![7], name: None };
        let mut writer =
            FileWriter::new(io::Cursor::new(Vec::new()), Endian::Little, &[entry]).unwrap();
        writer.write(records).unwrap();
        writer.finish(&FeatureWriter::new(Endian::Little)).unwrap().into_inner()
    }

    #[test]
    fn attrs_may_follow_the_records() {
        let mut bytes = file(&[68, 0, 0, 0, 0, 0, 8, 0]);
        let end = bytes.len() as u64;
        let attrs = bytes[112..].to_vec();
        // The attrs once more, after the data, as perf inject writes them from a pipe.
        bytes.extend(&attrs[..attrs.len() - 8]);
        bytes[24..32].copy_from_slice(&end.to_le_bytes());
        let file = File::parse(&bytes).unwrap();
        assert_eq!((file.header.attrs.offset, file.attrs.entries().len()), (end, 1));
        let kinds: Vec<_> = file.records().map(|raw| raw.unwrap().header.kind).collect();
        assert_eq!(kinds, [RecordType::FINISHED_ROUND]);
    }

    #[test]
    fn a_payload_beyond_the_data_is_an_error() {
        let mut e = Encoder::new(Endian::Little);
        RecordHeader { kind: RecordType::AUXTRACE, misc: 0, size: 48 }.encode(&mut e);
        e.u64(1 << 40);
        e.padded(&[], 32);
        let mut records = e.into_bytes();
        records.resize(1 << 20, 0);
        let bytes = file(&records);
        let file = File::parse(&bytes).unwrap();
        let unpacked = file.unpacked();
        let mut records = unpacked.records();
        assert_eq!(records.next().unwrap().unwrap_err().offset, file.data.offset);
        assert!(records.next().is_none());
    }

    #[test]
    fn records_of_a_pipe_that_say_nothing_are_left_out() {
        let mut bytes = b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec();
        (0..1000).for_each(|_| bytes.extend([64, 0, 0, 0, 0, 0, 8, 0]));
        let file = File::parse(&bytes).unwrap();
        assert_eq!(file.unpacked().records().filter(Result::is_ok).count(), 1000);
        assert_eq!((file.attrs.entries().len(), file.warnings.len()), (0, 1000));
    }

    #[test]
    fn simpleperf_tells_ids_and_formats_among_the_records() {
        for endian in [Endian::Little, Endian::Big] {
            let attr = Attr { sample_type: SampleType::ID, ..Attr::default() };
            let entries =
                [7, 8].map(|id| AttrEntry { attr: attr.clone(), ids: vec![id], name: None });
            let mut e = Encoder::new(endian);
            RecordHeader { kind: RecordType::SIMPLEPERF_EVENT_ID, misc: 0, size: 48 }
                .encode(&mut e);
            // Two ids: one of the second attr, one of an attr that is not there.
            [2, 1, 99, 5, 98].iter().for_each(|word| e.u64(*word));
            RecordHeader { kind: RecordType::SIMPLEPERF_TRACING_DATA, misc: 0, size: 20 }
                .encode(&mut e);
            e.u32(5);
            e.bytes(b"hello\0\0\0");
            let mut writer =
                FileWriter::new(io::Cursor::new(Vec::new()), endian, &entries).unwrap();
            writer.write(e.as_bytes()).unwrap();
            let mut features = FeatureWriter::new(endian);
            features.add(&SimpleperfMetaInfo { facts: Vec::new() });
            let bytes = writer.finish(&features).unwrap().into_inner();
            let file = File::parse(&bytes).unwrap();
            assert_eq!([99, 98].map(|id| file.attrs.by_id(id)), [Some(AttrIndex(1)), None]);
            assert_eq!(file.feature_cursor(FeatureId::TRACING_DATA).unwrap().rest(), b"hello");
        }
    }
}
