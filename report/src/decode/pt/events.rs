//! Events of Intel PT: those that are asked for and that the trace can have.

use recrep_format::abi::{BranchSampleType, HwEvent, SampleType};
use recrep_format::attr::Attr;
use recrep_trace::pt::CycleSource;

use super::info::PtInfo;
use super::period::InstructionPeriod;
use super::side::SideEvents;
use super::stacks::StackSizes;
use crate::callchain::ChainOrigin;
use crate::decode::calls::BranchFilter;
use crate::decode::recorded::RecordedTraces;
use crate::decode::samples::{DecodedEvent, DecodedEvents};
use crate::query::{Letter, PeriodUnit, SynthOptions};

/// Events of a trace.
#[derive(Clone, Debug)]
pub(super) struct TraceEvents {
    pub branches: Option<DecodedEvent>,
    pub instructions: Option<DecodedEvent>,
    pub cycles: Option<DecodedEvent>,
    /// Distance between two instructions that are samples, or that cycles are told up to.
    pub period: Option<InstructionPeriod>,
    /// Cycles are known up to each branch with a time, if only about.
    pub are_cycles_approximate: bool,
    /// Branches, instructions and cycles have instructions and cycles since the sample before.
    pub has_ipc: bool,
    pub side: SideEvents,
    pub filter: BranchFilter,
}

impl TraceEvents {
    /// Adds the events that are asked for; also returns the sizes of the stacks of their samples.
    pub(super) fn add(
        decoded: &mut DecodedEvents,
        traces: &RecordedTraces<'_>,
        info: &PtInfo,
    ) -> (Self, StackSizes) {
        let options = &traces.options;
        let period = instruction_period(options, info);
        let has_stacks = period.is_some() || SideEvents::are_recorded(options, info);
        let sizes = if has_stacks { stack_sizes(options) } else { StackSizes::NONE };
        if traces.as_sums && needs_no_order(options, period, sizes) {
            decoded.sum_samples();
        }
        let mut attr = traces.attr(SampleType::ADDR, info.has_times);
        let is_of_cpus = traces.queues.all.iter().any(|queue| queue.cpu.is_some());
        let has_cpu = is_of_cpus && attr.sample_type.contains(SampleType::CPU);
        attr.sample_type.set(SampleType::CPU, has_cpu);
        let has_ipc = traces.has_ipc && info.has_cycles;
        attr.sample_type.set(SampleType::RAW, has_ipc);
        let branches = options.has(Letter::Branches).then(|| {
            let config = HwEvent::BRANCH_INSTRUCTIONS.0;
            decoded.add("branches", Attr { config, sample_period: 1, ..attr.clone() })
        });
        // Only branches have an address that they lead to, and no stacks, as in perf.
        attr.sample_type.remove(SampleType::ADDR);
        if sizes.frames > 0 {
            attr.sample_type |= SampleType::CALLCHAIN;
            attr.flags |= ChainOrigin::TRACED;
        }
        if sizes.branches > 0 {
            attr.sample_type |= SampleType::BRANCH_STACK;
            attr.branch_sample_type = BranchSampleType::HW_INDEX;
        }
        let sample_period = options.period.max(1);
        let mut sampled = |letter: Letter, name: &str, HwEvent(config): HwEvent| {
            let is_wanted = options.has(letter) && period.is_some();
            let attr = Attr { config, sample_period, ..attr.clone() };
            is_wanted.then(|| decoded.add(name, attr))
        };
        let instructions = sampled(Letter::Instructions, "instructions", HwEvent::INSTRUCTIONS);
        let cycles = match info.has_cycles {
            true => sampled(Letter::Cycles, "cycles", HwEvent::CPU_CYCLES),
            false => None,
        };
        let has_packets = info.rates.cycles != CycleSource::Times;
        let events = Self {
            branches,
            instructions,
            cycles,
            period: period.filter(|_| instructions.or(cycles).is_some()),
            has_ipc,
            are_cycles_approximate: !has_packets || options.has(Letter::ApproximateIpc),
            side: SideEvents::add(decoded, options, info, &attr),
            filter: BranchFilter::from_options(options),
        };
        (events, sizes)
    }

    /// Returns the letters for which there are no samples.
    pub(super) fn unserved(
        &self,
        options: &SynthOptions,
        info: &PtInfo,
    ) -> Vec<(Letter, &'static str)> {
        use Letter::{
            AddedCallchains, AddedLastBranches, ApproximateIpc, Branches, Callchains, Calls,
            Cycles, Errors, FirstLevel, Instructions, Interrupts, LastBranches, LastLevel, Log,
            Memory, Power, PtWrites, Quick, Remote, Returns, Skip, Timeless, Tlb, Transactions,
        };
        let has_instructions = self.period.is_some();
        let reason = |letter: Letter| match letter {
            Branches | Calls | Returns | Errors | Timeless | Skip => None,
            Quick => Some("all of the trace is decoded"),
            Log => Some("rep dump --packets shows the packets"),
            Cycles | ApproximateIpc if !info.has_cycles => {
                Some("the trace was recorded without them (cyc=1 or mtc=1)")
            }
            ApproximateIpc => None,
            Instructions | Cycles if has_instructions => None,
            Instructions | Cycles => {
                Some("without times, their period must be in instructions, such as i1000i")
            }
            Callchains | LastBranches if has_instructions || !self.side.is_empty() => None,
            Callchains | LastBranches => Some("only samples of instructions and cycles have them"),
            PtWrites | Power | Transactions => None,
            Interrupts if self.side.has(Interrupts) => None,
            Interrupts => Some("the trace was recorded without them (event=1)"),
            AddedCallchains | AddedLastBranches => Some("rep does not make them of Intel PT"),
            FirstLevel | LastLevel | Tlb | Remote | Memory => Some("Intel PT does not record that"),
            _ => Some("rep does not decode them"),
        };
        options.letters().filter_map(|letter| Some((letter, reason(letter)?))).collect()
    }
}

/// Returns the distance between samples of instructions, if they are wanted and can be had.
fn instruction_period(options: &SynthOptions, info: &PtInfo) -> Option<InstructionPeriod> {
    if !options.has(Letter::Instructions) && !options.has(Letter::Cycles) {
        return None;
    }
    let period = options.period.max(1);
    match options.unit {
        PeriodUnit::Instructions => Some(InstructionPeriod::Instructions(period)),
        _ if !info.has_times => None,
        PeriodUnit::Nanoseconds => Some(InstructionPeriod::Nanoseconds(period)),
        PeriodUnit::Ticks => Some(InstructionPeriod::Ticks(period)),
    }
}

/// Returns the sizes of the stacks of samples.
fn stack_sizes(options: &SynthOptions) -> StackSizes {
    StackSizes {
        frames: if options.has(Letter::Callchains) { options.frames } else { 0 },
        branches: if options.has(Letter::LastBranches) { options.branches } else { 0 },
    }
}

/// Returns whether samples are the same in any order: branches, or each instruction. Both have
/// times of their own.
fn needs_no_order(
    options: &SynthOptions,
    period: Option<InstructionPeriod>,
    sizes: StackSizes,
) -> bool {
    let is_each =
        period == Some(InstructionPeriod::Instructions(1)) && !options.has(Letter::Cycles);
    let is_one = if options.has(Letter::Branches) { period.is_none() } else { is_each };
    is_one && sizes == StackSizes::NONE
}
