//! Times of the critical path by the samples that stand for them.
//!
//! ```text
//!   on the path:   ═══s═══╗  ═════s══════╗     s  CPU sample: the running time of its thread on the
//!                         ╚wait═wake╗              path since its sample before; the last one also the rest
//!                                                  waiting, preempted, runnable: the sample of the switch
//! ```

use rustc_hash::FxHashMap;

use super::{CriticalPiece, PieceKind, WaitingThread, Waits};
use crate::timeline::off_cpu::{Activity, Run, Stretch, StretchKind, Unsampled, Wake};

/// Nanoseconds of the path that a CPU sample stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunShare {
    pub(crate) time: u64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Nanoseconds of the path that the sample of a switch stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SwitchShare {
    /// Time of the sample.
    sample: u64,
    /// Waiting or preempted.
    pub(crate) activity: Activity,
    pub(crate) stopped: u64,
    /// Time until the thread got a CPU.
    pub(crate) runnable: u64,
}

/// Time of the path of a thread that has no sample of its own for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnlessShare {
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    pub(crate) time: Unsampled,
}

/// Times of a thread.
#[derive(Clone, Debug, Default)]
struct ThreadShares {
    runs: Vec<RunShare>,
    switches: Vec<SwitchShare>,
}

/// Times of the critical path by samples, each list in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathShares {
    /// By number.
    threads: FxHashMap<i32, ThreadShares>,
    /// Times that are shown at the sample of a wake, by its offset in the file.
    at_wakes: FxHashMap<u64, Vec<OwnlessShare>>,
    /// Times without any sample.
    pub(crate) rest: Vec<OwnlessShare>,
}

impl PathShares {
    /// Returns what the samples of a file stand for on a path.
    pub(crate) fn of(waits: &Waits, pieces: &[CriticalPiece]) -> Self {
        let mut shares = Self::default();
        let mut running: FxHashMap<u32, Vec<&CriticalPiece>> = FxHashMap::default();
        for piece in pieces {
            match piece.kind {
                PieceKind::Running => running.entry(piece.thread).or_default().push(piece),
                _ => shares.off(waits, piece),
            }
        }
        let mut running: Vec<(u32, Vec<&CriticalPiece>)> = running.into_iter().collect();
        // Lives of one number follow each other.
        running.sort_unstable_by_key(|(thread, _)| *thread);
        for (thread, pieces) in running {
            if let Some(thread) = waits.thread(thread) {
                shares.running(waits, thread, &pieces);
            }
        }
        shares
    }

    /// Returns what the CPU sample at this offset stands for.
    pub(crate) fn run(&self, tid: i32, time: u64, offset: u64) -> Option<u64> {
        let runs = &self.threads.get(&tid)?.runs;
        let at = runs.binary_search_by_key(&(time, offset), |run| (run.time, run.offset)).ok()?;
        runs.get(at).map(|run| run.length)
    }

    /// Returns what the sample of a switch stands for.
    pub(crate) fn switch(&self, tid: i32, time: u64) -> Option<SwitchShare> {
        let switches = &self.threads.get(&tid)?.switches;
        let at = switches.binary_search_by_key(&time, |share| share.sample).ok()?;
        switches.get(at).copied()
    }

    /// Returns the times that are shown at the sample of a wake.
    pub(crate) fn at_wake(&self, offset: u64) -> &[OwnlessShare] {
        if self.at_wakes.is_empty() {
            return &[];
        }
        self.at_wakes.get(&offset).map_or(&[], Vec::as_slice)
    }

    /// Shares out a piece in which its thread does not run.
    fn off(&mut self, waits: &Waits, piece: &CriticalPiece) {
        let Some(thread) = waits.thread(piece.thread) else { return };
        let activity = piece.kind.activity();
        let stretch = piece.stretch().and_then(|at| thread.stretches.get(at));
        let sample = stretch.and_then(Stretch::sample);
        if let Some(sample) = sample {
            let switches = &mut self.threads.entry(thread.tid).or_default().switches;
            let is_same = switches.last().is_some_and(|last| last.sample == sample);
            if !is_same {
                let new =
                    SwitchShare { sample, activity: Activity::Waiting, stopped: 0, runnable: 0 };
                switches.push(new);
            }
            if let Some(share) = switches.last_mut() {
                match activity {
                    Activity::Runnable => share.runnable += piece.length(),
                    _ => {
                        share.activity = activity;
                        share.stopped += piece.length();
                    }
                }
            }
            return;
        }
        let starting = stretch.filter(|stretch| stretch.kind == StretchKind::Starting);
        let wake = starting.and_then(|stretch| thread.wake(stretch));
        self.without_sample(thread, piece, wake);
    }

    /// Shows a piece without samples at the sample of a wake, if that has a callchain.
    fn without_sample(
        &mut self,
        thread: &WaitingThread,
        piece: &CriticalPiece,
        wake: Option<&Wake>,
    ) {
        let activity = piece.kind.activity();
        let time = Unsampled { at: piece.from, length: piece.length(), cpu: u32::MAX, activity };
        let share = OwnlessShare { pid: thread.pid, tid: thread.tid, time };
        match wake.filter(|wake| wake.is(Wake::CALLCHAIN)).and_then(Wake::sample) {
            Some(offset) => self.at_wakes.entry(offset).or_default().push(share),
            None => self.rest.push(share),
        }
    }

    /// Shares out the pieces in which a thread runs.
    fn running(&mut self, waits: &Waits, thread: &WaitingThread, pieces: &[&CriticalPiece]) {
        let (mut runs, mut next, mut unspent) = (Vec::new(), 0, 0);
        for piece in pieces {
            let mut since = piece.from;
            next += later_runs(thread, next).partition_point(|run| run.time < piece.from);
            for run in later_runs(thread, next).iter().take_while(|run| run.time <= piece.to) {
                let Run { time, offset, .. } = *run;
                runs.push(RunShare { time, offset, length: time - since + unspent });
                (since, unspent) = (time, 0);
                next += 1;
            }
            unspent += piece.to - since;
        }
        match runs.last_mut() {
            Some(last) => last.length += unspent,
            None => {
                for piece in pieces {
                    let woken = piece.wakes().and_then(|(woken, stretch)| {
                        let woken = waits.thread(woken)?;
                        woken.wake(woken.stretches.get(stretch)?)
                    });
                    self.without_sample(thread, piece, woken);
                }
            }
        }
        self.threads.entry(thread.tid).or_default().runs.extend(runs);
    }
}

fn later_runs(thread: &WaitingThread, from: usize) -> &[Run] {
    thread.runs.get(from..).unwrap_or_default()
}

impl PieceKind {
    /// Returns the activity that rows show.
    pub(crate) const fn activity(self) -> Activity {
        match self {
            Self::Running => Activity::Running,
            Self::Runnable => Activity::Runnable,
            Self::Preempted => Activity::Preempted,
            Self::Waiting => Activity::Waiting,
            Self::Unknown => Activity::Unknown,
        }
    }
}
