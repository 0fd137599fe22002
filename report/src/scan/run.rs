//! Runs the scan: workers count samples by addresses; then their keys get names and are merged.
//!
//! ```text
//!   Scan ─► count ─► Tally: keys, modules that were hit ─► named ─► Scanned: rows
//! ```

use rayon::prelude::*;

use super::task::{Dropped, Scan};
use super::worker::Worker;
use crate::callchain::{ChainRef, Frame, FrameFinder, Images, Stacks};
use crate::count::{
    Count, CounterTimes, Histogram, Layout, Partition, PieceReads, Rows, Settled, add_totals,
    merged, push, settle_reads,
};
use crate::input::split::Piece;
use crate::query::{Field, Key};
use crate::samples::{ChainReader, by_piece};
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

/// What the workers counted, by addresses.
pub(crate) struct Tally<'f> {
    scan: &'f Scan<'f>,
    /// Modules that were hit, by number.
    pub hits: Vec<bool>,
    parts: Vec<WorkerPart>,
    /// Counts of each worker's keys.
    counts: Vec<Vec<Partition<Count>>>,
    /// Counter readings of each worker.
    reads: Vec<Vec<PieceReads>>,
    totals: Vec<Count>,
    dropped: Dropped,
}

impl Scan<'_> {
    /// Counts the samples on all cores.
    pub(crate) fn count(&self) -> Tally<'_> {
        let pieces = &self.session.split.pieces;
        self.preload(pieces);
        let workers = by_piece(pieces, |number| {
            let mut worker = Worker::new(self);
            if number == 0 {
                worker.times_before_samples();
            }
            worker
        });
        let mut tally = Tally {
            scan: self,
            hits: vec![false; self.session.side_band.modules.len()],
            parts: Vec::new(),
            counts: Vec::new(),
            reads: Vec::new(),
            totals: Vec::new(),
            dropped: Dropped::default(),
        };
        for worker in workers {
            tally.add(worker);
        }
        tally
    }

    /// Loads the modules that a few samples of each piece hit, all at once.
    fn preload(&self, pieces: &[Piece<'_>]) {
        /// Enough of a piece to meet what takes most of the time, and of a small file to meet
        /// nearly all.
        const OF_PIECE: usize = 20;
        const OF_FILE: usize = 1 << 13;
        let Some(functions) = self.chains.functions else { return };
        if self.counted().has(Field::Frame) {
            functions.preload(|| {
                let mut probe = Worker::new(self);
                let samples = OF_PIECE.max(OF_FILE / pieces.len().max(1));
                for piece in pieces {
                    probe.probe(piece, samples);
                }
                probe.hits
            });
        }
    }
}

impl Tally<'_> {
    /// Adds what a worker counted.
    fn add(&mut self, worker: Worker<'_>) {
        let ChainReader { sources, finder, .. } = worker.chains.reader;
        let unwinder = self.scan.chains.unwinding.as_ref();
        let ends = unwinder.map(|unwinder| sources.ends.named(unwinder)).unwrap_or_default();
        let torn_chains = worker.chains.torn;
        self.dropped.add(Dropped { ends, torn_chains, ..worker.dropped });
        for (all, one) in self.hits.iter_mut().zip(&worker.hits) {
            *all |= *one > 0;
        }
        let FrameFinder { stacks, images, .. } = finder;
        for ModuleId(module) in images.modules() {
            if let Some(hit) = self.hits.get_mut(module as usize) {
                *hit = true;
            }
        }
        let (table, own) = worker.histogram.finish();
        add_totals(&mut self.totals, &own);
        self.counts.push(table);
        self.reads.push(worker.reads);
        self.parts.push(WorkerPart { images, stacks, numbers: Vec::new() });
    }

    /// Turns keys into rows: keys with symbols instead of addresses. Naming runs on all cores, too,
    /// before the merge: there are far fewer rows than keys, so little is left to merge.
    pub(crate) fn named(mut self, naming: &impl Naming) -> Scanned {
        let (layout, counted) = (&self.scan.layout, self.scan.counted());
        let has_chains = layout.has(Field::Chain);
        let mut stacks =
            if has_chains { joined(&mut self.parts, naming) } else { Stacks::default() };
        let keys = KeyNaming { layout, counted: &counted, naming };
        let mut rest = Histogram::new(layout.len(), self.scan.attrs().entries().len());
        let times = self.settle_reads(&keys, &mut rest);
        let (rest, own) = rest.finish();
        add_totals(&mut self.totals, &own);
        let mut tables = vec![rest];
        let all = self.counts.into_iter().zip(&self.parts);
        if naming.changes() || has_chains || counted.has(Field::Frame) {
            let all = all.flat_map(|(table, part)| table.into_iter().map(move |one| (one, part)));
            tables.extend(keys.named(all.collect()));
        } else {
            tables.extend(all.map(|(table, _)| table));
        }
        let rows = Rows::new(layout, merged(tables));
        if has_chains {
            let own = (0..rows.len()).into_par_iter().map(|row| Frame::of(&rows.key(row)));
            let new: Vec<Frame> = own.filter(|own| stacks.find(own).is_none()).collect();
            for frame in new {
                stacks.number(frame);
            }
        }
        Scanned { rows, totals: self.totals, dropped: self.dropped, times, stacks }
    }

    /// Adds the increments of the counters that samples read to `rest`, and returns the counters'
    /// times, by event.
    fn settle_reads(
        &mut self,
        keys: &KeyNaming<'_, impl Naming>,
        rest: &mut Histogram,
    ) -> Vec<CounterTimes> {
        let mut named = Vec::new();
        for (pieces, part) in std::mem::take(&mut self.reads).into_iter().zip(&self.parts) {
            let append = |words: &[u64], rows: &mut Vec<u64>| {
                let len = rows.len();
                rows.resize(len + keys.layout.len(), 0);
                keys.name(part, words, rows.get_mut(len..).unwrap_or_default());
            };
            named.extend(pieces.into_iter().map(|piece| piece.map(keys.counted.len(), append)));
        }
        let Settled { lower, times } = settle_reads(named, rest);
        self.dropped.lower_values = lower;
        times
    }
}

/// Turns counted keys into those of rows.
struct KeyNaming<'n, N> {
    layout: &'n Layout,
    /// Layout of the counted keys.
    counted: &'n Layout,
    naming: &'n N,
}

impl<N: Naming> KeyNaming<'_, N> {
    /// Writes the row's key for a worker's counted one.
    fn name(&self, part: &WorkerPart, words: &[u64], row: &mut [u64]) {
        let mut key = self.counted.unpack(words);
        part.complete(&mut key, self.counted);
        self.layout.pack(&self.naming.key(key), row);
    }

    /// Names the keys of tables on all cores.
    fn named(&self, all: Vec<(Partition<Count>, &WorkerPart)>) -> Vec<Vec<Partition<Count>>> {
        let width = self.layout.len();
        let most = all.len().div_ceil(rayon::current_num_threads()).max(1);
        let empty = || (Partition::table(width), vec![0; width]);
        let add = |(mut into, mut words): (Vec<Partition<Count>>, Vec<u64>),
                   (mut one, part): (Partition<Count>, &WorkerPart)| {
            one.settle();
            for (key, count) in one.iter() {
                self.name(part, key, &mut words);
                push(&mut into, &words, *count);
            }
            (into, words)
        };
        let named = all.into_par_iter().with_min_len(most).fold(empty, add);
        named.map(|(table, _)| table).collect()
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
