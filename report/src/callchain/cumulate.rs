//! Children: the metrics of each function including everything that it called.
//!
//! A sample counts once for each distinct row that the frames of its chain would have, even if a function calls itself.
//! Two frames have the same row if they look alike in the requested columns, so frames are first sorted into classes:
//!
//! ```text
//!   columns comm,dso:    frames  main (ls) · qsort (libc) · compare (ls)  ─► classes  ls · libc · ls  ─► 2 rows
//!   columns comm,symbol:                                                  ─► classes  0 · 1 · 2       ─► 3 rows
//! ```
//!
//! The other columns of a row (comm, CPU, …) come from the sample and are its base. A row is a pair of base and class.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::stacks::{ChainRef, Frame, Stacks};
use crate::count::metrics::Metrics;
use crate::count::{Count, End, Field, Key, Meta, NO_KEY, Sum as _};

/// Fields of a frame that the columns show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameColumns {
    /// The module.
    pub module: bool,
    /// The address or the function.
    pub address: bool,
    /// The recorded address.
    pub ip: bool,
    /// The offset in the function.
    pub offset: bool,
    /// The source line.
    pub line: bool,
    /// The size of the mapping.
    pub size: bool,
}

/// A group of equal samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The event.
    pub event: u16,
    /// Number of the base: the parts of its rows other than the frame.
    pub base: u32,
    /// Class of the sampled instruction.
    pub class: u32,
    /// Frame of the sampled instruction, if it is the innermost one of the chain.
    pub own: Option<u32>,
    /// Number of the chain with the other frames.
    pub callers: u32,
    /// Number of samples and their period.
    pub count: Count,
}

/// Samples whose frames are sorted into classes.
#[derive(Debug, Default)]
pub struct Classified {
    /// The samples.
    pub samples: Vec<Sample>,
    /// Class of each frame.
    pub classes: Vec<u32>,
    /// Key of each base, without a frame.
    bases: Vec<Key>,
    /// Frame of each class, with only the displayed fields.
    shown: Vec<Frame>,
}

/// A row: its base and its class.
pub type RowId = (u32, u32);

impl Sample {
    /// Returns the number of frames.
    #[must_use]
    pub fn len(&self, stacks: &Stacks) -> usize {
        stacks.chain(self.callers).len() + usize::from(self.own.is_some())
    }

    /// Returns the frame at `place`, counted from the innermost.
    #[must_use]
    #[inline]
    pub fn frame(&self, stacks: &Stacks, place: usize) -> Option<u32> {
        match self.own {
            Some(own) if place == 0 => Some(own),
            own => stacks.chain(self.callers).get(place - usize::from(own.is_some())).copied(),
        }
    }

    /// Calls `row` for each distinct row, other than the sample's own, that the sample counts for: with the row's class
    /// and its first place in the chain, searched from the outermost or the innermost frame. `seen` holds, for each
    /// class, the number of the last sample that had it; `number` is this sample's, from 1 on.
    #[inline]
    pub fn rows(
        &self,
        (stacks, classes): (&Stacks, &[u32]),
        from_outermost: bool,
        (seen, number): (&mut [u32], u32),
        mut row: impl FnMut(u32, usize),
    ) {
        if let Some(slot) = seen.get_mut(self.class as usize) {
            *slot = number;
        }
        let frames = self.len(stacks);
        for step in 0..frames {
            let place = if from_outermost { frames - 1 - step } else { step };
            let class = self.frame(stacks, place).and_then(|frame| classes.get(frame as usize));
            if let Some((class, slot)) = class.and_then(|class| Some((*class, seen.get_mut(*class as usize)?)))
                && *slot != number
            {
                *slot = number;
                row(class, place);
            }
        }
    }
}

impl Classified {
    /// Sorts the frames of `stacks` into classes, and turns the rows into samples of these.
    #[must_use]
    pub fn new(rows: impl Iterator<Item = (Key, Count)>, stacks: &Stacks, shown: FrameColumns) -> Self {
        let mut classified = Self::default();
        let mut known = FxHashMap::default();
        let classes = stacks.frames.iter().map(|frame| classified.class(shown.of(*frame), &mut known));
        let classes: Vec<u32> = classes.collect();
        let mut bases = FxHashMap::<Key, u32>::default();
        for (key, count) in rows {
            let chained = ChainRef::unpack(Field::Chain.of(&key));
            let own = stacks.find(&Frame::of(&key));
            let class = own.and_then(|own| classes.get(own as usize)).copied().unwrap_or(0);
            let key = FrameColumns::without_frame(key);
            let base = *bases.entry(key).or_insert_with(|| {
                classified.bases.push(key);
                u32::try_from(classified.bases.len()).unwrap_or(u32::MAX) - 1
            });
            let event = Meta::unpack(Field::Meta.of(&key)).event;
            let own = own.filter(|_| chained.own);
            classified.samples.push(Sample { event, base, class, own, callers: chained.callers, count });
        }
        classified.classes = classes;
        classified
    }

    fn class(&mut self, frame: Frame, known: &mut FxHashMap<Frame, u32>) -> u32 {
        *known.entry(frame).or_insert_with(|| {
            self.shown.push(frame);
            u32::try_from(self.shown.len()).unwrap_or(u32::MAX) - 1
        })
    }

    /// Returns the number of classes.
    #[must_use]
    pub fn class_count(&self) -> usize {
        self.shown.len()
    }

    /// Returns the metrics of each row, in no particular order. With `own_only`, callers are ignored.
    #[must_use]
    pub fn rows(&self, stacks: &Stacks, own_only: bool) -> Vec<(RowId, Metrics)> {
        let part = |samples: &[Sample]| {
            let mut rows = FxHashMap::<RowId, Metrics>::default();
            let mut seen = vec![0; self.class_count()];
            for (number, sample) in (1..).zip(samples) {
                let (count, frames) = (sample.count, sample.len(stacks));
                let own = rows.entry((sample.base, sample.class)).or_default();
                own.add(&Metrics { count, all: count, depth: frames, ..Metrics::default() });
                if own_only {
                    continue;
                }
                sample.rows((stacks, &self.classes), true, (&mut seen, number), |class, place| {
                    let row = rows.entry((sample.base, class)).or_default();
                    row.add(&Metrics { all: count, depth: place + 1, ..Metrics::default() });
                });
            }
            rows
        };
        let size = self.samples.len().div_ceil(rayon::current_num_threads()).max(1);
        let parts: Vec<FxHashMap<RowId, Metrics>> = self.samples.par_chunks(size).map(part).collect();
        let merge = |a: FxHashMap<RowId, Metrics>, b: FxHashMap<RowId, Metrics>| {
            let (mut into, from) = if a.len() < b.len() { (b, a) } else { (a, b) };
            from.into_iter().for_each(|(row, metrics)| into.entry(row).or_default().add(&metrics));
            into
        };
        parts.into_iter().reduce(merge).unwrap_or_default().into_iter().collect()
    }

    /// Returns the key of a row.
    #[must_use]
    pub fn key(&self, (base, class): RowId) -> Key {
        let mut key = self.bases.get(base as usize).copied().unwrap_or(NO_KEY);
        if let Some(frame) = self.shown.get(class as usize) {
            frame.put(&mut key);
        }
        key
    }
}

impl FrameColumns {
    /// Returns a frame with only the displayed fields.
    fn of(self, frame: Frame) -> Frame {
        Frame {
            module: if self.module { frame.module } else { 0 },
            end: if self.address { frame.end } else { End::default() },
            address: if self.address { frame.address } else { 0 },
            ip: if self.ip { frame.ip } else { 0 },
            offset: if self.offset { frame.offset } else { 0 },
            line: if self.line { frame.line } else { 0 },
            is_return: false,
            size: if self.size { frame.size } else { 0 },
            branch: 0,
        }
    }

    fn without_frame(mut key: Key) -> Key {
        Frame::default().put(&mut key);
        *Field::Chain.of_mut(&mut key) = 0;
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn recursive() -> (Stacks, Vec<(Key, Count)>) {
        let mut stacks = Stacks::default();
        let [main, f] = [frame(1, 10), frame(2, 20)].map(|frame| stacks.number(frame));
        let callers = stacks.push([f, f, main]);
        let rows = vec![
            (key(2, 20, ChainRef { callers, own: true }), Count { samples: 3, period: 30 }),
            (key(1, 10, ChainRef { callers: 0, own: true }), Count { samples: 1, period: 5 }),
        ];
        (stacks, rows)
    }

    fn metrics(shown: FrameColumns, own_only: bool) -> Vec<(u64, u64, u64, u64, usize)> {
        let (stacks, rows) = recursive();
        let classified = Classified::new(rows.into_iter(), &stacks, shown);
        let mut all: Vec<_> = classified
            .rows(&stacks, own_only)
            .into_iter()
            .map(|(id, metrics)| {
                let key = classified.key(id);
                let Metrics { count, all, depth, .. } = metrics;
                (Field::Module.of(&key), Field::Address.of(&key), count.samples, all.period, depth)
            })
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_function_that_calls_itself_counts_once() {
        let shown = FrameColumns { module: true, address: true, ..FrameColumns::default() };
        assert_eq!(metrics(shown, false), [(1, 10, 1, 35, 4), (2, 20, 3, 30, 4)]);
        assert_eq!(metrics(shown, true), [(1, 10, 1, 5, 1), (2, 20, 3, 30, 4)]);
    }

    #[test]
    fn hidden_columns_do_not_separate_rows() {
        assert_eq!(metrics(FrameColumns::default(), false), [(0, 0, 4, 35, 4)]);
    }
}
