//! Code that a JIT replaced: the versions in its jitdump, each at its time.
//!
//! ```text
//!   SideBand (maps of JITs) ─► Resolver::jit_versions (times, from the dump) ─► Change::Code ─► a layer of its space
//! ```
//!
//! Code that was never replaced needs no change: it is looked up by its own address at any time.
//! The first version also counts for the time before it: JITs write it down when it may run
//! already.

use rustc_hash::FxHashMap;

use super::{Change, Mapping, Memory, ModuleId, Moment, SideBand};
use crate::symbols::{CodeVersion, ModuleKind, Resolver};

impl SideBand {
    /// Adds the versions of JITs' code. Call it once, when all changes are known.
    pub(crate) fn add_jit_code(&mut self, resolver: &Resolver) {
        if !self.jit_dumps.values().any(|dump| dump.is_timed) {
            return;
        }
        let mut forks: FxHashMap<i32, Moment> = FxHashMap::default();
        for (at, change) in &self.changes {
            if let Change::Fork { pid, ppid, .. } = change
                && pid != ppid
            {
                let last = forks.entry(*pid).or_insert(*at);
                *last = (*last).max(*at);
            }
        }
        let mut changes = Vec::new();
        for (number, module) in (0..).zip(&self.modules) {
            let ModuleKind::PerfMap { pid, .. } = module.kind else { continue };
            let mut versions = resolver.jit_versions(module);
            // A child of its own pid may run code where its parent's module is mapped.
            versions.retain(|v| v.is_replaced || v.pid != pid || forks.contains_key(&pid));
            versions.sort_by_key(|version| version.time);
            let begin =
                |version: &CodeVersion| forks.get(&version.pid).copied().unwrap_or(Moment::START);
            let initial = versions.iter().rev().map(|version| (begin(version), version));
            let replaced = versions.iter().filter(|version| version.is_replaced);
            let later = replaced.map(|v| (begin(v).max(Moment::timed(v.time, 0)), v));
            changes.extend(initial.chain(later).map(|(at, version)| {
                let CodeVersion { start, end, .. } = *version;
                let is_own = version.is_replaced || version.pid != pid;
                let first = if is_own { version.first } else { start };
                let (module, memory) = (Some(ModuleId(number)), Memory::Anonymous);
                let mapping = Mapping { start, end, first, module, is_shared: false, memory };
                (at, Change::Code { pid: version.pid, mapping })
            }));
        }
        // Stable: at one moment the later code in the dump counts.
        changes.sort_by_key(|(at, _)| *at);
        self.changes.extend(changes);
    }
}
