//! A stream in the making: a short header, then records only, so that it can go through a pipe.
//!
//! ```text
//! | header 16 | HEADER_ATTR … | EVENT_UPDATE (names) … | HEADER_FEATURE … | TRACING_DATA + its data | records … |
//! ```
//!
//! Source: perf.data-file-format.txt, "Pipe-mode data"; the order is that of perf record.

use std::io::{self, Write};

use super::file::FeatureWriter;
use crate::attrs::AttrEntry;
use crate::bytes::{Encoder, U64s};
use crate::endian::Endian;
use crate::feature::FeatureId;
use crate::read::{Magic, PIPE_HEADER_SIZE};
use crate::record::{Body, EventUpdate, HeaderAttr, HeaderFeature, HeaderTracingData, Record};

/// `PERF_EVENT_UPDATE__NAME`.
const UPDATE_NAME: u64 = 2;

/// Writes a stream in pipe mode, front to back.
///
/// ```
/// use recrep_format::{attr::Attr, attrs::AttrEntry, endian::Endian, read::{File, Mode}};
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
#[derive(Debug)]
pub struct PipeWriter<W> {
    out: W,
    written: u64,
}

impl<W: Write> PipeWriter<W> {
    /// Begins a stream with these attrs, their ids and names, and what is known of the recording by now.
    ///
    /// # Errors
    /// What writing gives; an attr with more ids than a record holds (about 8,000), a feature longer than that.
    pub fn new(out: W, endian: Endian, entries: &[AttrEntry], features: &FeatureWriter) -> io::Result<Self> {
        let mut e = Encoder::new(endian);
        e.bytes(&Magic::bytes(endian));
        e.u64(PIPE_HEADER_SIZE as u64);
        for entry in entries {
            let mut ids = Encoder::new(endian);
            entry.ids.iter().for_each(|id| ids.u64(*id));
            let ids = U64s::new(ids.as_bytes(), endian);
            put(&mut e, Body::HeaderAttr(HeaderAttr { attr: entry.attr.clone(), ids }))?;
        }
        for (entry, name) in entries.iter().filter_map(|entry| Some((entry, entry.name.as_ref()?))) {
            let mut name = name.clone().into_bytes();
            name.resize((name.len() + 1).next_multiple_of(8), 0);
            let id = entry.ids.first().copied().unwrap_or(0);
            put(&mut e, Body::EventUpdate(EventUpdate { kind: UPDATE_NAME, id, data: &name }))?;
        }
        for (id, data) in features.parts().filter(|(id, _)| *id != FeatureId::TRACING_DATA) {
            put(&mut e, Body::HeaderFeature(HeaderFeature { feat_id: u64::from(id.0), data }))?;
        }
        for (_, data) in features.parts().filter(|(id, _)| *id == FeatureId::TRACING_DATA) {
            tracing_data(&mut e, data)?;
        }
        let mut writer = Self { out, written: 0 };
        writer.write(e.as_bytes())?;
        Ok(writer)
    }

    /// Appends records, whole or in pieces.
    ///
    /// # Errors
    /// What writing gives.
    pub fn write(&mut self, records: &[u8]) -> io::Result<()> {
        self.out.write_all(records)?;
        self.wrote(records.len() as u64);
        Ok(())
    }

    /// Tells that `len` bytes were appended to the output by other means (a vectored write, say).
    pub fn wrote(&mut self, len: u64) {
        self.written += len;
    }

    /// How many bytes there are, the header and all.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.written
    }

    /// Never: a stream has at least its header.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// What the stream is written to.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Gives back the output.
    ///
    /// # Errors
    /// What flushing gives.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

fn put(e: &mut Encoder, body: Body<'_>) -> io::Result<()> {
    Record::new(0, body).encode(e).map_err(io::Error::other)
}

/// The record tells how long the data behind it is, padded to 8 bytes; it is itself padded to 16.
fn tracing_data(e: &mut Encoder, data: &[u8]) -> io::Result<()> {
    let padded = data.len().next_multiple_of(8);
    let size = u32::try_from(padded).map_err(io::Error::other)?;
    let record = Record { rest: &[0; 4], ..Record::new(0, Body::HeaderTracingData(HeaderTracingData { size })) };
    record.encode(e).map_err(io::Error::other)?;
    e.bytes(data);
    e.bytes(&vec![0; padded - data.len()]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::RecordType;
    use crate::attr::Attr;
    use crate::feature::Hostname;
    use crate::read::File;

    #[test]
    fn a_stream_reads_as_what_was_written() {
        for endian in [Endian::Little, Endian::Big] {
            let entry = AttrEntry { attr: Attr::default(), ids: vec![7, 8], name: Some("cycles:u".into()) };
            let mut features = FeatureWriter::new(endian);
            features.add(&Hostname::new("here")).add_bytes(FeatureId::TRACING_DATA, vec![1, 2, 3]);
            let mut writer = PipeWriter::new(Vec::new(), endian, &[entry], &features).unwrap();
            let mut e = Encoder::new(endian);
            Record::new(0, Body::FinishedRound).encode(&mut e).unwrap();
            writer.write(e.as_bytes()).unwrap();
            let len = writer.len();
            let bytes = writer.finish().unwrap();
            assert_eq!(bytes.len() as u64, len);
            let file = File::parse(&bytes).unwrap();
            assert_eq!(file.warnings, []);
            assert_eq!(file.attrs.entries()[0].ids, [7, 8]);
            assert_eq!(file.feature::<Hostname<'_>>().unwrap().unwrap().0.to_text(), "here");
            let kinds: Vec<_> = file.records().map(|raw| raw.unwrap().header.kind).collect();
            use RecordType as T;
            assert_eq!(kinds, [T::ATTR, T::EVENT_UPDATE, T::FEATURE, T::TRACING_DATA, T::FINISHED_ROUND]);
        }
    }
}
