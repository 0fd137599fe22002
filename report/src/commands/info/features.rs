//! Header features as values, with the field names of perf's structs.
//!
//! A test fails if a feature that `recrep-format` names has no decoder here.

use recrep_format::build_id::BuildId;
use recrep_format::bytes::Cursor;
use recrep_format::error::Result;
use recrep_format::feature as f;
use recrep_format::feature::{FeatureId, HeaderString};

use super::attr;
use super::value::Value;

/// Decodes a feature from its section `c`; returns `None` if the feature's number is unknown. `cpus` is the number of
/// available CPUs in NRCPUS, on which the layout of CPU_TOPOLOGY's tail depends.
///
/// # Errors
/// Returns an error if the section is malformed.
pub fn value(id: FeatureId, c: &mut Cursor<'_>, cpus: u32) -> Result<Option<Value>> {
    use f::FeatureBody as B;
    Ok(Some(match B::decode(id, c)? {
        B::TracingData(it) => size(it.data),
        B::BuildIds(it) => build_ids(&it),
        B::Hostname(it) => text(&it.0),
        B::OsRelease(it) => text(&it.0),
        B::Version(it) => text(&it.0),
        B::Arch(it) => text(&it.0),
        B::NrCpus(it) => nr_cpus(it),
        B::CpuDesc(it) => text(&it.0),
        B::CpuId(it) => text(&it.0),
        B::TotalMem(it) => Value::Map(vec![("kib", Value::Number(it.kib))]),
        B::Cmdline(it) => texts(&it.args.0),
        B::EventDesc(it) => event_desc(&it),
        B::CpuTopology(it) => cpu_topology(&it, cpus)?,
        B::NumaTopology(it) => numa_topology(&it),
        B::BranchStackMark(it) => size(it.data),
        B::PmuMappings(it) => pmu_mappings(&it),
        B::GroupDesc(it) => group_desc(&it),
        B::AuxtraceIndex(it) => auxtrace(&it),
        B::StatMark(it) => size(it.data),
        B::Caches(it) => caches(&it),
        B::SampleTime(it) => sample_time(it),
        B::MemTopology(it) => mem_topology(&it),
        B::ClockId(it) => Value::Map(vec![("resolution", Value::Number(it.resolution))]),
        B::DirFormat(it) => Value::Map(vec![("version", Value::Number(it.version))]),
        B::BpfProgInfo(it) => bpf_prog_info(&it),
        B::BpfBtf(it) => bpf_btf(&it),
        B::Compression(it) => compression(it),
        B::CpuPmuCaps(it) => caps(&it.caps.0),
        B::ClockData(it) => clock_data(it),
        B::HybridTopology(it) => hybrid_topology(&it),
        B::PmuCaps(it) => pmu_caps(&it),
        _ => return Ok(None),
    }))
}

fn number(value: impl Into<u64>) -> Value {
    Value::Number(value.into())
}

fn text(string: &HeaderString<'_>) -> Value {
    Value::text(string.as_bytes())
}

fn texts(strings: &[HeaderString<'_>]) -> Value {
    Value::list(strings.iter().map(text))
}

/// Returns only the size, for features that are a mere mark or in a format of their own.
fn size(data: &[u8]) -> Value {
    Value::Map(vec![("data_bytes", number(data.len() as u64))])
}

fn build_ids(table: &f::BuildIds<'_>) -> Value {
    Value::list(table.entries.iter().map(|entry| {
        let id = entry.build_id().as_ref().map(BuildId::to_string).unwrap_or_default();
        Value::Map(vec![
            ("build_id", Value::Text(id)),
            ("misc", Value::Hex(entry.misc.into())),
            ("pid", Value::Signed(entry.body.pid.0.cast_signed().into())),
            ("filename", Value::text(entry.name())),
        ])
    }))
}

fn nr_cpus(cpus: f::NrCpus) -> Value {
    Value::Map(vec![("online", number(cpus.online)), ("available", number(cpus.available))])
}

fn event_desc(desc: &f::EventDesc<'_>) -> Value {
    Value::list(desc.events.iter().map(|event| {
        Value::Map(vec![
            ("name", text(&event.name)),
            ("ids", Value::list(event.ids.iter().map(Value::Number))),
            ("attr", attr::value(&event.attr)),
        ])
    }))
}

fn cpu_topology(topology: &f::CpuTopology<'_>, available: u32) -> Result<Value> {
    let (cores, dies) = (topology.tail.cpus(available)?, topology.tail.die_ids(available)?);
    let cpus = cores.iter().enumerate().map(|(cpu, (core, socket))| {
        let mut parts = vec![("cpu", number(cpu as u64)), ("core_id", number(*core)), ("socket_id", number(*socket))];
        parts.extend(dies.get(cpu).map(|die| ("die_id", number(*die))));
        Value::Map(parts)
    });
    Ok(Value::Map(vec![
        ("sibling_sockets", texts(&topology.sockets.0)),
        ("sibling_dies", texts(&topology.tail.dies(available)?)),
        ("sibling_threads", texts(&topology.cores.0)),
        ("cpus", Value::list(cpus)),
    ]))
}

fn numa_topology(topology: &f::NumaTopology<'_>) -> Value {
    Value::list(topology.nodes.0.iter().map(|node| {
        Value::Map(vec![
            ("node", number(node.node)),
            ("mem_total_kib", number(node.mem_total)),
            ("mem_free_kib", number(node.mem_free)),
            ("cpus", text(&node.cpus)),
        ])
    }))
}

fn pmu_mappings(mappings: &f::PmuMappings<'_>) -> Value {
    let one = |pmu: &f::PmuMapping<'_>| Value::Map(vec![("name", text(&pmu.name)), ("type", number(pmu.kind))]);
    Value::list(mappings.pmus.0.iter().map(one))
}

fn group_desc(desc: &f::GroupDesc<'_>) -> Value {
    Value::list(desc.groups.0.iter().map(|group| {
        Value::Map(vec![
            ("name", text(&group.name)),
            ("leader_idx", number(group.leader)),
            ("nr_members", number(group.members)),
        ])
    }))
}

fn auxtrace(index: &f::AuxtraceIndex<'_>) -> Value {
    let one = |(offset, size)| Value::Map(vec![("file_offset", Value::Hex(offset)), ("size", number(size))]);
    Value::Map(vec![("total", number(index.total)), ("entries", Value::list(index.iter().map(one)))])
}

fn caches(caches: &f::Caches<'_>) -> Value {
    let one = |cache: &f::CacheLevel<'_>| {
        Value::Map(vec![
            ("level", number(cache.level)),
            ("type", text(&cache.kind)),
            ("size", text(&cache.size)),
            ("line_size", number(cache.line_size)),
            ("sets", number(cache.sets)),
            ("ways", number(cache.ways)),
            ("map", text(&cache.map)),
        ])
    };
    Value::Map(vec![("version", number(caches.version)), ("caches", Value::list(caches.levels.0.iter().map(one)))])
}

fn sample_time(time: f::SampleTime) -> Value {
    Value::Map(vec![("first_sample_time", number(time.first)), ("last_sample_time", number(time.last))])
}

fn mem_topology(topology: &f::MemTopology<'_>) -> Value {
    let one = |node: &f::MemNode<'_>| {
        Value::Map(vec![
            ("node", number(node.node)),
            ("size", number(node.size)),
            ("blocks", Value::Text(ranges(node.set.iter(), node.bits))),
        ])
    };
    Value::Map(vec![
        ("version", number(topology.version)),
        ("block_size_bytes", Value::Hex(topology.block_size)),
        ("nodes", Value::list(topology.nodes.iter().map(one))),
    ])
}

/// Returns the set bits below `most` as ranges: `0-23,32-199`.
fn ranges(words: impl Iterator<Item = u64>, most: u64) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (place, word) in (0u64..).zip(words) {
        for bit in (0..64).filter(|bit| word >> bit & 1 == 1).map(|bit| place * 64 + bit).filter(|bit| *bit < most) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == bit => *last = bit,
                _ => ranges.push((bit, bit)),
            }
        }
    }
    let one = |(first, last): &(u64, u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(one).collect::<Vec<_>>().join(",")
}

fn bpf_prog_info(info: &f::BpfProgInfo<'_>) -> Value {
    Value::list(info.programs.0.iter().map(|program| {
        Value::Map(vec![
            ("info_len", number(program.info.len() as u64)),
            ("data_len", number(program.data.len() as u64)),
            ("arrays", Value::Hex(program.arrays)),
        ])
    }))
}

fn bpf_btf(btf: &f::BpfBtf<'_>) -> Value {
    let one = |object: &f::BpfBtfEntry<'_>| {
        Value::Map(vec![("id", number(object.id)), ("data_size", number(object.data.len() as u64))])
    };
    Value::list(btf.objects.0.iter().map(one))
}

fn compression(compression: f::Compression) -> Value {
    Value::Map(vec![
        ("version", number(compression.version)),
        ("type", number(compression.kind)),
        ("level", number(compression.level)),
        ("ratio", number(compression.ratio)),
        ("mmap_len", number(compression.mmap_len)),
    ])
}

fn caps(caps: &[f::PmuCap<'_>]) -> Value {
    let one = |cap: &f::PmuCap<'_>| Value::Map(vec![("name", text(&cap.name)), ("value", text(&cap.value))]);
    Value::list(caps.iter().map(one))
}

fn clock_data(clock: f::ClockData) -> Value {
    Value::Map(vec![
        ("version", number(clock.version)),
        ("clockid", number(clock.clockid)),
        ("wall_clock_ns", number(clock.wall_clock)),
        ("clockid_time_ns", number(clock.clock)),
    ])
}

fn hybrid_topology(topology: &f::HybridTopology<'_>) -> Value {
    let one = |kind: &f::HybridCores<'_>| Value::Map(vec![("pmu_name", text(&kind.pmu)), ("cpus", text(&kind.cpus))]);
    Value::list(topology.kinds.0.iter().map(one))
}

fn pmu_caps(all: &f::PmuCaps<'_>) -> Value {
    let one = |pmu: &f::PmuCapsEntry<'_>| Value::Map(vec![("pmu_name", text(&pmu.pmu)), ("caps", caps(&pmu.caps.0))]);
    Value::list(all.pmus.0.iter().map(one))
}

#[cfg(test)]
mod tests {
    use recrep_format::endian::Endian;

    use super::*;

    #[test]
    fn every_named_feature_is_decoded() {
        for id in (0..=u8::MAX).map(FeatureId) {
            // The section is empty: decoders return an error or an empty value.
            let outcome = value(id, &mut Cursor::new(&[], 0, Endian::Little), 0);
            assert_eq!(matches!(outcome, Ok(None)), id.name().is_none(), "{id}: {outcome:?}");
        }
    }

    #[test]
    fn bits_become_ranges() {
        assert_eq!(ranges([0b1101, 1 << 63, 1].into_iter(), 129), "0,2-3,127-128");
        assert_eq!(ranges([u64::MAX].into_iter(), 10), "0-9");
        assert_eq!(ranges([].into_iter(), 10), "");
    }
}
