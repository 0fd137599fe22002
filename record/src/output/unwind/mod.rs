//! Callchains unwound while they are recorded: the copy of the stack in a sample becomes a plain
//! callchain before the sample is written.
//!
//! ```text
//!  drain threads ─ side-band ─▶ spaces: what each process has mapped, at any recent moment
//!         │                        │        modules: their rules, read through /proc while the process lives
//!         └─ batches ─▶ queue ─────┴───▶ rewriter ─▶ pack, file
//!                        └ holds the samples of a round until the next round is over
//! ```
//!
//! A sample sees the mappings that were made before it, though the records of these may be in
//! another CPU's ring. Side-band records are collected while they are drained, and a batch of round
//! n is written after round n+1: by then all older records have been read. If the queue is full, a
//! batch is written at once.
//!
//! A sample's form shows what is left to unwind. With a complete callchain, it has neither registers
//! nor stack. If the callchain ends early, it keeps its registers as a mark. If its code is not
//! known yet, it keeps the copied stack as well, for the reader of the file to unwind.

mod calls;
mod chains;
mod code;
mod jit_dumps;
mod modules;
mod rewrite;
mod space;
mod spaces;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use recrep_format::abi::{AttrFlags, EventType, SwEvent};
use recrep_format::attr::{Attr, AttrEntry};
use recrep_format::layout::SampleLayout;
use rustc_hash::FxHashMap;
use rustix::time::ClockId;

use crate::plan::unwinding::is_unwound;
pub(crate) use chains::Chains;
use modules::SharedModules;
pub(crate) use rewrite::{Pointers, Rewriter};
pub(crate) use spaces::Spaces;

/// Processes and their modules, as known to drain threads and writer threads.
#[derive(Default)]
pub struct Unwinding {
    /// Mappings of all processes.
    pub(crate) spaces: Spaces,
    modules: SharedModules,
    events: FxHashMap<u64, UnwoundEvent>,
    /// `true` if times are those of `CLOCK_MONOTONIC`, as in jitdumps.
    is_monotonic: bool,
    /// Number of rounds that are over.
    rounds: AtomicU64,
}

/// An event whose samples are unwound.
struct UnwoundEvent {
    layout: SampleLayout,
    /// Maximum number of frames; 0 for the usual one.
    max_stack: u16,
    /// Number of bytes of the stack that are copied at most.
    copy: u32,
    /// `true` if registers stay where the callchain is complete, as they have arguments of system
    /// calls.
    has_arguments: bool,
}

fn is_of_switches(attr: &Attr) -> bool {
    attr.kind == EventType::SOFTWARE && attr.config == SwEvent::CONTEXT_SWITCHES.0
}

/// Longest time between two rounds: the files of a container are gone when it has ended.
pub(crate) const ROUND: Duration = Duration::from_millis(100);

impl std::fmt::Debug for Unwinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwinding").field("rounds", &self.rounds).finish_non_exhaustive()
    }
}

impl Unwinding {
    /// Returns what the samples of these events need; `None` if none is unwound. `max_stack`: number
    /// of frames that was asked for. `with_arguments`: switches keep the arguments of system calls.
    pub(crate) fn of(
        entries: &[AttrEntry],
        max_stack: Option<u16>,
        with_arguments: bool,
    ) -> Option<Arc<Self>> {
        let mut events = FxHashMap::default();
        let mut is_monotonic = false;
        for entry in entries.iter().filter(|entry| is_unwound(&entry.attr)) {
            let has_clock = entry.attr.flags.contains(AttrFlags::USE_CLOCKID);
            is_monotonic |= has_clock && entry.attr.clockid == ClockId::Monotonic as i32;
            for id in &entry.ids {
                let (layout, attr) = (SampleLayout::of(&entry.attr), &entry.attr);
                // The kernel's own chains may be limited to fewer.
                let max_stack = match attr.sample_max_stack {
                    0 => 0,
                    limited => max_stack.unwrap_or(limited).max(limited),
                };
                let copy = attr.sample_stack_user;
                let has_arguments = with_arguments && is_of_switches(attr);
                events.insert(*id, UnwoundEvent { layout, max_stack, copy, has_arguments });
            }
        }
        let any = !events.is_empty();
        any.then(|| Arc::new(Self { events, is_monotonic, ..Self::default() }))
    }

    /// Returns the number of rounds that are over.
    pub(super) fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Acquire)
    }

    /// Says that all rings have been emptied once more, and returns how often that was.
    pub(super) fn end_round(&self) -> u64 {
        self.rounds.fetch_add(1, Ordering::AcqRel) + 1
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests;
