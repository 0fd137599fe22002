//! Cache lines and the offsets in them, computed from the rows of a histogram.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use recrep_format::abi::DataSrc;
use recrep_format::feature::NumaTopology;
use serde::{Serialize, Serializer};

use super::args::{C2cQuery, Detail};
use super::stats::Stats;
use crate::commands::derived;
use crate::pipeline::session::Session;
use crate::query::{Column, Format, SortKey, lists};
use crate::table::profile::EventTable;

/// A cache line.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Line {
    pub(super) line: String,
    pub(super) dso: String,
    /// CPU mode and mapping, in JSON only; text has a letter before the line instead.
    #[serde(flatten)]
    pub(super) companions: Details,
    #[serde(flatten, serialize_with = "counts")]
    pub(super) stats: Stats,
    /// Threads that read, as `tid:comm`.
    pub(super) readers: BTreeSet<String>,
    /// Threads that wrote, as `tid:comm`.
    pub(super) writers: BTreeSet<String>,
    pub(super) offsets: Vec<Offset>,
}

/// Offset in a cache line, as accessed by one function, or by one combination of the fields that `-c` names.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Offset {
    pub(super) offset: String,
    /// Fields that distinguish this entry from others at the same offset.
    #[serde(flatten)]
    pub(super) detail: Details,
    #[serde(flatten, serialize_with = "counts")]
    pub(super) stats: Stats,
    /// CPUs that accessed it, by node; `unknown` if the file does not give the node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) nodes: BTreeMap<String, BTreeSet<u32>>,
}

/// Names and values of fields, in the order requested.
#[derive(Clone, Debug, Default)]
pub(super) struct Details(pub(super) Vec<(&'static str, String)>);

impl Serialize for Details {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, text)| (name, text)))
    }
}

/// Serializes the numbers that are given of each cache line and each offset.
pub(super) fn counts<S: Serializer>(stats: &Stats, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([
        ("samples", stats.records),
        ("loads", stats.load),
        ("stores", stats.store),
        ("local_hitm", stats.lcl_hitm),
        ("remote_hitm", stats.rmt_hitm),
        ("local_peer", stats.lcl_peer),
        ("remote_peer", stats.rmt_peer),
    ])
}

/// Returns the columns of the histogram: six fixed ones, those of `-c`, the CPU (for `-N`), and companions.
pub(super) fn columns(asked: &C2cQuery) -> Vec<Column> {
    let mut keys = vec![
        ("dcacheline", SortKey::DataCacheLine),
        ("dso_daddr", SortKey::DataDso),
        ("line_offset", SortKey::LineOffset),
        ("tid", SortKey::Tid),
        ("data_src", SortKey::DataSrc),
        ("reach", SortKey::Reach),
    ];
    keys.extend(asked.coalesce.iter().map(|detail| detail.key()).filter(|(_, key)| *key != SortKey::Tid));
    if asked.node_info {
        keys.push(("cpu", SortKey::Cpu));
    }
    keys.extend(companions(asked));
    derived::columns(&keys)
}

/// Returns the companion columns, which distinguish lines of equal text in JSON.
fn companions(asked: &C2cQuery) -> &'static [(&'static str, SortKey)] {
    if asked.query.format == Format::Json { SortKey::DataCacheLine.declared().companions } else { &[] }
}

/// Returns the node of each CPU, from the file's topology.
pub(super) fn nodes(session: &Session<'_>) -> BTreeMap<u32, u32> {
    let Some(Ok(topology)) = session.file.feature::<NumaTopology<'_>>() else { return BTreeMap::new() };
    let cpus = |cpus: &str| lists::cpus(cpus).unwrap_or_default();
    topology
        .nodes
        .0
        .iter()
        .flat_map(|node| cpus(&node.cpus.to_text()).into_iter().map(|cpu| (cpu, node.node)))
        .collect()
}

/// Index of the first column that distinguishes accesses of an offset.
const DETAILS: usize = 6;

type Text<'r> = Cow<'r, str>;

/// Returns all lines, those with most of the requested loads first.
pub(super) fn lines(tables: &[EventTable<'_>], asked: &C2cQuery, nodes: &BTreeMap<u32, u32>) -> Vec<Line> {
    let mut lines =
        IndexMap::<(Text<'_>, Text<'_>, Vec<Text<'_>>), (Line, IndexMap<(Text<'_>, Vec<Text<'_>>), Offset>)>::new();
    let companions = companions(asked);
    for row in tables.iter().flat_map(EventTable::rows) {
        let [address, dso, place, thread] = [0, 1, 2, 3].map(|column| row.text(column));
        let mut more: Vec<Text<'_>> = row.texts().skip(DETAILS).collect();
        let own = more.split_off(more.len().saturating_sub(companions.len()));
        let stats = Stats::of(DataSrc(row.cell(4)), row.cell(5), row.count().samples);
        let details = companions.iter().zip(&own).map(|((name, _), text)| (*name, text.to_string()));
        let details = Details(details.collect());
        let (line, offsets) = lines.entry((address.clone(), dso.clone(), own)).or_default();
        (line.line, line.dso, line.companions) = (address.into(), dso.into(), details);
        line.stats.add(&stats);
        if stats.load > 0 {
            line.readers.insert(thread.to_string());
        }
        if stats.store > 0 {
            line.writers.insert(thread.to_string());
        }
        let mut more = more.into_iter();
        let text = |detail: &Detail| match detail {
            Detail::Tid => Some(thread.clone()),
            _ => more.next(),
        };
        let texts: Vec<Text<'_>> = asked.coalesce.iter().filter_map(text).collect();
        let at = offsets.entry((place.clone(), texts.clone())).or_default();
        at.offset = place.into();
        let names = asked.coalesce.iter().map(|detail| detail.key().0);
        at.detail = Details(names.zip(texts.into_iter().map(Cow::into_owned)).collect());
        // The function has the same CPU mode as the line.
        if asked.coalesce.contains(&Detail::Function) {
            at.detail.0.extend(line.companions.0.iter().find(|(name, _)| *name == "cpumode").cloned());
        }
        at.stats.add(&stats);
        let cpu = DETAILS + asked.coalesce.iter().filter(|detail| **detail != Detail::Tid).count();
        if let Some(cpu) = u32::try_from(row.cell(cpu)).ok().filter(|cpu| asked.node_info && *cpu != u32::MAX) {
            let node = nodes.get(&cpu).map_or_else(|| "unknown".to_owned(), ToString::to_string);
            at.nodes.entry(node).or_default().insert(cpu);
        }
    }
    let order = |stats: &Stats| (stats.shown(asked.display), stats.records);
    let whole = |(mut line, offsets): (Line, IndexMap<(Text<'_>, Vec<Text<'_>>), Offset>)| {
        let mut offsets: Vec<_> = offsets.into_iter().collect();
        offsets.sort_by(|(a_key, a), (b_key, b)| order(&b.stats).cmp(&order(&a.stats)).then_with(|| a_key.cmp(b_key)));
        line.offsets = offsets.into_iter().map(|(_, offset)| offset).collect();
        line
    };
    let mut lines: Vec<Line> = lines.into_values().map(whole).collect();
    lines.sort_by(|a, b| {
        let by_name = || (&a.line, &a.dso, &a.companions.0).cmp(&(&b.line, &b.dso, &b.companions.0));
        order(&b.stats).cmp(&order(&a.stats)).then_with(by_name)
    });
    lines
}

/// Returns the sum of the lines' accesses.
pub(super) fn total<'l>(lines: impl IntoIterator<Item = &'l Line>) -> Stats {
    let mut total = Stats::default();
    lines.into_iter().for_each(|line| total.add(&line.stats));
    total
}
