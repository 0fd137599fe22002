//! A file in the making: header, ids, attrs, then records as they come, then features.
//!
//! Nothing is sought: [`FileWriter::new`] writes a header whose data size is 0 (what a reader finds when the recorder is
//! killed, and reads to the end), and [`FileWriter::finish`] gives back the final header, which whoever owns the
//! file puts at its beginning.

use std::io::{self, Write};

use crate::attr::Attr;
use crate::attrs::AttrEntry;
use crate::bytes::Encoder;
use crate::endian::Endian;
use crate::error::Error;
use crate::feature::{Feature, FeatureId};
use crate::read::{FILE_HEADER_SIZE, FileHeader, Magic, Section};
use crate::wire::Wire;

/// Writes a perf.data file, front to back.
#[derive(Debug)]
pub struct FileWriter<W> {
    out: W,
    endian: Endian,
    header: FileHeader,
    event_types: Vec<u8>,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file with these attrs and their ids.
    ///
    /// # Errors
    /// What writing gives; an attr longer than its `size` can say.
    pub fn new(mut out: W, endian: Endian, entries: &[AttrEntry]) -> io::Result<Self> {
        let attr_len = entries.iter().map(|e| e.attr.stored_size(endian)).max().unwrap_or(Attr::KNOWN_SIZE);
        let entry_len = attr_len + 16;
        let ids_len: usize = entries.iter().map(|e| e.ids.len() * 8).sum();
        let attrs = Section { offset: (FILE_HEADER_SIZE + ids_len) as u64, size: (entry_len * entries.len()) as u64 };
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
            Attr { size, ..entry.attr.clone() }.encode(&mut e, attr_len).map_err(io::Error::other)?;
            let ids = Section { offset: ids_at, size: (entry.ids.len() * 8) as u64 };
            ids.encode(&mut e).map_err(io::Error::other)?;
            ids_at += ids.size;
        }
        out.write_all(e.as_bytes())?;
        Ok(Self { out, endian, header, event_types: Vec::new() })
    }

    /// Appends records, whole or in pieces, as they came from a ring or an encoder.
    ///
    /// # Errors
    /// What writing gives.
    pub fn write(&mut self, records: &[u8]) -> io::Result<()> {
        self.out.write_all(records)?;
        self.header.data.size += records.len() as u64;
        Ok(())
    }

    /// Tells that `len` bytes of records were appended to the output by other means (a vectored write, say).
    pub fn wrote(&mut self, len: u64) {
        self.header.data.size += len;
    }

    /// How many bytes of records there are.
    #[must_use]
    pub fn data_size(&self) -> u64 {
        self.header.data.size
    }

    /// Where the next record goes, in bytes from the start of the file.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.header.data.offset + self.header.data.size
    }

    /// What the file is written to.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// The magic of the final header: an old one, say.
    pub(super) fn magic(&mut self, magic: [u8; 8]) {
        self.header.magic = magic;
    }

    /// The names of tracepoints, as recorders before 2013 had them in a section of their own: copied from such a file.
    pub fn event_types(&mut self, section: &[u8]) {
        self.event_types = section.to_vec();
    }

    /// The header of the file if it ends here, without features: for where these cannot be written any more.
    #[must_use]
    pub fn bare_header(&self) -> Vec<u8> {
        let mut e = Encoder::new(self.endian);
        // A header is numbers only, which are never too large for their places.
        let _ = self.header.encode(&mut e);
        e.into_bytes()
    }

    /// Appends the features and gives back the output and the final header, which belongs at byte 0.
    ///
    /// # Errors
    /// What writing gives; a feature that could not be encoded.
    pub fn finish(mut self, features: &FeatureWriter) -> io::Result<(W, Vec<u8>)> {
        features.check()?;
        let mut parts: Vec<_> = features.parts.iter().collect();
        parts.sort_by_key(|(id, _)| *id);
        let mut e = Encoder::new(self.endian);
        let mut at = self.position() + 16 * parts.len() as u64;
        for (id, bytes) in &parts {
            id.set_in(&mut self.header.features);
            Section { offset: at, size: bytes.len() as u64 }.encode(&mut e).map_err(io::Error::other)?;
            at += bytes.len() as u64;
        }
        for (_, bytes) in &parts {
            e.bytes(bytes);
        }
        if !self.event_types.is_empty() {
            self.header.event_types = Section { offset: at, size: self.event_types.len() as u64 };
            e.bytes(&self.event_types);
        }
        self.out.write_all(e.as_bytes())?;
        self.out.flush()?;
        let header = self.bare_header();
        Ok((self.out, header))
    }
}

/// The features of a file in the making.
#[derive(Clone, Debug)]
pub struct FeatureWriter {
    endian: Endian,
    parts: Vec<(FeatureId, Vec<u8>)>,
    failed: Option<Error>,
}

impl FeatureWriter {
    /// None yet.
    #[must_use]
    pub fn new(endian: Endian) -> Self {
        Self { endian, parts: Vec::new(), failed: None }
    }

    /// Adds a feature; one that was there already is replaced. If the format cannot represent it, whoever writes the
    /// features gets that error.
    pub fn add<'a, F: Feature<'a>>(&mut self, feature: &F) -> &mut Self {
        let mut e = Encoder::new(self.endian);
        if let Err(error) = feature.encode(&mut e) {
            self.failed = Some(error);
            return self;
        }
        self.add_bytes(F::ID, e.into_bytes())
    }

    /// The features, encoded, in the order in which they were added.
    pub fn parts(&self) -> impl Iterator<Item = (FeatureId, &[u8])> {
        self.parts.iter().map(|(id, bytes)| (*id, bytes.as_slice()))
    }

    /// Fails if a feature that was added could not be encoded.
    pub(super) fn check(&self) -> io::Result<()> {
        self.failed.clone().map_or(Ok(()), |error| Err(io::Error::other(error)))
    }

    /// Adds a feature that is encoded already: copied from another file, say.
    pub fn add_bytes(&mut self, id: FeatureId, bytes: Vec<u8>) -> &mut Self {
        self.parts.retain(|(have, _)| *have != id);
        self.parts.push((id, bytes));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{AttrFlags, CpuMode, RecordType, SampleType};
    use crate::build_id::BuildId;
    use crate::feature::{BuildIdEvent, BuildIds, DescribedEvent, EventDesc, HeaderString, Hostname, Ids};
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
        let entries = [1u64, 3].map(|id| AttrEntry { attr: attr.clone(), ids: vec![id, id + 1], name: None });
        let mut w = FileWriter::new(Vec::new(), endian, &entries).unwrap();
        let mut e = Encoder::new(endian);
        let comm = Comm { pid: 1, tid: 1, comm: Text::new(b"init") };
        Record::new(0, Body::Comm(comm)).encode(&mut e).unwrap();
        w.write(e.as_bytes()).unwrap();
        let event =
            |name, ids| DescribedEvent { attr: attr.clone(), name: HeaderString::new(name), ids: Ids::List(ids) };
        let desc = EventDesc { attr_size: 136, events: vec![event("cycles", &[1, 2]), event("faults", &[3, 4])] };
        let mut features = FeatureWriter::new(endian);
        features.add(&desc).add(&Hostname::new("here"));
        let (mut bytes, header) = w.finish(&features).unwrap();
        bytes[..header.len()].copy_from_slice(&header);
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        for endian in [Endian::Little, Endian::Big] {
            let bytes = whole_file(endian);
            let file = File::parse(&bytes).unwrap();
            assert_eq!(file.warnings, []);
            assert_eq!(file.endian, endian);
            let names: Vec<_> = file.attrs.entries().iter().map(|e| e.name.as_deref().unwrap()).collect();
            assert_eq!(names, ["cycles", "faults"]);
            assert_eq!(file.attrs.entries()[1].ids, [3, 4]);
            let kinds: Vec<_> = file.records().map(|r| r.unwrap().header.kind).collect();
            assert_eq!(kinds, [RecordType::COMM]);
            assert_eq!(file.feature::<Hostname<'_>>().unwrap().unwrap().0.to_text(), "here");
        }
    }

    #[test]
    fn a_feature_that_cannot_be_encoded_is_an_error_of_the_file() {
        let id = BuildId::new(&[7; 20]).unwrap();
        let name = [b'a'; 70_000];
        let mut features = FeatureWriter::new(Endian::Little);
        features.add(&BuildIds { entries: vec![BuildIdEvent::new(CpuMode::User, &id, &name)] });
        assert!(FileWriter::new(Vec::new(), Endian::Little, &[]).unwrap().finish(&features).is_err());
        assert!(PipeWriter::new(Vec::new(), Endian::Little, &[], &features).is_err());
    }

    #[test]
    fn a_killed_recorder_leaves_what_it_wrote() {
        let mut bytes = whole_file(Endian::Little);
        bytes[48..56].fill(0);
        let end = File::parse(&whole_file(Endian::Little)).map(|f| f.data.offset + f.data.size).unwrap();
        bytes.truncate(usize::try_from(end).unwrap());
        let file = File::parse(&bytes).unwrap();
        assert_eq!(file.records().filter(Result::is_ok).count(), 1);
        assert_eq!(file.warnings[0].code, "no-data-size");
    }

    #[test]
    fn attrs_that_all_claim_the_whole_file_as_ids_are_refused() {
        let entries = vec![AttrEntry { attr: Attr { size: 128, ..Attr::default() }, ids: vec![1], name: None }; 1000];
        let (mut bytes, _) = FileWriter::new(Vec::new(), Endian::Little, &entries)
            .unwrap()
            .finish(&FeatureWriter::new(Endian::Little))
            .unwrap();
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
        let (table, count) = (usize::try_from(file.data.offset + file.data.size).unwrap(), file.features.len());
        let whole = [0u64.to_le_bytes(), (bytes.len() as u64).to_le_bytes()].concat();
        bytes[table..table + 16 * count].copy_from_slice(&whole.repeat(count));
        let file = File::parse(&bytes).unwrap();
        assert_eq!(file.features.len(), 1);
        assert_eq!(file.warnings.len(), count - 1);
    }

    #[test]
    fn a_finished_file_without_data_was_not_killed() {
        for endian in [Endian::Little, Endian::Big] {
            let w = FileWriter::new(Vec::new(), endian, &[]).unwrap();
            let mut features = FeatureWriter::new(endian);
            features.add(&Hostname::new("here"));
            let (mut bytes, header) = w.finish(&features).unwrap();
            bytes[..header.len()].copy_from_slice(&header);
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
                Ok(file) => assert!(!file.warnings.is_empty() || file.records().any(|r| r.is_err()), "cut at {cut}"),
                Err(error) => assert!(error.offset <= bytes.len() as u64),
            }
        }
    }
}
