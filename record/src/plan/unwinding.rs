//! Callchains that rec unwinds while it records: from how much of the stack.
//!
//! The copies do not reach the file, but the kernel has to make them, and a ring has to hold them
//! until they are unwound: so the rate has to be known.

use recrep_console::units;
use recrep_format::abi::{AttrFlags, SampleType};
use recrep_format::attr::Attr;

use super::context::Context;
use super::event::PlannedEvent;
use super::notes::Notes;
use super::rings::{self, RingOfCopies};
use crate::event::EventSpec;
use crate::event::sampling::Callchain;
use crate::machine::registers::Arch;

/// Sizes of copies, largest first: 32 KiB have the whole stack of nearly all samples.
const SIZES: [u32; 4] = [32 << 10, 16 << 10, 8 << 10, 4 << 10];
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

/// Chooses how many bytes of the stack are copied where the user does not say. Returns whether any
/// event is unwound.
pub(super) fn size_copies(
    events: &mut [PlannedEvent],
    specs: &[EventSpec],
    cpus: &[u32],
    context: &Context<'_>,
    notes: &mut Notes,
) -> bool {
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
            event.attr.sample_stack_user = size;
            continue;
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
