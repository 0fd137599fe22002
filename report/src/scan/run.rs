//! Runs the scan: workers count the pieces, then their results are named and merged.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::naming::Naming;
use super::task::{Dropped, Scan};
use super::worker::Worker;
use crate::callchain::{ChainRef, Frame, Stacks};
use crate::count::{Count, Field, Histogram, Key, Partition, Reads, Rows, add_totals, merged};
use crate::input::split::Piece;
use crate::terminal::progress;

/// Result of a scan.
#[derive(Debug)]
pub struct Scanned {
    /// Rows and their counts.
    pub rows: Rows,
    /// Totals of each event.
    pub totals: Vec<Count>,
    /// Samples that were not counted, or only in part, by reason.
    pub dropped: Dropped,
    /// Callchains, by the numbers in [`Field::Chain`].
    pub stacks: Stacks,
}

/// Result of one worker.
struct Part {
    table: Vec<Partition<Count>>,
    reads: Reads,
    stacks: Stacks,
}

impl Scan<'_> {
    /// Counts the samples in these pieces on all cores.
    ///
    /// Then `prepare` gets the modules that were hit and returns the naming that turns keys into rows: keys with
    /// symbols instead of addresses. Naming runs on all cores too, before the merge: there are far fewer rows than
    /// keys, so little is left to merge.
    pub fn run<F: Naming>(&self, pieces: &[Piece<'_>], prepare: impl FnOnce(&[bool]) -> F) -> Scanned {
        self.preload(pieces);
        let next = AtomicUsize::new(0);
        let workers = rayon::broadcast(|_| {
            let mut worker = Worker::new(self);
            while let Some((index, piece)) = next_piece(&next, pieces) {
                worker.piece(index, piece);
                progress::advance(piece.bytes.len());
            }
            worker
        });
        let (mut dropped, mut hits) = (Dropped::default(), vec![false; self.module_count]);
        let (mut parts, mut totals) = (Vec::new(), Vec::new());
        for mut worker in workers {
            worker.recent.settle(&mut worker.histogram);
            dropped.add(Dropped { ends: worker.chains.ends(), ..worker.dropped });
            hits.iter_mut().zip(&worker.hits).for_each(|(all, one)| *all |= one);
            let stacks = worker.chains.finder.stacks;
            for frame in &stacks.frames {
                let module = (frame.module as usize).checked_sub(1);
                module.and_then(|module| hits.get_mut(module)).into_iter().for_each(|hit| *hit = true);
            }
            let (table, own) = worker.histogram.finish();
            add_totals(&mut totals, &own);
            parts.push(Part { table, reads: worker.reads, stacks });
        }
        let naming = prepare(&hits);
        let (mut stacks, numbers) = joined(&mut parts, &naming);
        let width = self.layout.len();
        let row = |numbers: &[u32], words: &mut [u64]| {
            let mut key = self.layout.unpack(words);
            self.renumber(&mut key, numbers);
            self.layout.pack(&naming.key(key), words);
        };
        let mut reads = Reads { pieces: Vec::new() };
        for (part, numbers) in parts.iter_mut().zip(&numbers) {
            let pieces = std::mem::take(&mut part.reads.pieces);
            reads.pieces.extend(pieces.into_iter().map(|piece| piece.map(width, |words| row(numbers, words))));
        }
        let mut rest = Histogram::new(width, self.attrs.entries().len());
        reads.settle(&mut rest);
        let (rest, own) = rest.finish();
        add_totals(&mut totals, &own);
        let mut tables = vec![rest];
        if naming.changes() || self.layout.has(Field::Chain) {
            let counted = parts.into_iter().zip(&numbers);
            let counted = counted.flat_map(|(part, numbers)| part.table.into_iter().map(move |one| (one, numbers)));
            let counted: Vec<(Partition<Count>, &Vec<u32>)> = counted.collect();
            let named = |mut into: Histogram, (mut partition, numbers): (Partition<Count>, &Vec<u32>)| {
                partition.settle();
                let (mut words, counts) = partition.into_parts();
                for (words, count) in words.chunks_exact_mut(width).zip(counts) {
                    row(numbers, words);
                    into.add(words, count);
                }
                into
            };
            let most = counted.len().div_ceil(rayon::current_num_threads()).max(1);
            let named = counted.into_par_iter().with_min_len(most).fold(|| Histogram::new(width, 0), named);
            tables.par_extend(named.map(|histogram| histogram.finish().0));
        } else {
            tables.extend(parts.into_iter().map(|part| part.table));
        }
        let rows = Rows::new(self.layout, merged(width, tables));
        if self.layout.has(Field::Chain) {
            for (key, _) in rows.iter() {
                stacks.number(Frame::of(&key));
            }
        }
        Scanned { rows, totals, dropped, stacks }
    }

    /// Loads the modules that the first samples of every second piece hit, all at once: workers that meet them one by one
    /// would wait for each other.
    fn preload(&self, pieces: &[Piece<'_>]) {
        if let Some(functions) = self.chaining.early.filter(|_| self.names_keys || self.layout.has(Field::Chain)) {
            let mut probe = Worker::new(self);
            pieces.iter().step_by(2).for_each(|piece| probe.probe(piece));
            functions.preload(&probe.hits);
        }
    }

    /// Sets the number of a key's chain to that among the chains of all workers.
    #[inline]
    fn renumber(&self, key: &mut Key, numbers: &[u32]) {
        if self.layout.has(Field::Chain) {
            let word = Field::Chain.of_mut(key);
            let ChainRef { callers, own } = ChainRef::unpack(*word);
            let callers = numbers.get(callers as usize).copied().unwrap_or(0);
            *word = ChainRef { callers, own }.pack();
        }
    }
}

/// Replaces addresses by functions in the chains of all workers and joins the chains. The second result is the new
/// numbers of each worker's chains.
fn joined(parts: &mut [Part], naming: &impl Naming) -> (Stacks, Vec<Vec<u32>>) {
    let named = |part: &mut Part| {
        let mut stacks = Stacks::default();
        let numbers = stacks.join(&std::mem::take(&mut part.stacks), |frame, into| naming.frames(frame, into));
        (stacks, numbers)
    };
    let named: Vec<(Stacks, Vec<u32>)> = parts.par_iter_mut().map(named).collect();
    let mut named = named.into_iter();
    let (mut all, first) = named.next().unwrap_or_default();
    let mut numbers = vec![first];
    for (stacks, mut own) in named {
        let of = all.join(&stacks, |frame, into| into.push(frame));
        own.iter_mut().for_each(|chain| *chain = of.get(*chain as usize).copied().unwrap_or(0));
        numbers.push(own);
    }
    (all, numbers)
}

fn next_piece<'p, 'a>(next: &AtomicUsize, pieces: &'p [Piece<'a>]) -> Option<(usize, &'p Piece<'a>)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, pieces.get(index)?))
}
