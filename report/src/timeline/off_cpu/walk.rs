//! The walk through the records of a thread, in order of time.
//!
//! Lost records leave gaps. A switch whose other half is missing has no known length and is counted
//! as unpaired: an OUT that follows an OUT, an IN that follows an IN, and an OUT after which two
//! CPU samples say that the thread ran again (one may come between the record and the moment at
//! which the kernel stops the counter).

use super::life::{Stretch, StretchKind, ThreadStretches};
use super::mark::{Mark, ThreadRecord};
use super::{Activity, OffCpuThread, Run, SampledTime, SwitchCounts, Unsampled};

/// Times of a thread that are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedTimes {
    /// Those of the samples, and those off CPUs without a sample of their own.
    Sampled,
    /// Also running time without a CPU sample.
    All,
    /// The lives of the thread, and its CPU samples.
    Lives,
}

/// A switch out that is not over.
#[derive(Clone, Copy, Debug)]
struct OpenSpan {
    at: u64,
    cpu: u32,
    activity: Activity,
    /// Time of its sample.
    sample: Option<u64>,
    /// Number of CPU samples since.
    samples: u32,
    /// `true` if nothing but its switch in proves it: the thread was found waiting.
    is_found: bool,
}

/// State of the walk through the records of a thread.
#[derive(Debug, Default)]
pub(crate) struct ThreadWalk {
    thread: OffCpuThread,
    counts: SwitchCounts,
    open: Option<OpenSpan>,
    /// Sample of a switch whose OUT is to come, or has just come.
    sample: Option<u64>,
    /// Sample of a thread that was found waiting.
    at_start: Option<u64>,
    /// `true` if a SWITCH record was seen before, in this life.
    has_switched: bool,
    /// `true` if any record says that it ran.
    has_run: bool,
    has_exited: bool,
    /// From the first record of this life on that is one of the thread's own to the last one.
    life: Option<[u64; 2]>,
    /// Number of CPU samples of earlier threads with this number.
    first_run: usize,
    /// Time up to which the running time is counted, if the thread runs.
    running: Option<(u64, u32)>,
    /// Running time that no sample stands for yet, with its start and CPU.
    unspent: Option<(u64, u32, u64)>,
    /// The life so far, if lives are collected and a record was seen.
    lived: Option<ThreadStretches>,
    has_lives: bool,
}

impl ThreadWalk {
    /// Returns the times of a thread whose records, in order of time, are these; the recording ends
    /// at `end`.
    pub(crate) fn of(
        pid: i32,
        entries: &[ThreadRecord],
        end: u64,
        wanted: WantedTimes,
    ) -> (OffCpuThread, SwitchCounts) {
        let thread = OffCpuThread { pid, ..OffCpuThread::default() };
        let mut walk = Self { thread, has_lives: wanted == WantedTimes::Lives, ..Self::default() };
        for entry in entries {
            walk.take(*entry);
        }
        walk.finish(end);
        walk.end_life(end);
        let Self { mut thread, mut counts, has_run, .. } = walk;
        if wanted == WantedTimes::Sampled {
            thread.unsampled.retain(|one| one.activity != Activity::Running);
        }
        thread.unsampled.sort_by_key(|one| one.at);
        let off_cpu =
            thread.unsampled.iter().filter(|one| one.activity != Activity::Running).count();
        counts.never_ran = u64::from(!has_run && counts.stretches > 0);
        if wanted != WantedTimes::Lives {
            counts.unsampled = off_cpu as u64;
        }
        (thread, counts)
    }

    fn take(&mut self, entry: ThreadRecord) {
        let (time, cpu, mark) = (entry.time(), entry.cpu(), entry.mark());
        match mark {
            Mark::SampleAtStart => return self.at_start = Some(time),
            Mark::WaitsAtStart => return self.found_waiting(time, cpu),
            // The recorder writes a name at the end.
            Mark::Alive => {}
            _ => self.has_run = true,
        }
        if mark != Mark::Begin {
            let [since, _] = self.life.unwrap_or([time; 2]);
            self.life = Some([since, time]);
        }
        if mark != Mark::In && mark != Mark::Alive {
            // It had woken up before the recorder looked, or went to sleep meanwhile.
            if let Some(found) = self.open.take_if(|open| open.is_found) {
                self.gap(found.at, time);
            }
        }
        if mark != Mark::Begin {
            self.live(time, cpu, mark);
        }
        match mark {
            Mark::SampleAtStart | Mark::WaitsAtStart => {}
            Mark::Begin => {
                self.end_life(time);
                if self.has_lives {
                    let parent = u32::try_from(entry.place()).ok();
                    self.lived = Some(ThreadStretches::forked(time, parent));
                }
            }
            Mark::Exit => {
                self.drop_open(time);
                self.run(time, cpu);
                self.has_exited = true;
                if let Some(life) = &mut self.lived {
                    life.exit = life.exit.or(Some(time));
                }
            }
            Mark::Alive => self.run(time, cpu),
            Mark::In => self.switch_in(time, cpu),
            Mark::Out(activity) => self.switch_out(time, cpu, activity),
            Mark::Switch => {
                if self.open.is_some_and(|open| open.sample.is_some()) {
                    self.drop_open(time);
                }
                self.run(time, cpu);
                self.sample = Some(time);
            }
            Mark::Cpu => {
                if let Some(open) = &mut self.open {
                    open.samples += 1;
                    if open.samples > 1 {
                        self.drop_open(time);
                    }
                }
                self.run(time, cpu);
                let share = self.unspent.take().map_or(0, |(_, _, length)| length);
                self.thread.runs.push(Run { time, offset: entry.place(), share });
            }
        }
    }

    /// Ends the use of the thread's number: running time after the last sample counts for that
    /// sample.
    fn end_life(&mut self, time: u64) {
        self.finish_life(time);
        let runs = &mut self.thread.runs;
        let last = if runs.len() > self.first_run { runs.last_mut() } else { None };
        match (self.unspent.take(), last) {
            (Some((_, _, length)), Some(last)) => last.share = last.share.saturating_add(length),
            (Some((at, cpu, length)), None) if length > 0 => {
                self.thread.unsampled.push(Unsampled {
                    at,
                    length,
                    cpu,
                    activity: Activity::Running,
                });
            }
            _ => {}
        }
        self.first_run = runs.len();
        self.thread.alive.extend(self.life.take());
        (self.open, self.sample, self.running) = (None, None, None);
        (self.has_switched, self.has_exited) = (false, false);
    }

    /// Begins the wait of a thread that was found waiting, unless its records say what it did.
    fn found_waiting(&mut self, time: u64, cpu: u32) {
        let sample = self.at_start.take();
        if self.open.is_none() && !self.has_switched && self.running.is_none() {
            let activity = Activity::Waiting;
            self.open =
                Some(OpenSpan { at: time, cpu, activity, sample, samples: 0, is_found: true });
            self.live(time, cpu, Mark::WaitsAtStart);
        }
    }

    /// Drops a switch out whose switch in is missing: the thread runs at this time.
    fn drop_open(&mut self, time: u64) {
        if let Some(open) = self.open.take() {
            self.counts.unpaired += 1;
            self.gap(open.at, time);
        }
    }

    /// Notes in the life of the thread that a record of this time says something of it.
    fn live(&mut self, time: u64, cpu: u32, mark: Mark) {
        if !self.has_lives {
            return;
        }
        let life = self.lived.get_or_insert_with(|| ThreadStretches::known_since(time));
        if life.stretches.is_empty() && mark != Mark::In {
            life.first_cpu = cpu;
        }
        if life.is_starting {
            life.is_starting = false;
            let kind = match mark {
                Mark::In => StretchKind::Starting,
                _ => StretchKind::Unknown,
            };
            life.stretches.push(Stretch::new([life.known, time], kind, cpu, None));
        }
    }

    /// Notes that it is not known what the thread did in between.
    fn gap(&mut self, from: u64, to: u64) {
        if let Some(life) = &mut self.lived {
            life.stretches.push(Stretch::new([from, to], StretchKind::Unknown, u32::MAX, None));
        }
    }

    /// Ends the life of the thread.
    fn finish_life(&mut self, time: u64) {
        if let Some(open) = self.open.filter(|_| !self.has_exited) {
            self.gap(open.at, time);
        }
        self.thread.lives.extend(self.lived.take());
    }

    /// Counts running time up to now; the thread runs on. Does nothing if it is switched out.
    fn run(&mut self, time: u64, cpu: u32) {
        if self.open.is_some() {
            return;
        }
        if let Some((since, cpu)) = self.running {
            let (start, cpu, length) = self.unspent.unwrap_or((since, cpu, 0));
            self.unspent = Some((start, cpu, length.saturating_add(time.saturating_sub(since))));
        }
        self.running = Some((time, cpu));
    }

    fn switch_in(&mut self, time: u64, cpu: u32) {
        match (self.open.take(), self.running) {
            (Some(open), _) => self.close(open, time, cpu),
            // The first record of a thread may be its switch in.
            (None, running) => {
                let is_unpaired = self.sample.take().is_some() || self.has_switched;
                self.counts.unpaired += u64::from(is_unpaired);
                if let Some((since, _)) = running {
                    self.gap(since, time);
                }
            }
        }
        self.running = Some((time, cpu));
        self.has_switched = true;
    }

    fn switch_out(&mut self, time: u64, cpu: u32, activity: Activity) {
        self.drop_open(time);
        if self.running.is_some() {
            self.run(time, cpu);
        }
        self.running = None;
        self.has_switched = true;
        let sample = self.sample.take();
        self.open = Some(OpenSpan { at: time, cpu, activity, sample, samples: 0, is_found: false });
    }

    /// Ends a time off the CPU: the thread runs on the CPU `on`, or the recording is over.
    fn close(&mut self, open: OpenSpan, time: u64, on: u32) {
        let OpenSpan { at, cpu, activity, .. } = open;
        let (length, sample) = (time.saturating_sub(at), self.sample.take());
        self.counts.stretches += 1;
        if let Some(life) = &mut self.lived {
            let kind = match activity {
                Activity::Preempted => StretchKind::Preempted,
                _ => StretchKind::Waiting,
            };
            let sample = open.sample.or(sample);
            self.counts.unsampled += u64::from(sample.is_none());
            return life.stretches.push(Stretch::new([at, time], kind, on, sample));
        }
        match open.sample.or(sample) {
            Some(sample) => self.thread.sampled.push(SampledTime::new(sample, length, activity)),
            None => self.thread.unsampled.push(Unsampled { at, length, cpu, activity }),
        }
    }

    /// Ends the times of a thread that has not exited at the end of the recording.
    fn finish(&mut self, end: u64) {
        if self.has_exited {
            return;
        }
        if let Some([_, until]) = &mut self.life {
            *until = end.max(*until);
        }
        if let Some(open) = self.open.take() {
            self.close(open, end, u32::MAX);
            self.counts.unfinished += 1;
        } else if let Some((_, cpu)) = self.running {
            self.run(end, cpu);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Mark::{Alive, Begin, Cpu, Exit, In, Switch};
    use super::*;

    const WAIT: Mark = Mark::Out(Activity::Waiting);
    const PREEMPT: Mark = Mark::Out(Activity::Preempted);

    fn walk(marks: &[(u64, Mark)], end: u64) -> (OffCpuThread, SwitchCounts) {
        let entries: Vec<ThreadRecord> = (0..)
            .zip(marks)
            .map(|(offset, &(time, mark))| ThreadRecord::new(time, offset, Some(3), mark))
            .collect();
        ThreadWalk::of(1, &entries, end, WantedTimes::All)
    }

    fn sampled(thread: &OffCpuThread) -> Vec<(u64, u64, Activity)> {
        let all = thread.sampled.iter();
        all.map(|one| (one.at, one.word >> 2, Activity::unpack(one.word & 3))).collect()
    }

    fn unsampled(thread: &OffCpuThread) -> Vec<(u64, u64, Activity)> {
        thread.unsampled.iter().map(|one| (one.at, one.length, one.activity)).collect()
    }

    fn shares(thread: &OffCpuThread) -> Vec<u64> {
        thread.runs.iter().map(|run| run.share).collect()
    }

    #[test]
    fn a_sample_belongs_to_the_switch_out_beside_it() {
        let marks = [
            (10, Switch),
            (12, WAIT),
            (50, In),
            (60, PREEMPT),
            (61, Switch),
            (80, In),
            (85, WAIT),
            (95, In),
        ];
        let (thread, counts) = walk(&marks, 100);
        assert_eq!(sampled(&thread), [(10, 38, Activity::Waiting), (61, 20, Activity::Preempted)]);
        assert_eq!(unsampled(&thread), [(10, 22, Activity::Running), (85, 10, Activity::Waiting)]);
        assert_eq!(
            (counts.stretches, counts.unsampled, counts.unpaired, counts.unfinished),
            (3, 1, 0, 0)
        );
    }

    #[test]
    fn samples_share_the_running_time_between_them() {
        let marks = [(10, Alive), (30, Cpu), (40, WAIT), (70, In), (75, Cpu), (90, WAIT), (95, In)];
        let (thread, counts) = walk(&marks, 100);
        // The last one also stands for 75 to 90 and 95 to 100.
        assert_eq!(shares(&thread), [20, 15 + 20]);
        let off: u64 = unsampled(&thread).iter().map(|(_, length, _)| length).sum();
        assert_eq!((off, shares(&thread).iter().sum::<u64>() + off), (35, 90));
        assert_eq!(counts.unpaired, 0);
    }

    #[test]
    fn a_thread_that_stays_away_counts_until_the_end_unless_it_has_exited() {
        let (thread, counts) = walk(&[(5, In), (10, Switch), (11, WAIT)], 100);
        assert_eq!((sampled(&thread), counts.unfinished), (vec![(10, 89, Activity::Waiting)], 1));
        let (thread, counts) = walk(&[(5, In), (8, Exit), (9, PREEMPT), (10, In), (11, WAIT)], 100);
        assert_eq!(unsampled(&thread), [(5, 5, Activity::Running), (9, 1, Activity::Preempted)]);
        assert_eq!((counts.unfinished, counts.unpaired), (0, 0));
    }

    #[test]
    fn switches_without_their_other_half_have_no_length() {
        for (marks, unpaired) in [
            // Nothing is known of the time before the first switch in.
            (vec![(10, In), (20, WAIT), (30, In)], 0),
            (vec![(10, WAIT), (20, WAIT), (30, In)], 1),
            (vec![(15, In), (18, In), (20, WAIT), (30, In)], 1),
            (vec![(10, Switch), (15, In), (20, WAIT), (30, In)], 1),
            (vec![(9, Switch), (10, WAIT), (19, Switch), (20, WAIT), (30, In)], 1),
            (vec![(10, WAIT), (12, Cpu), (14, Cpu), (20, WAIT), (30, In)], 1),
            (vec![(10, WAIT), (12, Exit)], 1),
        ] {
            let (thread, counts) = walk(&marks, 40);
            assert_eq!(counts.unpaired, unpaired, "{marks:?}");
            let lengths: Vec<u64> = sampled(&thread)
                .into_iter()
                .chain(unsampled(&thread))
                .filter(|(_, _, activity)| *activity != Activity::Running)
                .map(|(_, length, _)| length)
                .collect();
            let expected =
                if marks.last().is_some_and(|(_, mark)| *mark == Exit) { vec![] } else { vec![10] };
            assert_eq!(lengths, expected, "{marks:?}");
        }
    }

    #[test]
    fn a_cpu_sample_just_after_the_switch_out_does_not_end_it() {
        let (thread, counts) = walk(&[(10, WAIT), (11, Cpu), (50, In)], 60);
        assert_eq!((unsampled(&thread), counts.unpaired), (vec![(10, 40, Activity::Waiting)], 0));
    }

    #[test]
    fn a_thread_that_was_found_waiting_waits_until_it_runs_or_to_the_end() {
        use super::Mark::{SampleAtStart, WaitsAtStart};
        let of = |marks: &[(u64, Mark)]| {
            let found = [(5, SampleAtStart), (5, WaitsAtStart)];
            let (thread, counts) = walk(&[&found, marks].concat(), 100);
            assert_eq!(counts.unpaired, 0, "{marks:?}");
            (sampled(&thread), counts.never_ran)
        };
        let waiting = |length| vec![(5, length, Activity::Waiting)];
        assert_eq!(of(&[]), (waiting(95), 1));
        assert_eq!(of(&[(100, Alive)]), (waiting(95), 1), "its name at the end");
        assert_eq!(of(&[(30, In)]), (waiting(25), 0));
        // It ran when the recording began.
        for marks in [vec![(30, Cpu)], vec![(30, Switch), (31, WAIT), (40, In)], vec![(30, Exit)]] {
            let (sampled, never_ran) = of(&marks);
            assert!(sampled.iter().all(|(at, ..)| *at != 5), "{marks:?}");
            assert_eq!(never_ran, 0);
        }
        // Records of the rings are older, where a file is not the first one.
        let (thread, _) = walk(&[(3, In), (5, SampleAtStart), (5, WaitsAtStart), (9, Cpu)], 10);
        assert_eq!(sampled(&thread), []);
    }

    #[test]
    fn a_reused_number_is_another_thread() {
        let marks = [(10, In), (12, Cpu), (20, WAIT), (40, Begin), (45, In), (48, Cpu)];
        let (thread, counts) = walk(&marks, 50);
        assert_eq!((unsampled(&thread), shares(&thread)), (vec![], vec![2 + 8, 3 + 2]));
        assert_eq!(counts, SwitchCounts::default());
    }
}
