//! Threads with their waits, from lives and wakes.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{WaitingThread, Waits};
use crate::timeline::off_cpu::{
    NONE, OffCpuThread, Stretch, StretchKind, ThreadFacts, ThreadStretches, Wake,
};

/// Longest time between an exit and the end of the wait for it.
const EXIT_TO_RUN: u64 = 200_000;

impl Waits {
    /// Assigns wakes to the stretches of all threads.
    pub(crate) fn of(facts: ThreadFacts) -> Self {
        let since = facts.sampled_since();
        let ThreadFacts { mut threads, mut wakes, between: (_, end), program, .. } = facts;
        let between = (since, end);
        let has_wakes = !wakes.is_empty();
        threads.sort_unstable_by_key(|(tid, _)| *tid);
        let with_wakes = threads.into_iter().map(|(tid, thread)| {
            (tid, thread, wakes.remove(&tid.cast_unsigned()).unwrap_or_default())
        });
        let with_wakes: Vec<(i32, OffCpuThread, Vec<Wake>)> = with_wakes.collect();
        let lives = with_wakes.into_par_iter().map(|(tid, thread, wakes)| {
            let mut lives = lives(tid, thread, wakes, since);
            for (life, _) in &mut lives {
                life.is_kernel = facts.kernel.contains(&tid.cast_unsigned());
            }
            lives
        });
        let lives: Vec<Vec<(WaitingThread, Option<u32>)>> = lives.collect();
        let (threads, parents): (Vec<WaitingThread>, Vec<Option<u32>>) =
            lives.into_iter().flatten().unzip();
        let mut by_tid: FxHashMap<i32, std::ops::Range<u32>> = FxHashMap::default();
        for (index, thread) in (0..).zip(&threads) {
            by_tid.entry(thread.tid).or_insert(index..index).end = index + 1;
        }
        let unknown_targets = facts.unknown_targets;
        let mut waits = Self { threads, by_tid, between, program, has_wakes, unknown_targets };
        waits.name_wakers(&parents);
        if facts.lacks_exits {
            waits.infer_exits();
        }
        waits.find_owners(facts.is_of_all_cpus);
        waits
    }

    /// Replaces the numbers of wakers and parents by indices.
    fn name_wakers(&mut self, parents: &[Option<u32>]) {
        let mut threads = std::mem::take(&mut self.threads);
        // The lookup needs the times of lives alone.
        self.threads = threads
            .iter()
            .map(|thread| WaitingThread {
                tid: thread.tid,
                known: thread.known,
                ..WaitingThread::default()
            })
            .collect();
        let known = &*self;
        threads.par_iter_mut().zip(parents).for_each(|(thread, parent)| {
            let parent = parent.and_then(|tid| known.index(tid.cast_signed(), thread.known));
            thread.parent = parent.unwrap_or(NONE);
            for wake in &mut thread.wakes {
                let index = known.index(wake.waking_tid().cast_signed(), wake.time);
                wake.name_waker(index);
            }
        });
        self.threads = threads;
    }

    /// Finds the exits that ended waits, where exiting threads wake without a sample.
    fn infer_exits(&mut self) {
        let mut exits: Vec<(u64, u32)> = (0..)
            .zip(&self.threads)
            .filter_map(|(index, thread)| Some((thread.exit?, index)))
            .collect();
        exits.sort_unstable();
        let parents: Vec<[i32; 2]> = self
            .threads
            .iter()
            .map(|thread| {
                let parent = thread.parent().and_then(|parent| self.thread(parent));
                [thread.pid, parent.map_or(-1, |parent| parent.pid)]
            })
            .collect();
        for (index, thread) in (0..).zip(&mut self.threads) {
            let WaitingThread { pid, stretches, wakes, .. } = thread;
            let waits = stretches
                .iter_mut()
                .filter(|one| one.kind == StretchKind::Waiting && one.wake == NONE);
            for stretch in waits {
                let until = exits.partition_point(|(time, _)| *time <= stretch.on);
                let since = stretch.on.saturating_sub(EXIT_TO_RUN).max(stretch.off);
                let before = exits.get(..until).unwrap_or_default().iter().rev();
                let mut near = before.take_while(|(time, _)| *time >= since);
                let found = near.find(|(_, other)| {
                    let pids = parents.get(*other as usize);
                    *other != index && pids.is_some_and(|pids| pids.contains(pid))
                });
                if let Some((time, exited)) = found {
                    stretch.wake = u32::try_from(wakes.len()).unwrap_or(NONE);
                    wakes.push(Wake::new(*time, 0, *exited, Wake::INFERRED));
                }
            }
        }
    }
}

/// Returns the lives of a thread with their wakes, each with the number of its parent; without what
/// ended before samples were taken.
fn lives(
    tid: i32,
    thread: OffCpuThread,
    mut wakes: Vec<Wake>,
    since: u64,
) -> Vec<(WaitingThread, Option<u32>)> {
    wakes.sort();
    leave_out_doubles(&mut wakes);
    let OffCpuThread { pid, lives, mut runs, .. } = thread;
    let mut all = Vec::with_capacity(lives.len());
    // From the last one on, so that each takes what is behind its start.
    for (place, life) in lives.into_iter().enumerate().rev() {
        let (own_wakes, own_runs) = match place {
            0 => (std::mem::take(&mut wakes), std::mem::take(&mut runs)),
            _ => (
                wakes.split_off(wakes.partition_point(|wake| wake.time < life.known)),
                runs.split_off(runs.partition_point(|run| run.time < life.known)),
            ),
        };
        let ThreadStretches { known, parent, exit, mut stretches, first_cpu, .. } = life;
        stretches.retain(|stretch| stretch.on > since || stretch.off >= since);
        let mut thread = WaitingThread {
            tid,
            pid,
            known,
            exit,
            parent: NONE,
            first_cpu: u16::try_from(first_cpu).unwrap_or(Stretch::NO_CPU),
            is_kernel: false,
            stretches,
            wakes: own_wakes,
            runs: own_runs,
            late: Vec::new(),
        };
        thread.assign_wakes();
        all.push((thread, parent));
    }
    all.reverse();
    all
}

/// Leaves out wakes without a callchain that another event of the file has with one.
fn leave_out_doubles(wakes: &mut Vec<Wake>) {
    let (mut kept, mut before) = (0, None);
    for at in 0..wakes.len() {
        let Some(wake) = wakes.get(at).copied() else { break };
        let is_double = [before, wakes.get(at + 1).copied()]
            .iter()
            .flatten()
            .any(|other| is_double(&wake, other));
        before = Some(wake);
        if let Some(slot) = wakes.get_mut(kept).filter(|_| !is_double) {
            *slot = wake;
            kept += 1;
        }
    }
    wakes.truncate(kept);
}

/// Returns whether another event has a wake with a callchain.
fn is_double(wake: &Wake, other: &Wake) -> bool {
    /// Longest time between the samples of two events at one moment.
    const APART: u64 = 100_000;
    !wake.is(Wake::CALLCHAIN)
        && other.is(Wake::CALLCHAIN)
        && other.waking_tid() == wake.waking_tid()
        && other.time.abs_diff(wake.time) < APART
}

impl WaitingThread {
    /// Finds the wake of each stretch.
    fn assign_wakes(&mut self) {
        let Self { stretches, wakes, known, .. } = self;
        // The first wake after the last time of running, and from the switch on.
        let (mut ran, mut next) = (*known, 0);
        for stretch in stretches.iter_mut() {
            let found = match stretch.kind {
                StretchKind::Starting => {
                    let own = wakes.get(next..).unwrap_or_default().iter();
                    let place = own
                        .take_while(|wake| wake.time <= stretch.on)
                        .position(|wake| wake.is(Wake::NEW));
                    place.map(|place| next + place)
                }
                StretchKind::Waiting => find_wake(wakes, next, stretch, ran),
                StretchKind::Preempted | StretchKind::Unknown => None,
            };
            // A few only, so each is looked at; a search would begin far away.
            let later = wakes.get(next..).unwrap_or_default();
            next += later.iter().take_while(|wake| wake.time <= stretch.on).count();
            ran = stretch.on;
            let Some((place, wake)) = found.and_then(|at| Some((at, wakes.get(at)?))) else {
                continue;
            };
            stretch.wake = u32::try_from(place).unwrap_or(NONE);
            if stretch.kind == StretchKind::Starting {
                stretch.off = wake.time.clamp(stretch.off, stretch.on);
                *known = (*known).max(stretch.off);
            }
        }
    }
}

/// Returns the index of the first wake from the switch on, else of the last one since the thread
/// ran; wakes from `next` on are later than the time of running before.
fn find_wake(wakes: &[Wake], next: usize, stretch: &Stretch, ran: u64) -> Option<usize> {
    let later = wakes.get(next..)?;
    let from = stretch.sample().unwrap_or(stretch.off).min(stretch.off);
    let place = later.iter().take_while(|wake| wake.time < from).count();
    if later.get(place).is_some_and(|wake| wake.time <= stretch.on) {
        return Some(next + place);
    }
    let before = place.checked_sub(1)?;
    later.get(before).filter(|wake| wake.time >= ran).map(|_| next + before)
}
