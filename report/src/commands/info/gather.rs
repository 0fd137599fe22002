//! Data that `rep info` prints, gathered from the file and its session; as JSON (`recrep-info/1`).

use std::collections::BTreeMap;

use recrep_format::attr::AttrEntry;
use recrep_format::bytes::Cursor;
use recrep_format::endian::Endian;
use recrep_format::feature::{FeatureId, NrCpus};
use recrep_format::read::{File, Magic, Mode, Section};
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};

use super::attr;
use super::features::{self, map, maps, number};
use super::value::Value;
use crate::input::{Input, Stream, unpack};
use crate::pipeline::session::Session;
use crate::query::Warning;
use crate::timeline::sideband::total;

/// A file, and what had to be found out about it.
pub(super) struct Info<'s> {
    pub(super) input: &'s Input,
    pub(super) session: &'s Session<'s>,
    /// Header features: in file mode by number, in pipe mode in the order of the stream.
    pub(super) features: Vec<Feature>,
    /// Number of records by type, including those inside compressed records.
    pub(super) records: BTreeMap<String, u64>,
    pub(super) lost_samples: u64,
    /// Number of samples that BPF filters dropped.
    pub(super) filtered_samples: u64,
    pub(super) warnings: Vec<Warning>,
}

#[derive(Serialize)]
pub(super) struct Feature {
    pub(super) number: u8,
    /// Name, or `FEATURE_` and the number.
    pub(super) name: String,
    pub(super) offset: u64,
    pub(super) size: u64,
    /// Decoded contents; `None` if the feature is unknown or malformed.
    pub(super) value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Warning>,
}

impl<'s> Info<'s> {
    pub(super) fn gather(input: &'s Input, session: &'s Session<'s>) -> Self {
        let features: Vec<Feature> = features(session.file);
        let mut warnings = session.warnings();
        warnings.extend(features.iter().filter_map(|feature| {
            let error = feature.error.clone()?;
            Some(Warning {
                message: format!("the feature {} cannot be read: {}", feature.name, error.message),
                ..error
            })
        }));
        let records = session.split.counts.iter().map(|(kind, count)| (kind.to_string(), *count)).collect();
        let lost_samples = total(&session.side_band.lost_samples);
        let filtered_samples = total(&session.side_band.filtered_samples);
        Self { input, session, features, records, lost_samples, filtered_samples, warnings }
    }

    /// Returns the magic, its version, the byte order and the mode.
    pub(super) fn format(&self) -> (&'static str, u8, &'static str, &'static str) {
        let file = self.session.file;
        let is_old = matches!(Magic::read(file.bytes()), Ok(Magic::V1));
        let (magic, version) = if is_old { ("PERFFILE", 1) } else { ("PERFILE2", 2) };
        let order = if file.endian == Endian::Little { "little" } else { "big" };
        (magic, version, order, if file.mode == Mode::File { "file" } else { "pipe" })
    }

    pub(super) fn is_compressed(&self) -> bool {
        let file = self.session.file;
        unpack::is_compressed(file.records(), file.endian) || file.feature_cursor(FeatureId::COMPRESSED).is_some()
    }

    /// Returns the offset of the table of feature sections; `None` in pipe mode.
    pub(super) fn feature_table(&self) -> Option<u64> {
        let (file, data) = (self.session.file, self.session.file.header.data);
        data.offset.checked_add(data.size).filter(|_| file.mode == Mode::File)
    }

    /// Returns the names of known features that the file lacks.
    pub(super) fn missing_features(&self) -> Vec<String> {
        let is_missing = |id: &&FeatureId| self.session.file.features.iter().all(|(have, _)| have != *id);
        FeatureId::NAMED.iter().filter(is_missing).map(ToString::to_string).collect()
    }
}

fn features(file: &File<'_>) -> Vec<Feature> {
    let cpus = file.feature::<NrCpus>().and_then(Result::ok).map_or(0, |cpus| cpus.available);
    let one = |&(id, section): &(FeatureId, Section)| {
        let Section { offset, size } = section;
        let mut c = Cursor::new(section.of(file.bytes()).unwrap_or_default(), offset, file.endian);
        let (value, error) = match features::value(id, &mut c, cpus) {
            Ok(value) => (value, None),
            Err(error) => (None, Some(Warning::from(&error))),
        };
        Feature { number: id.0, name: id.to_string(), offset, size, value, error }
    };
    file.features.iter().map(one).collect()
}

impl Serialize for Info<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let session = self.session;
        let stream = |stream: &Stream| {
            [("name", Value::Text(stream.name.clone())), ("bytes", number(stream.bytes().len() as u64))]
        };
        let events = session.file.attrs.entries().iter().zip(&session.events).enumerate();
        let event = |(index, (entry, name)): (usize, (&AttrEntry, &String))| {
            let ids = Value::list(entry.ids.iter().copied().map(Value::Number));
            let name = Value::Text(name.clone());
            [("index", number(index as u64)), ("name", name), ("attr", attr::value(&entry.attr)), ("ids", ids)]
        };
        let times = session.sample_times();
        let mut json = serializer.serialize_map(None)?;
        json.serialize_entry("schema", "recrep-info/1")?;
        json.serialize_entry("path", &self.input.name)?;
        json.serialize_entry("bytes", &self.input.len())?;
        json.serialize_entry("streams", &maps(self.input.streams(), stream))?;
        json.serialize_entry("container", &Container(self))?;
        json.serialize_entry("events", &maps(events, event))?;
        json.serialize_entry("features", &self.features)?;
        json.serialize_entry("missing_features", &self.missing_features())?;
        json.serialize_entry("records", &self.records)?;
        json.serialize_entry(
            "time",
            &times.map(|(first, last)| map([("first", number(first)), ("last", number(last))])),
        )?;
        json.serialize_entry("lost_events", &session.side_band.lost_events)?;
        json.serialize_entry("lost_samples", &self.lost_samples)?;
        json.serialize_entry("filtered_samples", &self.filtered_samples)?;
        json.serialize_entry("complete", &session.is_complete())?;
        json.serialize_entry("warnings", &self.warnings)?;
        json.end()
    }
}

/// Format and layout of a file, as JSON.
struct Container<'i>(&'i Info<'i>);

impl Serialize for Container<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (file, header) = (self.0.session.file, &self.0.session.file.header);
        let part = |part: Section| map([("offset", number(part.offset)), ("size", number(part.size))]);
        let (magic, version, order, mode) = self.0.format();
        let mut json = serializer.serialize_map(None)?;
        json.serialize_entry("magic", magic)?;
        json.serialize_entry("version", &version)?;
        json.serialize_entry("byte_order", order)?;
        json.serialize_entry("mode", mode)?;
        json.serialize_entry("compressed", &self.0.is_compressed())?;
        json.serialize_entry("header_size", &header.size)?;
        json.serialize_entry("attr_size", &header.attr_size)?;
        json.serialize_entry("attrs", &part(header.attrs))?;
        json.serialize_entry("data", &part(header.data))?;
        // What the file really has of it.
        json.serialize_entry("data_found", &file.data.size)?;
        json.serialize_entry("event_types", &part(header.event_types))?;
        json.serialize_entry("feature_bits", &header.features.map(Value::Hex))?;
        json.serialize_entry("feature_table", &self.0.feature_table())?;
        json.end()
    }
}
