//! Header features as values, with the field names of perf's structs.
//!
//! A test fails if a feature that `recrep-format` names has no decoder here.

use std::fmt::Display;

use recrep_format::build_id::BuildId;
use recrep_format::bytes::Cursor;
use recrep_format::endian::Endian;
use recrep_format::error::Result;
use recrep_format::feature as f;
use recrep_format::feature::FeatureId;
use recrep_format::fields::Field as _;

use super::attr;
use super::value::{InfoValue, hex, map, maps, number, shown, text};

/// Fields that are shown before the others of their structure, which stand as they lie in the file.
const FIRST: &[(FeatureId, &[&str])] = &[
    (FeatureId::NRCPUS, &["online"]),
    (FeatureId::PMU_MAPPINGS, &["name"]),
    (FeatureId::CACHE, &["level", "type", "size"]),
    (FeatureId::PMU_CAPS, &["pmu_name"]),
];

/// Decodes a feature from its section `c`; returns `None` if the feature's number is unknown.
/// `cpus` is the number of available CPUs in NRCPUS, on which the layout of CPU_TOPOLOGY's tail
/// depends.
pub(crate) fn value(id: FeatureId, c: &mut Cursor<'_>, cpus: u32) -> Result<Option<InfoValue>> {
    use f::FeatureBody as B;
    let endian = c.endian();
    let body = B::decode(id, c)?;
    Ok(Some(match &body {
        B::Other(..) => return Ok(None),
        B::BuildIds(it) => maps(&it.entries, |entry| {
            let id = entry.build_id().as_ref().map(BuildId::to_string).unwrap_or_default();
            let pid = number(entry.body.pid.0.cast_signed());
            let misc = hex(entry.misc.into());
            let filename = text(entry.name());
            [
                ("build_id", InfoValue::Text(id)),
                ("misc", misc),
                ("pid", pid),
                ("filename", filename),
            ]
        }),
        B::EventDesc(it) => maps(&it.events, |event| {
            let (name, ids) = (shown(&event.name.value()), shown(&event.ids.value()));
            [("name", name), ("ids", ids), ("attr", attr::value(&event.attr))]
        }),
        B::CpuTopology(it) => cpu_topology(it, cpus)?,
        B::AuxtraceIndex(it) => {
            let entries = maps(it.iter(), |(offset, size)| {
                [("file_offset", hex(offset)), ("size", number(size))]
            });
            map([("total", number(it.total)), ("entries", entries)])
        }
        B::MemTopology(it) => {
            let nodes = maps(&it.nodes, |node| {
                let blocks = ranges(bits(node.set.iter(), node.bits), |last, bit| last + 1 == bit);
                let (number_of, size) = (number(node.node), number(node.size));
                [("node", number_of), ("size", size), ("blocks", InfoValue::Text(blocks))]
            });
            let (version, block_size) = (number(it.version), hex(it.block_size));
            map([("version", version), ("block_size_bytes", block_size), ("nodes", nodes)])
        }
        B::UnwoundChains(it) => {
            let cut = maps(&it.cut.0, |chains| {
                let cause = InfoValue::Shown(
                    Box::new(number(chains.cause.0)),
                    chains.cause.to_string().to_ascii_lowercase(),
                );
                let module = shown(&chains.module.value());
                let (limit, count) = (number(chains.limit), number(chains.count));
                [("cause", cause), ("module", module), ("limit", limit), ("count", count)]
            });
            map([("whole", number(it.whole)), ("cut", cut)])
        }
        B::Bundle(it) => bundle(it, endian)?,
        B::SimpleperfMetaInfo(it) => {
            maps(&it.facts, |[key, value]| [("key", text(key)), ("value", text(value))])
        }
        B::SimpleperfFiles2(it) => {
            let parsed = it.messages.iter().map(|message| f::SimpleperfFile::of_message(message));
            shown(&f::SimpleperfFiles { files: parsed.collect::<Result<_>>()? }.value())
        }
        _ => {
            let mut value = shown(&body.value());
            if let Some((_, names)) = FIRST.iter().find(|(of, _)| *of == id) {
                put_first(names, &mut value);
            }
            value
        }
    }))
}

/// Moves parts with these names before the other parts.
fn put_first(names: &[&str], value: &mut InfoValue) {
    match value {
        InfoValue::List(items) => {
            for item in items {
                put_first(names, item);
            }
        }
        InfoValue::Map(parts) => {
            parts.sort_by_key(|(name, _)| {
                names.iter().position(|first| first == name).unwrap_or(names.len())
            });
            for (_, part) in parts {
                put_first(names, part);
            }
        }
        _ => {}
    }
}

fn cpu_topology(topology: &f::CpuTopology<'_>, available: u32) -> Result<InfoValue> {
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
        ("sibling_sockets", shown(&topology.sockets.value())),
        ("sibling_dies", shown(&topology.tail.dies(available)?.value())),
        ("sibling_threads", shown(&topology.cores.value())),
        ("cpus", InfoValue::List(cpus.collect())),
    ]))
}

/// Returns the numbers of the set bits, below `most`.
fn bits(words: impl Iterator<Item = u64>, most: u64) -> impl Iterator<Item = u64> {
    let all = (0u64..).zip(words).flat_map(|(place, word)| {
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| place * 64 + bit)
    });
    all.filter(move |bit| *bit < most)
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
    let texts = ranges.iter().map(|(first, last)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    });
    texts.collect::<Vec<_>>().join(",")
}

fn bundle(it: &f::Bundle<'_>, endian: Endian) -> Result<InfoValue> {
    let body = it.unpack()?;
    let modules = maps(&f::bundled_modules(&body, endian)?, |module| {
        let count = |count: usize| number(count as u64);
        [
            ("path", text(module.path.0)),
            ("names_from", text(module.source.0)),
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
