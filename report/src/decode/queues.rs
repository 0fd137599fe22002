//! The traces of a file: one stream of bytes for each ring, of the payloads of AUXTRACE records.
//!
//! ```text
//!   AUXTRACE idx 0   AUXTRACE idx 1   AUXTRACE idx 0   AUXTRACE idx 0      records of the file
//!   0x0 … 0x1000     0x0 … 0x800      0x1000 … 0x1fff  0x3000 … 0x3800     offsets in the rings
//!
//!   ring 0:  [0x0 … 0x1000 … 0x1fff]  gap  [0x3000 … 0x3800]               stretches
//! ```
//!
//! Bytes are those of the file: nothing is copied but what lies across two records.

use std::borrow::Cow;
use std::ops::Range;

use recrep_format::abi::AuxFlags;
use recrep_format::attr::AttrTable;
use recrep_format::record::{Aux, Auxtrace, Body, RawRecord, SampleId};
use rustc_hash::FxHashMap;

use super::gaps::{GapReason, Gaps};
use super::running::Owner;

/// Most bytes with which a payload is padded.
const PADDING: u64 = 8;

/// Bytes of a ring that follow each other without a gap.
#[derive(Debug, Default)]
pub(crate) struct TraceStretch<'i> {
    /// Offset in the AUX area.
    pub start: u64,
    /// Its bytes, with the offset in the stretch at which each slice begins.
    slices: Vec<(u64, Cow<'i, [u8]>)>,
    pub len: u64,
}

impl<'i> TraceStretch<'i> {
    /// Appends bytes.
    pub(super) fn push(&mut self, bytes: Cow<'i, [u8]>) {
        let len = bytes.len() as u64;
        self.slices.push((self.len, bytes));
        self.len += len;
    }

    /// Shortens the last slice, which was padded, so that the stretch has this length.
    fn trim(&mut self, len: u64) {
        let Some((start, last)) = self.slices.last_mut() else { return };
        let kept = usize::try_from(len.saturating_sub(*start)).unwrap_or(0).min(last.len());
        match last {
            Cow::Borrowed(bytes) => *bytes = bytes.get(..kept).unwrap_or_default(),
            Cow::Owned(bytes) => bytes.truncate(kept),
        }
        self.len = *start + kept as u64;
    }

    /// Returns the bytes from an offset in the stretch to the end of the slice there.
    pub(crate) fn slice_at(&self, at: u64) -> &[u8] {
        let next = self.slices.partition_point(|(start, _)| *start <= at);
        let Some((start, bytes)) = next.checked_sub(1).and_then(|last| self.slices.get(last))
        else {
            return &[];
        };
        usize::try_from(at - start).ok().and_then(|from| bytes.get(from..)).unwrap_or_default()
    }

    /// Returns the slices, each with the offset in the stretch at which it begins.
    pub(crate) fn slices(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.slices.iter().map(|(start, bytes)| (*start, &**bytes))
    }

    /// Returns the bytes in a range of offsets in the stretch.
    pub(crate) fn bytes(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        let end = range.end.min(self.len);
        let wanted = usize::try_from(end.saturating_sub(range.start)).unwrap_or(0);
        if let Some(bytes) = self.slice_at(range.start).get(..wanted) {
            return Cow::Borrowed(bytes);
        }
        let (mut bytes, mut at) = (Vec::with_capacity(wanted), range.start);
        while at < end {
            let slice = self.slice_at(at);
            let len = slice.len().min(wanted - bytes.len());
            bytes.extend_from_slice(slice.get(..len).unwrap_or_default());
            at += len.max(1) as u64;
        }
        Cow::Owned(bytes)
    }
}

/// The trace of a ring.
#[derive(Debug)]
pub(crate) struct TraceQueue<'i> {
    /// The CPU; `None` if the ring is that of a thread on all CPUs.
    pub cpu: Option<u32>,
    /// The thread; `None` if the ring is that of a CPU.
    pub tid: Option<i32>,
    pub stretches: Vec<TraceStretch<'i>>,
    /// Pieces that AUX records tell of, by offset.
    pieces: Vec<AuxPiece>,
}

/// Traces of all rings, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Queues<'i> {
    pub all: Vec<TraceQueue<'i>>,
    /// Gaps that records tell of.
    pub gaps: Gaps,
}

impl<'i> Queues<'i> {
    /// Collects the traces in side-band records. `payload` returns the bytes behind an AUXTRACE
    /// record.
    pub(crate) fn read(
        attrs: &AttrTable,
        side_band: &[RawRecord<'_>],
        payload: impl Fn(&RawRecord<'_>) -> Cow<'i, [u8]>,
    ) -> Self {
        let mut queues = Self::default();
        let mut pieces = AuxPieces::default();
        let mut traces: Vec<(Auxtrace, Cow<'i, [u8]>)> = Vec::new();
        for raw in side_band {
            let Ok(record) = attrs.decode(raw) else { continue };
            match record.body {
                Body::Aux(aux) => {
                    queues.count_flags(aux.flags);
                    pieces.add(&aux, &record.trailer);
                }
                Body::Auxtrace(trace) => traces.push((trace, payload(raw))),
                _ => {}
            }
        }
        // Stable: those of a ring stay in file order.
        traces.sort_by_key(|(trace, _)| trace.idx);
        let mut ring = None;
        for (trace, bytes) in traces {
            if ring != Some(trace.idx) {
                ring = Some(trace.idx);
                queues.all.push(TraceQueue::of_trace(&trace, pieces.of_ring(&trace)));
            }
            let Some(queue) = queues.all.last_mut().filter(|_| !bytes.is_empty()) else { continue };
            let is_cut = queue.is_cut_at(trace.offset);
            queue.append(trace.offset, bytes, is_cut, &mut queues.gaps);
        }
        queues
    }

    /// Returns the number of bytes of all traces.
    pub(crate) fn bytes(&self) -> u64 {
        self.all.iter().flat_map(|queue| &queue.stretches).map(|stretch| stretch.len).sum()
    }

    fn count_flags(&mut self, flags: AuxFlags) {
        for (flag, reason) in
            [(AuxFlags::PARTIAL, GapReason::Partial), (AuxFlags::COLLISION, GapReason::Collision)]
        {
            if flags.contains(flag) {
                self.gaps.add(reason);
            }
        }
    }
}

impl<'i> TraceQueue<'i> {
    /// Returns the queue of the ring that a trace is of, without the trace.
    fn of_trace(trace: &Auxtrace, pieces: Vec<AuxPiece>) -> Self {
        Self {
            cpu: (!trace.cpu.is_any()).then_some(trace.cpu.0),
            tid: (!trace.tid.is_any()).then_some(trace.tid.0.cast_signed()),
            stretches: Vec::new(),
            pieces,
        }
    }

    /// Returns whether bytes were lost before this offset.
    fn is_cut_at(&self, offset: u64) -> bool {
        let ends = self.pieces.iter().filter(|piece| piece.is_cut);
        ends.map(|piece| piece.offset.wrapping_add(piece.len)).any(|end| end == offset)
    }

    /// Returns the piece that an offset of the AUX area is in, if a record tells of it.
    pub(crate) fn piece_at(&self, offset: u64) -> Option<&AuxPiece> {
        let next = self.pieces.partition_point(|piece| piece.offset <= offset);
        let piece = self.pieces.get(next.checked_sub(1)?)?;
        (offset - piece.offset < piece.len).then_some(piece)
    }

    /// Appends bytes that are at this offset of the ring. If the bytes before are cut there, they
    /// do not continue them.
    fn append(&mut self, offset: u64, mut bytes: Cow<'i, [u8]>, is_cut: bool, gaps: &mut Gaps) {
        if let Some(last) = self.stretches.last_mut() {
            let (start, end) = (last.start, last.start + last.len);
            if (start..end).contains(&offset) {
                let new_end = offset.saturating_add(bytes.len() as u64);
                if end - offset < PADDING {
                    // Zeros up to a whole word.
                    last.trim(offset - start);
                } else if new_end <= end {
                    // A snapshot of what an earlier one has.
                    return;
                } else {
                    let known = usize::try_from(end - offset).unwrap_or(usize::MAX);
                    bytes = match bytes {
                        Cow::Borrowed(all) => all.get(known..).unwrap_or_default().into(),
                        Cow::Owned(all) => all.get(known..).unwrap_or_default().to_vec().into(),
                    };
                    last.push(bytes);
                    return;
                }
            } else if offset > end {
                gaps.add(GapReason::Missing);
            }
            if offset == last.start + last.len && !is_cut {
                last.push(bytes);
                return;
            }
        }
        let mut stretch = TraceStretch { start: offset, ..TraceStretch::default() };
        stretch.push(bytes);
        self.stretches.push(stretch);
    }
}

/// A piece of a ring that an AUX record tells of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuxPiece {
    /// Offset in the AUX area.
    offset: u64,
    len: u64,
    /// `true` if what came next was lost.
    is_cut: bool,
    /// Time at which the piece was complete; 0 if it is not known.
    pub time: u64,
    /// Thread that ran then.
    pub owner: Owner,
}

impl AuxPiece {
    fn new(aux: &Aux, trailer: &SampleId) -> Self {
        let owner = trailer.tid.map_or(Owner::UNKNOWN, |[pid, tid]| Owner {
            pid: pid.cast_signed(),
            tid: tid.cast_signed(),
        });
        Self {
            offset: aux.aux_offset,
            len: aux.aux_size,
            is_cut: aux.flags.contains(AuxFlags::TRUNCATED),
            time: trailer.time.unwrap_or(0),
            owner,
        }
    }
}

/// The pieces of each ring.
#[derive(Debug, Default)]
struct AuxPieces {
    of_cpus: FxHashMap<u32, Vec<AuxPiece>>,
    of_threads: FxHashMap<u32, Vec<AuxPiece>>,
}

impl AuxPieces {
    fn add(&mut self, aux: &Aux, trailer: &SampleId) {
        let piece = AuxPiece::new(aux, trailer);
        if let Some([cpu, _]) = trailer.cpu {
            self.of_cpus.entry(cpu).or_default().push(piece);
        }
        if let Some([_, tid]) = trailer.tid {
            self.of_threads.entry(tid).or_default().push(piece);
        }
    }

    /// Returns the pieces of the ring that a trace is of, by offset.
    fn of_ring(&self, trace: &Auxtrace) -> Vec<AuxPiece> {
        let found = match trace.cpu.is_any() {
            false => self.of_cpus.get(&trace.cpu.0),
            true => self.of_threads.get(&trace.tid.0),
        };
        let mut pieces = found.cloned().unwrap_or_default();
        pieces.sort_by_key(|piece| piece.offset);
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(traces: &[(u64, &'static [u8])]) -> (Vec<(u64, Vec<u8>)>, Gaps) {
        let mut queue =
            TraceQueue { cpu: Some(0), tid: None, stretches: Vec::new(), pieces: Vec::new() };
        let mut gaps = Gaps::default();
        for (offset, bytes) in traces {
            queue.append(*offset, Cow::Borrowed(bytes), false, &mut gaps);
        }
        let all = queue.stretches.iter().map(|s| (s.start, s.bytes(0..s.len).into_owned()));
        (all.collect(), gaps)
    }

    #[test]
    fn traces_that_follow_each_other_are_one_stretch() {
        let (found, gaps) = queue(&[(0, b"abcd"), (4, b"ef\0\0"), (6, b"gh"), (20, b"ij")]);
        assert_eq!(found, [(0, b"abcdefgh".to_vec()), (20, b"ij".to_vec())], "padding is left out");
        let mut missing = Gaps::default();
        missing.add(GapReason::Missing);
        assert_eq!(gaps, missing);
    }

    #[test]
    fn snapshots_overlap() {
        let long: &[u8] = b"0123456789abcdefghij";
        let (found, gaps) = queue(&[(0, long), (4, &long[4..14]), (10, b"abcdefghijKLMN")]);
        assert_eq!(found, [(0, b"0123456789abcdefghijKLMN".to_vec())]);
        assert_eq!(gaps, Gaps::default());
    }

    #[test]
    fn bytes_across_records_are_joined() {
        let mut stretch = TraceStretch::default();
        for part in [&b"abc"[..], b"d", b"efgh"] {
            stretch.push(Cow::Borrowed(part));
        }
        assert!(matches!(stretch.bytes(0..3), Cow::Borrowed(b"abc")));
        assert!(matches!(stretch.bytes(5..7), Cow::Borrowed(b"fg")));
        assert_eq!(&*stretch.bytes(2..6), b"cdef");
        assert_eq!(&*stretch.bytes(6..90), b"gh");
        assert_eq!((stretch.slice_at(3), stretch.slice_at(8)), (&b"d"[..], &b""[..]));
    }
}
