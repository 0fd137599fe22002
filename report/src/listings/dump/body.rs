//! Fields of the records other than samples: those of the kernel, then those that perf itself
//! defines.

use recrep_format::abi::{AuxFlags, KSymbolFlags, StatRoundKind, map_flags, prot};
use recrep_format::build_id::BuildId;
use recrep_format::feature::FeatureId;
use recrep_format::fields::{Fields as _, Value};
use recrep_format::record::{
    Body, CpuMap, EventProperty, EventUpdate, HeaderFeature, Namespaces, RawRecord,
};

use super::record::{RecordLines, flat, named};
use crate::listings::info;
use crate::terminal::escape::escape;
use crate::tracepoints;

const MAX_CPUS: usize = 1 << 16;

impl RecordLines<'_> {
    pub(super) fn body(&mut self, raw: &RawRecord<'_>, body: &Body<'_>) {
        if let Body::CallchainDeferred(_) = body {
            self.begin("callchain:");
        }
        body.each(&mut |name, value| self.body_field(raw, body, name, &value));
        match body {
            Body::Read(read) => self.values(&read.values),
            Body::Namespaces(all) => self.items(all.iter().enumerate(), |(place, namespace)| {
                let name = Namespaces::NAMES.get(place).copied().unwrap_or("unknown");
                format!("{place}/{name}: {}", flat(&namespace))
            }),
            Body::TextPoke(poke) => {
                self.item(format_args!("old: {}", tracepoints::hex(poke.old_bytes(), " ")));
                self.item(format_args!("new: {}", tracepoints::hex(poke.new_bytes(), " ")))
            }
            Body::CallchainDeferred(chain) => self.chain(chain.ips),
            Body::HeaderAttr(header) => {
                let ids: Vec<String> = header.ids.iter().map(|id| id.to_string()).collect();
                self.begin("ids:").field("nr", ids.len()).item(ids.join(" "))
            }
            Body::HeaderFeature(header) => self.feature(raw, header),
            Body::IdIndex(index) => self.items(index.iter(), |entry| flat(&entry)),
            Body::ThreadMap(map) => self.items(&map.entries, |entry| {
                format!(
                    "pid: {}, comm: {}",
                    entry.tid(),
                    escape(&String::from_utf8_lossy(entry.name()))
                )
            }),
            Body::AuxtraceInfo(header) => self
                .items(header.private.iter().enumerate(), |(place, word)| {
                    format!("{place:>3}: {word:#x}")
                }),
            Body::StatConfig(config) => self.items(config.iter(), |entry| {
                let name = entry.tag.name().unwrap_or("unknown");
                format!("tag: {} {name}, val: {}", entry.tag.0, entry.value)
            }),
            Body::SchedstatDomain(domain) => {
                self.items(domain.counts(self.known.file.endian), |(kind, name, value)| {
                    format!("{kind}{}{name}: {value}", if kind.is_empty() { "" } else { "_" })
                })
            }
            Body::BpfMetadata(metadata) => self.items(metadata.iter(), |(key, value)| {
                let [key, value] = [key, value].map(String::from_utf8_lossy);
                format!("{}: {}", escape(&key), escape(&value))
            }),
            _ => self,
        };
    }

    /// Writes a field of a record: most by their kind of value, some in a way of their own.
    fn body_field(
        &mut self,
        raw: &RawRecord<'_>,
        body: &Body<'_>,
        name: &'static str,
        value: &Value<'_>,
    ) {
        match (body, name) {
            (Body::Other(_, bytes), _) => self.field(name, format_args!("{} bytes", bytes.len())),
            (Body::Mmap2(_), "identity") => {
                if let Value::Fields(identity) = value {
                    identity.each(&mut |name, value| self.body_field(raw, body, name, &value));
                }
                self
            }
            (Body::Mmap2(_), "maj" | "min") => {
                // As in /proc/PID/maps.
                if let Value::Number(number) = value {
                    self.field(name, format_args!("{number:02x}"));
                }
                self
            }
            (Body::Mmap2(map), "build_id") => {
                let id = map.identity.build_id().as_ref().map(BuildId::to_string);
                self.field(name, id.unwrap_or_default())
            }
            (Body::Mmap2(map), "prot") => {
                let letters = access_letters(map.prot, map.flags);
                self.field(name, format_args!("{:#x} {letters}", map.prot))
            }
            (Body::Aux(aux), "flags") => {
                self.field(name, format_args!("{:#x}{}", aux.flags.bits(), aux_flags(aux.flags)))
            }
            (Body::KSymbol(symbol), "flags") => {
                let is_gone = symbol.flags.contains(KSymbolFlags::UNREGISTER);
                let gone = if is_gone { " UNREGISTER" } else { "" };
                self.field(name, format_args!("{:#x}{gone}", symbol.flags.bits()))
            }
            (Body::BpfEvent(bpf), "tag") => self.field(name, tracepoints::hex(&bpf.tag, " ")),
            (Body::HeaderAttr(header), "attr") => self.field(name, info::attr_text(&header.attr)),
            (Body::HeaderFeature(header), "feat_id") => {
                let name_of = feature_id(header).and_then(FeatureId::name).unwrap_or("");
                self.field(name, format_args!("{} {name_of}", header.feat_id))
            }
            (Body::HeaderBuildId(header), "build_id") => {
                let id = header.build_id(raw.header.misc).as_ref().map(BuildId::to_string);
                self.field(name, id.unwrap_or_default())
            }
            (Body::AuxtraceInfo(header), "type") => {
                let kind = header.kind;
                self.field(name, named(kind.0, Some(kind.name().unwrap_or("UNKNOWN"))))
            }
            (Body::AuxtraceInfo(header), "priv_words") => self.field(name, header.private.len()),
            (Body::Auxtrace(aux), "reserved") if aux.reserved == 0 => self,
            (Body::AuxtraceError(error), "type") => self.field(name, error.kind.0),
            (Body::CpuMap(map), "type") => self.field(name, map.kind().0),
            (Body::CpuMap(map), "cpus") => self.field(name, cpus(map)),
            (Body::StatRound(round), "type") => {
                // As in perf, all others end an interval.
                let is_final = round.kind == StatRoundKind::FINAL;
                let kind = if is_final { round.kind } else { StatRoundKind::INTERVAL };
                self.field(name, format_args!("{} {kind}", round.kind.0))
            }
            (Body::EventUpdate(EventUpdate { property: EventProperty::Cpus(map), .. }), "cpus") => {
                self.field(name, cpus(map))
            }
            (Body::Compressed2(piece), "compressed_size") => self.field(name, piece.stream().len()),
            _ => self.value(name, value),
        };
    }

    fn feature(&mut self, raw: &RawRecord<'_>, header: &HeaderFeature<'_>) -> &mut Self {
        let id = feature_id(header).filter(|id| id.name().is_some() && !header.data.is_empty());
        let Some(id) = id else { return self };
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

fn feature_id(header: &HeaderFeature<'_>) -> Option<FeatureId> {
    u8::try_from(header.feat_id).ok().map(FeatureId)
}

/// Returns how a mapping may be used, and whether it is shared, in the letters of `/proc/PID/maps`.
pub(crate) fn access_letters(prot: u32, flags: u32) -> String {
    let mut letters = String::new();
    for (bit, letter) in [(prot::READ, 'r'), (prot::WRITE, 'w'), (prot::EXEC, 'x')] {
        letters.push(if prot & bit != 0 { letter } else { '-' });
    }
    letters.push(if flags & map_flags::SHARED != 0 { 's' } else { 'p' });
    letters
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
