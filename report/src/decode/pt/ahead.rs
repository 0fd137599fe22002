//! What a part needs of those before it: found by reading all parts once.

use recrep_trace::pt::{Gap, Sink, TakenEvent, TakenStep, Task};

use super::info::PtInfo;
use super::period::{InstructionCounter, InstructionPeriod, Tail};
use super::stacks::{PartRuns, RunRecorder, StackSizes};

/// What the parts behind a part need of it.
#[derive(Debug, Default)]
pub(super) struct PartSummary {
    pub tail: Tail,
    pub runs: PartRuns,
}

/// Finds what the parts behind a part need of it.
#[derive(Debug)]
pub(super) struct AheadSink<'a> {
    info: &'a PtInfo,
    counter: Option<InstructionCounter>,
    /// Instructions of the part.
    instructions: u64,
    has_sample: bool,
    runs: Option<RunRecorder>,
}

impl<'a> AheadSink<'a> {
    pub(super) fn new(
        info: &'a PtInfo,
        period: Option<InstructionPeriod>,
        sizes: StackSizes,
        now: u64,
    ) -> Self {
        let counter = |period| InstructionCounter::new(period, Tail::default(), info, now);
        Self {
            info,
            counter: period.map(counter),
            instructions: 0,
            has_sample: false,
            runs: (sizes != StackSizes::NONE).then(|| RunRecorder::new(sizes)),
        }
    }

    /// Returns what was found.
    pub(super) fn into_summary(self) -> PartSummary {
        let tail = match self.counter {
            Some(counter) if counter.is_of_time() => {
                Tail { instructions: counter.since(), has_sample: self.has_sample }
            }
            // Which of them are samples depends on the parts before.
            _ => Tail { instructions: self.instructions, has_sample: false },
        };
        PartSummary { tail, runs: self.runs.map(RunRecorder::into_runs).unwrap_or_default() }
    }
}

impl Sink for AheadSink<'_> {
    fn step(&mut self, step: &TakenStep<'_>) {
        if let Some(runs) = &mut self.runs {
            runs.step(step);
        }
        let Some(counter) = &mut self.counter else { return };
        let instructions = step.instruction_count().into();
        self.instructions += instructions;
        if counter.is_of_time() && counter.is_due(instructions, self.info, step.times.now) {
            counter.restart();
            self.has_sample = true;
        }
    }

    fn event(&mut self, event: &TakenEvent<'_>) {
        if let Some(runs) = &mut self.runs {
            runs.enter(event.task.thread, event.time);
        }
    }

    fn gap(&mut self, _: Gap, _: Task, _: u64) {}
}
