//! Times in which threads had a CPU, for pictures: what is left of their lives beside the times off
//! the CPU, counted in steps.

use rayon::prelude::*;

use super::{Activity, OffCpu, OffCpuThread};
use crate::query::{Extent, Steps};

/// Running times of the threads that had a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RanThread {
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    /// In order of time.
    pub(crate) spans: Vec<RanSpan>,
}

/// Running times that begin in one step and end in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RanSpan {
    /// Number of the step in which they begin.
    pub(crate) step: u64,
    pub(crate) extent: Extent,
    /// Sum in nanoseconds.
    pub(crate) time: u64,
}

impl RanThread {
    /// Creates that of a thread with this pid and tid that ran at these times, in order.
    pub(crate) fn of([pid, tid]: [i32; 2], running: &[[u64; 2]], steps: Steps) -> Self {
        Self { pid, tid, spans: counted(running, steps) }
    }
}

impl OffCpu {
    /// Returns when threads ran, sorted by their numbers.
    pub(crate) fn ran(&self, steps: Steps) -> Vec<RanThread> {
        let mut threads: Vec<RanThread> = self
            .threads
            .par_iter()
            .map(|(tid, thread)| RanThread::of([thread.pid, *tid], &thread.running(), steps))
            .filter(|thread| !thread.spans.is_empty())
            .collect();
        threads.sort_unstable_by_key(|thread| thread.tid);
        threads
    }
}

impl OffCpuThread {
    /// Returns begins and ends of running times, in order.
    pub(super) fn running(&self) -> Vec<[u64; 2]> {
        let sampled = self.sampled.iter().map(|one| [one.at, one.word >> 2]);
        let others = self.unsampled.iter().filter(|one| one.activity != Activity::Running);
        let mut off: Vec<[u64; 2]> =
            sampled.chain(others.map(|one| [one.at, one.length])).collect();
        off.sort_unstable();
        let mut off = off.into_iter().peekable();
        let mut running = Vec::new();
        for &[since, until] in &self.alive {
            let mut since = since;
            while let Some([at, length]) = off.next_if(|[at, _]| *at <= until) {
                if at > since {
                    running.push([since, at]);
                }
                since = since.max(at.saturating_add(length));
            }
            if until > since {
                running.push([since, until]);
            }
        }
        running
    }
}

/// Returns times in steps: those within a step are one.
fn counted(running: &[[u64; 2]], steps: Steps) -> Vec<RanSpan> {
    let mut spans: Vec<RanSpan> = Vec::new();
    for &[from, to] in running {
        let (from, length) = (from.max(steps.origin), to.saturating_sub(from.max(steps.origin)));
        let step = from.saturating_sub(steps.origin) / steps.length.max(1);
        let extent = steps.extent(from, length, Activity::Running.byte());
        match spans.last_mut() {
            Some(last) if last.step == step && last.extent.more == 0 && extent.more == 0 => {
                last.time = last.time.saturating_add(length);
            }
            _ if length > 0 => spans.push(RanSpan { step, extent, time: length }),
            _ => {}
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::off_cpu::{SampledTime, Unsampled};

    #[test]
    fn threads_run_where_they_do_not_wait() {
        let wait = |at, length| SampledTime::new(at, length, Activity::Waiting);
        let unsampled = |at, length, activity| Unsampled { at, length, cpu: 0, activity };
        let thread = OffCpuThread {
            sampled: vec![wait(100, 50), wait(160, 4)],
            unsampled: vec![
                unsampled(10, 90, Activity::Running),
                unsampled(155, 2, Activity::Preempted),
            ],
            alive: vec![[90, 200], [300, 310]],
            ..OffCpuThread::default()
        };
        let running = thread.running();
        let all = [[90, 100], [150, 155], [157, 160], [164, 200], [300, 310]];
        assert_eq!(running, all);
        let spans = counted(&running, Steps { origin: 90, length: 16 });
        let shown = |span: &RanSpan| (span.step, span.extent.more, span.time);
        let shown: Vec<_> = spans.iter().map(shown).collect();
        assert_eq!(shown, [(0, 0, 10), (3, 1, 5), (4, 0, 3), (4, 2, 36), (13, 0, 10)]);
        assert_eq!(counted(&[[0, 80]], Steps { origin: 90, length: 16 }), []);
    }
}
