//! Draining: goes round all rings and copies what is in them into the queue from which the file is
//! written.
//!
//! What is in the rings is copied into the queue, several rings at once, and then the room is given
//! back: nothing here waits for a disk as long as the queue has room. Each record's header is
//! looked at once, for the [`Tally`]; twice where a [`filter`] leaves records out.
//!
//! A FINISHED_ROUND record follows each round that had records. A record that the kernel writes
//! during round n is read in round n or n+1, so no record of round n+2 is older than one of round
//! n: readers may sort and emit everything that is older than the newest record of the previous
//! round.

mod copies;
pub(crate) mod filter;
pub(crate) mod threads;
pub(crate) mod wait;

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

/// Room is given back after about this many bytes, so that with many CPUs the first ring does not
/// wait for the last.
const BATCH_BYTES: usize = 1 << 20;

/// Drains rings into a file.
#[derive(Debug)]
pub struct Drain {
    /// Tally of what has passed; its counts go with each batch to the file.
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

    /// Moves the thread to these CPUs, one set per ring, to drain the ring.
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

    /// Takes back what another one counted, and the filter that it was lent.
    pub(crate) fn absorb(&mut self, twin: Self) {
        self.tally.absorb(twin.tally);
        self.filter = self.filter.take().or(twin.filter);
    }

    /// Drains every ring that is not overwritten, if it has the minimum of bytes. Returns the number
    /// of bytes.
    pub fn round(&mut self, rings: &mut [Ring], output: &Output) -> Result<u64> {
        self.empty_of(rings, &mut Rounds { output, any: false }, self.least)
    }

    /// Drains every ring that is not overwritten, regardless of the minimum.
    pub fn last_round(&mut self, rings: &mut [Ring], output: &Output) -> Result<u64> {
        self.empty_of(rings, &mut Rounds { output, any: false }, 1)
    }

    /// Drains every ring that is not overwritten into `sink`. Returns the number of bytes.
    pub(crate) fn empty<R: BorrowMut<Ring>>(
        &mut self,
        rings: &mut [R],
        sink: &mut impl Sink,
    ) -> Result<u64> {
        self.empty_of(rings, sink, self.least)
    }

    fn empty_of<R: BorrowMut<Ring>>(
        &mut self,
        rings: &mut [R],
        sink: &mut impl Sink,
        least: usize,
    ) -> Result<u64> {
        let looked = self.look(rings)?;
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
                let pending = looked.get(index).map_or(pending, |mark| pending.until(*mark));
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

    /// Lets the filter see what is in all rings. Returns the marks up to which they can be read
    /// then, one per ring; none without a filter.
    fn look<R: BorrowMut<Ring>>(&mut self, rings: &[R]) -> Result<Vec<Mark>> {
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
        filter.look(&pending);
        Ok(marks)
    }

    /// Counts the records that are kept, and appends their parts of the ring. Returns the number of
    /// bytes.
    fn pass<'r>(&mut self, pending: &Pending<'r>, parts: &mut Vec<IoSlice<'r>>) -> usize {
        let (tally, filter) = (&mut self.tally, &self.filter);
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
            if filter.as_ref().is_none_or(|filter| filter.keeps(record)) {
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
        // What is no record goes into the file as it is.
        add(start..pending.len());
        bytes
    }

    /// Does the same where copies of stacks are trimmed, and so written anew.
    fn pass_trimmed(
        &mut self,
        pending: &Pending<'_>,
        copies: &StackCopies,
        to: &mut Encoder,
    ) -> usize {
        let (tally, filter, start) = (&mut self.tally, &self.filter, to.len());
        let whole = pending.records(&mut self.scratch, |record| {
            if filter.as_ref().is_none_or(|filter| filter.keeps(record)) {
                tally.count(record);
                copies.append(record, to);
            }
        });
        if whole < pending.len() {
            tally.counts.damaged += 1;
        }
        // What is no record goes into the file as it is.
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
                filter.look(&[records]);
            }
            let mut parts = Vec::new();
            self.pass(&records, &mut parts);
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
pub(crate) trait Sink {
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
struct Rounds<'a> {
    output: &'a Output,
    /// `true` if there were records.
    any: bool,
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
mod tests {
    use super::*;
    use crate::kernel::ring::fake::{FakeRing, fake_record};
    use crate::output::Layout;
    use recrep_format::abi::{AttrFlags, RecordType, SampleType};
    use recrep_format::attr::{Attr, AttrEntry};
    use recrep_format::read::File;
    use recrep_format::write::FeatureWriter;

    fn attr() -> Attr {
        use SampleType as S;
        let sample_type = S::IDENTIFIER | S::IP | S::TID | S::TIME | S::CPU;
        Attr { size: 128, sample_type, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() }
    }

    fn sample(time: u64) -> Vec<u8> {
        fake_record(9, &[1, 0x1000, 2, time, 0])
    }

    /// Alternates `fill` and a round. Returns the types of the records in the file, and the tally.
    fn recorded(
        pages: u64,
        rounds: usize,
        mut fill: impl FnMut(usize, &mut [FakeRing; 2]),
    ) -> (Vec<RecordType>, Counts) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.data");
        let to = crate::cli::parse(["rec".into(), "-o".into(), path.clone().into(), "x".into()])
            .unwrap()
            .output;
        let entry = AttrEntry { attr: attr(), ids: vec![1], name: None };
        let layout = Layout { groups: Vec::new(), queue: 1 << 20, unwinding: None };
        let output =
            Output::create(&to, &[entry], &FeatureWriter::new(Endian::NATIVE), &layout).unwrap();
        let mut fakes = [FakeRing::new(pages), FakeRing::new(pages)];
        let mut rings = [fakes[0].map(), fakes[1].map()];
        let mut drain = Drain::new(Tally::new(&attr()));
        for round in 0..rounds {
            fill(round, &mut fakes);
            drain.round(&mut rings, &output).unwrap();
        }
        let counts = output.settle().unwrap().counts;
        output.finish(FeatureWriter::new(Endian::NATIVE)).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let file = File::parse(&bytes).unwrap();
        let kinds = file.records().map(|r| r.unwrap().header.kind).collect();
        (kinds, counts)
    }

    #[test]
    fn a_round_ends_with_its_mark_and_an_empty_one_leaves_nothing() {
        use RecordType as T;
        let (kinds, tally) = recorded(1, 3, |round, [a, b]| {
            if round == 0 {
                assert!(a.write(&sample(1)) && b.write(&sample(2)) && a.write(&sample(3)));
            }
            if round == 2 {
                assert!(b.write(&sample(4)));
            }
        });
        assert_eq!(
            kinds,
            [T::SAMPLE, T::SAMPLE, T::SAMPLE, T::FINISHED_ROUND, T::SAMPLE, T::FINISHED_ROUND]
        );
        assert_eq!((tally.samples, tally.first, tally.last), (4, Some(1), 4));
    }

    /// The records of a drain's parts, and what it counted, where the ring wraps at `cut`.
    fn passed(filter: Option<Filter>, stream: &[u8], cut: usize) -> (Vec<u8>, usize, Counts) {
        let mut drain = Drain::new(Tally::new(&attr())).with(filter);
        let pending = Pending::new(&stream[..cut], &stream[cut..], 0);
        let mut parts = Vec::new();
        let bytes = drain.pass(&pending, &mut parts);
        (parts.iter().flat_map(|part| part.to_vec()).collect(), bytes, drain.tally.counts)
    }

    #[test]
    fn a_size_that_cannot_be_ends_the_counting_and_nothing_is_left_out() {
        let mut zero = sample(1);
        zero[6..8].fill(0);
        let stream = [sample(2), zero, sample(3)].concat();
        for cut in (0..=stream.len()).step_by(8) {
            let (written, bytes, counts) = passed(None, &stream, cut);
            assert_eq!((counts.samples, counts.damaged), (1, 1), "wraps at {cut}");
            assert_eq!((written, bytes), (stream.clone(), stream.len()), "wraps at {cut}");
        }
    }

    #[test]
    fn what_is_counted_is_what_a_filter_keeps_wherever_the_ring_wraps() {
        let of = |pid: u64, time| fake_record(9, &[1, 0x1000, pid, time, 0]);
        let lost = fake_record(2, &[1, 7, 0, 0, 0, 0]);
        let records =
            [of(7, 30), of(8, 1), of(7, 10), lost, of(9, 99), of(8, 2), of(7, 20), of(9, 3)];
        let kept = [0, 2, 3, 6].map(|n| records[n].clone()).concat();
        let stream = records.concat();
        for cut in (0..=stream.len()).step_by(8) {
            let members =
                filter::Members { ids: [7].into_iter().collect(), threads: false, inherit: false };
            let (written, bytes, counts) =
                passed(Some(Filter::members(&attr(), members)), &stream, cut);
            assert_eq!(
                (counts.samples, counts.lost_events, counts.damaged),
                (3, 7, 0),
                "wraps at {cut}"
            );
            assert_eq!((counts.first, counts.last), (Some(10), 30), "wraps at {cut}");
            assert_eq!((written, bytes), (kept.clone(), kept.len()), "wraps at {cut}");
        }
    }

    #[test]
    fn what_is_last_in_a_ring_that_is_overwritten_comes_first() {
        let [new, old] = [sample(2), sample(1)];
        assert_eq!(reversed(&[&new[..], &old, &[1, 2, 3]].concat()), [old, new].concat());
        assert!(reversed(&[]).is_empty());
    }

    #[test]
    fn rings_that_wrap_many_times_lose_nothing() {
        let (kinds, tally) = recorded(1, 200, |round, fakes| {
            for (n, fake) in fakes.iter_mut().enumerate() {
                for i in 0..20 + round % 7 + n {
                    assert!(fake.write(&sample(i as u64 + 1)));
                }
            }
        });
        let samples = kinds.iter().filter(|k| **k == RecordType::SAMPLE).count();
        assert_eq!(samples as u64, tally.samples);
        assert_eq!(samples, (0..200).map(|r| 2 * (20 + r % 7) + 1).sum::<usize>());
        assert_eq!(tally.damaged, 0);
    }

    #[test]
    fn what_the_kernel_lost_is_in_the_file_and_in_the_tally() {
        let (kinds, tally) = recorded(1, 2, |round, [a, _]| {
            if round == 0 {
                while a.write(&sample(1)) {}
                assert!(!a.write(&sample(2)));
            } else {
                assert!(a.write(&sample(3)));
            }
        });
        assert!(kinds.contains(&RecordType::LOST));
        assert_eq!((tally.lost_events, tally.damaged), (2, 0));
    }
}
