//! The pass: every worker takes the next piece until there is none; then what they counted is merged.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::task::{Named, Scan, Strays};
use super::worker::Worker;
use crate::aggregate::{Count, Histogram, Key, Layout};
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
    /// Which threads were sampled under which names.
    pub named: Named,
}

impl Scan<'_> {
    /// Counts the samples in these pieces on all cores.
    ///
    /// When all are counted, `prepare` is told which modules were hit, and gives what turns a key into a row: a
    /// key with a symbol in the place of the address. That too is done by all cores, each with the keys that it has
    /// counted. Rows are far fewer than keys, so little is left to merge.
    pub fn run<F: Fn(Key) -> Key + Sync>(&self, pieces: &[Piece<'_>], prepare: impl FnOnce(&[bool]) -> F) -> Scanned {
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

    fn run_with<const N: usize, F: Fn(Key) -> Key + Sync>(
        &self,
        pieces: &[Piece<'_>],
        prepare: impl FnOnce(&[bool]) -> F,
    ) -> Scanned {
        let next = AtomicUsize::new(0);
        let workers = rayon::broadcast(|_| {
            let mut worker = Worker::<N>::new(self);
            while let Some((index, piece)) = take(&next, pieces) {
                worker.piece(index, piece);
            }
            worker
        });
        let mut rest = Worker::<N>::new(self);
        let (mut strays, mut hits) = (Strays::default(), vec![false; self.module_count]);
        let mut histograms = Vec::new();
        let mut named = Named::default();
        for worker in workers {
            named.extend(worker.named);
            strays.add(worker.strays);
            hits.iter_mut().zip(&worker.hits).for_each(|(all, one)| *all |= one);
            rest.reads.pieces.extend(worker.reads.pieces);
            histograms.push(worker.histogram);
        }
        rest.reads.settle(&mut rest.histogram);
        histograms.push(rest.histogram);
        let row = prepare(&hits);
        let part = |histogram: Histogram<N>| histogram.map(|key| self.layout.pack(&row(self.layout.unpack(&key))));
        let parts: Vec<Histogram<N>> = histograms.into_par_iter().map(part).collect();
        let all = parts.into_iter().reduce(Histogram::merge).unwrap_or_else(|| Histogram::new(0));
        let rows = all.rows.iter().map(|(key, count)| (self.layout.unpack(key), *count)).collect();
        Scanned { rows, totals: all.totals, strays, named }
    }
}

fn take<'p, 'a>(next: &AtomicUsize, pieces: &'p [Piece<'a>]) -> Option<(usize, &'p Piece<'a>)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, pieces.get(index)?))
}
