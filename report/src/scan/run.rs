//! Runs the scan: workers count the samples of pieces, then their results are named and merged.

use rayon::prelude::*;

use super::task::{Dropped, Scan};
use super::worker::Worker;
use crate::callchain::{ChainRef, Frame, FrameFinder, Images, Stacks};
use crate::count::{
    Count, CounterTimes, Histogram, Layout, Partition, Rows, Settled, add_totals, merged, push,
    settle_reads,
};
use crate::input::split::Piece;
use crate::query::{Field, Key};
use crate::samples::by_piece;
use crate::timeline::ModuleId;

/// Result of a scan.
#[derive(Debug)]
pub(crate) struct Scanned {
    pub rows: Rows,
    pub totals: Vec<Count>,
    pub dropped: Dropped,
    /// Times of the counters that samples read, by event.
    pub times: Vec<CounterTimes>,
    /// Callchains, by the numbers in `Field::Chain`.
    pub stacks: Stacks,
}

/// Replaces addresses by functions, after the scan.
pub(crate) trait Naming: Sync {
    /// Returns whether [`Naming::key`] can change keys.
    fn changes(&self) -> bool;
    /// Replaces the addresses in a key.
    fn key(&self, key: Key) -> Key;
    /// Appends the frame with its function to `into`, after the functions that are inlined there.
    fn frames(&self, frame: Frame, into: &mut Vec<Frame>);
}

/// Meaning of the numbers in one worker's keys.
struct WorkerPart {
    images: Images,
    /// Its frames, by the numbers in [`Field::Frame`], and its chains, until they are joined.
    stacks: Stacks,
    /// Numbers of its chains among those of all workers.
    numbers: Vec<u32>,
}

impl Scan<'_> {
    /// Counts the samples in these pieces on all cores.
    ///
    /// Then `prepare` gets the modules that were hit and returns the naming that turns keys into
    /// rows: keys with symbols instead of addresses. It is returned, too. Naming runs on all cores
    /// too, before the merge: there are far fewer rows than keys, so little is left to merge.
    pub(crate) fn run<F: Naming>(
        &self,
        pieces: &[Piece<'_>],
        prepare: impl FnOnce(&[bool]) -> F,
    ) -> (Scanned, F) {
        self.preload(pieces);
        let workers = by_piece(pieces, |number| {
            let mut worker = Worker::new(self);
            if number == 0 {
                worker.times_before_samples();
            }
            worker
        });
        let (mut dropped, mut hits) = (Dropped::default(), vec![false; self.module_count]);
        let (mut parts, mut counts, mut reads, mut totals) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for worker in workers {
            let (ends, torn_chains) = (&worker.chains.sources.ends, worker.chains.torn);
            let ends = self.unwinding.map(|unwinder| ends.named(unwinder)).unwrap_or_default();
            dropped.add(Dropped { ends, torn_chains, ..worker.dropped });
            for (all, one) in hits.iter_mut().zip(&worker.hits) {
                *all |= *one > 0;
            }
            let FrameFinder { stacks, images, .. } = worker.chains.finder;
            for ModuleId(module) in images.modules() {
                if let Some(hit) = hits.get_mut(module as usize) {
                    *hit = true;
                }
            }
            let (table, own) = worker.histogram.finish();
            add_totals(&mut totals, &own);
            counts.push(table);
            reads.push(worker.reads);
            parts.push(WorkerPart { images, stacks, numbers: Vec::new() });
        }
        let naming = prepare(&hits);
        let has_chains = self.layout.has(Field::Chain);
        let mut stacks = if has_chains { joined(&mut parts, &naming) } else { Stacks::default() };
        let (counted, width) = (self.counted(), self.layout.len());
        let row = |part: &WorkerPart, words: &[u64], row: &mut [u64]| {
            let mut key = counted.unpack(words);
            part.complete(&mut key, &counted);
            self.layout.pack(&naming.key(key), row);
        };
        let mut rest = Histogram::new(width, self.attrs.entries().len());
        let mut named_reads = Vec::new();
        for (pieces, part) in reads.into_iter().zip(&parts) {
            let append = |words: &[u64], rows: &mut Vec<u64>| {
                let len = rows.len();
                rows.resize(len + width, 0);
                row(part, words, rows.get_mut(len..).unwrap_or_default());
            };
            named_reads.extend(pieces.into_iter().map(|piece| piece.map(counted.len(), append)));
        }
        let Settled { lower, times } = settle_reads(named_reads, &mut rest);
        dropped.lower_values = lower;
        let (rest, own) = rest.finish();
        add_totals(&mut totals, &own);
        let mut tables = vec![rest];
        if naming.changes() || has_chains || counted.has(Field::Frame) {
            let all = counts.into_iter().zip(&parts);
            let all = all.flat_map(|(table, part)| table.into_iter().map(move |one| (one, part)));
            let all: Vec<(Partition<Count>, &WorkerPart)> = all.collect();
            type Named = (Vec<Partition<Count>>, Vec<u64>);
            let named_rows =
                |(mut into, mut words): Named, (mut one, part): (Partition<Count>, &WorkerPart)| {
                    one.settle();
                    for (key, count) in one.iter() {
                        row(part, key, &mut words);
                        push(&mut into, &words, *count);
                    }
                    (into, words)
                };
            let most = all.len().div_ceil(rayon::current_num_threads()).max(1);
            let named = all.into_par_iter().with_min_len(most);
            tables.par_extend(
                named
                    .fold(|| (Partition::table(width), vec![0; width]), named_rows)
                    .map(|(table, _)| table),
            );
        } else {
            tables.extend(counts);
        }
        let rows = Rows::new(self.layout, merged(tables));
        if has_chains {
            let own = (0..rows.len()).into_par_iter().map(|row| Frame::of(&rows.key(row)));
            let new: Vec<Frame> = own.filter(|own| stacks.find(own).is_none()).collect();
            for frame in new {
                stacks.number(frame);
            }
        }
        (Scanned { rows, totals, dropped, times, stacks }, naming)
    }

    /// Loads the modules that a few samples of each piece hit, all at once.
    fn preload(&self, pieces: &[Piece<'_>]) {
        /// Enough of a piece to meet what takes most of the time, and of a small file to meet
        /// nearly all.
        const OF_PIECE: usize = 20;
        const OF_FILE: usize = 1 << 13;
        let Some(functions) = self.early else { return };
        if self.counted().has(Field::Frame) {
            functions.preload(|| {
                let mut probe = Worker::new(self);
                let samples = OF_PIECE.max(OF_FILE / pieces.len().max(1));
                pieces.iter().for_each(|piece| probe.probe(piece, samples));
                probe.hits
            });
        }
    }
}

impl WorkerPart {
    /// Sets the words of a counted key that its frame stands for, and the number of its chain among
    /// those of all workers.
    #[inline]
    fn complete(&self, key: &mut Key, counted: &Layout) {
        if counted.has(Field::Frame) {
            let frame = self.images.frame(Field::Frame.of(key), &self.stacks);
            if let Some(frame) = frame {
                frame.put(key);
            }
        }
        if counted.has(Field::Chain) {
            let word = Field::Chain.of_mut(key);
            let ChainRef { callers, own } = ChainRef::unpack(*word);
            let callers = self.numbers.get(callers as usize).copied().unwrap_or(0);
            *word = ChainRef { callers, own }.pack();
        }
    }
}

/// Replaces addresses by functions in the chains of all workers, joins the chains, and sets the new
/// numbers of each worker's chains.
fn joined(parts: &mut [WorkerPart], naming: &impl Naming) -> Stacks {
    let named = parts.par_iter_mut().map(|part| {
        let mut stacks = Stacks::default();
        let own = std::mem::take(&mut part.stacks);
        part.numbers = stacks.join(&own, |frame, into| naming.frames(frame, into));
        part.stacks.frames = own.frames;
        stacks
    });
    let mut named = named.collect::<Vec<Stacks>>().into_iter();
    let mut all = named.next().unwrap_or_default();
    for (stacks, part) in named.zip(parts.iter_mut().skip(1)) {
        let of = all.join(&stacks, |frame, into| into.push(frame));
        for chain in &mut part.numbers {
            *chain = of.get(*chain as usize).copied().unwrap_or(0);
        }
    }
    all
}
