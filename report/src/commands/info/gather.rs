//! Data that `rep info` prints, gathered from the file and its session.

use std::collections::BTreeMap;

use recrep_format::endian::Endian;
use recrep_format::feature::{FeatureId, NrCpus};
use recrep_format::read::{File, Magic, Mode, Section};
use serde::Serialize;

use super::attr;
use super::features;
use super::value::Value;
use crate::input::unpack;
use crate::input::{Input, Stream};
use crate::pipeline::session::Session;
use crate::query::warning::Warning;
use crate::timeline::sideband::total;

/// Description of a file. Its fields are the JSON schema `recrep-info/1`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Info {
    pub(super) schema: &'static str,
    pub(super) path: String,
    /// Size of the input, including `streams`.
    pub(super) bytes: u64,
    /// Record streams in separate files, if the input is a directory.
    pub(super) streams: Vec<StreamInfo>,
    pub(super) container: Container,
    pub(super) events: Vec<EventInfo>,
    /// Header features: in file mode by number, in pipe mode in the order of the stream.
    pub(super) features: Vec<FeatureInfo>,
    /// Known features that the file lacks.
    pub(super) missing_features: Vec<String>,
    /// Number of records by type, including those inside compressed records.
    pub(super) records: BTreeMap<String, u64>,
    /// Times of the first and the last sample.
    pub(super) time: Option<TimeRange>,
    /// Number of lost records (`PERF_RECORD_LOST`).
    pub(super) lost_events: u64,
    pub(super) lost_samples: u64,
    /// Number of samples that BPF filters dropped.
    pub(super) filtered_samples: u64,
    /// `true` if the recording ended properly and no part of the file is missing.
    pub(super) complete: bool,
    pub(super) warnings: Vec<Warning>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct StreamInfo {
    /// File name in the directory.
    pub(super) name: String,
    pub(super) bytes: u64,
}

/// Format and layout of a file.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Container {
    pub(super) magic: &'static str,
    pub(super) version: u8,
    pub(super) byte_order: &'static str,
    pub(super) mode: &'static str,
    pub(super) compressed: bool,
    /// Size of the header, by the header itself.
    pub(super) header_size: u64,
    /// Size of an entry of the attrs section; 0 in pipe mode.
    pub(super) attr_size: u64,
    /// Empty in pipe mode.
    pub(super) attrs: Part,
    /// Data section, by the header.
    pub(super) data: Part,
    /// Number of bytes of `data` that the file really has.
    pub(super) data_found: u64,
    /// Event types section (deprecated names of tracepoints).
    pub(super) event_types: Part,
    pub(super) feature_bits: [Value; 4],
    /// Offset of the table of feature sections; `None` in pipe mode.
    pub(super) feature_table: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Part {
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl From<Section> for Part {
    fn from(section: Section) -> Self {
        Self { offset: section.offset, size: section.size }
    }
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct EventInfo {
    pub(super) index: usize,
    /// Name in the file, else one derived from the attr.
    pub(super) name: String,
    pub(super) attr: Value,
    /// Ids of its counters.
    pub(super) ids: Vec<u64>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct FeatureInfo {
    pub(super) number: u8,
    /// Name, or `FEATURE_` and the number.
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) section: Part,
    /// Decoded contents; `None` if the feature is unknown or malformed.
    pub(super) value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Warning>,
}

/// Times of the first and the last sample, in nanoseconds of the perf clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct TimeRange {
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Info {
    pub(super) fn gather(input: &Input, session: &Session<'_>) -> Self {
        let file = session.file;
        let stream = |stream: &Stream| StreamInfo { name: stream.name.clone(), bytes: stream.bytes().len() as u64 };
        let features: Vec<FeatureInfo> = features(file);
        let missing = FeatureId::NAMED.iter().copied();
        let missing = missing.filter(|id| file.features.iter().all(|(have, _)| have != id));
        let mut warnings = session.warnings();
        warnings.extend(features.iter().filter_map(|feature| {
            let error = feature.error.clone()?;
            Some(Warning {
                message: format!("the feature {} cannot be read: {}", feature.name, error.message),
                ..error
            })
        }));
        Self {
            schema: "recrep-info/1",
            path: input.name.clone(),
            bytes: input.len(),
            streams: input.streams().iter().map(stream).collect(),
            container: container(file),
            events: events(session),
            missing_features: missing.map(|id| id.to_string()).collect(),
            features,
            records: session.split.counts.iter().map(|(kind, count)| (kind.to_string(), *count)).collect(),
            time: session.sample_times().map(|(first, last)| TimeRange { first, last }),
            lost_events: session.side_band.lost_events,
            lost_samples: total(&session.side_band.lost_samples),
            filtered_samples: total(&session.side_band.filtered_samples),
            complete: session.is_complete(),
            warnings,
        }
    }
}

fn container(file: &File<'_>) -> Container {
    let old = matches!(Magic::read(file.bytes()), Ok(Magic::V1));
    let header = &file.header;
    let is_file = file.mode == Mode::File;
    Container {
        magic: if old { "PERFFILE" } else { "PERFILE2" },
        version: if old { 1 } else { 2 },
        byte_order: if file.endian == Endian::Little { "little" } else { "big" },
        mode: if is_file { "file" } else { "pipe" },
        compressed: unpack::is_compressed(file.records(), file.endian)
            || file.feature_cursor(FeatureId::COMPRESSED).is_some(),
        header_size: header.size,
        attr_size: header.attr_size,
        attrs: header.attrs.into(),
        data: header.data.into(),
        data_found: file.data.size,
        event_types: header.event_types.into(),
        feature_bits: header.features.map(Value::Hex),
        feature_table: header.data.offset.checked_add(header.data.size).filter(|_| is_file),
    }
}

fn events(session: &Session<'_>) -> Vec<EventInfo> {
    let entries = session.file.attrs.entries().iter().zip(&session.events).enumerate();
    let one = |(index, (entry, name)): (usize, (&recrep_format::attr::AttrEntry, &String))| EventInfo {
        index,
        name: name.clone(),
        attr: attr::value(&entry.attr),
        ids: entry.ids.clone(),
    };
    entries.map(one).collect()
}

fn features(file: &File<'_>) -> Vec<FeatureInfo> {
    let cpus = file.feature::<NrCpus>().and_then(Result::ok).map_or(0, |cpus| cpus.available);
    let one = |(id, section): &(FeatureId, Section)| {
        let bytes = section.of(file.bytes()).unwrap_or_default();
        let mut c = recrep_format::bytes::Cursor::new(bytes, section.offset, file.endian);
        let (value, error) = match features::value(*id, &mut c, cpus) {
            Ok(value) => (value, None),
            Err(error) => (None, Some(Warning::from(&error))),
        };
        FeatureInfo { number: id.0, name: id.to_string(), section: (*section).into(), value, error }
    };
    file.features.iter().map(one).collect()
}
