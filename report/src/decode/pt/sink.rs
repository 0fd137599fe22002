//! Samples of the steps of a trace.

use recrep_trace::pt::{Branch, BranchKind, Gap, Sink, TakenStep, Task};

use super::estimate::ClockEstimate;
use super::info::PtInfo;
use crate::decode::gaps::{GapReason, Gaps};
use crate::decode::recorded::OwnerFinder;
use crate::decode::running::Owner;
use crate::decode::samples::{DecodedEvent, DecodedSample, SampleWriter};

/// Distance between two samples of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstructionPeriod {
    Instructions(u64),
    Nanoseconds(u64),
}

/// Samples of instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instructions {
    pub event: DecodedEvent,
    pub period: InstructionPeriod,
}

/// Events of a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceEvents {
    pub branches: Option<DecodedEvent>,
    pub instructions: Option<Instructions>,
    /// Only calls are wanted, or calls and returns.
    pub has_calls: bool,
    /// Only returns are wanted, or calls and returns.
    pub has_returns: bool,
}

impl TraceEvents {
    /// Returns whether a branch is a sample, by the rules of perf: where tracing ends counts as a
    /// call, and where it begins as a return.
    pub(super) fn has(&self, branch: &Branch) -> bool {
        use BranchKind::{
            Asynchronous, Begin, Call, Interrupt, InterruptReturn, Return, SystemCall, SystemReturn,
        };
        if !self.has_calls && !self.has_returns {
            return true;
        }
        let is_call =
            branch.to == 0 || matches!(branch.kind, Call | SystemCall | Interrupt | Asynchronous);
        let is_return = matches!(branch.kind, Return | SystemReturn | InterruptReturn | Begin);
        self.has_calls && is_call || self.has_returns && is_return
    }
}

/// Instructions of a part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    /// Number of instructions since the last sample, or since the begin.
    instructions: u64,
    /// There was a sample.
    has_sample: bool,
}

impl Tail {
    /// Returns the instructions since the last sample in front of this and what follows it.
    pub(super) fn followed_by(self, next: Self) -> Self {
        let before = if next.has_sample { 0 } else { self.instructions };
        Self { instructions: before + next.instructions, has_sample: true }
    }
}

/// Counts instructions from one sample to the next.
#[derive(Clone, Copy, Debug)]
struct Counter {
    period: InstructionPeriod,
    since: u64,
    /// Number of the period of time of the last sample.
    slot: u64,
}

impl Counter {
    fn slot(period: InstructionPeriod, time: u64) -> u64 {
        match period {
            InstructionPeriod::Instructions(_) => 0,
            InstructionPeriod::Nanoseconds(period) => time / period,
        }
    }

    fn new(period: InstructionPeriod, since: u64, time: u64) -> Self {
        Self { period, since, slot: Self::slot(period, time) }
    }

    /// Counts the instructions of a step; `sample` is called with the address of each that is a
    /// sample, and the number of instructions that it stands for.
    fn count(&mut self, step: &TakenStep<'_>, time: u64, mut sample: impl FnMut(u64, u64)) {
        let count = u64::from(step.instruction_count());
        if count == 0 {
            return;
        }
        match self.period {
            InstructionPeriod::Instructions(period) if self.since + count >= period => {
                let mut since = self.since;
                step.instructions(|instruction| {
                    since += 1;
                    if since >= period {
                        since = 0;
                        sample(instruction.address, period);
                    }
                });
                self.since = since;
            }
            InstructionPeriod::Nanoseconds(_) if self.slot != Self::slot(self.period, time) => {
                self.slot = Self::slot(self.period, time);
                let mut last = 0;
                step.instructions(|instruction| last = instruction.address);
                sample(last, self.since + count);
                self.since = 0;
            }
            _ => self.since += count,
        }
    }
}

/// Counts the instructions behind the last sample of a part.
#[derive(Debug)]
pub(super) struct TailSink<'a> {
    info: &'a PtInfo,
    counter: Counter,
    instructions: u64,
    has_sample: bool,
}

impl<'a> TailSink<'a> {
    pub(super) fn new(period: InstructionPeriod, info: &'a PtInfo, now: u64) -> Self {
        let counter = Counter::new(period, 0, info.time(now));
        Self { info, counter, instructions: 0, has_sample: false }
    }

    /// Returns the instructions since the last sample. Where those are that come each so many
    /// instructions depends on the parts before: all are counted.
    pub(super) fn into_tail(self) -> Tail {
        match self.counter.period {
            InstructionPeriod::Instructions(_) => {
                Tail { instructions: self.instructions, has_sample: false }
            }
            InstructionPeriod::Nanoseconds(_) => {
                Tail { instructions: self.counter.since, has_sample: self.has_sample }
            }
        }
    }
}

impl Sink for TailSink<'_> {
    fn step(&mut self, step: &TakenStep<'_>) {
        if matches!(self.counter.period, InstructionPeriod::Instructions(_)) {
            self.instructions += u64::from(step.instruction_count());
            return;
        }
        let (time, has_sample) = (self.info.time(step.times.now), &mut self.has_sample);
        self.counter.count(step, time, |_, _| *has_sample = true);
    }

    fn gap(&mut self, _: Gap, _: Task, _: u64) {}
}

/// Writes the samples of a part.
pub(super) struct PartSink<'a> {
    pub events: &'a TraceEvents,
    pub info: &'a PtInfo,
    pub samples: &'a mut SampleWriter,
    gaps: &'a mut Gaps,
    owners: OwnerFinder<'a>,
    counter: Option<Counter>,
    pub estimate: ClockEstimate,
    pub cpu: Option<u32>,
    /// The last thread, its time stamp, its process and the time.
    last: Option<(u32, u64, Owner, u64)>,
}

impl<'a> PartSink<'a> {
    pub(super) fn new(
        events: &'a TraceEvents,
        info: &'a PtInfo,
        samples: &'a mut SampleWriter,
        gaps: &'a mut Gaps,
        owners: OwnerFinder<'a>,
        tail: Tail,
        now: u64,
    ) -> Self {
        let counter = events.instructions.map(|Instructions { period, .. }| {
            let since = match period {
                InstructionPeriod::Instructions(period) => tail.instructions % period,
                InstructionPeriod::Nanoseconds(_) => tail.instructions,
            };
            Counter::new(period, since, info.time(now))
        });
        let estimate = ClockEstimate::new(now, info.has_times && events.branches.is_some());
        Self { events, info, samples, gaps, owners, counter, estimate, cpu: None, last: None }
    }

    /// Returns a sample of a thread at this time stamp.
    pub(super) fn sample(&mut self, task: Task, tsc: u64) -> DecodedSample {
        let (owner, time) = match self.last {
            Some((thread, at, owner, time)) if (thread, at) == (task.thread, tsc) => (owner, time),
            _ => {
                let time = self.info.time(tsc);
                let owned = if self.info.has_times { time } else { u64::MAX >> 1 };
                let owner = self.owners.owner(task.thread.cast_signed(), owned);
                self.last = Some((task.thread, tsc, owner, time));
                (owner, time)
            }
        };
        let Owner { pid, tid } = owner;
        DecodedSample { pid, tid, time, cpu: self.cpu, period: 1, ..DecodedSample::default() }
    }

    /// Returns the time up to which the samples of a thread are looked up in the same as this one.
    pub(super) fn end_of_stretch(&self, sample: &DecodedSample) -> u64 {
        let DecodedSample { pid, tid, time, .. } = *sample;
        if self.info.has_times { self.owners.unchanged_until(pid, tid, time) } else { u64::MAX }
    }
}

impl DecodedSample {
    /// Returns this sample at an instruction.
    pub(super) fn at(self, ip: u64) -> Self {
        Self { ip, is_kernel: ip >> 63 != 0, ..self }
    }

    /// Returns this sample of a branch.
    pub(super) fn of_branch(self, branch: &Branch) -> Self {
        Self { addr: branch.to, ..self.at(branch.from) }
    }
}

impl Sink for PartSink<'_> {
    fn step(&mut self, step: &TakenStep<'_>) {
        let TakenStep { task, times, clock, .. } = *step;
        if let (Some(mut counter), Some(Instructions { event, .. })) =
            (self.counter, self.events.instructions)
        {
            let sample = self.sample(task, times.now);
            counter.count(step, sample.time, |ip, period| {
                self.samples.put(event, &DecodedSample { period, ..sample.at(ip) });
            });
            self.counter = Some(counter);
        }
        let Some(event) = self.events.branches else { return };
        self.estimate.pass(step, step.instruction_count().into());
        step.branches(|branch, is_last| {
            let stamp = if is_last { times.now } else { times.before };
            let tsc = self.estimate.time(stamp, &branch, clock);
            if self.events.has(&branch) {
                let sample = self.sample(task, tsc);
                self.samples.put(event, &sample.of_branch(&branch));
            }
        });
    }

    fn gap(&mut self, gap: Gap, _: Task, _: u64) {
        self.gaps.add(match gap {
            Gap::Overflow => GapReason::Overflow,
            Gap::Damaged | Gap::Header => GapReason::BadPacket,
            Gap::Truncated => GapReason::CutRecord,
            Gap::NoCode(address) if address >> 63 != 0 => GapReason::KernelCode,
            Gap::NoCode(_) => GapReason::NoCode,
            Gap::Invalid(_) => GapReason::NoInstruction,
            Gap::Mismatch | Gap::ReturnStack | Gap::Off | Gap::Endless => GapReason::Mismatch,
        });
    }
}
