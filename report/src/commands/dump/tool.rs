//! Fields of the records that perf itself defines.

use recrep_format::abi::StatRoundKind;
use recrep_format::build_id::BuildId;
use recrep_format::feature::FeatureId;
use recrep_format::record::{Body, CpuMap, EventProperty, EventUpdate, HeaderFeature, IdIndexEntry, RawRecord};

use super::known::FileFacts;
use super::line::{Escaped, Hex, Lines, fixed, named};
use crate::commands::info;

/// Maximum number of CPUs to print.
const MAX_CPUS: usize = 1 << 16;

pub(super) fn print(known: &FileFacts<'_>, raw: &RawRecord<'_>, body: &Body<'_>, lines: &mut Lines<'_>) {
    match body {
        Body::HeaderAttr(header) => {
            lines.field("attr", info::attr_text(&header.attr));
            let ids: Vec<String> = header.ids.iter().map(|id| id.to_string()).collect();
            lines.begin("ids:").field("nr", ids.len()).item(ids.join(" "))
        }
        Body::HeaderEventType(event) => {
            lines.field("event_id", event.event_id).field("name", Escaped(event.name.as_bytes()))
        }
        Body::HeaderTracingData(data) => lines.field("size", data.size),
        Body::HeaderBuildId(header) => {
            let id = header.build_id(raw.header.misc).as_ref().map(BuildId::to_string);
            lines.field("pid", header.pid).field("build_id", id.unwrap_or_default());
            lines.field("filename", Escaped(header.filename.as_bytes()))
        }
        Body::IdIndex(index) => {
            lines.field("nr", index.nr);
            for IdIndexEntry { id, idx, cpu, tid, guest } in index.iter() {
                let guest = guest.map(|guest| format!(", machine_pid: {}, vcpu: {}", guest.machine_pid, guest.vcpu));
                let guest = guest.unwrap_or_default();
                lines.item(format_args!("id: {id}, idx: {idx}, cpu: {cpu}, tid: {tid}{guest}"));
            }
            lines
        }
        Body::AuxtraceInfo(header) => {
            lines.field("type", format_args!("{} {}", header.kind.0, header.kind.name().unwrap_or("UNKNOWN")));
            lines.field("reserved", header.reserved).field("priv_words", header.private.len());
            for (place, word) in header.private.iter().enumerate() {
                lines.item(format_args!("{place:>3}: {word:#x}"));
            }
            lines
        }
        Body::Auxtrace(aux) => {
            lines.field("size", Hex(aux.size)).field("offset", Hex(aux.offset)).field("reference", Hex(aux.reference));
            lines.field("idx", aux.idx).field("tid", aux.tid).field("cpu", aux.cpu);
            lines.maybe("reserved", Some(aux.reserved).filter(|reserved| *reserved != 0))
        }
        Body::AuxtraceError(error) => {
            lines.field("type", error.kind.0).field("code", error.code).field("cpu", error.cpu);
            lines.field("pid", error.pid).field("tid", error.tid).field("fmt", error.fmt);
            lines.field("ip", Hex(error.ip)).maybe("time", error.time);
            lines.field("msg", Escaped(error.message.as_bytes()))
        }
        Body::ThreadMap(map) => {
            lines.field("nr", map.nr);
            for entry in &map.entries {
                lines.item(format_args!("pid: {}, comm: {}", entry.tid(), fixed(&entry.comm)));
            }
            lines
        }
        Body::CpuMap(map) => lines.field("type", map.kind().0).field("cpus", cpus(map)),
        Body::StatConfig(config) => {
            lines.field("nr", config.nr);
            for entry in config.iter() {
                let name = entry.tag.name().unwrap_or("unknown");
                lines.item(format_args!("tag: {} {name}, val: {}", entry.tag.0, entry.value));
            }
            lines
        }
        Body::Stat(stat) => {
            lines.field("id", stat.id).field("cpu", stat.cpu).field("thread", stat.thread.cast_signed());
            lines.field("val", stat.value).field("ena", stat.enabled).field("run", stat.running)
        }
        Body::StatRound(round) => {
            // As in perf, all others end an interval.
            let kind = if round.kind == StatRoundKind::FINAL { round.kind } else { StatRoundKind::INTERVAL };
            lines.field("type", format_args!("{} {kind}", round.kind.0)).field("time", round.time)
        }
        Body::EventUpdate(update) => event_update(update, lines),
        Body::TimeConv(conv) => {
            lines.field("time_shift", conv.time_shift).field("time_mult", conv.time_mult);
            lines.field("time_zero", conv.time_zero);
            if let Some(short) = conv.short {
                lines.field("time_cycles", short.time_cycles).field("time_mask", Hex(short.time_mask));
                lines.field("cap_user_time_zero", short.cap_user_time_zero);
                lines.field("cap_user_time_short", short.cap_user_time_short);
            }
            lines
        }
        Body::HeaderFeature(header) => feature(known, raw, header, lines),
        Body::Compressed(piece) => lines.field("compressed_size", piece.data.len()),
        Body::Compressed2(piece) => {
            lines.field("data_size", piece.data_size).field("compressed_size", piece.stream().len())
        }
        Body::BpfMetadata(metadata) => {
            lines.field("prog_name", fixed(&metadata.prog_name)).field("nr_entries", metadata.nr_entries);
            for (key, value) in metadata.iter() {
                lines.item(format_args!("{}: {}", fixed(key), fixed(value)));
            }
            lines
        }
        Body::FinishedRound | Body::FinishedInit => lines,
        other => lines.field("not_decoded", other.kind()),
    };
}

/// Returns the CPUs as ranges, or why they cannot be read.
fn cpus(map: &CpuMap<'_>) -> String {
    let Some(cpus) = map.cpus() else {
        return format!("cannot be read: the encoding {} is not known", map.kind().0);
    };
    info::ranges(cpus.take(MAX_CPUS), |last, cpu| last.0.checked_add(1) == Some(cpu.0))
}

fn event_update<'l, 'w>(update: &EventUpdate<'_>, lines: &'l mut Lines<'w>) -> &'l mut Lines<'w> {
    let kind = update.property.kind();
    lines.field("id", update.id).field("type", named(kind.0, kind.name()));
    match &update.property {
        EventProperty::Unit(unit) => lines.field("unit", Escaped(unit.as_bytes())),
        EventProperty::Scale(scale) => lines.field("scale", scale.value()),
        EventProperty::Name(name) => lines.field("name", Escaped(name.as_bytes())),
        EventProperty::Cpus(map) => lines.field("cpus", cpus(map)),
        EventProperty::Other(_, bytes) => lines.field("data_size", bytes.len()),
        _ => lines,
    }
}

fn feature<'l, 'w>(
    known: &FileFacts<'_>,
    raw: &RawRecord<'_>,
    header: &HeaderFeature<'_>,
    lines: &'l mut Lines<'w>,
) -> &'l mut Lines<'w> {
    let id = u8::try_from(header.feat_id).ok().map(FeatureId);
    let name = id.and_then(FeatureId::name).unwrap_or("");
    lines.field("feat_id", format_args!("{} {name}", header.feat_id)).field("data_size", header.data.len());
    let Some(id) = id.filter(|id| id.name().is_some() && !header.data.is_empty()) else { return lines };
    match info::feature_value(id, &mut header.cursor(raw.offset, known.file.endian), known.cpus) {
        Ok(Some(value)) => lines.item(value),
        Ok(None) => lines,
        Err(error) => lines.item(format_args!("cannot be read: {error}")),
    }
}
