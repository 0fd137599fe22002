//! CPUs as locks: who had the CPU on which a thread ran late.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{Handover, WaitingThread, Waits};
use crate::timeline::off_cpu::{Stretch, StretchKind};

/// Shortest time until a thread runs for which the CPU's last owner is looked up.
const LATE: u64 = 100_000;
/// Longest time between one thread's leaving a CPU and another's getting it.
const NEAR: u64 = 50_000;

/// The same after an EXIT record: a thread runs on for a while, and its last switch is not recorded.
const NEAR_EXIT: u64 = 500_000;

/// A thread that got a CPU late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LateStart {
    /// Time at which it ran.
    on: u64,
    thread: u32,
    stretch: u32,
    /// Time from which on it could have run.
    since: u64,
}

impl Waits {
    /// Finds for each stretch that ended late the recorded thread that had the CPU until then. Of a
    /// recording of all CPUs it must be of the same program: others take CPUs anyway.
    pub(super) fn find_owners(&mut self, is_of_all_cpus: bool) {
        let mut by_cpu: FxHashMap<u16, Vec<LateStart>> = FxHashMap::default();
        for (index, thread) in (0..).zip(&self.threads) {
            for (place, stretch) in (0..).zip(&thread.stretches) {
                let since = thread.runnable_since(stretch);
                let since = since.filter(|since| stretch.on.saturating_sub(*since) >= LATE);
                if let Some(since) = since
                    && stretch.cpu != Stretch::NO_CPU
                {
                    let late = LateStart { on: stretch.on, thread: index, stretch: place, since };
                    by_cpu.entry(stretch.cpu).or_default().push(late);
                }
            }
        }
        for late in by_cpu.values_mut() {
            late.sort_unstable();
        }
        let leavers = (0..self.threads.len()).into_par_iter().flat_map_iter(|index| {
            let thread = self.threads.get(index);
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            thread.map(|thread| leavers(thread, index, &by_cpu)).unwrap_or_default()
        });
        let mut found: Vec<(LateStart, Handover)> = leavers.collect();
        found.sort_unstable_by_key(|(late, handover)| {
            (late.thread, late.stretch, handover.time, handover.owner)
        });
        for (late, handover) in found {
            let Some(thread) = self.threads.get_mut(late.thread as usize) else { continue };
            match thread.late.last_mut() {
                // The last one to leave counts.
                Some((stretch, known)) if *stretch == late.stretch => *known = handover,
                _ => thread.late.push((late.stretch, handover)),
            }
        }
        if is_of_all_cpus {
            self.leave_out_other_programs();
        }
    }

    /// Leaves out owners of CPUs that belong to other programs.
    fn leave_out_other_programs(&mut self) {
        let known = self.program.and_then(|program| self.index(program.tid, program.time));
        let of_thread = (0..).zip(&self.threads).map(|(index, thread)| {
            let is_known = known.is_some_and(|known| self.descends(index, known));
            if is_known { None } else { Some(thread.pid) }
        });
        // Processes of the program that the recorder ran are one program.
        let programs: Vec<Option<i32>> = of_thread.collect();
        for (thread, own) in self.threads.iter_mut().zip(&programs) {
            thread.late.retain(|(_, handover)| programs.get(handover.owner as usize) == Some(own));
        }
    }

    /// Returns whether a thread is this ancestor, or was forked by it or by one that was.
    fn descends(&self, thread: u32, ancestor: u32) -> bool {
        /// Most generations: a longer line is no program's.
        const MOST: usize = 1000;
        let mut line = std::iter::successors(Some(thread), |one| self.thread(*one)?.parent());
        line.by_ref().take(MOST).any(|one| one == ancestor)
    }
}

/// Returns the late starts of other threads just after this one left their CPU.
fn leavers(
    thread: &WaitingThread,
    index: u32,
    by_cpu: &FxHashMap<u16, Vec<LateStart>>,
) -> Vec<(LateStart, Handover)> {
    let mut found = Vec::new();
    if by_cpu.is_empty() {
        return found;
    }
    let mut cpu = thread.first_cpu;
    for stretch in &thread.stretches {
        let left = std::mem::replace(&mut cpu, stretch.cpu);
        if !matches!(stretch.kind, StretchKind::Starting | StretchKind::Unknown) {
            let late = by_cpu.get(&left).map(Vec::as_slice).unwrap_or_default();
            found.extend(after_leaving(late, stretch.off, NEAR, index));
        }
    }
    if let Some(exit) = thread.exit {
        let late = by_cpu.get(&cpu).map(Vec::as_slice).unwrap_or_default();
        found.extend(after_leaving(late, exit, NEAR_EXIT, index));
    }
    found
}

/// Returns those of the late starts on a CPU that come so soon after a thread left it.
fn after_leaving(
    late: &[LateStart],
    time: u64,
    near: u64,
    owner: u32,
) -> impl Iterator<Item = (LateStart, Handover)> {
    let after = late.partition_point(|late| late.on < time);
    let soon = late.get(after..).unwrap_or_default().iter();
    let soon = soon.take_while(move |late| late.on - time < near);
    let of_others = soon.filter(move |late| late.thread != owner && time > late.since);
    of_others.map(move |late| (*late, Handover { time, owner }))
}
