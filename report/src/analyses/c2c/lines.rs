//! Cache lines and the offsets in them, computed from the rows of a histogram.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use recrep_format::abi::DataSrc;
use recrep_format::feature::NumaTopology;
use serde::{Serialize, Serializer};

use super::args::{C2cQuery, Detail, Display};
use super::stats::Stats;
use crate::query::{Column, KeyError, Mode, SortKey, lists};
use crate::samples::Session;
use crate::table::EventTable;

/// A cache line.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct SharedLine {
    pub(super) line: String,
    pub(super) dso: String,
    /// CPU mode and mapping; text has a letter before the line instead.
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

/// Offset in a cache line, as accessed by one function, or by one combination of the fields that
/// `-c` names.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Details(pub(super) Vec<(&'static str, String)>);

impl Serialize for Details {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, text)| (name, text)))
    }
}

type OfStats = fn(&Stats) -> u64;

/// The numbers of each cache line and each offset, with their names.
pub(super) const COUNTED: [(&str, OfStats); 7] = [
    ("samples", |stats| stats.records),
    ("loads", |stats| stats.load),
    ("stores", |stats| stats.store),
    ("local_hitm", |stats| stats.lcl_hitm),
    ("remote_hitm", |stats| stats.rmt_hitm),
    ("local_peer", |stats| stats.lcl_peer),
    ("remote_peer", |stats| stats.rmt_peer),
];

/// Serializes the numbers of a cache line or an offset.
pub(super) fn counts<S: Serializer>(stats: &Stats, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(COUNTED.map(|(name, number)| (name, number(stats))))
}

/// Returns the columns of the histogram: six fixed ones, those of `-c`, the CPU (for `-N`), and
/// companions.
pub(super) fn columns(asked: &C2cQuery) -> Result<Vec<Column>, KeyError> {
    let mut columns =
        Column::list("dcacheline,dso_daddr,line_offset,tid,data_src,reach", Mode::Memory)?;
    let details = asked
        .coalesce
        .iter()
        .filter(|detail| **detail != Detail::Tid)
        .map(|detail| detail.names().1);
    for name in details.chain(asked.node_info.then_some("cpu")) {
        columns.push(Column::parse(name, Mode::Memory)?);
    }
    Ok(Column::with_companions(columns, asked.query.needs))
}

/// Returns the companion columns, which distinguish lines of equal text in JSON.
fn companions(asked: &C2cQuery) -> &'static [(&'static str, SortKey)] {
    if asked.query.needs.companions { SortKey::DataCacheLine.declared().companions } else { &[] }
}

/// Returns the node of each CPU, from the file's topology.
pub(super) fn nodes(session: &Session<'_>) -> BTreeMap<u32, u32> {
    let Some(Ok(topology)) = session.file.feature::<NumaTopology<'_>>() else {
        return BTreeMap::new();
    };
    let mut nodes = BTreeMap::new();
    for node in &topology.nodes.0 {
        for cpu in lists::cpus(&node.cpus.to_text()).unwrap_or_default() {
            nodes.insert(cpu, node.node);
        }
    }
    nodes
}

/// Index of the first column that distinguishes accesses of an offset.
const DETAILS: usize = 6;

/// Returns all lines, those with most of the requested loads first.
pub(super) fn lines(
    tables: &[EventTable<'_>],
    asked: &C2cQuery,
    nodes: &BTreeMap<u32, u32>,
) -> Vec<SharedLine> {
    let mut lines =
        BTreeMap::<(Cow<'_, str>, Cow<'_, str>, Details), (SharedLine, Offsets<'_>)>::new();
    let cpu = DETAILS + asked.coalesce.iter().filter(|detail| **detail != Detail::Tid).count();
    for row in tables.iter().flat_map(EventTable::rows) {
        let [address, dso, place, thread] = [0, 1, 2, 3].map(|column| row.text(column));
        let stats = Stats::of(DataSrc(row.cell(4)), row.cell(5), row.count().samples);
        let mut more = row.texts().skip(DETAILS);
        let details = asked.coalesce.iter().filter_map(|detail| match detail {
            Detail::Tid => Some((detail.names().0, thread.to_string())),
            _ => more.next().map(|text| (detail.names().0, text.into_owned())),
        });
        let mut details: Vec<_> = details.collect();
        let own = more.skip(usize::from(asked.node_info)).map(Cow::into_owned);
        let own: Vec<_> = companions(asked).iter().map(|(name, _)| *name).zip(own).collect();
        // The function has the same CPU mode as the line.
        if asked.coalesce.contains(&Detail::Function) {
            details.extend(own.iter().find(|(name, _)| *name == "cpumode").cloned());
        }
        let (line, offsets) = lines.entry((address, dso, Details(own))).or_default();
        line.stats.add(&stats);
        for (threads, accesses) in
            [(&mut line.readers, stats.load), (&mut line.writers, stats.store)]
        {
            threads.extend((accesses > 0).then(|| thread.to_string()));
        }
        let at = offsets.entry((place, Details(details))).or_default();
        at.stats.add(&stats);
        if let Some(cpu) =
            u32::try_from(row.cell(cpu)).ok().filter(|cpu| asked.node_info && *cpu != u32::MAX)
        {
            let node = nodes.get(&cpu).map_or_else(|| "unknown".to_owned(), ToString::to_string);
            at.nodes.entry(node).or_default().insert(cpu);
        }
    }
    let lines = lines.into_iter().map(|((line, dso, companions), (found, offsets))| SharedLine {
        line: line.into_owned(),
        dso: dso.into_owned(),
        companions,
        offsets: in_order(offsets, asked.display),
        ..found
    });
    let mut lines: Vec<SharedLine> = lines.collect();
    lines.sort_by_key(|line| order(&line.stats, asked.display));
    lines
}

/// Offsets of a line by their number and what distinguishes their accesses.
type Offsets<'r> = BTreeMap<(Cow<'r, str>, Details), Offset>;

/// Returns the offsets, those with most of the requested accesses first.
fn in_order(offsets: Offsets<'_>, display: Display) -> Vec<Offset> {
    let offsets = offsets.into_iter().map(|((offset, detail), found)| Offset {
        offset: offset.into_owned(),
        detail,
        ..found
    });
    let mut offsets: Vec<Offset> = offsets.collect();
    offsets.sort_by_key(|offset| order(&offset.stats, display));
    offsets
}

/// Returns the key by which lines and offsets are sorted; equal ones stay in the order of their names.
fn order(stats: &Stats, display: Display) -> Reverse<(u64, u64)> {
    Reverse((stats.shown(display), stats.records))
}

/// Returns the sum of the lines' accesses.
pub(super) fn total<'l>(lines: impl IntoIterator<Item = &'l SharedLine>) -> Stats {
    let mut total = Stats::default();
    lines.into_iter().for_each(|line| total.add(&line.stats));
    total
}
