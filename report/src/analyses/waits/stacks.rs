//! Callchains of the wakers of some waits, as text.

use recrep_format::record::RawRecord;
use rustc_hash::FxHashMap;

use crate::analyses::callers::{Caller, Callers};
use crate::callchain::ChainOrigin;
use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::picture::ThreadWait;
use crate::samples::{ChainSetup, PieceWorker, Session, TaskFinder, by_piece, for_each_sample};
use crate::timeline::SampleContext;

/// Callchains of wakers, by the offsets of the samples of their wakes.
#[derive(Debug, Default)]
pub(super) struct WakerStacks(FxHashMap<u64, String>);

impl WakerStacks {
    /// Reads the callchains of the wakers of waits on all cores.
    pub(super) fn read(
        session: &Session<'_>,
        chains: &ChainSetup<'_>,
        waits: &[ThreadWait],
    ) -> Self {
        let mut wanted: Vec<u64> = waits.iter().filter_map(|wait| wait.wake).collect();
        if wanted.is_empty() {
            return Self::default();
        }
        wanted.sort_unstable();
        let workers = by_piece(&session.split.pieces, |_| WakerStackWorker {
            session,
            wanted: &wanted,
            callers: Callers::new(session, chains, |_| false),
            tasks: TaskFinder::new(&session.timeline, None),
            found: Vec::new(),
        });
        Self(workers.into_iter().flat_map(WakerStackWorker::into_texts).collect())
    }

    /// Adds the callchains of their wakers to waits.
    pub(super) fn name(&self, waits: &mut [ThreadWait]) {
        for wait in waits {
            if let Some(stack) = wait.wake.and_then(|wake| self.0.get(&wake)) {
                wait.waker_stack.clone_from(stack);
            }
        }
    }
}

struct WakerStackWorker<'s> {
    session: &'s Session<'s>,
    /// Offsets of the samples, sorted.
    wanted: &'s [u64],
    callers: Callers<'s>,
    tasks: TaskFinder<'s>,
    /// Numbers of functions, by the sample.
    found: Vec<(u64, Vec<u32>)>,
}

impl PieceWorker for WakerStackWorker<'_> {
    fn read(&mut self, _: usize, piece: &Piece<'_>, buffer: &mut UnpackBuffer) {
        for_each_sample(piece, buffer, |raw| {
            if self.wanted.binary_search(&raw.offset).is_ok() {
                self.sample(raw);
            }
        });
    }
}

impl WakerStackWorker<'_> {
    fn sample(&mut self, raw: RawRecord<'_>) {
        let offset = raw.offset;
        let Some((index, sample)) = self.session.file.attrs.sample(raw) else { return };
        let (Some(time), Some(pid), Some(tid)) = (sample.time(), sample.pid(), sample.tid()) else {
            return;
        };
        let [pid, tid] = [pid, tid].map(u32::cast_signed);
        let moment = self.session.clock.moment(Some(time), offset);
        let space = self.tasks.span(pid, tid, moment).0.task.space;
        let entry = self.session.file.attrs.entries().get(index.0);
        let origin = entry.map_or(ChainOrigin::Recorded, |entry| ChainOrigin::of(&entry.attr));
        let stack = self.callers.stack(&sample, origin, SampleContext { space, moment });
        self.found.push((offset, stack));
    }

    fn into_texts(self) -> impl Iterator<Item = (u64, String)> {
        let callers = self.callers.into_found();
        self.found.into_iter().map(move |(offset, stack)| {
            let names = stack.iter().filter_map(|number| callers.get(*number as usize));
            let names: Vec<&str> = names.map(Caller::label).collect();
            (offset, names.join("\n"))
        })
    }
}
