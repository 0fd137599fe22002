//! Text output of `rep info`.

use std::io::{self, Write};

use recrep_format::read::{Mode, Section};

use super::attr;
use super::gather::{Feature, Info};
use super::value::Value;
use crate::terminal::escape::escape;

/// Prints the description of a file.
pub(super) fn print(info: &Info<'_>, out: &mut impl Write) -> io::Result<()> {
    container(info, out)?;
    events(info, out)?;
    features(info, out)?;
    records(info, out)
}

fn container(info: &Info<'_>, out: &mut impl Write) -> io::Result<()> {
    let (input, file) = (info.input, info.session.file);
    let header = &file.header;
    writeln!(out, "file: {}, {} bytes", escape(&input.name), input.len())?;
    for stream in input.streams() {
        writeln!(out, "stream: {}, {} bytes", escape(&stream.name), stream.bytes().len())?;
    }
    let (magic, version, order, mode) = info.format();
    let packed = if info.is_compressed() { "compressed" } else { "not compressed" };
    let whole = if info.session.is_complete() { "complete" } else { "not complete" };
    writeln!(out, "format: {magic} (version {version}), {order}-endian, {mode} mode, {packed}, {whole}")?;
    writeln!(out, "header: {} bytes", header.size)?;
    let part = |part: Section| format!("{} bytes at {:#x}", part.size, part.offset);
    if file.mode == Mode::File {
        writeln!(out, "attrs: {}, {} bytes each", part(header.attrs), header.attr_size)?;
        writeln!(out, "event types: {}", part(header.event_types))?;
    }
    write!(out, "data: {}", part(header.data))?;
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

fn events(info: &Info<'_>, out: &mut impl Write) -> io::Result<()> {
    let session = info.session;
    writeln!(out, "\nevents: {}", session.events.len())?;
    for (index, (entry, name)) in session.file.attrs.entries().iter().zip(&session.events).enumerate() {
        writeln!(out, "  {index}: {}", escape(name))?;
        writeln!(out, "    attr: {}", attr::text(&entry.attr))?;
        let ids: Vec<String> = entry.ids.iter().map(u64::to_string).collect();
        writeln!(out, "    ids: {}", if ids.is_empty() { "none".into() } else { ids.join(" ") })?;
    }
    Ok(())
}

fn features(info: &Info<'_>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nfeatures: {}", info.features.len())?;
    for Feature { number, name, offset, size, value, error } in &info.features {
        write!(out, "  {name} ({number}, {size} bytes at {offset:#x}):")?;
        match (value, error) {
            (Some(value), _) => block(value, 4, out)?,
            (None, Some(error)) => {
                let at = error.offset.map(|offset| format!(", at byte {offset}")).unwrap_or_default();
                writeln!(out, " cannot be read: {}{at}", escape(&error.message))?;
            }
            (None, None) => writeln!(out, " unknown feature")?,
        }
    }
    writeln!(out, "missing features: {}", info.missing_features().join(" "))
}

/// Prints a value on the rest of the line, or its parts on separate lines.
fn block(value: &Value, indent: usize, out: &mut impl Write) -> io::Result<()> {
    match value {
        Value::List(items) if items.is_empty() => writeln!(out, " none"),
        Value::List(items) if value.is_block() => {
            writeln!(out)?;
            for item in items {
                write!(out, "{:indent$}", "")?;
                part(item, indent, out)?;
            }
            Ok(())
        }
        Value::Map(parts) if value.is_block() => {
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
fn part(item: &Value, indent: usize, out: &mut impl Write) -> io::Result<()> {
    let Value::Map(parts) = item else { return writeln!(out, "{item}") };
    let (blocks, flat): (Vec<_>, Vec<_>) = parts.iter().partition(|(_, part)| part.is_block());
    let flat: Vec<String> = flat.iter().map(|(name, part)| format!("{name}: {part}")).collect();
    writeln!(out, "{}", flat.join(", "))?;
    for (name, part) in blocks {
        write!(out, "{:width$}{name}:", "", width = indent + 2)?;
        block(part, indent + 4, out)?;
    }
    Ok(())
}

fn records(info: &Info<'_>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nrecords: {}", info.records.values().sum::<u64>())?;
    for (name, count) in &info.records {
        writeln!(out, "  {name}: {count}")?;
    }
    if let Some((first, last)) = info.session.sample_times() {
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let length = seconds(last - first);
        writeln!(out, "samples: first at {}, last at {}, {length} s", seconds(first), seconds(last))?;
    }
    writeln!(out, "lost: {} events, {} samples", info.session.side_band.lost_events, info.lost_samples)?;
    if info.filtered_samples > 0 {
        writeln!(out, "filtered: {} samples", info.filtered_samples)?;
    }
    writeln!(out, "warnings: {}", info.warnings.len())
}
