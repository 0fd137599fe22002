//! Fields of the records that perf itself defines.

use std::io::{self, Write};

use recrep_format::build_id::BuildId;
use recrep_format::bytes::Cursor;
use recrep_format::feature::FeatureId;
use recrep_format::record::{
    AuxtraceError, Body, BpfMetadata, CpuMap, EventUpdate, HEADER_SIZE, HeaderFeature, IdIndex, RawRecord, ThreadMap,
    TimeConv,
};

use super::known::FileFacts;
use super::line::{Escaped, Hex, Lines, fixed};
use crate::commands::info;

/// Maximum number of CPUs to print.
const MAX_CPUS: usize = 1 << 16;

/// Prints the fields of a record.
pub(super) fn print<W: Write>(
    known: &FileFacts<'_>,
    raw: &RawRecord<'_>,
    body: &Body<'_>,
    lines: &mut Lines<'_, W>,
) -> io::Result<()> {
    match body {
        Body::HeaderAttr(header) => {
            lines.field("attr", info::attr_text(&header.attr))?;
            let ids: Vec<String> = header.ids.iter().map(|id| id.to_string()).collect();
            lines.begin("ids:")?.field("nr", ids.len())?.item(ids.join(" "))?;
        }
        Body::HeaderEventType(event) => {
            lines.field("event_id", event.event_id)?.field("name", Escaped(event.name.as_bytes()))?;
        }
        Body::HeaderTracingData(data) => {
            lines.field("size", data.size)?;
        }
        Body::HeaderBuildId(header) => {
            let id = header.build_id(raw.header.misc).as_ref().map(BuildId::to_string);
            lines.field("pid", header.pid.cast_signed())?.field("build_id", id.unwrap_or_default())?;
            lines.field("filename", Escaped(header.filename.as_bytes()))?;
        }
        Body::IdIndex(index) => id_index(index, lines)?,
        Body::AuxtraceInfo(header) => {
            lines.field("type", format_args!("{} {}", header.kind, auxtrace_name(header.kind)))?;
            lines.field("reserved", header.reserved)?.field("priv_words", header.private.len())?;
            for (place, word) in header.private.iter().enumerate() {
                lines.item(format_args!("{place:>3}: {word:#x}"))?;
            }
        }
        Body::Auxtrace(aux) => {
            lines
                .field("size", Hex(aux.size))?
                .field("offset", Hex(aux.offset))?
                .field("reference", Hex(aux.reference))?;
            lines.field("idx", aux.idx)?.field("tid", aux.tid.cast_signed())?.field("cpu", aux.cpu.cast_signed())?;
            lines.maybe("reserved", Some(aux.reserved).filter(|reserved| *reserved != 0))?;
        }
        Body::AuxtraceError(error) => auxtrace_error(error, lines)?,
        Body::ThreadMap(map) => thread_map(known, map, lines)?,
        Body::CpuMap(map) => {
            lines.field("type", map.kind)?.field("cpus", cpus(map, known))?;
        }
        Body::StatConfig(config) => {
            lines.field("nr", config.nr)?;
            let names = ["AGGR_MODE", "INTERVAL", "SCALE", "AGGR_LEVEL"];
            let words: Vec<u64> = config.words.iter().collect();
            for (tag, value) in words.as_chunks::<2>().0.iter().map(|[tag, value]| (*tag, *value)) {
                let name = usize::try_from(tag).ok().and_then(|tag| names.get(tag)).copied().unwrap_or("unknown");
                lines.item(format_args!("tag: {tag} {name}, val: {value}"))?;
            }
        }
        Body::Stat(stat) => {
            lines
                .field("id", stat.id)?
                .field("cpu", stat.cpu.cast_signed())?
                .field("thread", stat.thread.cast_signed())?;
            lines.field("val", stat.value)?.field("ena", stat.enabled)?.field("run", stat.running)?;
        }
        Body::StatRound(round) => {
            let name = if round.kind == 1 { "FINAL" } else { "INTERVAL" };
            lines.field("type", format_args!("{} {name}", round.kind))?.field("time", round.time)?;
        }
        Body::EventUpdate(update) => event_update(known, update, lines)?,
        Body::TimeConv(conv) => time_conv(conv, lines)?,
        Body::HeaderFeature(header) => feature(known, raw, header, lines)?,
        Body::Compressed(piece) => {
            lines.field("compressed_size", piece.data.len())?;
        }
        Body::Compressed2(piece) => {
            lines.field("data_size", piece.data_size)?.field("compressed_size", piece.stream().len())?;
        }
        Body::BpfMetadata(metadata) => bpf_metadata(metadata, lines)?,
        Body::FinishedRound | Body::FinishedInit => {}
        other => {
            lines.field("not_decoded", other.kind())?;
        }
    }
    lines.end()
}

fn id_index<W: Write>(index: &IdIndex<'_>, lines: &mut Lines<'_, W>) -> io::Result<()> {
    lines.field("nr", index.nr)?;
    let entries = index.iter().count();
    for (place, entry) in index.iter().enumerate() {
        let word = |which| index.words.get(4 * entries + 2 * place + which).map(u64::cast_signed);
        let guest = match (word(0), word(1)) {
            (Some(pid), Some(vcpu)) => format!(", machine_pid: {pid}, vcpu: {vcpu}"),
            _ => String::new(),
        };
        let (cpu, tid) = (entry.cpu.cast_signed(), entry.tid.cast_signed());
        lines.item(format_args!("id: {}, idx: {}, cpu: {cpu}, tid: {tid}{guest}", entry.id, entry.idx))?;
    }
    Ok(())
}

/// Returns the name of a number of `enum auxtrace_type`.
fn auxtrace_name(kind: u32) -> &'static str {
    match kind {
        1 => "INTEL_PT",
        2 => "INTEL_BTS",
        3 => "CS_ETM",
        4 => "ARM_SPE",
        5 => "S390_CPUMSF",
        6 => "HISI_PTT",
        7 => "VPA_DTL",
        _ => "UNKNOWN",
    }
}

fn auxtrace_error<W: Write>(error: &AuxtraceError<'_>, lines: &mut Lines<'_, W>) -> io::Result<()> {
    lines.field("type", error.kind)?.field("code", error.code)?.field("cpu", error.cpu.cast_signed())?;
    lines.field("pid", error.pid.cast_signed())?.field("tid", error.tid.cast_signed())?.field("fmt", error.fmt)?;
    lines.field("ip", Hex(error.ip))?.maybe("time", error.time)?.field("msg", Escaped(error.message.as_bytes()))?;
    Ok(())
}

/// Prints the entries, each a 64-bit thread ID and a name of 16 bytes.
fn thread_map<W: Write>(known: &FileFacts<'_>, map: &ThreadMap<'_>, lines: &mut Lines<'_, W>) -> io::Result<()> {
    const ENTRY: usize = 24;
    lines.field("nr", map.nr)?;
    let count = usize::try_from(map.nr).unwrap_or(usize::MAX);
    for entry in map.entries.chunks_exact(ENTRY).take(count) {
        let pid = known.file.endian.u64_at(entry, 0).unwrap_or(0).cast_signed();
        lines.item(format_args!("pid: {pid}, comm: {}", fixed(entry.get(8..).unwrap_or_default())))?;
    }
    Ok(())
}

/// Returns the CPUs as ranges, or why they cannot be read.
fn cpus(map: &CpuMap<'_>, known: &FileFacts<'_>) -> String {
    let cpus = match map.cpus(known.file.endian, MAX_CPUS) {
        Ok(cpus) => cpus,
        Err(error) => return format!("cannot be read: {}", error.kind),
    };
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu) => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let one = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(one).collect::<Vec<_>>().join(",")
}

fn event_update<W: Write>(known: &FileFacts<'_>, update: &EventUpdate<'_>, lines: &mut Lines<'_, W>) -> io::Result<()> {
    lines.field("id", update.id)?;
    match update.kind {
        0 => lines.field("type", "0 UNIT")?.field("unit", Escaped(update.text()))?,
        1 => {
            let scale = known.file.endian.u64_at(update.data, 0).map(f64::from_bits);
            lines.field("type", "1 SCALE")?.maybe("scale", scale)?
        }
        2 => lines.field("type", "2 NAME")?.field("name", Escaped(update.text()))?,
        3 => {
            let kind = update.data.first_chunk().map_or(0, |bytes| known.file.endian.u16(*bytes));
            let map = CpuMap { kind, data: update.data.get(2..).unwrap_or_default() };
            lines.field("type", "3 CPUS")?.field("cpus", cpus(&map, known))?
        }
        other => lines.field("type", other)?.field("data_size", update.data.len())?,
    };
    Ok(())
}

fn time_conv<W: Write>(conv: &TimeConv, lines: &mut Lines<'_, W>) -> io::Result<()> {
    lines
        .field("time_shift", conv.time_shift)?
        .field("time_mult", conv.time_mult)?
        .field("time_zero", conv.time_zero)?;
    if let Some(short) = conv.short {
        lines.field("time_cycles", short.time_cycles)?.field("time_mask", Hex(short.time_mask))?;
        lines.field("cap_user_time_zero", short.cap_user_time_zero)?;
        lines.field("cap_user_time_short", short.cap_user_time_short)?;
    }
    Ok(())
}

fn feature<W: Write>(
    known: &FileFacts<'_>,
    raw: &RawRecord<'_>,
    header: &HeaderFeature<'_>,
    lines: &mut Lines<'_, W>,
) -> io::Result<()> {
    let id = u8::try_from(header.feat_id).ok().map(FeatureId);
    let name = id.and_then(FeatureId::name).unwrap_or("");
    lines.field("feat_id", format_args!("{} {name}", header.feat_id))?.field("data_size", header.data.len())?;
    let Some(id) = id.filter(|id| id.name().is_some() && !header.data.is_empty()) else { return Ok(()) };
    let at = raw.offset + HEADER_SIZE as u64 + 8;
    let mut c = Cursor::new(header.data, at, known.file.endian);
    match info::feature_value(id, &mut c, known.cpus) {
        Ok(value) => value.map_or(Ok(()), |value| lines.item(value)),
        Err(error) => lines.item(format_args!("cannot be read: {error}")),
    }
}

fn bpf_metadata<W: Write>(metadata: &BpfMetadata<'_>, lines: &mut Lines<'_, W>) -> io::Result<()> {
    const KEY: usize = 64;
    const ENTRY: usize = KEY + 256;
    lines.field("prog_name", fixed(&metadata.prog_name))?.field("nr_entries", metadata.nr_entries)?;
    let count = usize::try_from(metadata.nr_entries).unwrap_or(usize::MAX);
    for entry in metadata.entries.chunks_exact(ENTRY).take(count) {
        let (key, value) = entry.split_at_checked(KEY).unwrap_or((entry, &[]));
        lines.item(format_args!("{}: {}", fixed(key), fixed(value)))?;
    }
    Ok(())
}
