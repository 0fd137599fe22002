//! Lives of the processes with JITs, as far as records show them: their maps are to be of that
//! time.

use recrep_format::feature::SampleTime;
use recrep_format::read::File;
use rustc_hash::FxHashMap;

use super::{Change, SideBand};
use crate::symbols::{JitLife, Module, ModuleKind, WallClock};

/// Times of records of a process.
#[derive(Clone, Copy, Debug, Default)]
struct RecordedLife {
    /// Its fork, or the last exec of its program.
    began: Option<u64>,
    /// End of the last thread, if the leader's is recorded.
    ended: Option<u64>,
    /// Last fork.
    forked: Option<u64>,
    is_reused: bool,
}

impl SideBand {
    /// Adds to each process's JIT code the life of the process.
    pub(super) fn attach_lives(&mut self, file: &File<'_>, written: Option<std::time::SystemTime>) {
        if !self.modules.iter().any(is_of_jit) {
            return;
        }
        let sampled = file
            .feature::<SampleTime>()
            .and_then(Result::ok)
            .map(|times| (times.first, times.last));
        let times = self
            .changes
            .iter()
            .map(|(at, _)| at.time())
            .chain(self.exits.iter().map(|(at, ..)| at.time()));
        let last = times
            .chain(sampled.map(|(_, last)| last))
            .filter(|time| *time < u64::MAX)
            .max()
            .unwrap_or(0);
        let wall = WallClock::of(file, last, written);
        let recorded = self.recorded_lives();
        let mut modules: Vec<Module> = std::mem::take(&mut self.modules).into_iter().collect();
        for module in &mut modules {
            if let ModuleKind::PerfMap { pid, .. } = module.kind {
                let life = recorded.get(&pid).copied().unwrap_or_default();
                module.life = JitLife {
                    sampled,
                    began: life.began.and_then(|time| wall.earliest(time)),
                    ended: life.ended.and_then(|time| wall.latest(time)),
                    recorded_until: wall.latest(last),
                    is_reused: life.is_reused,
                };
            }
        }
        self.modules = modules.into_iter().collect();
    }

    fn recorded_lives(&self) -> FxHashMap<i32, RecordedLife> {
        let mut all: FxHashMap<i32, RecordedLife> = FxHashMap::default();
        for (at, change) in &self.changes {
            // Synthesized records have no time.
            if let Change::Fork { pid, ppid, copies: true, .. } = *change
                && pid != ppid
                && at.time() > 0
            {
                let life = all.entry(pid).or_default();
                life.is_reused |= life.forked.is_some_and(|forked| forked != at.time());
                life.forked = life.forked.max(Some(at.time()));
                life.began = life.began.max(Some(at.time()));
            }
        }
        for (at, pid) in &self.execs {
            let life = all.entry(*pid).or_default();
            life.began = life.began.max(Some(at.time()).filter(|time| *time > 0));
        }
        for (at, pid, _) in self.exits.iter().filter(|(_, pid, tid)| pid == tid) {
            let life = all.entry(*pid).or_default();
            life.is_reused |= life.forked.is_some_and(|forked| forked > at.time());
            life.ended = life.ended.max(Some(at.time()));
        }
        for (at, pid, _) in &self.exits {
            if let Some(RecordedLife { ended: Some(ended), .. }) = all.get_mut(pid) {
                *ended = at.time().max(*ended);
            }
        }
        all
    }
}

fn is_of_jit(module: &Module) -> bool {
    matches!(module.kind, ModuleKind::PerfMap { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::clock::at;

    fn fork(pid: i32, ppid: i32, time: u64) -> (crate::timeline::Moment, Change) {
        (at(time), Change::Fork { pid, tid: pid, ppid, ptid: ppid, copies: true })
    }

    #[test]
    fn lives_are_those_of_the_records() {
        let side_band = SideBand {
            changes: vec![
                fork(7, 1, 10),
                fork(8, 1, 11),
                fork(9, 1, 12),
                fork(9, 2, 40),
                fork(7, 7, 50),
            ],
            execs: vec![(at(15), 7), (at(0), 6)],
            exits: vec![
                (at(33), 7, 70),
                (at(30), 7, 7),
                (at(31), 9, 9),
                (at(5), 8, 8),
                (at(9), 6, 60),
            ],
            ..SideBand::default()
        };
        let all = side_band.recorded_lives();
        let of =
            |pid| all.get(&pid).map(|life: &RecordedLife| (life.began, life.ended, life.is_reused));
        assert_eq!(of(7), Some((Some(15), Some(33), false)));
        assert_eq!(of(8), Some((Some(11), Some(5), true)), "another process had the pid before");
        assert_eq!(of(9), Some((Some(40), Some(31), true)));
        assert_eq!(of(6), Some((None, None, false)));
    }
}
