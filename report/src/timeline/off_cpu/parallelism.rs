//! The number of threads that run at a moment, from the records of context switches.

use rayon::prelude::*;

use super::OffCpu;

/// How many threads of a recording ran, over time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parallelism {
    /// Times at which the number changes, in order, with the number from then on.
    levels: Vec<ParallelSpan>,
    /// Number of SWITCH records with a thread and a time.
    pub(crate) records: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ParallelSpan {
    from: u64,
    threads: u32,
}

/// A change of the number of running threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RunEdge {
    time: u64,
    by: i32,
}

impl OffCpu {
    /// Returns how many threads ran over time.
    pub(crate) fn parallelism(&self) -> Parallelism {
        let edges = self.threads.par_iter().flat_map_iter(|(_, thread)| {
            let spans = thread.running().into_iter();
            spans.flat_map(|[from, to]| {
                [RunEdge { time: from, by: 1 }, RunEdge { time: to, by: -1 }]
            })
        });
        Parallelism { records: self.counts.records, ..Parallelism::from_edges(edges.collect()) }
    }
}

impl Parallelism {
    fn from_edges(mut edges: Vec<RunEdge>) -> Self {
        edges.par_sort_unstable();
        let mut levels: Vec<ParallelSpan> = Vec::with_capacity(edges.len());
        let mut threads = 0_u32;
        for RunEdge { time, by } in edges {
            threads = threads.saturating_add_signed(by);
            match levels.last_mut().filter(|last| last.from == time) {
                Some(last) => last.threads = threads,
                None => levels.push(ParallelSpan { from: time, threads }),
            }
        }
        Self { levels, records: 0 }
    }

    /// Returns the number of threads that ran at this time; at least 1, as a sample's own thread
    /// did.
    #[inline]
    pub(crate) fn at(&self, time: u64) -> u32 {
        let next = self.levels.partition_point(|level| level.from <= time);
        let level = next.checked_sub(1).and_then(|place| self.levels.get(place));
        level.map_or(1, |level| level.threads.max(1))
    }

    /// Returns the nanoseconds in which at least one thread ran, and those in which threads ran,
    /// summed.
    pub(crate) fn busy(&self) -> BusyTime {
        let mut busy = BusyTime::default();
        for pair in self.levels.windows(2) {
            let [ParallelSpan { from, threads }, ParallelSpan { from: until, .. }] = *pair else {
                continue;
            };
            let length = until - from;
            busy.wall += if threads > 0 { length } else { 0 };
            busy.cpu = busy.cpu.saturating_add(length.saturating_mul(threads.into()));
        }
        busy
    }
}

/// Time in which threads ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BusyTime {
    /// Nanoseconds in which at least one thread ran.
    pub(crate) wall: u64,
    /// Nanoseconds of all threads.
    pub(crate) cpu: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_add_up_over_threads() {
        let change = |time, by| RunEdge { time, by };
        let all = [
            change(10, 1),
            change(20, 1),
            change(20, 1),
            change(30, -1),
            change(30, -1),
            change(50, -1),
        ];
        let parallelism = Parallelism::from_edges(all.to_vec());
        let at = [0, 10, 19, 20, 29, 30, 50, 99].map(|time| parallelism.at(time));
        assert_eq!(at, [1, 1, 1, 3, 3, 1, 1, 1]);
        assert_eq!(parallelism.busy(), BusyTime { wall: 40, cpu: 10 + 30 + 20 });
    }
}
