//! Fields of the records other than samples: those of the kernel, then those that perf itself
//! defines.

use recrep_format::abi::{AuxFlags, KSymbolFlags, StatRoundKind, map_flags, prot};
use recrep_format::build_id::BuildId;
use recrep_format::feature::FeatureId;
use recrep_format::record::{
    Body, CpuMap, EventProperty, EventUpdate, HeaderFeature, IdIndexEntry, Mmap2, MmapIdentity,
    Namespaces, RawRecord,
};

use super::record::{Lines, fixed, named};
use crate::commands::info;
use crate::tracepoints;

const MAX_CPUS: usize = 1 << 16;

impl Lines<'_> {
    pub(super) fn body(&mut self, raw: &RawRecord<'_>, body: &Body<'_>) {
        match body {
            Body::Other(_, bytes) => {
                self.field("not_decoded", format_args!("{} bytes", bytes.len()))
            }
            Body::Mmap(map) => {
                self.pid_tid(map.pid, map.tid).hex("addr", map.addr).hex("len", map.len);
                self.hex("pgoff", map.pgoff).text("filename", map.filename.as_bytes())
            }
            Body::Mmap2(map) => self.mmap2(map),
            Body::Lost(lost) => self.field("id", lost.id).field("lost", lost.lost),
            Body::LostSamples(lost) => self.field("lost", lost.lost),
            Body::Comm(comm) => self.pid_tid(comm.pid, comm.tid).text("comm", comm.comm.as_bytes()),
            Body::Exit(task) | Body::Fork(task) => {
                self.field("pid", task.pid.cast_signed()).field("ppid", task.ppid.cast_signed());
                self.field("tid", task.tid.cast_signed()).field("ptid", task.ptid.cast_signed());
                self.field("time", task.time)
            }
            Body::Throttle(throttle) | Body::Unthrottle(throttle) => self
                .field("time", throttle.time)
                .field("id", throttle.id)
                .field("stream_id", throttle.stream_id),
            Body::Read(read) => self.pid_tid(read.pid, read.tid).values(&read.values),
            Body::Aux(aux) => {
                self.hex("aux_offset", aux.aux_offset).hex("aux_size", aux.aux_size);
                self.field("flags", format_args!("{:#x}{}", aux.flags.bits(), aux_flags(aux.flags)))
            }
            Body::ItraceStart(start) => self.pid_tid(start.pid, start.tid),
            Body::SwitchCpuWide(switch) => {
                self.field("next_prev_pid", switch.next_prev_pid.cast_signed());
                self.field("next_prev_tid", switch.next_prev_tid.cast_signed())
            }
            Body::Namespaces(all) => {
                self.pid_tid(all.pid, all.tid).field("nr_namespaces", all.nr_namespaces);
                self.items(all.iter().enumerate(), |(place, namespace)| {
                    let name = Namespaces::NAMES.get(place).copied().unwrap_or("unknown");
                    format!("{place}/{name}: dev: {}, ino: {:#x}", namespace.dev, namespace.inode)
                })
            }
            Body::KSymbol(symbol) => {
                self.hex("addr", symbol.addr).field("len", symbol.len);
                let gone = if symbol.flags.contains(KSymbolFlags::UNREGISTER) {
                    " UNREGISTER"
                } else {
                    ""
                };
                self.field("ksym_type", named(symbol.ksym_type.0, symbol.ksym_type.name()));
                self.field("flags", format_args!("{:#x}{gone}", symbol.flags.bits()));
                self.text("name", symbol.name.as_bytes())
            }
            Body::BpfEvent(bpf) => {
                self.field("type", named(bpf.event_type.0, bpf.event_type.name()));
                self.hex("flags", u64::from(bpf.flags))
                    .field("id", bpf.id)
                    .field("tag", tracepoints::hex(&bpf.tag, " "))
            }
            Body::Cgroup(cgroup) => {
                self.field("id", cgroup.id).text("path", cgroup.path.as_bytes())
            }
            Body::TextPoke(poke) => {
                self.hex("addr", poke.addr)
                    .field("old_len", poke.old_len)
                    .field("new_len", poke.new_len);
                self.item(format_args!("old: {}", tracepoints::hex(poke.old_bytes(), " ")));
                self.item(format_args!("new: {}", tracepoints::hex(poke.new_bytes(), " ")))
            }
            Body::AuxOutputHwId(id) => self.hex("hw_id", id.hw_id),
            Body::CallchainDeferred(chain) => self
                .begin("callchain:")
                .hex("cookie", chain.cookie)
                .field("nr", chain.nr)
                .chain(chain.ips),
            // It has no fields: `misc` and the trailer hold everything.
            Body::Switch => self,

            Body::HeaderAttr(header) => {
                self.field("attr", info::attr_text(&header.attr));
                let ids: Vec<String> = header.ids.iter().map(|id| id.to_string()).collect();
                self.begin("ids:").field("nr", ids.len()).item(ids.join(" "))
            }
            Body::HeaderEventType(event) => {
                self.field("event_id", event.event_id).text("name", event.name.as_bytes())
            }
            Body::HeaderTracingData(data) => self.field("size", data.size),
            Body::HeaderBuildId(header) => {
                let id = header.build_id(raw.header.misc).as_ref().map(BuildId::to_string);
                self.field("pid", header.pid).field("build_id", id.unwrap_or_default());
                self.text("filename", header.filename.as_bytes())
            }
            Body::IdIndex(index) => self.field("nr", index.nr).items(index.iter(), |entry| {
                let IdIndexEntry { id, idx, cpu, tid, guest } = entry;
                let guest = guest.map(|guest| {
                    format!(", machine_pid: {}, vcpu: {}", guest.machine_pid, guest.vcpu)
                });
                format!("id: {id}, idx: {idx}, cpu: {cpu}, tid: {tid}{}", guest.unwrap_or_default())
            }),
            Body::AuxtraceInfo(header) => {
                self.field(
                    "type",
                    format_args!("{} {}", header.kind.0, header.kind.name().unwrap_or("UNKNOWN")),
                );
                self.field("reserved", header.reserved).field("priv_words", header.private.len());
                self.items(header.private.iter().enumerate(), |(place, word)| {
                    format!("{place:>3}: {word:#x}")
                })
            }
            Body::Auxtrace(aux) => {
                self.hex("size", aux.size)
                    .hex("offset", aux.offset)
                    .hex("reference", aux.reference);
                self.field("idx", aux.idx).field("tid", aux.tid).field("cpu", aux.cpu);
                self.maybe("reserved", Some(aux.reserved).filter(|reserved| *reserved != 0))
            }
            Body::AuxtraceError(error) => {
                self.field("type", error.kind.0).field("code", error.code).field("cpu", error.cpu);
                self.field("pid", error.pid).field("tid", error.tid).field("fmt", error.fmt);
                self.hex("ip", error.ip).maybe("time", error.time);
                self.text("msg", error.message.as_bytes())
            }
            Body::ThreadMap(map) => self.field("nr", map.nr).items(&map.entries, |entry| {
                format!("pid: {}, comm: {}", entry.tid(), fixed(&entry.comm))
            }),
            Body::CpuMap(map) => self.field("type", map.kind().0).field("cpus", cpus(map)),
            Body::StatConfig(config) => self.field("nr", config.nr).items(config.iter(), |entry| {
                format!(
                    "tag: {} {}, val: {}",
                    entry.tag.0,
                    entry.tag.name().unwrap_or("unknown"),
                    entry.value
                )
            }),
            Body::Stat(stat) => {
                self.field("id", stat.id)
                    .field("cpu", stat.cpu)
                    .field("thread", stat.thread.cast_signed());
                self.field("val", stat.value).field("ena", stat.enabled).field("run", stat.running)
            }
            Body::StatRound(round) => {
                // As in perf, all others end an interval.
                let kind = if round.kind == StatRoundKind::FINAL {
                    round.kind
                } else {
                    StatRoundKind::INTERVAL
                };
                self.field("type", format_args!("{} {kind}", round.kind.0))
                    .field("time", round.time)
            }
            Body::EventUpdate(update) => self.event_update(update),
            Body::TimeConv(conv) => {
                self.field("time_shift", conv.time_shift).field("time_mult", conv.time_mult);
                self.field("time_zero", conv.time_zero);
                if let Some(short) = conv.short {
                    self.field("time_cycles", short.time_cycles).hex("time_mask", short.time_mask);
                    self.field("cap_user_time_zero", short.cap_user_time_zero);
                    self.field("cap_user_time_short", short.cap_user_time_short);
                }
                self
            }
            Body::HeaderFeature(header) => self.feature(raw, header),
            Body::Compressed(piece) => self.field("compressed_size", piece.data.len()),
            Body::Compressed2(piece) => self
                .field("data_size", piece.data_size)
                .field("compressed_size", piece.stream().len()),
            Body::BpfMetadata(metadata) => {
                self.field("prog_name", fixed(&metadata.prog_name))
                    .field("nr_entries", metadata.nr_entries);
                self.items(metadata.iter(), |(key, value)| {
                    format!("{}: {}", fixed(key), fixed(value))
                })
            }
            Body::FinishedRound | Body::FinishedInit => self,
            other => self.field("not_decoded", other.kind()),
        };
    }

    fn pid_tid(&mut self, pid: u32, tid: u32) -> &mut Self {
        self.field("pid", pid.cast_signed()).field("tid", tid.cast_signed())
    }

    fn mmap2(&mut self, map: &Mmap2<'_>) -> &mut Self {
        self.pid_tid(map.pid, map.tid).hex("addr", map.addr).hex("len", map.len);
        self.hex("pgoff", map.pgoff);
        match map.identity {
            MmapIdentity::Inode(inode) => {
                self.field("maj", format_args!("{:02x}", inode.maj))
                    .field("min", format_args!("{:02x}", inode.min));
                self.field("ino", inode.ino).field("ino_generation", inode.ino_generation)
            }
            MmapIdentity::BuildId(id) => {
                let text = map.identity.build_id().as_ref().map(BuildId::to_string);
                self.field("build_id_size", id.size).field("build_id", text.unwrap_or_default())
            }
        };
        self.field("prot", format_args!("{:#x} {}", map.prot, access_letters(map.prot, map.flags)));
        self.hex("flags", u64::from(map.flags)).text("filename", map.filename.as_bytes())
    }

    fn event_update(&mut self, update: &EventUpdate<'_>) -> &mut Self {
        let kind = update.property.kind();
        self.field("id", update.id).field("type", named(kind.0, kind.name()));
        match &update.property {
            EventProperty::Unit(unit) => self.text("unit", unit.as_bytes()),
            EventProperty::Scale(scale) => self.field("scale", scale.value()),
            EventProperty::Name(name) => self.text("name", name.as_bytes()),
            EventProperty::Cpus(map) => self.field("cpus", cpus(map)),
            EventProperty::Other(_, bytes) => self.field("data_size", bytes.len()),
            _ => self,
        }
    }

    fn feature(&mut self, raw: &RawRecord<'_>, header: &HeaderFeature<'_>) -> &mut Self {
        let id = u8::try_from(header.feat_id).ok().map(FeatureId);
        let name = id.and_then(FeatureId::name).unwrap_or("");
        self.field("feat_id", format_args!("{} {name}", header.feat_id))
            .field("data_size", header.data.len());
        let Some(id) = id.filter(|id| id.name().is_some() && !header.data.is_empty()) else {
            return self;
        };
        match info::feature_value(
            id,
            &mut header.cursor(raw.offset, self.known.file.endian),
            self.known.cpus,
        ) {
            Ok(Some(value)) => self.item(value),
            Ok(None) => self,
            Err(error) => self.item(format_args!("cannot be read: {error}")),
        }
    }
}

/// Returns how a mapping may be used, and whether it is shared, in the letters of `/proc/PID/maps`.
pub(crate) fn access_letters(prot: u32, flags: u32) -> String {
    let letter = |bit, letter| if prot & bit != 0 { letter } else { '-' };
    let shared = if flags & map_flags::SHARED != 0 { 's' } else { 'p' };
    [letter(prot::READ, 'r'), letter(prot::WRITE, 'w'), letter(prot::EXEC, 'x'), shared]
        .iter()
        .collect()
}

/// Returns the letters of the flags: truncated, overwrite, partial, collision.
fn aux_flags(flags: AuxFlags) -> String {
    let letters = [
        (AuxFlags::TRUNCATED, 'T'),
        (AuxFlags::OVERWRITE, 'O'),
        (AuxFlags::PARTIAL, 'P'),
        (AuxFlags::COLLISION, 'C'),
    ];
    let set: String =
        letters.iter().filter(|(bit, _)| flags.contains(*bit)).map(|(_, letter)| letter).collect();
    if set.is_empty() { set } else { format!(" {set}") }
}

/// Returns the CPUs as ranges, or why they cannot be read.
fn cpus(map: &CpuMap<'_>) -> String {
    let Some(cpus) = map.cpus() else {
        return format!("cannot be read: the encoding {} is not known", map.kind().0);
    };
    info::ranges(cpus.take(MAX_CPUS), |last, cpu| last.0.checked_add(1) == Some(cpu.0))
}
