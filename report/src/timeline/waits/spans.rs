//! Spans of time whose critical path is asked for.

use super::{WaitingThread, Waits};
use crate::timeline::off_cpu::{Stretch, StretchKind};

/// A span of time that ends with what a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathSpan {
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Index of the thread.
    pub(crate) thread: u32,
}

impl Waits {
    /// Returns the span of the program that the recorder ran: from its exec to the exit of its
    /// first thread. Without one, it is that of the main thread of the process with the most
    /// switches and samples, from the first record to the last. `None` if no thread was recorded.
    pub(crate) fn run_of_program(&self) -> Option<PathSpan> {
        let program = self.program.and_then(|program| {
            let thread = self.index(program.tid, program.time)?;
            Some(PathSpan { from: program.time, thread, to: self.end_of(thread) })
        });
        program.or_else(|| {
            let thread = self.main_thread()?;
            Some(PathSpan { from: self.between.0, thread, to: self.end_of(thread) })
        })
    }

    /// Returns the span that ends when one of these threads runs for the last time before `until`,
    /// of several the last one.
    pub(crate) fn run_of(
        &self,
        is_chosen: impl Fn(&WaitingThread) -> bool,
        until: u64,
    ) -> Option<PathSpan> {
        let chosen = (0..).zip(&self.threads).filter(|(_, thread)| is_chosen(thread));
        let ends = chosen.filter_map(|(index, thread)| {
            let end = thread.last_run(until.min(self.between.1))?;
            Some((end, std::cmp::Reverse(index)))
        });
        let (to, std::cmp::Reverse(thread)) = ends.max()?;
        let from = self.run_of_program().map_or(self.between.0, |run| run.from);
        Some(PathSpan { from, to, thread })
    }

    /// Returns the time at which a thread exits, else the end of the recording.
    fn end_of(&self, thread: u32) -> u64 {
        self.thread(thread).and_then(|thread| thread.exit).unwrap_or(self.between.1)
    }

    fn main_thread(&self) -> Option<u32> {
        let mut sizes: std::collections::BTreeMap<i32, usize> = std::collections::BTreeMap::new();
        for thread in &self.threads {
            *sizes.entry(thread.pid).or_default() += thread.stretches.len() + thread.runs.len();
        }
        let largest = sizes.into_iter().rev().max_by_key(|(_, size)| *size);
        let (pid, _) = largest?;
        let of_process = |leads: bool| {
            let is_own =
                |thread: &WaitingThread| thread.pid == pid && (thread.tid == pid || !leads);
            self.threads.iter().position(is_own)
        };
        of_process(true).or_else(|| of_process(false)).and_then(|index| u32::try_from(index).ok())
    }
}

impl WaitingThread {
    /// Returns the last moment up to this time at which the thread ran; `None` if it did not.
    fn last_run(&self, until: u64) -> Option<u64> {
        let until = self.exit.map_or(until, |exit| exit.min(until));
        let before = self.stretches.partition_point(|stretch| stretch.off < until);
        match before.checked_sub(1).and_then(|at| self.stretches.get(at)) {
            Some(Stretch { on, .. }) if *on < until => Some(until),
            Some(Stretch { kind: StretchKind::Starting | StretchKind::Unknown, .. }) => None,
            Some(Stretch { off, .. }) => Some(*off),
            None => (self.known < until).then_some(until),
        }
    }
}
