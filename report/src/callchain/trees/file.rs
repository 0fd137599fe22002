//! Callchains of one file.

use rustc_hash::FxHashMap;

use crate::callchain::{RowId, Sample, Stacks};

/// Index of a row in a profile.
pub type RowIndex = usize;

/// Callchains of one file.
#[derive(Debug)]
pub struct FileTrees {
    /// Distinct chains.
    pub stacks: Stacks,
    /// Samples that refer to the chains.
    pub samples: Vec<Sample>,
    /// Class of each frame.
    pub classes: Vec<u32>,
    /// Number of classes.
    pub class_count: usize,
    /// Name of each frame, numbered by [`super::CallTrees::name`].
    pub names: Vec<u32>,
    /// Index of each row in the profile.
    pub rows: FxHashMap<RowId, RowIndex>,
}

/// A sample in a row's tree, starting at the frame `first` (counted from the innermost).
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) file: u32,
    pub(super) sample: u32,
    pub(super) first: u32,
}

impl FileTrees {
    /// Adds this file's items to those of each row.
    pub(super) fn items(
        &self,
        file: u32,
        places: &FxHashMap<RowIndex, usize>,
        (children, from_caller): (bool, bool),
        items: &mut [Vec<Item>],
    ) {
        let mut seen = vec![0; self.class_count];
        let rows: FxHashMap<RowId, usize> =
            self.rows.iter().filter_map(|(id, row)| Some((*id, *places.get(row)?))).collect();
        for (number, sample) in (0u32..).zip(&self.samples) {
            let frames = sample.len(&self.stacks);
            let mut add = |class: u32, first: usize| {
                let row = rows.get(&(sample.base, class)).and_then(|row| items.get_mut(*row));
                if let (Some(row), true) = (row, frames > 0) {
                    row.push(Item { file, sample: number, first: u32::try_from(first).unwrap_or(u32::MAX) });
                }
            };
            add(sample.class, if from_caller { frames.saturating_sub(1) } else { 0 });
            if children {
                sample.rows((&self.stacks, &self.classes), from_caller, (&mut seen, number + 1), &mut add);
            }
        }
    }
}
