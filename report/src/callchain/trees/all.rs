//! Callchains of one file, or of several merged: what trees are built from.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::callchain::chains::Chains;
use crate::callchain::stacks::small;
use crate::callchain::{RowId, Sample};
use crate::count::{Partition, merge_equal};

pub(crate) type RowIndex = usize;

/// Callchains of one file, or of several merged.
#[derive(Debug, Default)]
pub struct CallTrees {
    /// Distinct chains.
    pub chains: Chains,
    /// Samples that refer to the chains.
    pub samples: Vec<Sample>,
    /// Class of each frame.
    pub classes: Vec<u32>,
    /// Label of each frame: a [`frame_name`](super::frame_name).
    pub names: Vec<u32>,
    /// Branch information of each frame ([`Frame::branch`](crate::callchain::Frame::branch)); empty unless it is shown.
    pub branches: Vec<u64>,
    /// Index of each row in the profile.
    pub rows: Vec<(RowId, RowIndex)>,
    /// What each word of a row shows.
    pub shows: Vec<Shows>,
    /// What the callchains have in common with others; `None` if they are of one file.
    pub merged: Option<Merged>,
}

/// What a word of a row depends on: the frame, the base (the rest of the sample), or both.
#[derive(Clone, Copy, Debug)]
pub struct Shows {
    pub frame: bool,
    pub base: bool,
}

/// What several files can have in common; its indexes are the numbers in the merged callchains.
#[derive(Debug, Default)]
pub struct Merged {
    /// Classes: the words that show the frame, and the number of earlier classes of the same file with these words.
    classes: Partition<()>,
    /// Bases: the words that show the base.
    bases: Partition<()>,
    /// Frames: class, name and branch information.
    frames: IndexSet<(u32, u32, u64), FxBuildHasher>,
    rows: FxHashSet<RowId>,
    /// Number of samples when equal ones were merged last.
    samples: usize,
}

/// Number of samples from which on equal ones are merged before all files are read.
const MANY: usize = 1 << 18;

/// Number of a class that no row has.
const NO_CLASS: u32 = u32::MAX;

impl CallTrees {
    /// Adds the callchains of another profile, or the first ones. `row` gives the index that one of its rows has in this
    /// profile, and the words of the row.
    ///
    /// Bases and classes of several files are one if their words are equal. Two classes of one file stay two, because a
    /// chain with both counts for both.
    pub fn add<'r>(&mut self, other: Self, row: impl Fn(RowIndex) -> (RowIndex, &'r [u64])) {
        if other.samples.is_empty() {
            return;
        }
        let merged = self.merged.get_or_insert_default();
        let (mut of_class, mut of_base) = (Vec::new(), Vec::new());
        for ((base, class), row) in &other.rows {
            for (rows, number) in [(&mut of_base, *base as usize), (&mut of_class, *class as usize)] {
                rows.resize(rows.len().max(number + 1), None);
                rows.get_mut(number).into_iter().for_each(|of| *of = Some(*row));
            }
        }
        let mut words = Vec::new();
        let mut base = |index: Option<RowIndex>| {
            let Some(index) = index else { return 0 };
            put_words(&mut words, row(index).1, &other.shows, |shows| shows.base);
            small(merged.bases.add(&words, &()))
        };
        let bases: Vec<u32> = of_base.into_iter().map(&mut base).collect();
        let mut is_taken = vec![false; merged.classes.len()];
        let mut class = |index: Option<RowIndex>| {
            let Some(index) = index else { return NO_CLASS };
            put_words(&mut words, row(index).1, &other.shows, |shows| shows.frame);
            words.push(0);
            loop {
                let class = small(merged.classes.add(&words, &()));
                is_taken.resize(merged.classes.len(), false);
                match is_taken.get_mut(class as usize) {
                    Some(true) => words.last_mut().into_iter().for_each(|before| *before += 1),
                    is_taken => {
                        is_taken.into_iter().for_each(|is_taken| *is_taken = true);
                        return class;
                    }
                }
            }
        };
        let classes: Vec<u32> = of_class.into_iter().map(&mut class).collect();
        let class = |class: u32| classes.get(class as usize).copied().unwrap_or(NO_CLASS);
        let base = |base: u32| bases.get(base as usize).copied().unwrap_or(0);
        let frame = |(frame, (of, name)): (usize, (&u32, &u32))| {
            let branch = other.branches.get(frame).copied();
            let (number, is_new) = merged.frames.insert_full((class(*of), *name, branch.unwrap_or(0)));
            if is_new {
                self.classes.push(class(*of));
                self.names.push(*name);
                self.branches.extend(branch);
            }
            small(number)
        };
        let frames: Vec<u32> = other.classes.iter().zip(&other.names).enumerate().map(frame).collect();
        let frame = |frame: u32| frames.get(frame as usize).copied().unwrap_or(0);
        let chains = other.chains.fold_callers(0, |node, callers| self.chains.add(callers, frame(node.frame)));
        self.samples.extend(other.samples.iter().map(|sample| Sample {
            base: base(sample.base),
            class: class(sample.class),
            own: sample.own.map(frame),
            callers: chains.get(sample.callers as usize).copied().unwrap_or(0),
            count: sample.count,
        }));
        for ((of, shown), index) in other.rows {
            let id = (base(of), class(shown));
            if merged.rows.insert(id) {
                self.rows.push((id, row(index).0));
            }
        }
        self.shows = other.shows;
        if self.samples.len() >= MANY.max(2 * merged.samples) {
            self.merge_equal();
        }
    }

    /// Sorts the samples and merges equal ones.
    fn merge_equal(&mut self) {
        let key = |sample: &Sample| (sample.base, sample.class, sample.own, sample.callers);
        merge_equal(&mut self.samples, key, |sample, next| sample.count.add(next.count));
        self.merged.iter_mut().for_each(|merged| merged.samples = self.samples.len());
    }
}

/// Replaces `words` by those of a row that show something.
fn put_words(words: &mut Vec<u64>, row: &[u64], shows: &[Shows], is_shown: fn(&Shows) -> bool) {
    words.clear();
    words.extend(row.iter().zip(shows).map(|(word, shows)| if is_shown(shows) { *word } else { 0 }));
}
