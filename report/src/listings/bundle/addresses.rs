//! Addresses of a recording that may be given names: sampled instructions, callers, both ends of
//! branches, accessed data.

use std::collections::BTreeSet;

use recrep_format::abi::CpuMode;
use recrep_format::record::{RawRecord, SampleFields};
use rustc_hash::FxHashSet;

use crate::callchain::{ChainOrigin, FrameWord};
use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::samples::{
    ChainReader, ChainSetup, PieceWorker, Session, TaskFinder, by_piece, for_each_sample,
};
use crate::timeline::SampleContext;

/// Returns the addresses in each module, ascending, by the module's number.
pub(super) fn addresses(session: &Session<'_>, chains: &ChainSetup<'_>) -> Vec<BTreeSet<u64>> {
    let count = session.side_band.modules.len();
    let workers = by_piece(&session.split.pieces, |_| Collector {
        session,
        chains: chains.reader(),
        frames: Vec::new(),
        tasks: TaskFinder::new(&session.timeline, None),
        found: vec![FxHashSet::default(); count],
    });
    let mut all = vec![BTreeSet::new(); count];
    for worker in workers {
        for (addresses, more) in all.iter_mut().zip(worker.found) {
            addresses.extend(more);
        }
    }
    all
}

/// Collects the addresses of one worker's samples.
struct Collector<'s> {
    session: &'s Session<'s>,
    chains: ChainReader<'s>,
    frames: Vec<FrameWord>,
    tasks: TaskFinder<'s>,
    /// Addresses by the number of their module.
    found: Vec<FxHashSet<u64>>,
}

impl PieceWorker for Collector<'_> {
    fn read(&mut self, _: usize, piece: &Piece<'_>, buffer: &mut UnpackBuffer) {
        for_each_sample(piece, buffer, |raw| self.add_sample(raw));
    }
}

impl Collector<'_> {
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
        let (span, _) = self.tasks.span(pid, tid, moment);
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
        let mut frames = std::mem::take(&mut self.frames);
        self.chains.frames(&sample, ChainOrigin::of(&entry.attr), at, &mut frames);
        for frame in &frames {
            self.add(Some(frame.mode), frame.ip, at);
        }
        self.frames = frames;
    }

    /// Adds an address; without a CPU mode it is one end of a branch.
    fn add(&mut self, mode: Option<CpuMode>, address: u64, at: SampleContext) {
        let frame = self.chains.finder.mapped(mode, at.space, address, at.moment);
        let module =
            frame.module.checked_sub(1).and_then(|module| self.found.get_mut(module as usize));
        if let Some(found) = module {
            // Lines of a caller are those of its call instruction, which is before the return
            // address.
            found.extend([frame.address, frame.address.saturating_sub(1)]);
        }
    }
}
