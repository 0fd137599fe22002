//! Fields of the records other than samples: those of the kernel, then those that perf itself defines.

use recrep_format::abi::{AuxFlags, KSymbolFlags, StatRoundKind, map_flags, prot};
use recrep_format::build_id::BuildId;
use recrep_format::feature::FeatureId;
use recrep_format::record::{
    Body, CpuMap, EventProperty, EventUpdate, HeaderFeature, IdIndexEntry, Mmap2, MmapIdentity, Namespaces, RawRecord,
};

use super::known::FileFacts;
use super::line::{Lines, fixed, named};
use super::sample;
use crate::commands::info::Value::Hex;
use crate::commands::info::{self, Value};

const MAX_CPUS: usize = 1 << 16;

pub(super) fn print(known: &FileFacts<'_>, raw: &RawRecord<'_>, body: &Body<'_>, lines: &mut Lines<'_>) {
    match body {
        Body::Other(_, bytes) => lines.field("not_decoded", format_args!("{} bytes", bytes.len())),
        Body::Mmap(map) => {
            pid_tid(map.pid, map.tid, lines).field("addr", Hex(map.addr)).field("len", Hex(map.len));
            lines.field("pgoff", Hex(map.pgoff)).field("filename", Value::text(map.filename.as_bytes()))
        }
        Body::Mmap2(map) => mmap2(map, lines),
        Body::Lost(lost) => lines.field("id", lost.id).field("lost", lost.lost),
        Body::LostSamples(lost) => lines.field("lost", lost.lost),
        Body::Comm(comm) => pid_tid(comm.pid, comm.tid, lines).field("comm", Value::text(comm.comm.as_bytes())),
        Body::Exit(task) | Body::Fork(task) => {
            lines.field("pid", task.pid.cast_signed()).field("ppid", task.ppid.cast_signed());
            lines.field("tid", task.tid.cast_signed()).field("ptid", task.ptid.cast_signed()).field("time", task.time)
        }
        Body::Throttle(throttle) | Body::Unthrottle(throttle) => {
            lines.field("time", throttle.time).field("id", throttle.id).field("stream_id", throttle.stream_id)
        }
        Body::Read(read) => sample::values(&read.values, pid_tid(read.pid, read.tid, lines)),
        Body::Aux(aux) => {
            lines.field("aux_offset", Hex(aux.aux_offset)).field("aux_size", Hex(aux.aux_size));
            lines.field("flags", format_args!("{:#x}{}", aux.flags.bits(), aux_flags(aux.flags)))
        }
        Body::ItraceStart(start) => pid_tid(start.pid, start.tid, lines),
        Body::SwitchCpuWide(switch) => {
            lines.field("next_prev_pid", switch.next_prev_pid.cast_signed());
            lines.field("next_prev_tid", switch.next_prev_tid.cast_signed())
        }
        Body::Namespaces(all) => {
            pid_tid(all.pid, all.tid, lines).field("nr_namespaces", all.nr_namespaces);
            for (place, namespace) in all.iter().enumerate() {
                let name = Namespaces::NAMES.get(place).copied().unwrap_or("unknown");
                lines.item(format_args!("{place}/{name}: dev: {}, ino: {:#x}", namespace.dev, namespace.inode));
            }
            lines
        }
        Body::KSymbol(symbol) => {
            lines.field("addr", Hex(symbol.addr)).field("len", symbol.len);
            let gone = if symbol.flags.contains(KSymbolFlags::UNREGISTER) { " UNREGISTER" } else { "" };
            lines.field("ksym_type", named(symbol.ksym_type.0, symbol.ksym_type.name()));
            lines.field("flags", format_args!("{:#x}{gone}", symbol.flags.bits()));
            lines.field("name", Value::text(symbol.name.as_bytes()))
        }
        Body::BpfEvent(bpf) => {
            lines.field("type", named(bpf.event_type.0, bpf.event_type.name()));
            lines.field("flags", Hex(bpf.flags.into())).field("id", bpf.id).field("tag", Value::Bytes(bpf.tag.to_vec()))
        }
        Body::Cgroup(cgroup) => lines.field("id", cgroup.id).field("path", Value::text(cgroup.path.as_bytes())),
        Body::TextPoke(poke) => {
            lines.field("addr", Hex(poke.addr)).field("old_len", poke.old_len).field("new_len", poke.new_len);
            lines.item(format_args!("old: {}", Value::Bytes(poke.old_bytes().to_vec())));
            lines.item(format_args!("new: {}", Value::Bytes(poke.new_bytes().to_vec())))
        }
        Body::AuxOutputHwId(id) => lines.field("hw_id", Hex(id.hw_id)),
        Body::CallchainDeferred(chain) => {
            lines.begin("callchain:").field("cookie", Hex(chain.cookie)).field("nr", chain.nr);
            sample::chain(chain.ips, lines)
        }
        // It has no fields: `misc` and the trailer hold everything.
        Body::Switch => lines,

        Body::HeaderAttr(header) => {
            lines.field("attr", info::attr_text(&header.attr));
            let ids: Vec<String> = header.ids.iter().map(|id| id.to_string()).collect();
            lines.begin("ids:").field("nr", ids.len()).item(ids.join(" "))
        }
        Body::HeaderEventType(event) => {
            lines.field("event_id", event.event_id).field("name", Value::text(event.name.as_bytes()))
        }
        Body::HeaderTracingData(data) => lines.field("size", data.size),
        Body::HeaderBuildId(header) => {
            let id = header.build_id(raw.header.misc).as_ref().map(BuildId::to_string);
            lines.field("pid", header.pid).field("build_id", id.unwrap_or_default());
            lines.field("filename", Value::text(header.filename.as_bytes()))
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
            lines.field("msg", Value::text(error.message.as_bytes()))
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

fn pid_tid<'l, 'w>(pid: u32, tid: u32, lines: &'l mut Lines<'w>) -> &'l mut Lines<'w> {
    lines.field("pid", pid.cast_signed()).field("tid", tid.cast_signed())
}

fn mmap2<'l, 'w>(map: &Mmap2<'_>, lines: &'l mut Lines<'w>) -> &'l mut Lines<'w> {
    pid_tid(map.pid, map.tid, lines).field("addr", Hex(map.addr)).field("len", Hex(map.len));
    lines.field("pgoff", Hex(map.pgoff));
    match map.identity {
        MmapIdentity::Inode(inode) => {
            lines.field("maj", format_args!("{:02x}", inode.maj)).field("min", format_args!("{:02x}", inode.min));
            lines.field("ino", inode.ino).field("ino_generation", inode.ino_generation)
        }
        MmapIdentity::BuildId(id) => {
            let text = map.identity.build_id().as_ref().map(BuildId::to_string);
            lines.field("build_id_size", id.size).field("build_id", text.unwrap_or_default())
        }
    };
    lines.field("prot", format_args!("{:#x} {}", map.prot, access_letters(map.prot, map.flags)));
    lines.field("flags", Hex(map.flags.into())).field("filename", Value::text(map.filename.as_bytes()))
}

/// Returns how a mapping may be used, and whether it is shared, in the letters of `/proc/PID/maps`.
pub(crate) fn access_letters(prot: u32, flags: u32) -> String {
    let letter = |bit, letter| if prot & bit != 0 { letter } else { '-' };
    let shared = if flags & map_flags::SHARED != 0 { 's' } else { 'p' };
    [letter(prot::READ, 'r'), letter(prot::WRITE, 'w'), letter(prot::EXEC, 'x'), shared].iter().collect()
}

/// Returns the letters of the flags: truncated, overwrite, partial, collision.
fn aux_flags(flags: AuxFlags) -> String {
    let letters =
        [(AuxFlags::TRUNCATED, 'T'), (AuxFlags::OVERWRITE, 'O'), (AuxFlags::PARTIAL, 'P'), (AuxFlags::COLLISION, 'C')];
    let set: String = letters.iter().filter(|(bit, _)| flags.contains(*bit)).map(|(_, letter)| letter).collect();
    if set.is_empty() { set } else { format!(" {set}") }
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
        EventProperty::Unit(unit) => lines.field("unit", Value::text(unit.as_bytes())),
        EventProperty::Scale(scale) => lines.field("scale", scale.value()),
        EventProperty::Name(name) => lines.field("name", Value::text(name.as_bytes())),
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
