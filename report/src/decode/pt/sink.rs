//! Samples of the steps of a trace.

use recrep_trace::pt::{Branch, Executed, Gap, Sink, Step, TakenEvent, TakenStep, Task};

use super::cycles::{CycleEvent, CycleMeter};
use super::estimate::ClockEstimate;
use super::events::TraceEvents;
use super::info::PtInfo;
use super::period::{InstructionCounter, Tail};
use super::side::synth_data;
use super::stacks::PartStacks;
use crate::decode::gaps::{GapReason, Gaps};
use crate::decode::recorded::OwnerFinder;
use crate::decode::running::Owner;
use crate::decode::samples::{DecodedSample, Elapsed, SampleWriter};

/// Writes the samples of a part.
pub(super) struct PartSink<'a> {
    pub events: &'a TraceEvents,
    pub info: &'a PtInfo,
    pub samples: &'a mut SampleWriter,
    gaps: &'a mut Gaps,
    owners: OwnerFinder<'a>,
    counter: Option<InstructionCounter>,
    pub estimate: ClockEstimate,
    /// `None` if no samples have cycles.
    pub cycles: Option<CycleMeter>,
    pub cpu: Option<u32>,
    /// Offset of the part in the AUX area.
    pub offset: u64,
    /// `None` if samples have no stacks.
    pub stacks: Option<PartStacks<'a>>,
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
        let counter = events.period.map(|period| InstructionCounter::new(period, tail, info, now));
        let estimate = ClockEstimate::new(now, info.has_times);
        Self {
            events,
            info,
            samples,
            gaps,
            owners,
            counter,
            estimate,
            cycles: None,
            cpu: None,
            offset: 0,
            stacks: None,
            last: None,
        }
    }

    /// Returns a sample of a thread at this time stamp.
    pub(super) fn sample(&mut self, task: Task, tsc: u64) -> DecodedSample<'static> {
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

    /// Counts an instruction of a step that is due, and writes its samples if it is one.
    fn instruction(&mut self, step: &TakenStep<'_>, ip: u64, is_last: bool) {
        let Some(period) = self.counter.as_mut().and_then(InstructionCounter::pass) else { return };
        let TraceEvents { instructions, cycles, .. } = self.events;
        let instructions = instructions
            .map(|event| (event, period, self.elapsed(CycleEvent::Instructions, step, is_last)));
        let cycles = cycles.and_then(|event| {
            let elapsed = self.elapsed(CycleEvent::Cycles, step, is_last)?;
            Some((event, elapsed.cycles, Some(elapsed)))
        });
        if instructions.is_none() && cycles.is_none() {
            return;
        }
        let sample = self.sample(step.task, self.estimate.at(step.times.now));
        let (callchain, branches) = match &mut self.stacks {
            Some(stacks) => stacks.at(ip),
            None => Default::default(),
        };
        for (event, period, elapsed) in [instructions, cycles].into_iter().flatten() {
            let sample = DecodedSample { period, callchain, branches, elapsed, ..sample.at(ip) };
            self.samples.put(event, &sample);
        }
    }

    /// Returns what has passed up to a sample of an event, if the trace tells of cycles there.
    fn elapsed(
        &mut self,
        event: CycleEvent,
        step: &TakenStep<'_>,
        is_last: bool,
    ) -> Option<Elapsed> {
        self.cycles.as_mut()?.take(event, step.clock, is_last)
    }

    /// Passes a branch, and writes its sample.
    fn branch(&mut self, step: &TakenStep<'_>, branch: &Branch, is_last: bool) {
        let TakenStep { task, times, clock, is_end, .. } = *step;
        if let Some(stacks) = &mut self.stacks {
            stacks.pass(branch, is_end && is_last);
        }
        let Some(event) = self.events.branches else { return };
        let stamp = if is_last { times.now } else { times.before };
        let tsc = self.estimate.time(stamp, branch, clock);
        if self.events.filter.has(branch) {
            let elapsed = self.elapsed(CycleEvent::Branches, step, is_last);
            let sample = DecodedSample { elapsed, ..self.sample(task, tsc) };
            self.samples.put(event, &sample.of_branch(branch));
        }
    }

    /// Writes the sample of an event beside the flow.
    pub(super) fn side_event(&mut self, taken: &TakenEvent<'_>) {
        let TakenEvent { event, ip, task, time } = *taken;
        if let Some(stacks) = &mut self.stacks {
            stacks.enter(task.thread);
        }
        let data = synth_data(event, self.info, self.offset);
        let side = &self.events.side;
        let of = data.as_ref().map_or_else(|| side.transactions(), |data| side.of_data(data));
        let Some(of) = of else { return };
        let raw = data.map(|data| data.to_raw()).unwrap_or_default();
        let sample = self.sample(task, self.estimate.at(time));
        let (callchain, branches) = match &mut self.stacks {
            Some(stacks) => stacks.at(ip),
            None => Default::default(),
        };
        let sample = DecodedSample { callchain, branches, raw: &raw, ..sample.at(ip) };
        self.samples.put(of, &sample);
    }

    /// Returns the time up to which the samples of a thread are looked up in the same as this one.
    pub(super) fn end_of_stretch(&self, sample: &DecodedSample<'_>) -> u64 {
        let DecodedSample { pid, tid, time, .. } = *sample;
        if self.info.has_times { self.owners.unchanged_until(pid, tid, time) } else { u64::MAX }
    }
}

impl DecodedSample<'_> {
    /// Returns this sample at an instruction.
    pub(super) fn at(self, ip: u64) -> Self {
        Self { ip, ..self }
    }

    /// Returns this sample of a branch.
    pub(super) fn of_branch(self, branch: &Branch) -> Self {
        Self { addr: branch.to, ..self.at(branch.from) }
    }
}

impl Sink for PartSink<'_> {
    fn step(&mut self, step: &TakenStep<'_>) {
        let TakenStep { task, times, .. } = *step;
        if let Some(stacks) = &mut self.stacks {
            stacks.enter(task.thread);
        }
        let TraceEvents { has_ipc, branches, .. } = self.events;
        let has_branches = branches.is_some();
        let instructions = step.instruction_count().into();
        self.estimate.pass(step, instructions);
        if !has_branches && let Step::Branch(branch) = step.step {
            self.estimate.time(times.now, &branch, step.clock);
        }
        let info = self.info;
        let counter = self.counter.as_mut();
        let is_due = counter.is_some_and(|it| it.is_due(instructions, info, times.now));
        if is_due || has_branches && *has_ipc {
            step.executed(|part| match part {
                Executed::Instruction(ip, is_last) => {
                    if let Some(cycles) = &mut self.cycles {
                        cycles.pass(1);
                    }
                    if is_due {
                        self.instruction(step, ip, is_last);
                    }
                }
                Executed::Branch(branch, is_last) => self.branch(step, &branch, is_last),
            });
            return;
        }
        if let Some(cycles) = &mut self.cycles {
            cycles.pass(instructions);
        }
        if has_branches || self.stacks.is_some() {
            step.branches(|branch, is_last| self.branch(step, &branch, is_last));
        }
    }

    fn event(&mut self, event: &TakenEvent<'_>) {
        self.side_event(event);
    }

    fn gap(&mut self, gap: Gap, _: Task, _: u64) {
        self.gaps.add(match gap {
            Gap::Overflow => GapReason::Overflow,
            Gap::Damaged | Gap::Header => GapReason::BadPacket,
            Gap::Truncated => GapReason::CutRecord,
            Gap::NoCode(address) => GapReason::of_missing_code(address),
            Gap::Invalid(_) => GapReason::NoInstruction,
            Gap::Mismatch | Gap::ReturnStack | Gap::Off | Gap::Endless => GapReason::Mismatch,
        });
    }
}
