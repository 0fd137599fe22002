//! The functions of a file's modules, by address.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::Resolver;
use super::loaded::Loaded;
use crate::symbols::module::{Module, ModuleKind};
use crate::symbols::names::table::SymbolId;

/// Finds functions in a file's modules. Loads a module when it is first needed.
#[derive(Debug)]
pub(crate) struct Functions<'f> {
    modules: Vec<(&'f Module, OnceLock<Arc<Loaded>>)>,
    resolver: &'f Resolver,
}

impl<'f> Functions<'f> {
    /// Creates a finder for `modules`, indexed by module number.
    pub(crate) fn new(modules: Vec<&'f Module>, resolver: &'f Resolver) -> Self {
        Self {
            modules: modules.into_iter().map(|module| (module, OnceLock::new())).collect(),
            resolver,
        }
    }

    /// Loads the modules that were hit on all cores, given the number of hits of each: workers that
    /// meet them one by one would wait for each other. One worker alone would not. Those that take
    /// long begin first: the kernel, whose list may have to be made, then those with the largest
    /// files.
    pub(crate) fn preload(&self, hits: impl FnOnce() -> Vec<u64>) {
        if rayon::current_num_threads() == 1 {
            return;
        }
        let mut hit: Vec<(bool, u64, usize)> = Vec::new();
        for (number, ((module, _), hits)) in self.modules.iter().zip(hits()).enumerate() {
            if hits > 0 {
                let size = std::fs::metadata(module.as_path()).map_or(0, |file| file.len());
                hit.push((module.kind == ModuleKind::Kernel, size, number));
            }
        }
        hit.sort_unstable_by_key(|module| std::cmp::Reverse(*module));
        let next = AtomicUsize::new(0);
        rayon::broadcast(|_| {
            while let Some((.., module)) = hit.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.loaded(*module);
            }
        });
    }

    /// Returns the function at an address of a module, and the addresses around it with the same
    /// result.
    pub(crate) fn find(&self, module: usize, address: u64) -> (Option<SymbolId>, Range<u64>) {
        self.loaded(module).map_or((None, 0..u64::MAX), |loaded| loaded.find_range(address))
    }

    /// Returns the symbols of a module. They stay the same, even if its debug file is fetched
    /// meanwhile.
    pub(crate) fn loaded(&self, module: usize) -> Option<&Arc<Loaded>> {
        let (module, slot) = self.modules.get(module)?;
        Some(slot.get_or_init(|| self.resolver.load(module)))
    }
}
