//! Addresses of a recording that may be given names: sampled instructions, callers, both ends of
//! branches, accessed data.

use std::collections::BTreeSet;

use recrep_format::abi::CpuMode;
use recrep_format::record::{RawRecord, SampleFields};
use rustc_hash::FxHashSet;

use crate::callchain::{
    ChainLimit, ChainOrigin, ChainSources, Deferred, FrameFields, FrameFinder, RecordedChains,
    StackUnwinder, for_each_frame,
};
use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::samples::{PieceWorker, Session, by_piece, for_each_sample};
use crate::timeline::{RecentSpans, SampleContext};

/// What the samples of a recording are read with.
#[derive(Clone, Copy)]
pub(super) struct Samples<'s> {
    pub(super) session: &'s Session<'s>,
    pub(super) deferred: &'s Deferred<'s>,
    pub(super) unwinding: Option<&'s StackUnwinder<'s>>,
}

impl Samples<'_> {
    /// Returns the addresses in each module, ascending, by the module's number.
    pub(super) fn addresses(self) -> Vec<BTreeSet<u64>> {
        let count = self.session.side_band.modules.len();
        let workers = by_piece(&self.session.split.pieces, |_| Collector::new(self, count));
        let mut all = vec![BTreeSet::new(); count];
        for worker in workers {
            for (addresses, more) in all.iter_mut().zip(worker.found) {
                addresses.extend(more);
            }
        }
        all
    }
}

/// Collects the addresses of one worker's samples.
struct Collector<'s> {
    session: &'s Session<'s>,
    sources: ChainSources<'s>,
    finder: FrameFinder<'s>,
    spans: RecentSpans<()>,
    words: Vec<u64>,
    /// Addresses by the number of their module.
    found: Vec<FxHashSet<u64>>,
}

impl PieceWorker for Collector<'_> {
    fn read(&mut self, _: usize, piece: &Piece<'_>, buffer: &mut UnpackBuffer) {
        for_each_sample(piece, buffer, |raw| self.add_sample(raw));
    }
}

impl<'s> Collector<'s> {
    fn new(samples: Samples<'s>, modules: usize) -> Self {
        let whole = ChainLimit { frames: usize::MAX, outermost: false };
        let recorded = RecordedChains { deferred: samples.deferred, most: whole };
        Self {
            session: samples.session,
            sources: ChainSources::new(recorded, samples.unwinding, true),
            finder: FrameFinder::new(
                &samples.session.timeline,
                FrameFields::default(),
                None,
                false,
                None,
            ),
            spans: RecentSpans::default(),
            words: Vec::new(),
            found: vec![FxHashSet::default(); modules],
        }
    }

    fn add_sample(&mut self, raw: RawRecord<'_>) {
        let Some((event, sample)) = self.session.file.attrs.sample(raw) else { return };
        let mode = sample.cpu_mode();
        let mut fields = SampleFields::default();
        // Names of a guest's code are never looked up here.
        if mode.is_guest() || sample.read(&mut fields).is_err() {
            return;
        }
        let Some(entry) = self.session.file.attrs.get(event) else { return };
        let moment = self.session.clock.moment(fields.time, raw.offset);
        let [pid, tid] = fields.tid.map_or([-1, -1], |task| task.map(u32::cast_signed));
        let (span, ()) = self.spans.get(&self.session.timeline, pid, tid, moment, |_| ());
        let at = SampleContext { space: span.task.space, moment };
        for address in [fields.ip, fields.addr].into_iter().flatten() {
            self.add(Some(mode), address, at);
        }
        if let Some(stack) = &fields.branch_stack {
            for branch in stack.entries() {
                self.add(None, branch.from, at);
                self.add(None, branch.to, at);
            }
        }
        let mut words = std::mem::take(&mut self.words);
        words.clear();
        if self.sources.chain(&sample, ChainOrigin::of(&entry.attr), at, &mut words).is_ok() {
            for_each_frame(mode, &words, |frame| self.add(Some(frame.mode), frame.ip, at));
        }
        self.words = words;
    }

    /// Adds an address; without a CPU mode it is one end of a branch.
    fn add(&mut self, mode: Option<CpuMode>, address: u64, at: SampleContext) {
        let frame = self.finder.mapped(mode, at.space, address, at.moment);
        let module =
            frame.module.checked_sub(1).and_then(|module| self.found.get_mut(module as usize));
        if let Some(found) = module {
            // Lines of a caller are those of its call instruction, which is before the return
            // address.
            found.extend([frame.address, frame.address.saturating_sub(1)]);
        }
    }
}
