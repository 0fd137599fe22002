//! Callchains that rec unwinds while it records: from how much of the stack.
//!
//! The copies do not reach the file, but the kernel has to make them, and a ring has to hold them
//! until they are unwound: so the rate is lower than that of other samples, and where it is not
//! known, less is copied.

use recrep_console::units;
use recrep_format::abi::{AttrFlags, SampleType};
use recrep_format::attr::Attr;

use super::context::Context;
use super::event::PlannedEvent;
use super::notes::Notes;
use super::rings::{self, RingOfCopies};
use crate::event::EventSpec;
use crate::event::sampling::{Callchain, Rate};
use crate::machine::registers::Arch;

/// Sizes of copies, largest first: 32 KiB have the whole stack of nearly all samples.
const SIZES: [u32; 4] = [32 << 10, 16 << 10, 8 << 10, 4 << 10];
/// Bytes that are copied at most with samples whose rate is not known: of context switches there
/// may be a million in a second.
const MOST_AT_ANY_RATE: u32 = 8 << 10;
/// Default frequency of samples with a copy of the stack.
const DEFAULT_HZ: u64 = 999;
/// Time for which a ring has to hold samples, in milliseconds.
const HELD: u64 = 15;
/// Shorter time for users whose rings are limited: complete callchains are worth more.
const HELD_AT_LEAST: u64 = 8;
/// Bytes that all CPUs together may copy in a second.
const MOST_COPIED: u64 = 512 << 20;
/// Number of CPUs that a command or a process is taken to keep busy.
const BUSY: usize = 4;

/// Returns whether rec unwinds the samples of an attr: they have the stack beside the user's part
/// of the callchain.
pub(crate) fn is_unwound(attr: &Attr) -> bool {
    attr.sample_type.contains(SampleType::CALLCHAIN | SampleType::STACK_USER)
        && !attr.flags.contains(AttrFlags::EXCLUDE_CALLCHAIN_USER)
}

/// Returns whether stacks are copied with samples whose rate is not known.
pub(super) fn has_bursts(events: &[PlannedEvent]) -> bool {
    events.iter().any(|event| is_unwound(&event.attr) && event.attr.frequency().is_none())
}

/// Chooses how many bytes of the stack are copied where the user does not say. Returns whether any
/// event is unwound.
pub(super) fn size_copies(
    events: &mut [PlannedEvent],
    specs: &[EventSpec],
    cpus: &[u32],
    context: &Context<'_>,
    notes: &mut Notes,
) -> bool {
    lower_rates(events, specs, context, notes);
    let unwound = events.iter().filter(|event| is_unwound(&event.attr));
    let samples = unwound.filter_map(|event| event.attr.frequency()).sum::<u64>();
    let beside_aux = events.iter().any(|event| event.has_aux);
    let least = SIZES.last().copied().unwrap_or_default();
    let chosen = size_of_copies(samples, rings::for_copies(beside_aux, context), cpus, context);
    for (event, spec) in events.iter_mut().zip(specs) {
        if !is_unwound(&event.attr) || event.attr.sample_stack_user != 0 {
            continue;
        }
        let by_choice = matches!(
            spec.terms.callchain.unwrap_or(context.config.sample.callchain),
            Some(Callchain::Unwind { .. })
        );
        if let Some(size) = chosen.or(by_choice.then_some(least)) {
            let is_known = event.attr.frequency().is_some();
            let most = if is_known { u32::MAX } else { MOST_AT_ANY_RATE };
            event.attr.sample_stack_user = size.min(most);
            continue;
        }
        if has_default_rate(event, spec, context) {
            context.rates.of(None).set(&mut event.attr);
        }
        event.attr.sample_type -= SampleType::REGS_USER | SampleType::STACK_USER;
        event.attr.sample_regs_user = 0;
        if context.machine.arch == Arch::Aarch64 {
            event.attr.sample_type |= SampleType::REGS_USER;
            event.attr.sample_regs_user = Arch::LINK_REGISTER;
        }
        notes.add(format!(
            "callchains use frame pointers: at {} Hz on {} CPUs, copies of stacks to unwind would \
             be too much; sample less often (-F), or insist by --call-graph unwind",
            units::grouped(samples),
            cpus.len()
        ));
    }
    events.iter().any(|event| is_unwound(&event.attr))
}

/// Returns the largest size with which a ring holds so many samples per second for long enough, and
/// all CPUs together do not copy too much; `None` if even the smallest copies are too much.
fn size_of_copies(
    samples: u64,
    ring: RingOfCopies,
    cpus: &[u32],
    context: &Context<'_>,
) -> Option<u32> {
    let held = if ring.is_limited { HELD_AT_LEAST } else { HELD };
    let busy = if context.system { cpus.len() } else { cpus.len().min(BUSY) };
    let mut smallest = None;
    for size in SIZES {
        let copied = samples.saturating_mul(size.into());
        let is_held = copied / 1000 * held <= ring.bytes;
        if is_held && copied_by(samples, busy, size) <= MOST_COPIED {
            return Some(size);
        }
        // The target hardly keeps so many CPUs busy, so the smallest copies are worth a try.
        smallest = (is_held && !context.system).then_some(size);
    }
    smallest
}

/// Returns the bytes that so many CPUs copy in a second.
fn copied_by(samples: u64, cpus: usize, size: u32) -> u64 {
    samples.saturating_mul(cpus as u64).saturating_mul(size.into())
}

/// Sets the default rate of events whose stacks are copied.
fn lower_rates(
    events: &mut [PlannedEvent],
    specs: &[EventSpec],
    context: &Context<'_>,
    notes: &mut Notes,
) {
    for (event, spec) in events.iter_mut().zip(specs) {
        let is_higher = event.attr.frequency().is_some_and(|hz| hz > DEFAULT_HZ);
        if is_unwound(&event.attr) && is_higher && has_default_rate(event, spec, context) {
            event.attr.sample_period = DEFAULT_HZ;
            notes.add(format!(
                "sampling at {DEFAULT_HZ} Hz, as stacks are copied to be unwound; -F sets another \
                 rate"
            ));
        }
    }
}

/// Returns whether the frequency of an event was not asked for.
fn has_default_rate(event: &PlannedEvent, spec: &EventSpec, context: &Context<'_>) -> bool {
    let is_default = context.config.rate == Rate::Default && spec.terms.rate.is_none();
    is_default && event.attr.frequency().is_some()
}
