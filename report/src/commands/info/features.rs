//! Header features as values, with the field names of perf's structs.
//!
//! A test fails if a feature that `recrep-format` names has no decoder here.

use std::fmt::Display;

use recrep_format::build_id::BuildId;
use recrep_format::bytes::Cursor;
use recrep_format::endian::Endian;
use recrep_format::error::Result;
use recrep_format::feature as f;
use recrep_format::feature::{FeatureId, HeaderString};

use super::attr;
use super::value::{Value, hex, map, maps, number};

/// Decodes a feature from its section `c`; returns `None` if the feature's number is unknown.
/// `cpus` is the number of available CPUs in NRCPUS, on which the layout of CPU_TOPOLOGY's tail
/// depends.
pub(crate) fn value(id: FeatureId, c: &mut Cursor<'_>, cpus: u32) -> Result<Option<Value>> {
    use f::FeatureBody as B;
    let endian = c.endian();
    Ok(Some(match B::decode(id, c)? {
        B::TracingData(it) => size(it.data),
        B::BuildIds(it) => maps(&it.entries, |entry| {
            let id = entry.build_id().as_ref().map(BuildId::to_string).unwrap_or_default();
            let pid = number(entry.body.pid.0.cast_signed());
            let misc = hex(entry.misc.into());
            [
                ("build_id", Value::Text(id)),
                ("misc", misc),
                ("pid", pid),
                ("filename", Value::Text(String::from_utf8_lossy(entry.name()).into_owned())),
            ]
        }),
        B::Hostname(it) => text(&it.0),
        B::OsRelease(it) => text(&it.0),
        B::Version(it) => text(&it.0),
        B::Arch(it) => text(&it.0),
        B::NrCpus(it) => map([("online", number(it.online)), ("available", number(it.available))]),
        B::CpuDesc(it) => text(&it.0),
        B::CpuId(it) => text(&it.0),
        B::TotalMem(it) => map([("kib", number(it.kib))]),
        B::Cmdline(it) => texts(&it.args.0),
        B::EventDesc(it) => maps(&it.events, |event| {
            let ids = Value::List(event.ids.iter().map(number).collect());
            [("name", text(&event.name)), ("ids", ids), ("attr", attr::value(&event.attr))]
        }),
        B::CpuTopology(it) => cpu_topology(&it, cpus)?,
        B::NumaTopology(it) => maps(&it.nodes.0, |node| {
            let (total, free) = (number(node.mem_total), number(node.mem_free));
            let node_number = number(node.node);
            [
                ("node", node_number),
                ("mem_total_kib", total),
                ("mem_free_kib", free),
                ("cpus", text(&node.cpus)),
            ]
        }),
        B::BranchStackMark(it) => size(it.data),
        B::PmuMappings(it) => {
            maps(&it.pmus.0, |pmu| [("name", text(&pmu.name)), ("type", number(pmu.kind))])
        }
        B::GroupDesc(it) => maps(&it.groups.0, |group| {
            let (leader, members) = (number(group.leader), number(group.members));
            [("name", text(&group.name)), ("leader_idx", leader), ("nr_members", members)]
        }),
        B::AuxtraceIndex(it) => {
            let one = |(offset, size)| [("file_offset", hex(offset)), ("size", number(size))];
            map([("total", number(it.total)), ("entries", maps(it.iter(), one))])
        }
        B::StatMark(it) => size(it.data),
        B::Caches(it) => {
            let one = |cache: &f::CacheLevel<'_>| {
                [
                    ("level", number(cache.level)),
                    ("type", text(&cache.kind)),
                    ("size", text(&cache.size)),
                    ("line_size", number(cache.line_size)),
                    ("sets", number(cache.sets)),
                    ("ways", number(cache.ways)),
                    ("map", text(&cache.map)),
                ]
            };
            map([("version", number(it.version)), ("caches", maps(&it.levels.0, one))])
        }
        B::SampleTime(it) => {
            map([("first_sample_time", number(it.first)), ("last_sample_time", number(it.last))])
        }
        B::MemTopology(it) => {
            let one = |node: &f::MemNode<'_>| {
                let blocks = Value::Text(ranges(bits(node.set.iter(), node.bits), |last, bit| {
                    last + 1 == bit
                }));
                [("node", number(node.node)), ("size", number(node.size)), ("blocks", blocks)]
            };
            let (block_size, nodes) = (hex(it.block_size), maps(it.nodes.iter(), one));
            map([
                ("version", number(it.version)),
                ("block_size_bytes", block_size),
                ("nodes", nodes),
            ])
        }
        B::ClockId(it) => map([("resolution", number(it.resolution))]),
        B::DirFormat(it) => map([("version", number(it.version))]),
        B::BpfProgInfo(it) => maps(&it.programs.0, |program| {
            let (info, data) =
                (number(program.info.len() as u64), number(program.data.len() as u64));
            [("info_len", info), ("data_len", data), ("arrays", hex(program.arrays))]
        }),
        B::BpfBtf(it) => maps(&it.objects.0, |object| {
            [("id", number(object.id)), ("data_size", number(object.data.len() as u64))]
        }),
        B::Compression(it) => map([
            ("version", number(it.version)),
            ("type", number(it.kind)),
            ("level", number(it.level)),
            ("ratio", number(it.ratio)),
            ("mmap_len", number(it.mmap_len)),
        ]),
        B::Bundle(it) => bundle(&it, endian)?,
        B::CpuPmuCaps(it) => caps(&it.caps.0),
        B::ClockData(it) => map([
            ("version", number(it.version)),
            ("clockid", number(it.clockid)),
            ("wall_clock_ns", number(it.wall_clock)),
            ("clockid_time_ns", number(it.clock)),
        ]),
        B::HybridTopology(it) => {
            maps(&it.kinds.0, |kind| [("pmu_name", text(&kind.pmu)), ("cpus", text(&kind.cpus))])
        }
        B::PmuCaps(it) => {
            maps(&it.pmus.0, |pmu| [("pmu_name", text(&pmu.pmu)), ("caps", caps(&pmu.caps.0))])
        }
        B::SimpleperfFiles(it) => files(&it.files),
        B::SimpleperfMetaInfo(it) => maps(&it.facts, |[key, value]| {
            let text = |bytes: &[u8]| Value::Text(String::from_utf8_lossy(bytes).into_owned());
            [("key", text(key)), ("value", text(value))]
        }),
        B::SimpleperfDebugUnwind(it) => size(it.data),
        B::SimpleperfDebugUnwindFiles(it) => size(it.data),
        B::SimpleperfFiles2(it) => {
            let parsed: Result<Vec<_>> =
                it.messages.iter().map(|message| f::SimpleperfFile::of_message(message)).collect();
            files(&parsed?)
        }
        B::SimpleperfEtmBranchList(it) => size(it.data),
        B::SimpleperfInitMap(it) => size(it.records),
        _ => return Ok(None),
    }))
}

/// Returns the files with symbols of simpleperf, with the number of their symbols.
fn files(files: &[f::SimpleperfFile<'_>]) -> Value {
    maps(files, |file| {
        let path = Value::Text(String::from_utf8_lossy(file.path).into_owned());
        let symbols = number(file.symbols.len() as u64);
        [
            ("path", path),
            ("file_type", number(file.kind.0)),
            ("min_vaddr", hex(file.min_vaddr)),
            ("symbols", symbols),
        ]
    })
}

fn text(string: &HeaderString<'_>) -> Value {
    Value::Text(string.to_text().into_owned())
}

fn texts(strings: &[HeaderString<'_>]) -> Value {
    Value::List(strings.iter().map(text).collect())
}

/// Returns only the size, for features that are a mere mark or in a format of their own.
fn size(data: &[u8]) -> Value {
    map([("data_bytes", number(data.len() as u64))])
}

fn cpu_topology(topology: &f::CpuTopology<'_>, available: u32) -> Result<Value> {
    let (cores, dies) = (topology.tail.cpus(available)?, topology.tail.die_ids(available)?);
    let cpus = cores.iter().enumerate().map(|(cpu, (core, socket))| {
        let mut parts = vec![
            ("cpu", number(cpu as u64)),
            ("core_id", number(*core)),
            ("socket_id", number(*socket)),
        ];
        parts.extend(dies.get(cpu).map(|die| ("die_id", number(*die))));
        map(parts)
    });
    Ok(map([
        ("sibling_sockets", texts(&topology.sockets.0)),
        ("sibling_dies", texts(&topology.tail.dies(available)?)),
        ("sibling_threads", texts(&topology.cores.0)),
        ("cpus", Value::List(cpus.collect())),
    ]))
}

/// Returns the numbers of the set bits, below `most`.
fn bits(words: impl Iterator<Item = u64>, most: u64) -> impl Iterator<Item = u64> {
    let of_word = |(place, word): (u64, u64)| {
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| place * 64 + bit)
    };
    (0u64..).zip(words).flat_map(of_word).filter(move |bit| *bit < most)
}

/// Returns ascending numbers as ranges: `0-23,32-199`. `is_next` is whether a number follows
/// another without a gap.
pub(crate) fn ranges<N: Copy + PartialEq + Display>(
    numbers: impl Iterator<Item = N>,
    is_next: fn(N, N) -> bool,
) -> String {
    let mut ranges: Vec<(N, N)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if is_next(*last, number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let one = |(first, last): &(N, N)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(one).collect::<Vec<_>>().join(",")
}

fn caps(caps: &[f::PmuCap<'_>]) -> Value {
    maps(caps, |cap| [("name", text(&cap.name)), ("value", text(&cap.value))])
}

fn bundle(it: &f::Bundle<'_>, endian: Endian) -> Result<Value> {
    let body = it.unpack()?;
    let modules = maps(&f::bundled_modules(&body, endian)?, |module| {
        let count = |count: usize| number(count as u64);
        [
            ("path", Value::Text(module.path.to_text().into_owned())),
            ("names_from", Value::Text(module.source.to_text().into_owned())),
            ("functions", count(module.functions.0.len())),
            ("places", count(module.places.0.len())),
            ("images", count(module.images.0.len())),
        ]
    });
    Ok(map([
        ("version", number(it.version)),
        ("bytes", number(it.body.len() as u64)),
        ("modules", modules),
    ]))
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
        let ranges = |words: &[u64], most| {
            ranges(bits(words.iter().copied(), most), |last, bit| last + 1 == bit)
        };
        assert_eq!(ranges(&[0b1101, 1 << 63, 1], 129), "0,2-3,127-128");
        assert_eq!(ranges(&[u64::MAX], 10), "0-9");
        assert_eq!(ranges(&[], 10), "");
    }
}
