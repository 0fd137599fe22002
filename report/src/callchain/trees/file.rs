//! What one file has of callchains.

use rustc_hash::FxHashMap;

use crate::callchain::{RowId, Sample, Stacks};

/// The place of a row in a profile.
pub type RowPlace = usize;

/// Callchains of a file.
#[derive(Debug)]
pub struct FileTrees {
    /// The chains.
    pub stacks: Stacks,
    /// The samples.
    pub samples: Vec<Sample>,
    /// The class of each frame.
    pub classes: Vec<u32>,
    /// How many classes there are.
    pub class_count: usize,
    /// The name of each frame: a number that [`super::CallTrees::name`] gave.
    pub names: Vec<u32>,
    /// Where the rows are in the profile.
    pub rows: FxHashMap<RowId, RowPlace>,
}

/// A sample in a row's tree, from this frame on (counted from the innermost).
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) file: u32,
    pub(super) sample: u32,
    pub(super) first: u32,
}

impl FileTrees {
    /// Adds to each row's items those of this file.
    pub(super) fn items(
        &self,
        file: u32,
        places: &FxHashMap<RowPlace, usize>,
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
