//! Callchains of all files, and the trees built from them.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::file::{FileTrees, Item, PART, Part, RowIndex, RowItems};
use super::tree::{Node, TreeOptions, Walk};
use crate::callchain::RowId;
use crate::symbols::labels::Labels;

/// Callchains of all files.
#[derive(Debug, Default)]
pub struct CallTrees {
    files: Vec<FileTrees>,
}

impl CallTrees {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub fn add(&mut self, file: FileTrees) {
        self.files.push(file);
    }

    /// Adds the callchains of another profile with the same labels; `row` gives the index that one of its rows has here.
    pub fn append(&mut self, other: Self, row: impl Fn(RowIndex) -> Option<RowIndex>) {
        for file in other.files {
            let rows = file.rows.into_iter().filter_map(|(id, index)| Some((id, row(index)?))).collect();
            self.files.push(FileTrees { rows, ..file });
        }
    }

    /// Iterates over the files; returns the index of each row.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = RowIndex>> {
        self.files.iter().map(|file| file.rows.iter().map(|(_, row)| *row))
    }

    /// Returns the trees of these rows. With `children`, a row's tree has the chains of all samples that contain the
    /// row, starting at the row's frame; otherwise only those of the row's own samples. `labels` has the names.
    pub fn trees(
        &self,
        rows: &[RowIndex],
        labels: &Labels,
        children: bool,
        wanted: TreeOptions,
        from_caller: bool,
    ) -> Vec<Vec<Node>> {
        let places: FxHashMap<RowIndex, usize> = rows.iter().enumerate().map(|(place, row)| (*row, place)).collect();
        let of_file = |file: &FileTrees| -> FxHashMap<RowId, usize> {
            file.rows.iter().filter_map(|(id, row)| Some((*id, *places.get(row)?))).collect()
        };
        let wanted_rows: Vec<FxHashMap<RowId, usize>> = self.files.iter().map(of_file).collect();
        let parts = self.files.iter().zip(&wanted_rows);
        let parts = parts.flat_map(|(file, rows)| file.samples.chunks(PART).map(move |samples| (file, rows, samples)));
        let parts: Vec<(u32, _)> = (0..).zip(parts).collect();
        let made = parts
            .into_par_iter()
            .map(|(number, (file, rows, samples))| file.part((number, samples), rows, (children, from_caller)));
        let (parts, of_parts): (Vec<Part<'_>>, Vec<RowItems>) = made.unzip();
        let mut items: Vec<Vec<Item>> = vec![Vec::new(); rows.len()];
        for (row, item) in of_parts.into_iter().flatten() {
            items.get_mut(row).into_iter().for_each(|items| items.push(item));
        }
        let walk = Walk { parts: &parts, labels };
        items.par_iter().map(|items| walk.nodes(items, 0, wanted)).collect()
    }
}
