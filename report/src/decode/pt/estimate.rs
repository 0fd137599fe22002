//! Estimate of the time at which tracing begins: that of the last packet of time, and two cycles for
//! each instruction since, as in perf.

use recrep_trace::pt::{Branch, Clock, Gap, Sink, Step, TakenStep, Task};

use crate::decode::samples::is_kernel;

/// Time of the branches of a part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClockEstimate {
    /// There are times.
    is_timed: bool,
    /// Time stamp of the last packet.
    stamp: u64,
    /// Instructions since.
    instructions: u64,
    /// Those of pieces whose event is still to come.
    pieces: u64,
    /// The last time stamp.
    last: u64,
}

impl ClockEstimate {
    /// Returns the estimate in front of a part.
    pub(super) fn new(stamp: u64, is_timed: bool) -> Self {
        Self { is_timed, stamp, ..Self::default() }
    }

    /// Returns whether there are times.
    pub(super) fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Takes the last time stamp in front of the part, which an estimate may have set ahead.
    pub(super) fn follow(&mut self, last: u64) {
        self.last = self.last.max(last);
    }

    /// Passes a step of so many instructions.
    #[inline]
    pub(super) fn pass(&mut self, taken: &TakenStep<'_>, instructions: u64) {
        let TakenStep { step, times, .. } = taken;
        if times.now != self.stamp {
            self.stamp = times.now;
            self.instructions = self.pieces;
        }
        self.instructions += instructions;
        let is_piece = matches!(step, Step::Piece { .. });
        self.pieces = if is_piece { self.pieces + instructions } else { 0 };
    }

    /// Returns the time of a branch in the step that was passed last; times never go back.
    pub(super) fn time(&mut self, stamp: u64, branch: &Branch, clock: &Clock) -> u64 {
        let is_begin = branch.from == 0 && !is_kernel(branch.to);
        let ticks = match is_begin && self.is_timed {
            true => clock.ticks_of(self.instructions),
            false => 0,
        };
        self.last = self.last.max(stamp.saturating_add(ticks));
        self.last
    }

    /// Returns the time of a step with this time stamp whose branches tell of no more.
    #[inline]
    pub(super) fn at(&self, stamp: u64) -> u64 {
        self.last.max(stamp)
    }
}

/// Finds the last time stamp in front of a part.
pub(super) struct RunUpSink(ClockEstimate);

impl RunUpSink {
    /// Creates a sink for what is behind this time stamp.
    pub(super) fn new(stamp: u64) -> Self {
        Self(ClockEstimate::new(stamp, true))
    }

    /// Returns the last time stamp.
    pub(super) fn last(&self) -> u64 {
        self.0.last
    }
}

impl Sink for RunUpSink {
    fn step(&mut self, step: &TakenStep<'_>) {
        self.0.pass(step, step.instruction_count().into());
        if let Step::Branch(branch) = step.step {
            self.0.time(step.times.now, &branch, step.clock);
        }
    }

    fn gap(&mut self, _: Gap, _: Task, _: u64) {}
}
