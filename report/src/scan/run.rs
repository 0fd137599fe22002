//! The pass: every worker takes the next piece until there is none; then what they counted is merged.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::naming::Naming;
use super::task::{Scan, Strays};
use super::worker::Worker;
use crate::aggregate::{Count, Field, Histogram, Key, Layout, PieceReads, Reads};
use crate::callchain::{Chained, Frame, Interner, Stacks, place};
use crate::progress;
use crate::split::Piece;

/// The result.
#[derive(Debug)]
pub struct Scanned {
    /// Rows and what they gathered, in no order.
    pub rows: Vec<(Key, Count)>,
    /// The totals of each event.
    pub totals: Vec<Count>,
    /// What made no row.
    pub strays: Strays,
    /// The callchains that [`Field::Chain`] numbers.
    pub stacks: Stacks,
}

/// What a worker has counted.
struct Part<const N: usize> {
    histogram: Histogram<N>,
    reads: Reads<N>,
    chains: Interner,
}

impl Scan<'_> {
    /// Counts the samples in these pieces on all cores.
    ///
    /// When all are counted, `prepare` is told which modules were hit, and gives what turns a key into a row: a
    /// key with a symbol in the place of the address. That too is done by all cores, each with the keys that it has
    /// counted. Rows are far fewer than keys, so little is left to merge.
    pub fn run<F: Naming>(&self, pieces: &[Piece<'_>], prepare: impl FnOnce(&[bool]) -> F) -> Scanned {
        match self.layout.len() {
            1 => self.run_with::<1, F>(pieces, prepare),
            2 => self.run_with::<2, F>(pieces, prepare),
            3 => self.run_with::<3, F>(pieces, prepare),
            4 => self.run_with::<4, F>(pieces, prepare),
            5 => self.run_with::<5, F>(pieces, prepare),
            6 => self.run_with::<6, F>(pieces, prepare),
            7..=10 => self.run_with::<10, F>(pieces, prepare),
            _ => self.run_with::<{ Layout::MOST }, F>(pieces, prepare),
        }
    }

    fn run_with<const N: usize, F: Naming>(&self, pieces: &[Piece<'_>], prepare: impl FnOnce(&[bool]) -> F) -> Scanned {
        let next = AtomicUsize::new(0);
        let workers = rayon::broadcast(|_| {
            let mut worker = Worker::<N>::new(self);
            while let Some((index, piece)) = take(&next, pieces) {
                worker.piece(index, piece);
                progress::advance(piece.bytes.len());
            }
            worker
        });
        let (mut strays, mut hits) = (Strays::default(), vec![false; self.module_count]);
        let mut parts = Vec::new();
        for worker in workers {
            strays.add(Strays { ends: worker.chains.ends(), ..worker.strays });
            hits.iter_mut().zip(&worker.hits).for_each(|(all, one)| *all |= one);
            parts.push(Part { histogram: worker.histogram, reads: worker.reads, chains: worker.chains.interner });
        }
        let placed = self.place(&mut parts, &mut hits);
        let naming = prepare(&hits);
        let (mut stacks, numbers) = join(&placed, &naming);
        drop(placed);
        let mut reads = Reads { pieces: Vec::new() };
        for (part, numbers) in parts.iter_mut().zip(&numbers) {
            let pieces = std::mem::take(&mut part.reads.pieces);
            let renumbered = |piece: PieceReads<N>| piece.map(|key| self.renumbered(&key, numbers));
            reads.pieces.extend(pieces.into_iter().map(renumbered));
        }
        let mut rest = Histogram::new(self.attrs.entries().len());
        reads.settle(&mut rest);
        let row = |key: &[u64; N]| self.layout.pack(&naming.key(self.layout.unpack(key)));
        let part =
            |(part, numbers): (Part<N>, &Vec<u32>)| part.histogram.map(|key| row(&self.renumbered(&key, numbers)));
        let mut done: Vec<Histogram<N>> = parts.into_par_iter().zip(&numbers).map(part).collect();
        done.push(rest.map(|key| row(&key)));
        let all = done.into_iter().reduce(Histogram::merge).unwrap_or_else(|| Histogram::new(0));
        let rows: Vec<(Key, Count)> = all.rows.iter().map(|(key, count)| (self.layout.unpack(key), *count)).collect();
        if self.layout.has(Field::Chain) {
            for (key, _) in &rows {
                stacks.number(Frame::of(key));
            }
        }
        Scanned { rows, totals: all.totals, strays, stacks }
    }

    /// Finds the modules of all frames and remembers which were hit; the recorded chains are gone then.
    fn place<const N: usize>(&self, parts: &mut [Part<N>], hits: &mut [bool]) -> Vec<Stacks> {
        let place = |part: &mut Part<N>| {
            let mut hits = vec![false; self.module_count];
            let stacks = place(&std::mem::take(&mut part.chains), self.timeline, self.chaining.placed, &mut hits);
            (stacks, hits)
        };
        let placed: Vec<(Stacks, Vec<bool>)> = parts.par_iter_mut().map(place).collect();
        let with_hits = |(stacks, own): (Stacks, Vec<bool>)| {
            hits.iter_mut().zip(own).for_each(|(all, one)| *all |= one);
            stacks
        };
        placed.into_iter().map(with_hits).collect()
    }

    /// The key with the number that its chain has among all workers' chains.
    #[inline]
    fn renumbered<const N: usize>(&self, key: &[u64; N], numbers: &[u32]) -> [u64; N] {
        if !self.layout.has(Field::Chain) {
            return *key;
        }
        let mut key = self.layout.unpack(key);
        let word = Field::Chain.of_mut(&mut key);
        let Chained { callers, own } = Chained::unpack(*word);
        let index = (callers as usize).checked_sub(1);
        let callers = index.and_then(|index| numbers.get(index)).copied().unwrap_or(0);
        *word = Chained { callers, own }.pack();
        self.layout.pack(&key)
    }
}

/// Puts functions in the place of addresses in all workers' chains, and joins them; also the numbers that each worker's
/// chains have then.
fn join(placed: &[Stacks], naming: &impl Naming) -> (Stacks, Vec<Vec<u32>>) {
    let named: Vec<(Stacks, Vec<u32>)> =
        placed.par_iter().map(|stacks| stacks.map(|frame, into| naming.frames(frame, into))).collect();
    let (mut all, mut numbers) = (Stacks::default(), Vec::new());
    for (stacks, mut own) in named {
        let before = all.append(&stacks);
        own.iter_mut().for_each(|number| *number += before);
        numbers.push(own);
    }
    (all, numbers)
}

fn take<'p, 'a>(next: &AtomicUsize, pieces: &'p [Piece<'a>]) -> Option<(usize, &'p Piece<'a>)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, pieces.get(index)?))
}
