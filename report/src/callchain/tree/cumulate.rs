//! Children: the metrics of each function including everything that it called.
//!
//! A sample counts once for each distinct row that the frames of its chain would have, even if a
//! function calls itself. Two frames have the same row if they look alike in the requested columns,
//! so frames are first sorted into classes:
//!
//! ```text
//!   columns comm,dso:    frames  main (ls) · qsort (libc) · compare (ls)  ─► classes  ls · libc · ls  ─► 2 rows
//!   columns comm,symbol:                                                  ─► classes  0 · 1 · 2       ─► 3 rows
//! ```
//!
//! Columns with one text for several frames (`reach`, functions and files of one name) join classes
//! ([`Classified::join`]).
//!
//! The other columns of a row (comm, CPU, …) come from the sample and are its base. A row is a pair
//! of base and class.
//!
//! The samples of a base are added up over the tree of chains, from the innermost frames to the
//! outermost: each node then has the sum of all samples below it, and counts for its class unless a
//! caller has the same class.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::chains::Chains;
use super::stacks::{ChainRef, Frame, Stacks, small};
use crate::count::metrics::Metrics;
use crate::count::{Count, Layout, Partition, Rows, Sum as _, by_part};
use crate::query::{End, Field, Key, NO_KEY};
use crate::timeline::grouped;

/// A group of equal samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Number of the base: the parts of its rows other than the frame.
    pub base: u32,
    /// Class of the sampled instruction.
    pub class: u32,
    /// Frame of the sampled instruction.
    pub frame: u32,
    /// `true` if that is the innermost frame of the chain.
    pub is_in_chain: bool,
    /// Number of the chain with the other frames.
    pub callers: u32,
    pub count: Count,
}

/// Samples whose frames are sorted into classes.
#[derive(Debug)]
pub(crate) struct Classified {
    /// The samples, in the order of their rows.
    pub samples: Vec<Sample>,
    /// Class of each frame.
    pub classes: Vec<u32>,
    layout: Layout,
    /// Keys of the bases: without frames.
    bases: Partition<()>,
    /// Frame of each class, with only the displayed fields.
    pub shown: Vec<Frame>,
}

/// A row: its base and its class.
pub(crate) type RowId = (u32, u32);

/// Number of parts of the rows, which are merged in parallel.
const PARTS: usize = 64;

impl Sample {
    /// Iterates over the frames, innermost first.
    pub fn frames(&self, chains: &Chains) -> impl Iterator<Item = u32> {
        self.is_in_chain.then_some(self.frame).into_iter().chain(chains.frames(self.callers))
    }
}

impl Classified {
    /// Sorts the frames of `stacks` into classes by the fields that the columns show, and turns the
    /// rows into samples of these.
    pub(crate) fn new(rows: &Rows, stacks: &Stacks, columns: &Layout) -> Self {
        let (mut shown, mut known) = (Vec::new(), FxHashMap::default());
        let mut classes: Vec<u32> = Vec::with_capacity(stacks.frames.len());
        for frame in stacks.of_frames(|frame| shown_of(frame, columns)) {
            classes.push(*known.entry(frame).or_insert_with(|| {
                shown.push(frame);
                small(shown.len() - 1)
            }));
        }
        let (layout, width) = (rows.layout(), rows.layout().len());
        let mut mask = vec![0; width];
        let mut no_frame = NO_KEY.map(|_| u64::MAX);
        Frame::default().put(&mut no_frame);
        *Field::Chain.of_mut(&mut no_frame) = 0;
        layout.pack(&no_frame, &mut mask);
        let part = |numbers: std::ops::Range<usize>| {
            let (mut bases, mut base, mut key) = (Partition::new(width), vec![0; width], NO_KEY);
            let sample = |number: usize| {
                let count = rows.count(number);
                rows.read_key(number, &mut key);
                let chained = ChainRef::unpack(Field::Chain.of(&key));
                let own = stacks.find(&Frame::of(&key));
                let class = own.and_then(|own| classes.get(own as usize)).copied().unwrap_or(0);
                layout.pack(&key, &mut base);
                base.iter_mut().zip(&mask).for_each(|(word, mask)| *word &= mask);
                let base = small(bases.add(&base, &()));
                Sample {
                    base,
                    class,
                    frame: own.unwrap_or(u32::MAX),
                    is_in_chain: chained.own && own.is_some(),
                    callers: chained.callers,
                    count,
                }
            };
            (numbers.map(sample).collect::<Vec<_>>(), bases)
        };
        let size = rows.len().div_ceil(rayon::current_num_threads()).max(1);
        let starts = (0..rows.len()).into_par_iter().step_by(size);
        let parts = starts.map(|start| part(start..(start + size).min(rows.len())));
        let parts: Vec<(Vec<Sample>, Partition<()>)> = parts.collect();
        // Each part numbers its bases from 0 on: these are their numbers among all.
        let mut bases = Partition::new(width);
        let mut of_parts: Vec<(Vec<Sample>, Vec<u32>)> = Vec::with_capacity(parts.len());
        for (samples, of_part) in parts {
            let numbers = of_part.iter().map(|(base, ())| small(bases.add(base, &()))).collect();
            of_parts.push((samples, numbers));
        }
        let samples = of_parts
            .into_par_iter()
            .flat_map_iter(|(samples, numbers)| {
                samples.into_iter().map(move |sample| Sample {
                    base: numbers.get(sample.base as usize).copied().unwrap_or(0),
                    ..sample
                })
            })
            .collect();
        Self { samples, classes, layout: layout.clone(), bases, shown }
    }

    /// Joins classes: each becomes the class in `same` at its number.
    pub(crate) fn join(&mut self, same: &[u32]) {
        let of_samples = self.samples.iter_mut().map(|sample| &mut sample.class);
        for class in self.classes.iter_mut().chain(of_samples) {
            *class = same.get(*class as usize).copied().unwrap_or(*class);
        }
    }

    pub(crate) fn base_count(&self) -> usize {
        self.bases.len()
    }

    /// Returns the metrics of each row, in no particular order. With `own_only`, callers are
    /// ignored.
    pub(crate) fn rows(&self, stacks: &Stacks, own_only: bool) -> Vec<(RowId, Metrics)> {
        let paths = stacks.chains.fold_callers(Path::default(), |node, callers| {
            let class = self.class_of(node.frame);
            let repeats =
                !own_only && callers.may_have(class) && self.has_class(stacks, node.callers, class);
            Path { classes: callers.classes | Path::bit(class), depth: callers.depth + 1, repeats }
        });
        let bases = self.samples.iter().map(|sample| sample.base as usize);
        let (_, by_base) = grouped(self.bases.len(), bases.zip(0..));
        let by_base: Vec<&Sample> =
            by_base.iter().filter_map(|sample| self.samples.get(*sample as usize)).collect();
        let most = self.samples.len().div_ceil(2 * rayon::current_num_threads()).max(1);
        let units: Vec<&[&Sample]> = by_base
            .chunk_by(|a, b| a.base == b.base)
            .flat_map(|of_base| of_base.chunks(most))
            .collect();
        let next = AtomicUsize::new(0);
        let parts = rayon::broadcast(|_| {
            let sums =
                if own_only { Vec::new() } else { vec![Below::default(); stacks.chains.len() + 1] };
            let mut adding = Adding {
                classified: self,
                stacks,
                paths: &paths,
                unit: 0,
                sums,
                chains: Vec::new(),
                rows: vec![FxHashMap::default(); PARTS],
            };
            while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
                adding.unit(unit, own_only);
            }
            adding.rows
        });
        let parts = by_part(parts).into_par_iter();
        parts.flat_map_iter(|part| part.into_iter().reduce(merged).unwrap_or_default()).collect()
    }

    fn class_of(&self, frame: u32) -> u32 {
        self.classes.get(frame as usize).copied().unwrap_or(0)
    }

    /// Returns whether a frame of the chain has this class.
    fn has_class(&self, stacks: &Stacks, chain: u32, class: u32) -> bool {
        stacks.chains.frames(chain).any(|frame| self.class_of(frame) == class)
    }

    /// Returns the key of a row.
    pub(crate) fn key(&self, row: RowId) -> Key {
        let (base, class) = row;
        let mut key = self.layout.unpack(self.bases.key(base as usize));
        if let Some(frame) = self.shown.get(class as usize) {
            frame.put(&mut key);
        }
        key
    }
}

/// Properties of a chain.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    /// A bit for each class, which several classes share.
    classes: u64,
    /// Number of frames.
    depth: u32,
    /// `true` if a caller of the innermost frame has the same class.
    repeats: bool,
}

impl Path {
    fn bit(class: u32) -> u64 {
        1 << (class % u64::BITS)
    }

    /// Returns `false` only if no frame has this class.
    fn may_have(&self, class: u32) -> bool {
        self.classes & Self::bit(class) != 0
    }
}

/// Samples of one unit of work whose chains pass through a node.
#[derive(Clone, Copy, Debug, Default)]
struct Below {
    count: Count,
    /// Number of frames of the longest of their chains.
    longest: u32,
    /// The unit; in another one there are none.
    unit: u32,
}

/// A worker that adds up samples over the tree of chains.
struct Adding<'c> {
    classified: &'c Classified,
    stacks: &'c Stacks,
    paths: &'c [Path],
    unit: u32,
    /// Samples of the current unit, by chain.
    sums: Vec<Below>,
    /// Chains of the current unit: callers before what they call.
    chains: Vec<u32>,
    /// Rows, in parts by their class.
    rows: Vec<FxHashMap<RowId, Metrics>>,
}

impl Adding<'_> {
    /// Adds samples of one base.
    fn unit(&mut self, unit: &[&Sample], own_only: bool) {
        self.unit += 1;
        self.chains.clear();
        for sample in unit {
            let Some(path) = self.paths.get(sample.callers as usize) else { continue };
            let (count, frames) = (sample.count, path.depth + u32::from(sample.is_in_chain));
            // A function that was called by itself counts where it was called first.
            let is_inner = !own_only
                && path.may_have(sample.class)
                && self.classified.has_class(self.stacks, sample.callers, sample.class);
            let all = if is_inner { Count::default() } else { count };
            let own = Metrics { count, all, depth: frames as usize, parts: None };
            self.add_row((sample.base, sample.class), &own);
            if own_only {
                continue;
            }
            let first = self.chains.len();
            let mut chain = sample.callers;
            while let Some(node) = self.stacks.chains.node(chain)
                && let Some(sum) = self.sums.get_mut(chain as usize)
                && sum.unit != self.unit
            {
                *sum = Below { unit: self.unit, ..Below::default() };
                self.chains.push(chain);
                chain = node.callers;
            }
            if let Some(new) = self.chains.get_mut(first..) {
                new.reverse();
            }
            self.add(sample.callers, Below { count, longest: frames, unit: self.unit });
        }
        let Some(base) = unit.first().map(|sample| sample.base) else { return };
        for chain in std::mem::take(&mut self.chains).into_iter().rev() {
            let (node, path) = (self.stacks.chains.node(chain), self.paths.get(chain as usize));
            let (Some((node, path)), Some(below)) =
                (node.zip(path), self.sums.get(chain as usize).copied())
            else {
                continue;
            };
            self.add(node.callers, below);
            if !path.repeats {
                let depth = (below.longest - path.depth + 1) as usize;
                let callers =
                    Metrics { count: Count::default(), all: below.count, depth, parts: None };
                self.add_row((base, self.classified.class_of(node.frame)), &callers);
            }
        }
    }

    fn add_row(&mut self, row: RowId, metrics: &Metrics) {
        if let Some(rows) = self.rows.get_mut(row.1 as usize % PARTS) {
            rows.entry(row).or_default().add(metrics);
        }
    }

    fn add(&mut self, chain: u32, below: Below) {
        if let Some(sum) = self.sums.get_mut(chain as usize) {
            sum.count.add(below.count);
            sum.longest = sum.longest.max(below.longest);
        }
    }
}

/// Returns the rows of two parts of the samples, added up.
fn merged(a: FxHashMap<RowId, Metrics>, b: FxHashMap<RowId, Metrics>) -> FxHashMap<RowId, Metrics> {
    let (mut into, from) = if a.len() < b.len() { (b, a) } else { (a, b) };
    for (row, metrics) in from {
        into.entry(row).or_default().add(&metrics);
    }
    into
}

/// Returns a frame with only the displayed fields.
fn shown_of(frame: &Frame, columns: &Layout) -> Frame {
    let mut key = NO_KEY;
    frame.put(&mut key);
    Field::ALL
        .iter()
        .filter(|field| !columns.has(**field))
        .for_each(|field| *field.of_mut(&mut key) = 0);
    let end = if columns.has(Field::Address) { frame.end } else { End::default() };
    Frame { end, ..Frame::of(&key) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args;

    fn frame(module: u32, address: u64) -> Frame {
        Frame { module, address, ..Frame::default() }
    }

    fn key(module: u64, address: u64, chained: ChainRef) -> Key {
        let mut key = NO_KEY;
        *Field::Module.of_mut(&mut key) = module;
        *Field::Address.of_mut(&mut key) = address;
        *Field::Chain.of_mut(&mut key) = chained.pack();
        key
    }

    /// `main` calls `f`, which calls itself; samples are in `f`, and one is in `main`.
    fn recursive() -> (Stacks, Rows) {
        let mut stacks = Stacks::default();
        let [main, f] = [frame(1, 10), frame(2, 20)].map(|frame| stacks.number(frame));
        let callers =
            [main, f, f].into_iter().fold(0, |callers, frame| stacks.chains.add(callers, frame));
        let mut query = args::parse(["rep"].map(Into::into)).unwrap();
        query.chains.counted = true;
        let layout = Layout::of(&query);
        let mut partition = Partition::new(layout.len());
        for (key, count) in [
            (key(2, 20, ChainRef { callers, own: true }), Count { samples: 3, period: 30 }),
            (key(1, 10, ChainRef { callers: 0, own: true }), Count { samples: 1, period: 5 }),
        ] {
            let mut packed = vec![0; layout.len()];
            layout.pack(&key, &mut packed);
            partition.add(&packed, &count);
        }
        (stacks, Rows::new(&layout, vec![partition]))
    }

    /// Classifies the frames of [`recursive`] by what these columns show.
    fn classified(columns: &str) -> (Stacks, Classified) {
        let (stacks, rows) = recursive();
        let query = args::parse(["rep", "-s", columns].map(Into::into)).unwrap();
        let classified = Classified::new(&rows, &stacks, &Layout::of(&query));
        (stacks, classified)
    }

    fn metrics(columns: &str, own_only: bool) -> Vec<(u64, u64, u64, u64, usize)> {
        let (stacks, classified) = classified(columns);
        let mut all: Vec<_> = classified
            .rows(&stacks, own_only)
            .into_iter()
            .map(|(id, metrics)| {
                let key = classified.key(id);
                let (count, all) = (metrics.count, metrics.all);
                (
                    Field::Module.of(&key),
                    Field::Address.of(&key),
                    count.samples,
                    all.period,
                    metrics.depth,
                )
            })
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_function_that_calls_itself_counts_once() {
        assert_eq!(metrics("sym", false), [(1, 10, 1, 35, 4), (2, 20, 3, 30, 4)]);
        assert_eq!(metrics("sym", true), [(1, 10, 1, 5, 1), (2, 20, 3, 30, 4)]);
    }

    #[test]
    fn joined_classes_count_once() {
        let (stacks, mut classified) = classified("sym");
        classified.join(&[0, 0]);
        let sum = classified.rows(&stacks, false).into_iter().fold(
            (0, 0, 0),
            |(rows, own, all), (_, metrics)| {
                (rows + 1, own + metrics.count.period, all + metrics.all.period)
            },
        );
        assert_eq!(sum, (1, 35, 35));
    }

    #[test]
    fn hidden_columns_do_not_separate_rows() {
        assert_eq!(metrics("comm", false), [(0, 0, 4, 35, 4)]);
    }
}
