//! Labels of samples: sets of names and values, each once.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::callchain::RowId;
use crate::profile::Profile;
use crate::query::word_text::cpu_number;
use crate::query::{Column, Query, SortKey};
use crate::table::RowTexts;

/// Name of a column that is no label.
const UNLABELLED: &str = "";
/// Name of the label that has the CPU mode.
const CPU_MODE: &str = "cpumode";

/// Name of the label that has the name of the process.
pub(in crate::exports) const PROCESS_NAME: &str = "process.name";

/// Adds to a query the columns that are no labels, or not always.
pub(super) fn complete(query: &mut Query) {
    // The CPU mode of the function is a label of samples whose mode does not follow from their
    // address.
    for (typed, key) in [(UNLABELLED, SortKey::Symbol), (CPU_MODE, SortKey::CpuMode)] {
        query.columns.push(Column { typed: typed.into(), key });
    }
}

/// Value of a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum LabelValue {
    Text(String),
    Number(i64),
    /// CPU mode, which is left out if it follows from the address.
    Mode(String),
}

/// Labels of a sample: names and values.
pub(super) type Labels<'p> = Vec<(&'p str, LabelValue)>;

/// Labels of all samples.
pub(super) struct LabelSets<'p> {
    /// Distinct sets, sorted.
    pub(super) sets: Vec<Labels<'p>>,
    pub(super) of_rows: FxHashMap<RowId, LabelledRow>,
}

/// Event and labels of a row's samples.
pub(super) struct LabelledRow {
    pub(super) event: usize,
    mode: String,
    with_mode: usize,
    without_mode: usize,
}

impl LabelledRow {
    /// Returns the set of a sample whose address tells this CPU mode.
    pub(super) fn set(&self, mode: Option<&str>) -> usize {
        if mode == Some(&self.mode) { self.without_mode } else { self.with_mode }
    }
}

impl<'p> LabelSets<'p> {
    pub(super) fn of(profile: &'p Profile, query: &'p Query) -> Self {
        let texts = RowTexts::new(profile, query, &profile.names);
        let mut sets = IndexSet::<Labels<'p>, FxBuildHasher>::default();
        let mut of_rows = FxHashMap::default();
        for (id, row) in &profile.calls.rows {
            let Some((event, cells)) = texts.row(*row) else { continue };
            let (mut labels, mut mode) = (Vec::new(), String::new());
            for (place, (column, cell)) in query.columns.iter().zip(cells).enumerate() {
                if column.typed == UNLABELLED {
                    continue;
                }
                match label(&texts, column, place, *cell) {
                    Some(LabelValue::Mode(text)) => mode = text,
                    Some(value) => labels.push((column.typed.as_str(), value)),
                    None => {}
                }
            }
            let (without_mode, _) = sets.insert_full(labels.clone());
            labels.push((CPU_MODE, LabelValue::Mode(mode.clone())));
            let (with_mode, _) = sets.insert_full(labels);
            of_rows.insert(*id, LabelledRow { event, mode, with_mode, without_mode });
        }
        let mut order: Vec<(Labels<'p>, usize)> = sets.into_iter().zip(0..).collect();
        order.sort_unstable();
        let mut ranks = vec![0; order.len()];
        for (rank, (_, number)) in order.iter().enumerate() {
            if let Some(slot) = ranks.get_mut(*number) {
                *slot = rank;
            }
        }
        for row in of_rows.values_mut() {
            for set in [&mut row.with_mode, &mut row.without_mode] {
                *set = ranks.get(*set).copied().unwrap_or(0);
            }
        }
        Self { sets: order.into_iter().map(|(labels, _)| labels).collect(), of_rows }
    }
}

/// Returns the label that a column's cell makes; numbers where they are what counts.
fn label(texts: &RowTexts<'_>, column: &Column, place: usize, cell: u64) -> Option<LabelValue> {
    let text = || texts.text(place, cell).into_owned();
    match column.key {
        SortKey::CpuMode => Some(LabelValue::Mode(text())),
        SortKey::Process if column.typed == PROCESS_NAME => {
            Some(LabelValue::Text(texts.task_name(place, cell)?))
        }
        SortKey::Process | SortKey::Tid => {
            Some(LabelValue::Number(texts.task(place, cell)?.into()))
        }
        SortKey::Cpu => Some(LabelValue::Number(cpu_number(cell).into())),
        _ => Some(LabelValue::Text(text())),
    }
}
