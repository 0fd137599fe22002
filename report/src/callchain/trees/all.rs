//! Callchains of all files, and the trees built from them.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::file::{FileTrees, Item, RowIndex};
use super::names::Names;
use super::tree::{Node, TreeOptions, Walk};

/// Callchains of all files.
#[derive(Debug, Default)]
pub struct CallTrees {
    /// Modules and functions of frames.
    names: Names,
    files: Vec<FileTrees>,
}

impl CallTrees {
    /// Returns the number of a name, adding the name if it is new.
    pub fn name(&mut self, module: String, function: String) -> u32 {
        self.names.number(module, function)
    }

    /// Returns the function with this number.
    #[must_use]
    pub fn function(&self, name: u32) -> &str {
        self.names.function(name)
    }

    /// Returns whether no file has callchains.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Adds the callchains of a file.
    pub fn add(&mut self, file: FileTrees) {
        self.files.push(file);
    }

    /// Returns the trees of these rows. With `children`, a row's tree has the chains of all samples that contain the
    /// row, starting at the row's frame; otherwise only those of the row's own samples.
    #[must_use]
    pub fn trees(&self, rows: &[RowIndex], children: bool, wanted: TreeOptions, from_caller: bool) -> Vec<Vec<Node>> {
        let places: FxHashMap<RowIndex, usize> = rows.iter().enumerate().map(|(place, row)| (*row, place)).collect();
        let mut items: Vec<Vec<Item>> = vec![Vec::new(); rows.len()];
        for (number, file) in (0u32..).zip(&self.files) {
            file.items(number, &places, (children, from_caller), &mut items);
        }
        let walk = Walk { files: &self.files, names: &self.names, from_caller };
        items.par_iter().map(|items| walk.tree(items, wanted)).collect()
    }
}
