//! Text output of `rep info`.

use std::io::{self, Write};

use super::gather::{FeatureInfo, Info, Part};
use super::value::Value;
use crate::terminal::escape::escape;

/// Prints the description of a file.
pub(super) fn print(info: &Info, out: &mut impl Write) -> io::Result<()> {
    container(info, out)?;
    events(info, out)?;
    features(info, out)?;
    records(info, out)
}

fn container(info: &Info, out: &mut impl Write) -> io::Result<()> {
    let c = &info.container;
    let (packed, whole) = (
        if c.compressed { "compressed" } else { "not compressed" },
        if info.complete { "complete" } else { "not complete" },
    );
    writeln!(out, "file: {}, {} bytes", escape(&info.path), info.bytes)?;
    for stream in &info.streams {
        writeln!(out, "stream: {}, {} bytes", escape(&stream.name), stream.bytes)?;
    }
    let (magic, version, order, mode) = (c.magic, c.version, c.byte_order, c.mode);
    writeln!(out, "format: {magic} (version {version}), {order}-endian, {mode} mode, {packed}, {whole}")?;
    writeln!(out, "header: {} bytes", c.header_size)?;
    let part = |part: Part| format!("{} bytes at {:#x}", part.size, part.offset);
    if c.mode == "file" {
        writeln!(out, "attrs: {}, {} bytes each", part(c.attrs), c.attr_size)?;
        writeln!(out, "event types: {}", part(c.event_types))?;
    }
    write!(out, "data: {}", part(c.data))?;
    if c.data_found != c.data.size {
        write!(out, ", of which {} are present", c.data_found)?;
    }
    writeln!(out)?;
    if let Some(table) = c.feature_table {
        let bits = c.feature_bits.each_ref().map(Value::to_string).join(" ");
        writeln!(out, "features: table at {table:#x}, bits {bits}")?;
    }
    Ok(())
}

fn events(info: &Info, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nevents: {}", info.events.len())?;
    for event in &info.events {
        writeln!(out, "  {}: {}", event.index, escape(&event.name))?;
        writeln!(out, "    attr: {}", event.attr)?;
        let ids: Vec<String> = event.ids.iter().map(u64::to_string).collect();
        writeln!(out, "    ids: {}", if ids.is_empty() { "none".into() } else { ids.join(" ") })?;
    }
    Ok(())
}

fn features(info: &Info, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nfeatures: {}", info.features.len())?;
    for FeatureInfo { number, name, section, value, error } in &info.features {
        write!(out, "  {name} ({number}, {} bytes at {:#x}):", section.size, section.offset)?;
        match (value, error) {
            (Some(value), _) => block(value, 4, out)?,
            (None, Some(error)) => {
                let at = error.offset.map(|offset| format!(", at byte {offset}")).unwrap_or_default();
                writeln!(out, " cannot be read: {}{at}", escape(&error.message))?;
            }
            (None, None) => writeln!(out, " unknown feature")?,
        }
    }
    writeln!(out, "missing features: {}", info.missing_features.join(" "))
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

fn records(info: &Info, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nrecords: {}", info.records.values().sum::<u64>())?;
    for (name, count) in &info.records {
        writeln!(out, "  {name}: {count}")?;
    }
    if let Some(time) = info.time {
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let (first, last) = (seconds(time.first), seconds(time.last));
        writeln!(out, "samples: first at {first}, last at {last}, {} s", seconds(time.last - time.first))?;
    }
    writeln!(out, "lost: {} events, {} samples", info.lost_events, info.lost_samples)?;
    if info.filtered_samples > 0 {
        writeln!(out, "filtered: {} samples", info.filtered_samples)?;
    }
    writeln!(out, "warnings: {}", info.warnings.len())
}
