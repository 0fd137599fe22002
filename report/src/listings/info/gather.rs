//! Data that `rep info` prints, gathered from the file and its session; as JSON (`recrep-info/1`)
//! and as text.

use std::collections::BTreeMap;
use std::io::{self, Write};

use recrep_format::attr::AttrEntry;
use recrep_format::bytes::Cursor;
use recrep_format::endian::Endian;
use recrep_format::feature::{FeatureId, NrCpus};
use recrep_format::read::{File, Magic, Mode, Section, is_compressed};
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};

use super::attr;
use super::features;
use super::value::{InfoValue, hex, map, maps, number};
use crate::input::Stream;
use crate::query::Warning;
use crate::samples::Session;
use crate::terminal::escape::escape;
use crate::timeline::total;

/// A file, and what had to be found out about it.
pub(super) struct Info<'s> {
    session: &'s Session<'s>,
    /// Header features: in file mode by number, in pipe mode in the order of the stream.
    features: Vec<Feature>,
    /// Number of records by type, including those inside compressed records.
    records: BTreeMap<String, u64>,
    lost_samples: u64,
    /// Number of samples that BPF filters dropped.
    filtered_samples: u64,
    pub(super) warnings: Vec<Warning>,
}

#[derive(Serialize)]
struct Feature {
    number: u8,
    /// Name, or `FEATURE_` and the number.
    name: String,
    offset: u64,
    size: u64,
    /// Decoded contents; `None` if the feature is unknown or malformed.
    value: Option<InfoValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Warning>,
}

impl<'s> Info<'s> {
    pub(super) fn gather(session: &'s Session<'s>) -> Self {
        let features: Vec<Feature> = features(session.file);
        let mut warnings = session.warnings();
        warnings.extend(features.iter().filter_map(|feature| {
            let error = feature.error.clone()?;
            Some(Warning {
                message: format!("the feature {} cannot be read: {}", feature.name, error.message),
                ..error
            })
        }));
        let records =
            session.split.counts.iter().map(|(kind, count)| (kind.to_string(), *count)).collect();
        let lost_samples = total(&session.side_band.lost_samples);
        let filtered_samples = total(&session.side_band.filtered_samples);
        Self { session, features, records, lost_samples, filtered_samples, warnings }
    }

    /// Returns the magic, its version, the byte order and the mode.
    fn format(&self) -> (&'static str, u8, &'static str, &'static str) {
        let file = self.session.file;
        let is_old = matches!(Magic::read(file.bytes()), Ok(Magic::V1));
        let (magic, version) = if is_old { ("PERFFILE", 1) } else { ("PERFILE2", 2) };
        let order = if file.endian == Endian::Little { "little" } else { "big" };
        (magic, version, order, if file.mode == Mode::File { "file" } else { "pipe" })
    }

    fn is_compressed(&self) -> bool {
        let file = self.session.file;
        is_compressed(file.records()) || file.feature_cursor(FeatureId::COMPRESSED).is_some()
    }

    /// Returns the offset of the table of feature sections; `None` in pipe mode.
    fn feature_table(&self) -> Option<u64> {
        let (file, data) = (self.session.file, self.session.file.header.data);
        data.offset.checked_add(data.size).filter(|_| file.mode == Mode::File)
    }

    /// Returns the names of perf's features that the file lacks.
    fn missing_features(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for id in FeatureId::NAMED {
            let is_there = self.session.file.features.iter().any(|(have, _)| have == id);
            if !is_there && !id.is_of_simpleperf() {
                missing.push(id.to_string());
            }
        }
        missing
    }
}

fn features(file: &File<'_>) -> Vec<Feature> {
    let cpus = file.feature::<NrCpus>().and_then(Result::ok).map_or(0, |cpus| cpus.available);
    let mut features = Vec::with_capacity(file.features.len());
    for (id, section) in file.features.iter().copied() {
        let Section { offset, size } = section;
        let mut c = Cursor::new(section.of(file.bytes()).unwrap_or_default(), offset, file.endian);
        let (value, error) = match features::value(id, &mut c, cpus) {
            Ok(value) => (value, None),
            Err(error) => (None, Some(Warning::from(&error))),
        };
        features.push(Feature { number: id.0, name: id.to_string(), offset, size, value, error });
    }
    features
}

impl Serialize for Info<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let session = self.session;
        let stream = |stream: &Stream| {
            [
                ("name", InfoValue::Text(stream.name.clone())),
                ("bytes", number(stream.bytes.len() as u64)),
            ]
        };
        let events = session.file.attrs.entries().iter().zip(&session.events).enumerate();
        let event = |(index, (entry, name)): (usize, (&AttrEntry, &String))| {
            let ids = InfoValue::List(entry.ids.iter().copied().map(number).collect());
            let name = InfoValue::Text(name.clone());
            [
                ("index", number(index as u64)),
                ("name", name),
                ("attr", attr::value(&entry.attr)),
                ("ids", ids),
            ]
        };
        let times = session.sample_times();
        let mut json = serializer.serialize_map(None)?;
        json.serialize_entry("schema", "recrep-info/1")?;
        json.serialize_entry("path", &self.session.input.name)?;
        json.serialize_entry("bytes", &self.session.input.len())?;
        json.serialize_entry("streams", &maps(self.session.input.streams(), stream))?;
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
        let part =
            |part: Section| map([("offset", number(part.offset)), ("size", number(part.size))]);
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
        json.serialize_entry("feature_bits", &header.features.map(hex))?;
        json.serialize_entry("feature_table", &self.0.feature_table())?;
        json.end()
    }
}

/// Prints the description of a file as text.
pub(super) fn print(info: &Info<'_>, out: &mut impl Write) -> io::Result<()> {
    print_container(info, out)?;
    print_events(info, out)?;
    print_features(info, out)?;
    print_records(info, out)
}

fn print_container(info: &Info<'_>, out: &mut impl Write) -> io::Result<()> {
    let (input, file) = (info.session.input, info.session.file);
    let header = &file.header;
    writeln!(out, "file: {}, {} bytes", escape(&input.name), input.len())?;
    for stream in input.streams() {
        writeln!(out, "stream: {}, {} bytes", escape(&stream.name), stream.bytes.len())?;
    }
    let (magic, version, order, mode) = info.format();
    let packed = if info.is_compressed() { "compressed" } else { "not compressed" };
    let whole = if info.session.is_complete() { "complete" } else { "not complete" };
    if info.session.input.profile_samples().is_some() {
        writeln!(out, "format: pprof profile; what follows is the recording that rep reads it as")?;
    }
    writeln!(
        out,
        "format: {magic} (version {version}), {order}-endian, {mode} mode, {packed}, {whole}"
    )?;
    writeln!(out, "header: {} bytes", header.size)?;
    if file.mode == Mode::File {
        writeln!(out, "attrs: {}, {} bytes each", extent(header.attrs), header.attr_size)?;
        writeln!(out, "event types: {}", extent(header.event_types))?;
    }
    write!(out, "data: {}", extent(header.data))?;
    if file.data.size != header.data.size {
        write!(out, ", of which {} are present", file.data.size)?;
    }
    writeln!(out)?;
    if let Some(table) = info.feature_table() {
        let bits = header.features.map(|bits| format!("{bits:#x}")).join(" ");
        writeln!(out, "features: table at {table:#x}, bits {bits}")?;
    }
    Ok(())
}

fn extent(section: Section) -> String {
    format!("{} bytes at {:#x}", section.size, section.offset)
}

fn print_events(info: &Info<'_>, out: &mut impl Write) -> io::Result<()> {
    let session = info.session;
    writeln!(out, "\nevents: {}", session.events.len())?;
    for (index, (entry, name)) in
        session.file.attrs.entries().iter().zip(&session.events).enumerate()
    {
        writeln!(out, "  {index}: {}", escape(name))?;
        writeln!(out, "    attr: {}", attr::text(&entry.attr))?;
        let ids: Vec<String> = entry.ids.iter().map(u64::to_string).collect();
        writeln!(out, "    ids: {}", if ids.is_empty() { "none".into() } else { ids.join(" ") })?;
    }
    Ok(())
}

fn print_features(info: &Info<'_>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nfeatures: {}", info.features.len())?;
    for Feature { number, name, offset, size, value, error } in &info.features {
        write!(out, "  {name} ({number}, {size} bytes at {offset:#x}):")?;
        match (value, error) {
            (Some(value), _) => block(value, 4, out)?,
            (None, Some(error)) => {
                let at =
                    error.offset.map(|offset| format!(", at byte {offset}")).unwrap_or_default();
                writeln!(out, " cannot be read: {}{at}", escape(&error.message))?;
            }
            (None, None) => writeln!(out, " unknown feature")?,
        }
    }
    writeln!(out, "missing features: {}", info.missing_features().join(" "))
}

/// Prints a value on the rest of the line, or its parts on separate lines.
fn block(value: &InfoValue, indent: usize, out: &mut impl Write) -> io::Result<()> {
    match value {
        InfoValue::List(items) if items.is_empty() => writeln!(out, " none"),
        InfoValue::List(items) if value.is_block() => {
            writeln!(out)?;
            for item in items {
                write!(out, "{:indent$}", "")?;
                part(item, indent, out)?;
            }
            Ok(())
        }
        InfoValue::Map(parts) if value.is_block() => {
            writeln!(out)?;
            for (name, part) in parts {
                write!(out, "{:indent$}{name}:", "")?;
                block(part, indent + 2, out)?;
            }
            Ok(())
        }
        value => writeln!(out, " {value}"),
    }
}

/// Prints an item of a list: simple parts on one line, blocks below it.
fn part(item: &InfoValue, indent: usize, out: &mut impl Write) -> io::Result<()> {
    let InfoValue::Map(parts) = item else { return writeln!(out, "{item}") };
    let (blocks, flat): (Vec<_>, Vec<_>) = parts.iter().partition(|(_, part)| part.is_block());
    let flat: Vec<String> = flat.iter().map(|(name, part)| format!("{name}: {part}")).collect();
    writeln!(out, "{}", flat.join(", "))?;
    for (name, part) in blocks {
        write!(out, "{:width$}{name}:", "", width = indent + 2)?;
        block(part, indent + 4, out)?;
    }
    Ok(())
}

fn print_records(info: &Info<'_>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nrecords: {}", info.records.values().sum::<u64>())?;
    for (name, count) in &info.records {
        writeln!(out, "  {name}: {count}")?;
    }
    if let Some((first, last)) = info.session.sample_times() {
        let [first, last, length] = [first, last, last - first]
            .map(|ns| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000));
        writeln!(out, "samples: first at {first}, last at {last}, {length} s")?;
    }
    writeln!(
        out,
        "lost: {} events, {} samples",
        info.session.side_band.lost_events, info.lost_samples
    )?;
    if info.filtered_samples > 0 {
        writeln!(out, "filtered: {} samples", info.filtered_samples)?;
    }
    writeln!(out, "warnings: {}", info.warnings.len())
}
