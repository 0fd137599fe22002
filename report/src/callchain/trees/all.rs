//! Callchains of all files, and the trees that are made of them.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::file::{FileTrees, Item, RowPlace};
use super::names::Names;
use super::tree::{Node, Walk, Wanted};

/// Callchains of all files.
#[derive(Debug, Default)]
pub struct CallTrees {
    /// Modules and functions of frames.
    names: Names,
    files: Vec<FileTrees>,
}

impl CallTrees {
    /// The number of a name.
    pub fn name(&mut self, module: String, function: String) -> u32 {
        self.names.number(module, function)
    }

    /// The function of this number.
    #[must_use]
    pub fn function(&self, name: u32) -> &str {
        self.names.function(name)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Adds the callchains of a file.
    pub fn add(&mut self, file: FileTrees) {
        self.files.push(file);
    }

    /// The trees of these rows. With `children` a row has the chains of all samples that it is in, from its frame on;
    /// else those of its own samples.
    #[must_use]
    pub fn trees(&self, rows: &[RowPlace], children: bool, wanted: Wanted, from_caller: bool) -> Vec<Vec<Node>> {
        let places: FxHashMap<RowPlace, usize> = rows.iter().enumerate().map(|(place, row)| (*row, place)).collect();
        let mut items: Vec<Vec<Item>> = vec![Vec::new(); rows.len()];
        for (number, file) in (0u32..).zip(&self.files) {
            file.items(number, &places, (children, from_caller), &mut items);
        }
        let walk = Walk { files: &self.files, names: &self.names, from_caller };
        items.par_iter().map(|items| walk.tree(items, wanted)).collect()
    }
}
