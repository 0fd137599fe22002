//! Writes file mode: header, ids, attrs, then records as they come, then features.
//!
//! The output is written front to back: [`FileWriter::new`] writes a header whose data size is 0,
//! which tells readers of an unfinished file to read records up to its end. [`FileWriter::finish`]
//! replaces that header, and is all that seeks.

use std::io::{self, Seek, SeekFrom, Write};

use super::writer::Writer;
use crate::attr::{Attr, AttrEntry};
use crate::bytes::Encoder;
use crate::endian::Endian;
use crate::error::Error;
use crate::feature::{Feature, FeatureId};
use crate::read::{FILE_HEADER_SIZE, FileHeader, Magic, Section};
use crate::wire::Wire;

/// Writes a recording in file mode.
///
/// ```
/// use std::io::Cursor;
///
/// use recrep_format::abi::SampleType;
/// use recrep_format::attr::{Attr, AttrEntry};
/// use recrep_format::bytes::Encoder;
/// use recrep_format::endian::Endian;
/// use recrep_format::feature::Hostname;
/// use recrep_format::read::File;
/// use recrep_format::record::{Body, Record, SampleFields};
/// use recrep_format::write::{FeatureWriter, FileWriter};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let attr = Attr { sample_type: SampleType::IP, ..Attr::default() };
/// let entry = AttrEntry { attr, ids: vec![7], name: None };
/// // Any output that can be written and sought: a std::fs::File, say.
/// let mut writer = FileWriter::new(Cursor::new(Vec::new()), Endian::NATIVE, &[entry])?;
/// let sample = SampleFields { ip: Some(0x40_1000), ..SampleFields::default() };
/// let mut records = Encoder::new(Endian::NATIVE);
/// Record::new(2, Body::Sample(Box::new(sample))).encode(&mut records)?;
/// writer.write(records.as_bytes())?;
/// let mut features = FeatureWriter::new(Endian::NATIVE);
/// features.add(&Hostname::new("here"));
/// let bytes = writer.finish(&features)?.into_inner();
///
/// assert_eq!(File::parse(&bytes)?.records().count(), 1);
/// # Ok(())
/// # }
/// ```
pub type FileWriter<W> = Writer<W, FileMode>;

/// What file mode keeps up to the end.
#[derive(Debug)]
pub struct FileMode {
    header: FileHeader,
    event_types: Vec<u8>,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file with these attrs and their ids; the output must be at its byte 0. The names of
    /// events are for a feature, [`EventDesc::of`](crate::feature::EventDesc::of).
    ///
    /// # Errors
    /// Returns I/O errors from the output, and an error for an attr longer than its `size` can say.
    pub fn new(out: W, endian: Endian, entries: &[AttrEntry]) -> io::Result<Self> {
        let attr_len =
            entries.iter().map(|e| e.attr.stored_size(endian)).max().unwrap_or(Attr::KNOWN_SIZE);
        let entry_len = attr_len + Section::SIZE;
        let ids_len: usize = entries.iter().map(|e| e.ids.len() * 8).sum();
        let attrs = Section {
            offset: (FILE_HEADER_SIZE + ids_len) as u64,
            size: (entry_len * entries.len()) as u64,
        };
        let header = FileHeader {
            magic: Magic::bytes(endian),
            size: FILE_HEADER_SIZE as u64,
            attr_size: entry_len as u64,
            attrs,
            data: Section { offset: attrs.offset + attrs.size, size: 0 },
            event_types: Section { offset: 0, size: 0 },
            features: [0; 4],
        };
        let mut e = Encoder::new(endian);
        header.encode(&mut e).map_err(io::Error::other)?;
        for id in entries.iter().flat_map(|entry| &entry.ids) {
            e.u64(*id);
        }
        let mut ids_at = FILE_HEADER_SIZE as u64;
        for entry in entries {
            // Readers look for the ids right behind as many bytes as the attr says that it has.
            let size = u32::try_from(attr_len).map_err(io::Error::other)?;
            Attr { size, ..entry.attr.clone() }
                .encode(&mut e, attr_len)
                .map_err(io::Error::other)?;
            let ids = Section { offset: ids_at, size: (entry.ids.len() * 8) as u64 };
            ids.encode(&mut e).map_err(io::Error::other)?;
            ids_at += ids.size;
        }
        Self::begin(out, &e, FileMode { header, event_types: Vec::new() })
    }

    /// Sets the magic of the final header, to copy a file with an old one.
    pub(super) fn magic(&mut self, magic: [u8; 8]) {
        self.mode.header.magic = magic;
    }

    /// Adds the section of tracepoint names that recorders before 2013 wrote (`event_types`), to
    /// copy a file that has it.
    pub(super) fn event_types(&mut self, section: &[u8]) {
        self.mode.event_types = section.to_vec();
    }

    /// Returns the header of the file if it ends here, without features: for an output that takes
    /// nothing more.
    pub fn bare_header(&self) -> Vec<u8> {
        let data = Section {
            size: self.position() - self.mode.header.data.offset,
            ..self.mode.header.data
        };
        let mut e = Encoder::new(self.endian);
        // A header is numbers only, which are never too large for their places.
        let _ = FileHeader { data, ..self.mode.header }.encode(&mut e);
        e.into_bytes()
    }

    /// Appends the features, puts the final header at byte 0, and returns the output, flushed and
    /// at its end.
    ///
    /// # Errors
    /// Returns I/O errors from the output, and an error for a feature that could not be encoded.
    pub fn finish(self, features: &FeatureWriter) -> io::Result<W>
    where
        W: Seek,
    {
        let (out, header) = self.finish_unseekable(features)?;
        with_header(out, &header)
    }

    /// Appends the features and returns the output, flushed, and the final header, which the caller
    /// puts at byte 0: for outputs that cannot seek. Without it the file is one of a recorder that
    /// was killed.
    ///
    /// # Errors
    /// Returns I/O errors from the output, and an error for a feature that could not be encoded.
    pub fn finish_unseekable(mut self, features: &FeatureWriter) -> io::Result<(W, Vec<u8>)> {
        features.check(self.endian)?;
        let mut parts: Vec<_> = features.parts.iter().collect();
        parts.sort_by_key(|(id, _)| *id);
        let mut e = Encoder::new(self.endian);
        let mut at = self.position() + (Section::SIZE * parts.len()) as u64;
        for (id, bytes) in &parts {
            id.set_in(&mut self.mode.header.features);
            Section { offset: at, size: bytes.len() as u64 }
                .encode(&mut e)
                .map_err(io::Error::other)?;
            at += bytes.len() as u64;
        }
        for (_, bytes) in &parts {
            e.bytes(bytes);
        }
        // Without records and features they would be taken for records.
        if !self.mode.event_types.is_empty()
            && (self.position() > self.mode.header.data.offset || !parts.is_empty())
        {
            self.mode.header.event_types =
                Section { offset: at, size: self.mode.event_types.len() as u64 };
            e.bytes(&self.mode.event_types);
        }
        // The data ends where the features begin.
        let header = self.bare_header();
        self.out.write_all(e.as_bytes())?;
        self.out.flush()?;
        Ok((self.out, header))
    }
}

/// Puts the final header at byte 0 of an output.
pub(super) fn with_header<W: Write + Seek>(mut out: W, header: &[u8]) -> io::Result<W> {
    out.rewind()?;
    out.write_all(header)?;
    out.seek(SeekFrom::End(0))?;
    out.flush()?;
    Ok(out)
}

/// The encoded features of a recording to write.
#[derive(Clone, Debug)]
pub struct FeatureWriter {
    endian: Endian,
    parts: Vec<(FeatureId, Vec<u8>)>,
    failed: Option<Error>,
}

impl FeatureWriter {
    /// Creates an empty set, for a recording in this byte order.
    pub fn new(endian: Endian) -> Self {
        Self { endian, parts: Vec::new(), failed: None }
    }

    /// Adds a feature, in the place of one with the same number. If the format cannot represent it,
    /// the error is returned when the features are written.
    pub fn add<'a, F: Feature<'a>>(&mut self, feature: &F) -> &mut Self {
        let mut e = Encoder::new(self.endian);
        if let Err(error) = feature.encode(&mut e) {
            self.failed = Some(error);
            return self;
        }
        self.add_bytes(F::ID, e.into_bytes())
    }

    /// Returns the encoded features in the order in which they were added.
    pub fn parts(&self) -> impl Iterator<Item = (FeatureId, &[u8])> {
        self.parts.iter().map(|(id, bytes)| (*id, bytes.as_slice()))
    }

    /// Returns the error of a feature that could not be encoded, and one if they are in another
    /// byte order than the recording.
    pub(super) fn check(&self, endian: Endian) -> io::Result<()> {
        if self.endian != endian {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the features have another byte order",
            ));
        }
        self.failed.clone().map_or(Ok(()), |error| Err(io::Error::other(error)))
    }

    /// Adds a feature that is encoded already, such as one of another file in the same byte order.
    pub fn add_bytes(&mut self, id: FeatureId, bytes: Vec<u8>) -> &mut Self {
        self.parts.retain(|(have, _)| *have != id);
        self.parts.push((id, bytes));
        self
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::abi::{AttrFlags, CpuMode, RecordType, SampleType};
    use crate::build_id::BuildId;
    use crate::feature::{
        BuildIdEvent, BuildIds, DescribedEvent, EventDesc, HeaderString, Hostname, Ids,
    };
    use crate::read::File;
    use crate::record::{Body, Comm, Record};
    use crate::wire::Text;
    use crate::write::PipeWriter;

    fn whole_file(endian: Endian) -> Vec<u8> {
        let attr = Attr {
            size: 136,
            sample_type: SampleType::IDENTIFIER | SampleType::IP,
            flags: AttrFlags::COMM,
            ..Attr::default()
        };
        let entries =
            [1u64, 3].map(|id| AttrEntry { attr: attr.clone(), ids: vec![id, id + 1], name: None });
        let mut w = FileWriter::new(Cursor::new(Vec::new()), endian, &entries).unwrap();
        let mut e = Encoder::new(endian);
        let comm = Comm { pid: 1, tid: 1, comm: Text::new(b"init") };
        Record::new(0, Body::Comm(comm)).encode(&mut e).unwrap();
        w.write(e.as_bytes()).unwrap();
        let event = |name, ids| DescribedEvent {
            attr: attr.clone(),
            name: HeaderString::new(name),
            ids: Ids::List(ids),
        };
        let desc = EventDesc {
            attr_size: 136,
            events: vec![event("cycles", &[1, 2]), event("faults", &[3, 4])],
        };
        let mut features = FeatureWriter::new(endian);
        features.add(&desc).add(&Hostname::new("here"));
        w.finish(&features).unwrap().into_inner()
    }

    #[test]
    fn what_is_written_is_read() {
        for endian in [Endian::Little, Endian::Big] {
            let bytes = whole_file(endian);
            let file = File::parse(&bytes).unwrap();
            assert_eq!(file.warnings, []);
            assert_eq!(file.endian, endian);
            let names: Vec<_> =
                file.attrs.entries().iter().map(|e| e.name.as_deref().unwrap()).collect();
            assert_eq!(names, ["cycles", "faults"]);
            assert_eq!(file.attrs.entries()[1].ids, [3, 4]);
            let kinds: Vec<_> = file.records().map(|r| r.unwrap().header.kind).collect();
            assert_eq!(kinds, [RecordType::COMM]);
            assert_eq!(file.feature::<Hostname<'_>>().unwrap().unwrap().0.to_text(), "here");
        }
    }

    #[test]
    fn an_output_that_cannot_seek_gets_its_header_from_the_caller() {
        let features = FeatureWriter::new(Endian::Little);
        let new = || FileWriter::new(Cursor::new(Vec::new()), Endian::Little, &[]).unwrap();
        let (mut seekable, mut other) = (new(), new());
        for writer in [&mut seekable, &mut other] {
            writer.write(&[68, 0, 0, 0]).unwrap();
            // The second half of the record goes another way.
            writer.get_mut().write_all(&[0, 0, 8, 0]).unwrap();
            writer.wrote(4);
            assert_eq!(writer.position(), 104 + 8);
        }
        let mut patched = seekable.finish(&features).unwrap();
        assert_eq!(patched.stream_position().unwrap(), 112);
        let (unpatched, header) = other.finish_unseekable(&features).unwrap();
        let (patched, mut unpatched) = (patched.into_inner(), unpatched.into_inner());
        assert_eq!(patched[48..56], [8, 0, 0, 0, 0, 0, 0, 0], "the size of the data");
        assert_eq!(unpatched[48..56], [0; 8]);
        unpatched[..header.len()].copy_from_slice(&header);
        assert_eq!(unpatched, patched);
    }

    #[test]
    fn a_feature_that_cannot_be_encoded_is_an_error_of_the_file() {
        let id = BuildId::new(&[7; 20]).unwrap();
        let name = [b'a'; 70_000];
        let mut features = FeatureWriter::new(Endian::Little);
        features.add(&BuildIds { entries: vec![BuildIdEvent::new(CpuMode::User, &id, &name)] });
        assert!(
            FileWriter::new(Cursor::new(Vec::new()), Endian::Little, &[])
                .unwrap()
                .finish(&features)
                .is_err()
        );
        assert!(PipeWriter::new(Vec::new(), Endian::Little, &[], &features).is_err());
    }

    #[test]
    fn a_killed_recorder_leaves_what_it_wrote() {
        let mut bytes = whole_file(Endian::Little);
        bytes[48..56].fill(0);
        let end =
            File::parse(&whole_file(Endian::Little)).map(|f| f.data.offset + f.data.size).unwrap();
        bytes.truncate(usize::try_from(end).unwrap());
        let file = File::parse(&bytes).unwrap();
        assert_eq!(file.records().filter(Result::is_ok).count(), 1);
        assert_eq!(file.warnings[0].code, "no-data-size");
    }

    #[test]
    fn attrs_that_all_claim_the_whole_file_as_ids_are_refused() {
        let entries =
            vec![
                AttrEntry { attr: Attr { size: 128, ..Attr::default() }, ids: vec![1], name: None };
                1000
            ];
        let writer = FileWriter::new(Cursor::new(Vec::new()), Endian::Little, &entries).unwrap();
        let mut bytes = writer.finish(&FeatureWriter::new(Endian::Little)).unwrap().into_inner();
        let (first, entry) = (104 + 8 * entries.len(), 128 + 16);
        let len = bytes.len() as u64;
        for at in (0..entries.len()).map(|i| first + i * entry + 128) {
            bytes[at..at + 8].fill(0);
            bytes[at + 8..at + 16].copy_from_slice(&len.to_le_bytes());
        }
        assert!(File::parse(&bytes).unwrap_err().to_string().contains("more ids together"));
    }

    #[test]
    fn features_that_all_claim_the_whole_file_are_left_out() {
        let mut bytes = whole_file(Endian::Little);
        let file = File::parse(&bytes).unwrap();
        let (table, count) =
            (usize::try_from(file.data.offset + file.data.size).unwrap(), file.features.len());
        let whole = [0u64.to_le_bytes(), (bytes.len() as u64).to_le_bytes()].concat();
        bytes[table..table + 16 * count].copy_from_slice(&whole.repeat(count));
        let file = File::parse(&bytes).unwrap();
        assert_eq!(file.features.len(), 1);
        assert_eq!(file.warnings.len(), count - 1);
    }

    #[test]
    fn a_finished_file_without_data_was_not_killed() {
        for endian in [Endian::Little, Endian::Big] {
            let w = FileWriter::new(Cursor::new(Vec::new()), endian, &[]).unwrap();
            let mut features = FeatureWriter::new(endian);
            features.add(&Hostname::new("here"));
            let bytes = w.finish(&features).unwrap().into_inner();
            let file = File::parse(&bytes).unwrap();
            assert_eq!((file.warnings.len(), file.records().count()), (0, 0));
            assert_eq!(file.feature::<Hostname<'_>>().unwrap().unwrap().0.to_text(), "here");
        }
    }

    #[test]
    fn a_cut_anywhere_is_an_error_or_a_warning_never_a_panic() {
        let bytes = whole_file(Endian::Big);
        for cut in 0..bytes.len() {
            match File::parse(&bytes[..cut]) {
                Ok(file) => assert!(
                    !file.warnings.is_empty() || file.records().any(|r| r.is_err()),
                    "cut at {cut}"
                ),
                Err(error) => assert!(error.offset <= bytes.len() as u64),
            }
        }
    }

    #[test]
    fn features_of_the_other_byte_order_are_refused() {
        let writer = FileWriter::new(Vec::new(), Endian::Little, &[]).unwrap();
        assert!(writer.finish_unseekable(&FeatureWriter::new(Endian::Big)).is_err());
    }
}
