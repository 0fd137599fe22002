//! Everything that `rep info` tells, metrics.

use std::collections::BTreeMap;

use rayon::prelude::*;
use recrep_format::endian::Endian;
use recrep_format::feature::{FeatureId, NrCpus};
use recrep_format::read::{File, Frames, Magic, Mode, Section};
use serde::Serialize;

use super::attr;
use super::features;
use super::value::Value;
use crate::input::split::Piece;
use crate::input::unpack;
use crate::input::{Input, Stream};
use crate::pipeline::session::Session;
use crate::query::warning::Warning;

/// What a file is. This is the shape of `recrep-info/1`.
#[derive(Clone, Debug, Serialize)]
pub struct Info {
    /// `recrep-info/1`.
    pub schema: &'static str,
    /// The input's name.
    pub path: String,
    /// How long it is, with the streams beside it.
    pub bytes: u64,
    /// Streams of records in files of their own, in a directory.
    pub streams: Vec<StreamInfo>,
    /// How its parts are found, and where they are.
    pub container: Container,
    /// The events, in the file's order.
    pub events: Vec<EventInfo>,
    /// The header's features that there are, in the order of their numbers in file mode, of the stream in pipe mode.
    pub features: Vec<FeatureInfo>,
    /// The features with a name that the file does not have.
    pub missing_features: Vec<String>,
    /// How many records of each type, those inside compressed ones too.
    pub records: BTreeMap<String, u64>,
    /// The times of the first and the last sample.
    pub time: Option<TimeRange>,
    /// Records that did not fit in a ring.
    pub lost_events: u64,
    /// Samples lost.
    pub lost_samples: u64,
    /// Samples that BPF filters dropped.
    pub filtered_samples: u64,
    /// Whether the recording was ended properly and all of it is here.
    pub complete: bool,
    /// What is wrong with it.
    pub warnings: Vec<Warning>,
}

/// A stream of records in a file of its own.
#[derive(Clone, Debug, Serialize)]
pub struct StreamInfo {
    /// The file in the directory.
    pub name: String,
    /// How long it is.
    pub bytes: u64,
}

/// How the parts of a file are found, and where they are.
#[derive(Clone, Debug, Serialize)]
pub struct Container {
    /// `PERFILE2` or `PERFFILE`.
    pub magic: &'static str,
    /// 2, or 1 for the old one.
    pub version: u8,
    /// `little` or `big`.
    pub byte_order: &'static str,
    /// `file` or `pipe`.
    pub mode: &'static str,
    /// Whether records are in compressed ones.
    pub compressed: bool,
    /// How long the header says that it is.
    pub header_size: u64,
    /// How long each entry of the attrs is; 0 in pipe mode.
    pub attr_size: u64,
    /// The attrs, by the header; nothing in pipe mode.
    pub attrs: Part,
    /// The records, by the header.
    pub data: Part,
    /// The bytes of `data` that are there.
    pub data_found: u64,
    /// Names of tracepoints (deprecated).
    pub event_types: Part,
    /// The bitmap of the features.
    pub feature_bits: [Value; 4],
    /// Where the table of the features is; nothing in pipe mode.
    pub feature_table: Option<u64>,
}

/// A part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub size: u64,
}

impl From<Section> for Part {
    fn from(section: Section) -> Self {
        Self { offset: section.offset, size: section.size }
    }
}

/// An event.
#[derive(Clone, Debug, Serialize)]
pub struct EventInfo {
    /// Its place among the attrs.
    pub index: usize,
    /// Its name: the file's, else one made of its attr.
    pub name: String,
    /// Every field of its attr.
    pub attr: Value,
    /// The ids of its counters.
    pub ids: Vec<u64>,
}

/// A feature of the header.
#[derive(Clone, Debug, Serialize)]
pub struct FeatureInfo {
    /// Its number.
    pub number: u8,
    /// Its name, or `FEATURE_` and its number.
    pub name: String,
    /// Where it is.
    #[serde(flatten)]
    pub section: Part,
    /// What it says; nothing where it is not known or cannot be read.
    pub value: Option<Value>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Warning>,
}

/// The times of the first and the last sample, in nanoseconds of the perf clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimeRange {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

impl Info {
    /// Gathers it.
    #[must_use]
    pub fn gather(input: &Input, session: &Session<'_>) -> Self {
        let file = session.file;
        let stream = |stream: &Stream| StreamInfo { name: stream.name.clone(), bytes: stream.bytes().len() as u64 };
        let features: Vec<FeatureInfo> = features(file);
        let missing = (0..=u8::MAX).map(FeatureId).filter(|id| id.name().is_some());
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
            time: time_range(session),
            lost_events: session.side_band.lost_events,
            lost_samples: session.side_band.all_lost_samples(),
            filtered_samples: session.side_band.all_filtered_samples(),
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
        compressed: unpack::is_compressed(file.records()) || file.feature_cursor(FeatureId::COMPRESSED).is_some(),
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
    let one = |(index, (entry, name)): (usize, (&recrep_format::attrs::AttrEntry, &String))| EventInfo {
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

/// The smallest and the largest time of a sample.
fn time_range(session: &Session<'_>) -> Option<TimeRange> {
    let attrs = &session.file.attrs;
    let of_piece = |piece: &Piece<'_>| {
        let frames = Frames::new(piece.bytes, piece.offset, session.file.endian).map_while(Result::ok);
        let times = frames.filter_map(|raw| {
            let (event, sample) = attrs.sample(raw)?;
            attrs.sample_layout(event).filter(|layout| layout.time.is_some())?;
            sample.time()
        });
        times.map(|time| TimeRange { first: time, last: time }).reduce(TimeRange::with)
    };
    session.split.pieces.par_iter().filter_map(of_piece).reduce_with(TimeRange::with)
}

impl TimeRange {
    fn with(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}
