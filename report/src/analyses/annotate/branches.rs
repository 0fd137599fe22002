//! What branch stacks say of the branches of functions.

use std::collections::BTreeMap;

use recrep_format::build_id::BuildId;
use rustc_hash::FxHashMap;

use crate::analyses::derived;
use crate::count::metrics::{rounded, share};
use crate::engine::described::have_branches;
use crate::profile::names::FileOffset;
use crate::query::word_text::is_mispredicted;
use crate::query::{Column, Filters, Mode, Needs, Query, Warning};
use crate::samples::Session;
use crate::symbols::{Module, ModuleKind};
use crate::table::{self, EventTable};

/// Branches from one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BranchTotals {
    /// Number of branches that were taken.
    pub count: u64,
    pub mispredicted: u64,
    /// Number of those whose prediction is known.
    pub known: u64,
    /// Sum of the cycles since the branch before, and number of branches with them.
    pub cycles: (u64, u64),
}

impl BranchTotals {
    /// Returns the percentage of mispredicted branches among those whose prediction is known.
    pub(super) fn mispredict_percent(self) -> Option<f64> {
        (self.known > 0).then(|| rounded(share(self.mispredicted, self.known)))
    }

    /// Returns the mean of the cycles since the branch before, where known.
    pub(super) fn mean_cycles(self) -> Option<f64> {
        let (cycles, of) = self.cycles;
        // `share` returns 100 × cycles / of.
        (of > 0).then(|| share(cycles, of) / 100.0)
    }
}

/// What tells modules apart: path, build ID, and address of a kernel module.
type ModuleKey = (String, Option<BuildId>, u64);

/// Branches by the module and the address of their source.
#[derive(Debug, Default)]
pub(crate) struct SourceBranches {
    modules: FxHashMap<ModuleKey, BTreeMap<u64, BranchTotals>>,
}

impl SourceBranches {
    /// Returns whether a recording has branch stacks.
    pub(super) fn are_recorded(session: &Session<'_>) -> bool {
        have_branches(session)
    }

    /// Counts the branches that pass the query's filters, but for those of functions and modules.
    pub(super) fn read(query: &Query, warnings: &mut Vec<Warning>) -> anyhow::Result<Self> {
        let mut samples = query.filters.samples.clone();
        samples.dsos = None;
        let filters =
            Filters { samples, symbols: None, symbol_part: None, ..query.filters.clone() };
        let needs = Needs { addresses: true, ..query.needs };
        let query = Query { mode: Mode::Branches, filters, needs, ..query.clone() };
        let columns = Column::list("place_from,mispredict,cycles", query.mode)?;
        let (profile, query, _) = derived::profile(&query, columns, |_| ())?;
        let mut all = Self::default();
        for row in table::tables(&profile, &query).iter().flat_map(EventTable::rows) {
            let Some(FileOffset { module, offset }) = row.file_offset(0) else { continue };
            let Some(module) = profile.names.module(module) else { continue };
            let key = (module.path.clone(), module.identity.build_id, module.identity.start);
            let totals = all.modules.entry(key).or_default().entry(offset).or_default();
            let count = row.count().samples;
            totals.count += count;
            if let Some(is_missed) = row.word(1).and_then(is_mispredicted) {
                totals.known += count;
                totals.mispredicted += if is_missed { count } else { 0 };
            }
            let cycles = row.cell(2);
            if cycles > 0 {
                totals.cycles.0 = totals.cycles.0.saturating_add(cycles.saturating_mul(count));
                totals.cycles.1 += count;
            }
        }
        warnings.extend(profile.warnings.into_iter().filter(|warning| {
            // The samples have none of their own.
            warning.code == Warning::UNREADABLE
        }));
        Ok(all)
    }

    /// Returns the branches of a module, by the address of their source.
    pub(super) fn of(&self, module: &Module) -> Option<&BTreeMap<u64, BranchTotals>> {
        let start = if let ModuleKind::KernelModule { start } = module.kind { start } else { 0 };
        let path = String::from_utf8_lossy(&module.path).into_owned();
        self.modules.get(&(path, module.build_id, start))
    }
}
