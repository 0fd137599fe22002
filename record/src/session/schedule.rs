//! CPUs and urgency of rec itself (`--nice`, `-r`, `--affinity`).
//!
//! Records are lost if rec does not run in time: on a busy machine, a woken thread waits for a few
//! milliseconds, and small rings fill up meanwhile. So rec asks for the shortest time slice, which
//! is scheduled soonest (Linux 6.12; any user may). A niceness or real-time priority it takes only
//! if the user names one, as the recorded programs pay for it; or, if rings would be full within 50
//! ms, a niceness of -20 where that is allowed. All of this applies while counters start and rings
//! are drained, which needs little CPU time: not while `/proc` is read or the file is finished.

use std::fs;
use std::path::Path;
use std::time::Duration;

use recrep_format::abi::{AttrFlags, SampleType};
use recrep_format::layout::SampleLayout;
use rustix::process::getpriority_process;
use rustix::thread::CpuSet;

use crate::kernel::counters::Counters;
use crate::kernel::sys;
use crate::machine::cpus;
use crate::messages::error::{Error, Result};
use crate::plan::PlannedEvent;
use crate::plan::config::{Affinity, Rings};
use crate::tasks;

/// Shortest time slice that the kernel grants.
const SLICE: Duration = Duration::from_micros(100);
/// Lowest niceness.
const NICEST: i32 = -20;
/// Rings that are full before this may lose records on a busy machine.
const SOON: Duration = Duration::from_millis(50);
/// Number of frames that a callchain is taken to have.
const FRAMES: usize = 32;
/// Number of bytes that a branch stack is taken to have: 32 entries.
const BRANCHES: usize = 32 * 24;

/// Higher scheduling priority of this thread, until this is dropped.
#[derive(Debug)]
pub(super) struct Priority {
    /// The niceness to go back to; none where nothing was changed.
    nice: Option<i32>,
}

impl Priority {
    /// Gives this thread the niceness or the priority that was asked for; or else, where rings are
    /// full soon, the lowest niceness if this user may have it. A class other than SCHED_OTHER
    /// (chrt(1)) stays unless asked for. The command was forked before, and keeps its own.
    pub(super) fn apply(rings: &Rings, are_full_soon: bool) -> Result<Self> {
        let usual = getpriority_process(None).unwrap_or(0);
        match (rings.realtime, rings.nice) {
            (Some(priority), _) => sys::set_fifo(priority).map_err(|why| {
                let what = format!(
                    "cannot run with real-time priority {priority} (-r; 1 to 99, \
                                    needs CAP_SYS_NICE)"
                );
                Error::io(what, why)
            })?,
            (None, Some(nice)) => sys::set_share(nice, SLICE).map_err(|why| {
                let what = format!(
                    "cannot run with niceness {nice} (--nice; less than {usual} needs \
                     CAP_SYS_NICE, or a higher RLIMIT_NICE)"
                );
                Error::io(what, why)
            })?,
            (None, None) if !sys::is_other() => return Ok(Self { nice: None }),
            (None, None) if are_full_soon && sys::set_share(NICEST, SLICE).is_ok() => {}
            // Without the short slice, rec waits as long as any other recorder.
            (None, None) => drop(sys::set_share(usual, SLICE)),
        }
        Ok(Self { nice: Some(usual) })
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        if let Some(nice) = self.nice {
            // A zero slice restores the kernel's default.
            let _ = sys::set_share(nice, Duration::ZERO);
        }
    }
}

/// Returns whether a ring of this many bytes would be full soon, if all events take samples at the
/// frequency that was asked for. What others take is not known before.
pub(super) fn is_full_soon(events: &[PlannedEvent], bytes: usize) -> bool {
    let per_second = events.iter().map(bytes_per_second).fold(0, u64::saturating_add);
    u128::from(per_second) * SOON.as_millis() > bytes as u128 * 1000
}

fn bytes_per_second(PlannedEvent { attr, .. }: &PlannedEvent) -> u64 {
    let stack = usize::try_from(attr.sample_stack_user).unwrap_or(usize::MAX);
    let mut record = SampleLayout::of(attr).variable.at();
    for (bit, bytes) in [
        (SampleType::CALLCHAIN, 8 * FRAMES),
        (SampleType::BRANCH_STACK, BRANCHES),
        (SampleType::REGS_USER, 8 * attr.sample_regs_user.count_ones() as usize),
        (SampleType::REGS_INTR, 8 * attr.sample_regs_intr.count_ones() as usize),
        (SampleType::STACK_USER, stack),
    ] {
        if attr.sample_type.contains(bit) {
            record = record.saturating_add(bytes);
        }
    }
    // Rings that are overwritten are not drained.
    let is_drained = !attr.flags.contains(AttrFlags::WRITE_BACKWARD);
    attr.frequency().filter(|_| is_drained).unwrap_or(0).saturating_mul(record as u64)
}

/// Returns the CPUs on which each ring is drained; empty without `--affinity`.
pub(super) fn places(affinity: Affinity, counters: &Counters) -> Vec<CpuSet> {
    if affinity == Affinity::System {
        return Vec::new();
    }
    let owners = counters.owners.iter().filter_map(|owner| counters.all.get(*owner));
    let nodes =
        if affinity == Affinity::Node { cpus::nodes(Path::new("/sys")) } else { Vec::new() };
    let places = owners.map(|owner| {
        // A thread's ring can be drained on any CPU.
        let Some(cpu) = owner.place.cpu else { return online() };
        cpus::set(nodes.iter().find(|node| node.contains(&cpu)).unwrap_or(&vec![cpu]))
    });
    places.collect()
}

fn online() -> CpuSet {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    cpus::set(&tasks::parse_cpus(&list).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use recrep_format::attr::Attr;

    #[test]
    fn rings_that_are_full_soon() {
        let event = |hz: u64, bits: SampleType, stack: u32| {
            let mut attr = Attr {
                sample_type: SampleType::IP | bits,
                sample_stack_user: stack,
                ..Attr::default()
            };
            (attr.sample_period, attr.flags) = (hz, AttrFlags::FREQ);
            PlannedEvent { attr, ..PlannedEvent::default() }
        };
        let none = SampleType::empty();
        // 16 bytes a sample: 800 in 50 ms are 12,800 bytes.
        assert!(is_full_soon(&[event(16_000, none, 0)], 12_799));
        assert!(!is_full_soon(&[event(16_000, none, 0)], 12_800));
        // Two events share a ring; callchains and stacks are larger.
        assert!(is_full_soon(&[event(8_001, none, 0), event(8_000, none, 0)], 12_800));
        assert!(is_full_soon(&[event(1_000, SampleType::CALLCHAIN, 0)], 13_599));
        assert!(is_full_soon(&[event(1_000, SampleType::STACK_USER, 8192)], 400_000));
        assert!(is_full_soon(&[event(1_000, SampleType::BRANCH_STACK, 0)], 39_199));
        let mut overwritten = event(16_000, none, 0);
        overwritten.attr.flags |= AttrFlags::WRITE_BACKWARD;
        assert!(!is_full_soon(&[overwritten], 1));
        let mut counted = event(16_000, none, 0);
        counted.attr.flags = AttrFlags::empty();
        assert!(!is_full_soon(&[counted], 1), "a period says nothing of time");
    }

    fn niceness() -> i32 {
        getpriority_process(None).unwrap()
    }

    #[test]
    fn niceness_is_changed_only_where_it_is_asked_for_and_as_long_as_needed() {
        // In a thread of its own, as niceness is a thread's.
        std::thread::spawn(|| {
            let before = niceness();
            let usual = Priority::apply(&Rings::default(), false).unwrap();
            assert_eq!(niceness(), before);
            drop(usual);
            let more = before + 1;
            let nice =
                Priority::apply(&Rings { nice: Some(more), ..Rings::default() }, true).unwrap();
            assert_eq!((niceness(), nice.nice), (more, Some(before)));
            drop(nice);
            // Less niceness again is not for everyone.
            assert!([before, more].contains(&niceness()));
            let soon = Priority::apply(&Rings::default(), true).unwrap();
            assert!([before, more, NICEST].contains(&niceness()));
            drop(soon);
            assert!([before, more].contains(&niceness()));
        })
        .join()
        .unwrap();
    }
}
