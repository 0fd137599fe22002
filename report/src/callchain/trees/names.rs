//! Modules and functions of frames, each stored once for all files.

use std::cmp::Ordering;

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// Numbered pairs of module and function.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: IndexSet<(String, String), FxBuildHasher>,
}

impl Names {
    /// Returns the number of a name, adding the name if it is new.
    pub(super) fn number(&mut self, module: String, function: String) -> u32 {
        u32::try_from(self.names.insert_full((module, function)).0).unwrap_or(u32::MAX)
    }

    /// Iterates over all pairs, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(String, String)> {
        self.names.iter()
    }

    /// Returns the function with this number.
    pub(super) fn function(&self, name: u32) -> &str {
        self.names.get_index(name as usize).map_or("", |(_, function)| function)
    }

    /// Compares two names as text: by function, then by module.
    pub(super) fn compare(&self, a: u32, b: u32) -> Ordering {
        let key = |name: u32| self.names.get_index(name as usize).map(|(module, function)| (function, module));
        key(a).cmp(&key(b))
    }
}
