//! Writes pipe mode: a short header, then records only, so that it can go through a pipe.
//!
//! ```text
//! | header 16 | HEADER_ATTR … | EVENT_UPDATE (names) … | HEADER_FEATURE … | TRACING_DATA + its data | records … | HEADER_FEATURE … |
//! ```
//!
//! The features at the end are those that are not known before it. Readers take them wherever they
//! are.
//!
//! Source: perf.data-file-format.txt, "Pipe-mode data"; the order is that of perf record.

use std::borrow::Cow;
use std::io::{self, Write};

use super::file::FeatureWriter;
use super::writer::Writer;
use crate::attr::AttrEntry;
use crate::bytes::{Encoder, U64s};
use crate::endian::Endian;
use crate::feature::{EventDesc, FeatureId};
use crate::read::{Magic, PIPE_HEADER_SIZE};
use crate::record::{
    Body, EventProperty, EventUpdate, HeaderAttr, HeaderFeature, HeaderTracingData, Record,
};
use crate::wire::Text;

/// Writes a recording in pipe mode, front to back.
///
/// ```
/// use recrep_format::{attr::Attr, attr::AttrEntry, endian::Endian, read::{File, Mode}};
/// use recrep_format::write::{FeatureWriter, PipeWriter};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let entry = AttrEntry { attr: Attr::default(), ids: vec![7], name: Some("cycles".into()) };
/// let features = FeatureWriter::new(Endian::Little);
/// let stream = PipeWriter::new(Vec::new(), Endian::Little, &[entry], &features)?.finish()?;
/// let file = File::parse(&stream)?;
/// assert_eq!((file.mode, file.attrs.entries().len()), (Mode::Pipe, 1));
/// # Ok(())
/// # }
/// ```
pub type PipeWriter<W> = Writer<W, PipeMode>;

/// Features without a record of their number.
const LEFT_OUT: [FeatureId; 4] =
    [FeatureId::BUILD_ID, FeatureId::AUXTRACE, FeatureId::GO_BUILD_ID, FeatureId::CHAIN_ENDS];

/// What pipe mode keeps up to the end: the features that were written.
#[derive(Debug)]
pub struct PipeMode(Vec<FeatureId>);

impl<W: Write> PipeWriter<W> {
    /// Begins a stream with these attrs, their ids and names, and the features that are known by
    /// now.
    ///
    /// # Errors
    /// Returns I/O errors from the output, and an error for an attr with more ids than a record
    /// holds (about 8,000), a feature that is longer than a record or one that could not be
    /// encoded.
    pub fn new(
        out: W,
        endian: Endian,
        entries: &[AttrEntry],
        features: &FeatureWriter,
    ) -> io::Result<Self> {
        let mut e = Encoder::new(endian);
        put_header(&mut e);
        for entry in entries {
            let mut ids = Encoder::new(endian);
            entry.ids.iter().for_each(|id| ids.u64(*id));
            let ids = U64s::new(ids.as_bytes(), endian);
            let attr = entry.attr.stored(endian).map_err(io::Error::other)?;
            put(&mut e, Body::HeaderAttr(HeaderAttr { attr, ids }))?;
        }
        let mut features = Cow::Borrowed(features);
        for (place, entry) in entries.iter().enumerate() {
            let Some(name) = &entry.name else { continue };
            // No id, or 0, means the first event.
            match entry.ids.first().copied().filter(|id| *id != 0) {
                None if place > 0 => {
                    features.to_mut().add(&EventDesc::of(entries).map_err(io::Error::other)?);
                }
                id => {
                    let property = EventProperty::Name(Text::new(name.as_bytes()));
                    put(&mut e, Body::EventUpdate(EventUpdate { id: id.unwrap_or(0), property }))?;
                }
            }
        }
        let mut writer = Self::begin(out, &e, PipeMode(Vec::new()))?;
        writer.features(&features)?;
        Ok(writer)
    }

    /// Appends the features that were not written yet. Build IDs are left out, which have records of
    /// their own, and so is the index of AUXTRACE records, which tells places in a file, and what
    /// only recrep's recorder writes: perf ends at the record of a feature that it does not know.
    ///
    /// # Errors
    /// Returns I/O errors from the output, and an error for a feature that is longer than a record
    /// or could not be encoded.
    pub fn features(&mut self, features: &FeatureWriter) -> io::Result<()> {
        features.check(self.endian)?;
        let mut e = Encoder::new(self.endian);
        let left_out = [&LEFT_OUT, &*self.mode.0].concat();
        let (tracing, others): (Vec<_>, Vec<_>) = features
            .parts()
            .filter(|(id, _)| !left_out.contains(id))
            .partition(|(id, _)| *id == FeatureId::TRACING_DATA);
        for (id, data) in &others {
            put(&mut e, Body::HeaderFeature(HeaderFeature { feat_id: u64::from(id.0), data }))?;
        }
        for (_, data) in &tracing {
            tracing_data(&mut e, data)?;
        }
        self.mode.0.extend(others.iter().chain(&tracing).map(|(id, _)| *id));
        self.write(e.as_bytes())
    }

    /// Flushes and returns the output.
    ///
    /// # Errors
    /// Returns I/O errors from the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Appends the header of a stream.
pub(super) fn put_header(e: &mut Encoder) {
    e.bytes(&Magic::bytes(e.endian()));
    e.u64(PIPE_HEADER_SIZE as u64);
}

fn put(e: &mut Encoder, body: Body<'_>) -> io::Result<()> {
    Record::new(0, body).encode(e).map_err(io::Error::other)
}

/// The record tells how long the data behind it is, padded to 8 bytes; it is itself padded to 16.
fn tracing_data(e: &mut Encoder, data: &[u8]) -> io::Result<()> {
    let padded = data.len().next_multiple_of(8);
    let size = u32::try_from(padded).map_err(io::Error::other)?;
    let record = Record {
        rest: &[0; 4],
        ..Record::new(0, Body::HeaderTracingData(HeaderTracingData { size }))
    };
    record.encode(e).map_err(io::Error::other)?;
    e.bytes(data);
    e.bytes(&vec![0; padded - data.len()]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{EventType, RecordType};
    use crate::attr::Attr;
    use crate::feature::tracing::{Part, System, Tracing};
    use crate::feature::{Hostname, OsRelease};
    use crate::read::File;

    fn entries_of(entries: &[AttrEntry]) -> Vec<AttrEntry> {
        let features = FeatureWriter::new(Endian::Big);
        let stream =
            PipeWriter::new(Vec::new(), Endian::Big, entries, &features).unwrap().finish().unwrap();
        assert!(stream.len() < 4096);
        File::parse(&stream).unwrap().attrs.entries().to_vec()
    }

    #[test]
    fn attrs_are_written_with_the_size_that_they_take() {
        for (size, stored) in [(0, 96), (64, 96), (104, 104), (u32::MAX, 144)] {
            let attr = Attr { size, sample_regs_user: 1, ..Attr::default() };
            let found = entries_of(&[AttrEntry { attr: attr.clone(), ids: vec![7], name: None }]);
            assert_eq!(
                found,
                [AttrEntry { attr: Attr { size: stored, ..attr }, ids: vec![7], name: None }]
            );
        }
    }

    #[test]
    fn events_without_ids_keep_their_names() {
        let entry = |name: Option<&str>, ids: &[u64]| AttrEntry {
            attr: Attr { size: 64, ..Attr::default() },
            ids: ids.to_vec(),
            name: name.map(Into::into),
        };
        for entries in [
            vec![entry(Some("one"), &[])],
            vec![entry(Some("one"), &[]), entry(Some("two"), &[])],
            vec![entry(None, &[7]), entry(Some("two"), &[]), entry(Some("three"), &[8])],
        ] {
            assert_eq!(entries_of(&entries), entries);
        }
    }

    #[test]
    fn tracepoints_have_the_names_in_the_tracing_data() {
        let none = Part { offset: 0, bytes: b"" };
        let format = Part { offset: 0, bytes: b"name: sched_switch\nID: 372\nformat:\n" };
        let tracing = Tracing {
            version: b"0.5",
            endian: Endian::Little,
            order: 0,
            long_size: 8,
            page_size: 4096,
            header_page: none,
            header_event: none,
            ftrace: Vec::new(),
            systems: vec![System { name: b"sched", formats: vec![format] }],
            kallsyms: none,
            printk_formats: none,
            saved_cmdlines: None,
            rest: &[],
        };
        let entry = |config, id, name: Option<&str>| AttrEntry {
            attr: Attr { kind: EventType::TRACEPOINT, config, ..Attr::default() },
            ids: vec![id],
            name: name.map(Into::into),
        };
        let entries = [entry(372, 1, None), entry(373, 2, None), entry(372, 3, Some("mine"))];
        let mut features = FeatureWriter::new(Endian::Little);
        features.add(&tracing);
        let stream = PipeWriter::new(Vec::new(), Endian::Little, &entries, &features)
            .unwrap()
            .finish()
            .unwrap();
        let file = File::parse(&stream).unwrap();
        let names: Vec<_> =
            file.attrs.entries().iter().map(|entry| entry.name.as_deref()).collect();
        assert_eq!(names, [Some("sched:sched_switch"), None, Some("mine")]);
    }

    #[test]
    fn a_stream_reads_as_what_was_written() {
        for endian in [Endian::Little, Endian::Big] {
            let entry =
                AttrEntry { attr: Attr::default(), ids: vec![7, 8], name: Some("cycles:u".into()) };
            let mut features = FeatureWriter::new(endian);
            features.add(&Hostname::new("here")).add_bytes(FeatureId::TRACING_DATA, vec![1, 2, 3]);
            let mut writer = PipeWriter::new(Vec::new(), endian, &[entry], &features).unwrap();
            let e = Record::new(0, Body::FinishedRound).to_bytes(endian).unwrap();
            writer.write(&e).unwrap();
            features.add(&Hostname::new("elsewhere")).add(&OsRelease::new("6.1"));
            features
                .add_bytes(FeatureId::BUILD_ID, vec![1])
                .add_bytes(FeatureId::AUXTRACE, vec![1]);
            writer.features(&features).unwrap();
            let end = writer.position();
            let bytes = writer.finish().unwrap();
            assert_eq!(bytes.len() as u64, end);
            let file = File::parse(&bytes).unwrap();
            assert_eq!(file.warnings, []);
            assert_eq!(file.attrs.entries()[0].ids, [7, 8]);
            assert_eq!(file.feature::<Hostname<'_>>().unwrap().unwrap().0.to_text(), "here");
            assert_eq!(file.feature::<OsRelease<'_>>().unwrap().unwrap().0.to_text(), "6.1");
            let kinds: Vec<_> = file.records().map(|raw| raw.unwrap().header.kind).collect();
            use RecordType as T;
            assert_eq!(
                kinds,
                [
                    T::ATTR,
                    T::EVENT_UPDATE,
                    T::FEATURE,
                    T::TRACING_DATA,
                    T::FINISHED_ROUND,
                    T::FEATURE
                ]
            );
        }
    }
}
