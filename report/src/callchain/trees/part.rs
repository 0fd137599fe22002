//! Frames of samples, in the direction in which trees are built.

use rustc_hash::FxHashMap;

use super::all::CallTrees;
use crate::callchain::{RowId, Sample};

/// A sample in a row's tree, starting at the frame `at` of its part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) part: u32,
    pub(super) sample: u32,
    pub(super) at: u32,
}

/// Frames of some samples, in the direction in which trees are built.
#[derive(Debug)]
pub(super) struct Part<'f> {
    pub(super) samples: &'f [Sample],
    /// Each sample's frames are followed by [`END`].
    pub(super) frames: Vec<u32>,
}

/// Number that no frame has.
const END: u32 = u32::MAX;

/// Items of each row, by the row's place in the list of wanted rows.
pub(super) type RowItems = Vec<(usize, Item)>;

/// Samples of a part: few enough that its frames can be counted by 32 bits.
pub(super) const PART: usize = 1 << 16;

impl CallTrees {
    /// Returns the part with these samples, which gets the number `number`, and its items.
    pub(super) fn part<'f>(
        &'f self,
        (number, samples): (u32, &'f [Sample]),
        rows: &FxHashMap<RowId, usize>,
        (children, from_caller): (bool, bool),
    ) -> (Part<'f>, RowItems) {
        let mut part = Part { samples, frames: Vec::new() };
        // Of each class that wanted rows have, the last sample with it.
        let mut last = vec![None; self.class_count];
        for (_, class) in rows.keys() {
            last.get_mut(*class as usize).into_iter().for_each(|last| *last = Some(u32::MAX));
        }
        let (mut items, mut path) = (Vec::new(), Vec::new());
        for (sample_number, sample) in (0u32..).zip(samples) {
            path.clear();
            path.extend(sample.frames(&self.chains));
            if from_caller {
                path.reverse();
            }
            let (start, before) = (part.frames.len(), items.len());
            let mut add = |class: u32, place: usize| {
                let last = last.get_mut(class as usize).and_then(Option::as_mut);
                let is_new = last.is_some_and(|last| std::mem::replace(last, sample_number) != sample_number);
                if is_new && let Some(row) = rows.get(&(sample.base, class)) {
                    let at = u32::try_from(start + place).unwrap_or(u32::MAX);
                    items.push((*row, Item { part: number, sample: sample_number, at }));
                }
            };
            if !path.is_empty() {
                add(sample.class, 0);
            }
            if children {
                for (place, frame) in path.iter().enumerate() {
                    self.classes.get(*frame as usize).into_iter().for_each(|class| add(*class, place));
                }
            }
            if items.len() > before {
                part.frames.extend(&path);
                part.frames.push(END);
            }
        }
        (part, items)
    }
}
