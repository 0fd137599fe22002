//! Draining: copies the records of all rings, round by round, into the queue from which the file is
//! written.
//!
//! Several rings are copied at once, and then released: nothing here waits for a disk as long as
//! the queue has room. Each record's header is read once, for the [`Tally`]; twice if a [`filter`]
//! leaves records out.
//!
//! A FINISHED_ROUND record follows each round that had records. A record that the kernel writes
//! during round n is read in round n or n+1, so no record of round n+2 is older than one of round
//! n: readers may sort and emit everything that is older than the newest record of the previous
//! round.

mod copies;
pub(crate) mod filter;
pub(crate) mod members;
mod strangers;
pub(crate) mod threads;
pub(crate) mod wait;
pub(crate) mod wakes;

use std::borrow::{Borrow, BorrowMut};
use std::io::IoSlice;
use std::mem;
use std::ops::Range;
use std::os::fd::AsFd as _;

use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::read::Frames;
use recrep_format::record::{Body, Record};
use rustix::io::Errno;
use rustix::thread::CpuSet;

use crate::kernel::Kernel;
use crate::kernel::counters::Counters;
use crate::kernel::ring::{Mark, Overrun, Pending, Ring};
use crate::messages::error::{Error, Result};
use crate::output::Output;
use crate::output::tally::{Counts, Tally};
pub(crate) use copies::StackCopies;
use filter::Filter;
use strangers::Strangers;
use wakes::DroppedWakes;

/// Room is given back after about this many bytes, so that with many CPUs the first ring does not
/// wait for the last.
const BATCH_BYTES: usize = 1 << 20;

/// Drains rings into a file.
#[derive(Debug)]
pub struct Drain {
    /// Tally of the drained records; its counts go with each batch to the file.
    pub tally: Tally,
    finished_round: Vec<u8>,
    /// Minimum bytes in a ring to drain it (`--mmap-flush`).
    least: usize,
    /// CPUs on which each ring is drained (`--affinity`); empty for any.
    places: Vec<CpuSet>,
    at: Option<CpuSet>,
    /// Filter of the records that go into the file; `None`: all do.
    filter: Option<Filter>,
    /// Copies of stacks that are trimmed; `None` if there are none.
    copies: Option<StackCopies>,
    /// A record that wraps, in one piece.
    scratch: Vec<u8>,
}

impl Drain {
    pub fn new(tally: Tally) -> Self {
        Self {
            tally,
            finished_round: marker(Body::FinishedRound),
            least: 1,
            places: Vec::new(),
            at: None,
            filter: None,
            copies: None,
            scratch: Vec::new(),
        }
    }

    /// Drops records that the filter does not keep.
    pub fn with(self, filter: Option<Filter>) -> Self {
        Self { filter, ..self }
    }

    /// Leaves out what copies of stacks do not take of the room that was reserved for them.
    pub(crate) fn trimming(self, copies: Option<StackCopies>) -> Self {
        Self { copies, ..self }
    }

    /// Skips rings with fewer bytes than this.
    pub fn at_least(self, least: usize) -> Self {
        Self { least, ..self }
    }

    /// Moves the thread to the CPUs of each ring to drain it.
    pub fn at(self, places: Vec<CpuSet>) -> Self {
        Self { places, ..self }
    }

    /// Returns a drain with the same settings and its own counts, without affinity. `alone`: no
    /// other one drains meanwhile, so the filter is lent to it.
    pub(crate) fn twin(&mut self, alone: bool) -> Self {
        let filter = self.filter.take_if(|_| alone);
        let copies = self.copies.clone();
        Self { least: self.least, filter, copies, ..Self::new(self.tally.renewed()) }
    }

    /// Begins a file: it has no name of a waker yet.
    pub(crate) fn begin_file(&mut self) {
        if let Some(strangers) = self.filter.as_mut().and_then(Filter::strangers) {
            strangers.forget();
        }
    }

    /// Returns how many wakes of whole CPUs were left out, and why; `None` if none are counted.
    pub(crate) fn left_out(&self) -> Option<DroppedWakes> {
        Some(self.filter.as_ref()?.wakes()?.left_out)
    }

    /// Takes back what another one counted, and the filter that it was lent.
    pub(crate) fn absorb(&mut self, twin: Self) {
        self.tally.absorb(twin.tally);
        self.filter = self.filter.take().or(twin.filter);
    }

    /// Drains every ring that is not overwritten into `sink`, if it has the minimum of bytes; in the
    /// last round (`is_last`) regardless of that. Returns the number of bytes.
    pub fn round<R: BorrowMut<Ring>>(
        &mut self,
        rings: &mut [R],
        sink: &mut impl Sink,
        is_last: bool,
    ) -> Result<u64> {
        let least = if is_last { 1 } else { self.least };
        let marks_seen = self.show_filter(rings)?;
        let mut appended = 0;
        let mut next = 0;
        let apart = sink.is_split() || !self.places.is_empty();
        // The round is not finished if records were left in a ring, or will be read later
        // (overwritten rings).
        let mut over = rings.iter().all(|ring| !ring.borrow().is_backward());
        while next < rings.len() {
            let mut trimmed = Encoder::new(Endian::NATIVE);
            let mut parts = Vec::new();
            let mut marks = Vec::new();
            let mut bytes = 0;
            for (index, ring) in rings.iter().enumerate().skip(next) {
                let ring: &Ring = ring.borrow();
                next = index + 1;
                if ring.is_backward() {
                    continue;
                }
                self.go_to(index);
                let pending = ring.pending().map_err(unreadable)?;
                let pending = marks_seen.get(index).map_or(pending, |mark| pending.until(*mark));
                if pending.len() < least {
                    over &= pending.is_empty();
                    continue;
                }
                appended += match self.copies.clone() {
                    Some(copies) => self.pass_trimmed(&pending, &copies, &mut trimmed),
                    None => self.pass(&pending, &mut parts),
                } as u64;
                bytes += pending.len();
                marks.push((index, pending.mark()));
                if bytes >= BATCH_BYTES || apart {
                    break;
                }
            }
            if !trimmed.is_empty() {
                parts.push(IoSlice::new(trimmed.as_bytes()));
            }
            let names = self.names_of_strangers();
            if !names.is_empty() {
                parts.insert(0, IoSlice::new(&names));
            }
            let first = marks.first().map_or(0, |(ring, _)| *ring);
            let mark = if over && next == rings.len() { Some(&*self.finished_round) } else { None };
            sink.batch(first, &parts, mark, mem::take(&mut self.tally.counts))?;
            for (index, mark) in marks {
                if let Some(ring) = rings.get_mut(index) {
                    ring.borrow_mut().release(mark);
                }
            }
        }
        Ok(appended)
    }

    /// Shows the filter what is in all rings. Returns the marks up to which they can be read then,
    /// one per ring; none without a filter.
    fn show_filter<R: BorrowMut<Ring>>(&mut self, rings: &[R]) -> Result<Vec<Mark>> {
        let Some(filter) = &mut self.filter else { return Ok(Vec::new()) };
        let mut marks = Vec::with_capacity(rings.len());
        for ring in rings {
            marks.push(ring.borrow().pending().map_err(unreadable)?.mark());
        }
        // The heads are loaded again after all marks: the FORK of a thread with a record before a
        // mark is then seen, whichever ring it is in.
        let mut pending = Vec::with_capacity(rings.len());
        for ring in rings {
            pending.push(ring.borrow().pending().map_err(unreadable)?);
        }
        filter.observe(&pending);
        Ok(marks)
    }

    /// Returns COMM records of wakers that are not recorded, each once. They have no time, so that
    /// they hold for the records of their batch.
    fn names_of_strangers(&mut self) -> Vec<u8> {
        let strangers = self.filter.as_mut().and_then(Filter::strangers);
        strangers.map(Strangers::take).unwrap_or_default()
    }

    /// Counts the records that are kept, and appends their parts of the ring. Returns the number of
    /// bytes.
    fn pass<'r>(&mut self, pending: &Pending<'r>, parts: &mut Vec<IoSlice<'r>>) -> usize {
        let (tally, filter) = (&mut self.tally, &mut self.filter);
        let mut bytes = 0;
        let mut add = |part: Range<usize>| {
            bytes += part.len();
            let (first, second) = pending.part(part);
            parts.extend(
                [first, second].into_iter().filter(|half| !half.is_empty()).map(IoSlice::new),
            );
        };
        let (mut start, mut end) = (0, 0);
        let whole = pending.records(&mut self.scratch, |record| {
            let next = end + record.bytes.len();
            if filter.as_mut().is_none_or(|filter| filter.keeps(record)) {
                tally.count(record);
            } else {
                add(start..end);
                start = next;
            }
            end = next;
        });
        if whole < pending.len() {
            tally.counts.damaged += 1;
        }
        // Bytes that are no record go into the file unchanged.
        add(start..pending.len());
        bytes
    }

    /// Counts the records that are kept, and appends them with trimmed copies of stacks. Returns the
    /// number of bytes.
    fn pass_trimmed(
        &mut self,
        pending: &Pending<'_>,
        copies: &StackCopies,
        to: &mut Encoder,
    ) -> usize {
        let (tally, filter, start) = (&mut self.tally, &mut self.filter, to.len());
        let whole = pending.records(&mut self.scratch, |record| {
            if filter.as_mut().is_none_or(|filter| filter.keeps(record)) {
                tally.count(record);
                copies.append(record, to);
            }
        });
        if whole < pending.len() {
            tally.counts.damaged += 1;
        }
        // Bytes that are no record go into the file unchanged.
        let (first, second) = pending.part(whole..pending.len());
        to.bytes(first);
        to.bytes(second);
        to.len() - start
    }

    /// Writes the records of overwritten rings that are newer than the last dump, oldest first (the
    /// ring has them newest first). No FINISHED_ROUND follows, as a dump has records older than
    /// those written before it.
    pub fn dump<K: Kernel>(
        &mut self,
        kernel: &K,
        counters: &Counters,
        rings: &mut [Ring],
        output: &Output,
    ) -> Result<()> {
        for (index, (ring, owner)) in rings
            .iter_mut()
            .zip(&counters.owners)
            .enumerate()
            .filter(|(_, (ring, _))| ring.is_backward())
        {
            let Some(owner) = counters.all.get(*owner) else { continue };
            kernel.pause(owner.as_fd(), true).map_err(unpausable)?;
            let (newest, mark) = ring.newest();
            let records = reversed(&newest);
            let records = Pending::new(&records, &[], 0);
            if let Some(filter) = &mut self.filter {
                filter.observe(&[records]);
            }
            let mut parts = Vec::new();
            self.pass(&records, &mut parts);
            let names = self.names_of_strangers();
            parts.insert(0, IoSlice::new(&names));
            output.write_rings(index, &parts, &[], mem::take(&mut self.tally.counts))?;
            ring.release(mark);
            kernel.pause(owner.as_fd(), false).map_err(unpausable)?;
        }
        Ok(())
    }

    /// Moves this thread to a ring's CPUs.
    fn go_to(&mut self, ring: usize) {
        if let Some(place) = self.places.get(ring)
            && self.at.as_ref() != Some(place)
        {
            // If the CPU went offline meanwhile, any CPU can drain its ring.
            let _ = rustix::thread::sched_setaffinity(None, place);
            self.at = Some(*place);
        }
    }
}

/// Destination of batches.
pub trait Sink {
    /// Returns whether each batch is to be of one ring.
    fn is_split(&self) -> bool;

    /// Appends the parts of `ring` and those after it, and their counts. `mark` is given if this
    /// batch empties the last ring; if that ends a round, it is written after the batch.
    fn batch(
        &mut self,
        ring: usize,
        parts: &[IoSlice<'_>],
        mark: Option<&[u8]>,
        counts: Counts,
    ) -> Result<()>;
}

/// Sink of a thread that has all rings: a round ends when they are empty.
#[derive(Debug)]
pub struct Rounds<'a> {
    output: &'a Output,
    /// `true` if there were records.
    any: bool,
}

impl<'a> Rounds<'a> {
    /// Returns the sink of the next round.
    pub fn next(output: &'a Output) -> Self {
        Self { output, any: false }
    }
}

impl Sink for Rounds<'_> {
    fn is_split(&self) -> bool {
        self.output.is_split()
    }

    fn batch(
        &mut self,
        ring: usize,
        parts: &[IoSlice<'_>],
        mark: Option<&[u8]>,
        counts: Counts,
    ) -> Result<()> {
        self.any |= !parts.is_empty();
        let is_over = mark.is_some();
        let mark = mark.filter(|_| self.any).unwrap_or_default();
        self.output.write_rings(ring, parts, mark, counts)?;
        if is_over {
            self.output.end_round();
        }
        Ok(())
    }
}

/// Reverses the order of records. Readers that compute differences of counter values need them in
/// time order. Stops at bytes that are not a record.
fn reversed(records: &[u8]) -> Vec<u8> {
    let whole: Vec<_> =
        Frames::new(records, 0, Endian::NATIVE).map_while(std::result::Result::ok).collect();
    whole.iter().rev().flat_map(|record| record.bytes).copied().collect()
}

fn unreadable(why: Overrun) -> Error {
    Error::Failed(format!(
        "cannot read a ring any further: {why}; please report this as a bug of rec or the kernel"
    ))
}

fn unpausable(errno: Errno) -> Error {
    Error::io("cannot pause an overwritten ring", errno)
}

/// Returns whether a ring is so full again that the next round should not wait for the kernel's
/// wakeup (at half of the ring).
pub(crate) fn is_pressing<R: Borrow<Ring>>(rings: &[R]) -> bool {
    let mut forward = rings.iter().map(Borrow::borrow).filter(|ring| !ring.is_backward());
    forward.any(|ring| ring.pending().is_ok_and(|pending| pending.len() >= ring.size() / 4))
}

/// Returns a record that consists of its header only.
pub(crate) fn marker(body: Body<'_>) -> Vec<u8> {
    let mut e = Encoder::new(Endian::NATIVE);
    // A record of eight bytes cannot exceed the size limit.
    let _ = Record::new(0, body).encode(&mut e);
    e.into_bytes()
}

#[cfg(test)]
mod tests;
