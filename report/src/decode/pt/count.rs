//! Sums of samples, where no order is asked for: steps are counted, and each branch or instruction
//! is written once, with its count.
//!
//! ```text
//!   thread, mappings   │ a, as at first              │ a, behind an mmap    │ b
//!   steps              │ counted                     │ counted              │ counted
//!                                                    └ sums                 └ sums
//! ```

use recrep_trace::pt::{
    Branch, Code, Gap, Graph, Sink, Step, StepCounts, TakenEvent, TakenStep, Task,
};

use super::sink::PartSink;
use crate::decode::samples::DecodedSample;

/// A stretch of a thread in which nothing changes that its samples are looked up in.
#[derive(Clone, Copy, Debug)]
struct CountedStretch {
    task: Task,
    /// A time stamp that is in it.
    stamp: u64,
    /// Time at which it ends.
    end: u64,
    /// A sample of its first step.
    sample: DecodedSample<'static>,
}

/// Writes the sums of a part.
pub(super) struct CountSink<'a> {
    /// Writes what begins a stretch.
    single: PartSink<'a>,
    counts: StepCounts,
    stretch: Option<CountedStretch>,
}

impl<'a> CountSink<'a> {
    pub(super) fn new(single: PartSink<'a>) -> Self {
        Self { single, counts: StepCounts::default(), stretch: None }
    }

    /// Returns whether a step is in the stretch so far.
    #[inline]
    fn is_inside(&mut self, task: Task, stamp: u64) -> bool {
        let Some(stretch) = &mut self.stretch else { return false };
        let is_inside = stretch.task == task
            && (stretch.stamp == stamp || self.single.info.time(stamp) < stretch.end);
        if is_inside {
            stretch.stamp = stamp;
        }
        is_inside
    }

    /// Counts a branch between blocks, which may have a time of its own.
    fn branch(&mut self, taken: &TakenStep<'_>, branch: &Branch) {
        let TakenStep { graph, code, step, task, times, clock, .. } = *taken;
        self.single.estimate.pass(taken, 0);
        let stamp = self.single.estimate.time(times.now, branch, clock);
        if !self.is_inside(task, stamp) {
            self.begin(taken, stamp);
        }
        self.counts.add(graph, code, step);
    }

    /// Begins a stretch at this time stamp.
    #[cold]
    fn begin(&mut self, taken: &TakenStep<'_>, stamp: u64) {
        self.write(taken.graph, taken.code);
        let sample = self.single.sample(taken.task, stamp);
        let end = self.single.end_of_stretch(&sample);
        self.stretch = Some(CountedStretch { task: taken.task, stamp, end, sample });
    }

    /// Writes what was counted.
    fn write(&mut self, graph: &Graph, code: &dyn Code) {
        let Self { single: PartSink { events, samples, .. }, counts, stretch } = self;
        if let Some(CountedStretch { sample, .. }) = stretch {
            if let Some(event) = events.branches {
                counts.branches(graph, code, |branch, count| {
                    if events.filter.has(&branch) {
                        samples.put_sum(event, &sample.of_branch(&branch), count);
                    }
                });
            }
            if let Some(event) = events.instructions {
                counts.instructions(graph, code, |ip, count| {
                    samples.put_sum(event, &sample.at(ip), count);
                });
            }
        }
        counts.clear();
    }
}

impl Sink for CountSink<'_> {
    #[inline]
    fn step(&mut self, taken: &TakenStep<'_>) {
        let TakenStep { graph, code, step, task, times, .. } = *taken;
        if let Step::Branch(branch) = step {
            self.branch(taken, &branch);
            return;
        }
        if self.is_inside(task, self.single.estimate.at(times.now)) {
            let instructions = self.counts.add(graph, code, step);
            self.single.estimate.pass(taken, instructions);
        } else {
            // Its first branches may be of the stretch before.
            self.begin(taken, self.single.estimate.at(times.now));
            self.single.step(taken);
        }
    }

    fn finish_task(&mut self, graph: &Graph, code: &dyn Code) {
        self.write(graph, code);
        self.stretch = None;
    }

    fn event(&mut self, event: &TakenEvent<'_>) {
        self.single.side_event(event);
    }

    fn gap(&mut self, gap: Gap, task: Task, time: u64) {
        self.single.gap(gap, task, time);
    }
}
