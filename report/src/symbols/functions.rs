//! Functions of a file's modules, found while samples are read.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::module::Module;
use super::resolver::{Loaded, Resolver};
use super::table::SymbolId;

/// Finds functions in a file's modules. Loads a module when it is first needed.
#[derive(Debug)]
pub struct Functions<'f> {
    modules: Vec<&'f Module>,
    loaded: Vec<OnceLock<Arc<Loaded>>>,
    resolver: &'f Resolver,
}

impl<'f> Functions<'f> {
    /// Creates a finder for `modules`, indexed by module number.
    #[must_use]
    pub fn new(modules: Vec<&'f Module>, resolver: &'f Resolver) -> Self {
        let loaded = modules.iter().map(|_| OnceLock::new()).collect();
        Self { modules, loaded, resolver }
    }

    /// Loads these modules on all cores.
    pub fn preload(&self, modules: &[bool]) {
        let hit: Vec<usize> = (0..modules.len()).filter(|module| modules.get(*module) == Some(&true)).collect();
        hit.into_par_iter().with_max_len(1).for_each(|module| {
            self.loaded(module);
        });
    }

    /// Returns the function at an address of a module, and the addresses around it with the same result.
    #[must_use]
    pub fn find(&self, module: usize, address: u64) -> (Option<SymbolId>, Range<u64>) {
        self.loaded(module).map_or((None, 0..u64::MAX), |loaded| loaded.table.find_range(address))
    }

    /// Returns the symbols of a module. They stay the same, even if its debug file is fetched meanwhile.
    pub fn loaded(&self, module: usize) -> Option<&Arc<Loaded>> {
        let (slot, module) = self.loaded.get(module).zip(self.modules.get(module))?;
        Some(slot.get_or_init(|| self.resolver.load(module)))
    }
}
