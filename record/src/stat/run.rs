//! A run: opens the counters, starts them, waits, prints intervals, and reads the counters at the
//! end.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use recrep_counts::{Aggregation, Report, Row, Spread, TableMetric, Times, add_ratios, measure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Settings;
use super::events::{CountedEvents, is_of_cpu};
use super::output::CountOutput;
use super::record_file::RecordFile;
use super::table::Table;
use super::tool_time::{CpuClock, ToolTimes};
use crate::kernel::Kernel;
use crate::kernel::counters;
use crate::kernel::fallback::Circumstances;
use crate::kernel::probes::Probes;
use crate::kernel::signals::Signals;
use crate::kernel::sys;
use crate::messages::Messages;
use crate::messages::error::{Error, Result};
use crate::plan::counting::{self, Counting};
use crate::session::end_of_command;
use crate::tasks::workload::{Inherited, Workload};
use crate::tasks::{self, Target, Task};

/// Everything that all runs have in common.
pub(super) struct Runner<'a, K> {
    pub(super) settings: &'a Settings,
    pub(super) kernel: &'a K,
    pub(super) messages: &'a Messages,
    pub(super) signals: &'a Signals,
    pub(super) before: Inherited,
    pub(super) chosen: CountedEvents,
}

/// Result of a run.
pub(super) struct Run {
    /// Sums of the whole run.
    pub(super) rows: Vec<Row>,
    /// Report with the events, for the rows.
    pub(super) report: Report,
    /// Metrics of the events.
    pub(super) metrics: Vec<TableMetric>,
    pub(super) elapsed: Duration,
    /// CPU time of the command.
    pub(super) user: Duration,
    pub(super) sys: Duration,
    /// `true` if the CPU time is that of what was counted.
    pub(super) has_cpu_time: bool,
    /// Exit status.
    pub(super) status: u8,
    /// `true` if a signal ended it.
    pub(super) stopped: bool,
}

/// Reason why counting ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The command or the counted processes have ended.
    Target,
    /// A signal.
    Stop,
    /// The time, or the number of intervals.
    Limit,
}

/// Event that ended a wait.
enum Woken {
    /// Counting ends.
    End(End),
    /// A child has ended.
    Child,
    /// A time has come, or there is something else to wait for.
    Time,
}

/// A run that goes on.
struct Ongoing<'a, 'o> {
    table: Table,
    report: Report,
    times: RunTimes,
    cpu_clock: CpuClock,
    output: &'a mut CountOutput<'o>,
    file: Option<&'a mut RecordFile>,
}

impl<K: Kernel> Runner<'_, K> {
    pub(super) fn run(
        &self,
        output: &mut CountOutput<'_>,
        file: Option<&mut RecordFile>,
    ) -> Result<Run> {
        let settings = self.settings;
        let (user_before, sys_before) = sys::children_cpu_time();
        let to_stdout = file.as_ref().is_some_and(|file| file.is_stdout());
        let mut workload = Workload::at_gate(&settings.command, to_stdout, self.before)?;
        let tasks = settings.target.tasks()?;
        let (table, _probes) = self.open(workload.as_ref(), &tasks)?;
        let file = file.map(|file| file.begin(settings, &table).map(|()| file)).transpose()?;
        let ends = Ends::new(settings, &tasks)?;
        if settings.delay.is_none() {
            table.counters.enable_others_than_exec(self.kernel)?;
        }
        let command = workload.as_ref().map(Workload::pid);
        let cpu_clock = CpuClock::new(&settings.target, &tasks, command);
        let times = RunTimes::new(settings);
        if let Some(workload) = &mut workload {
            workload.release()?;
        }
        let mut report = Report::new(target(settings), table.events.clone());
        report.aggregation = settings.by;
        let mut run = Ongoing { table, report, times, cpu_clock, output, file };
        let end = self.count(&mut run, workload.as_mut(), ends)?;
        let status = self.stop(&mut run, workload, end)?;
        let elapsed = run.times.elapsed();
        let readings = run.table.readings(true);
        let (user, sys) = sys::children_cpu_time();
        Ok(Run {
            rows: run.table.rows(&readings),
            report: run.report,
            metrics: run.table.metrics,
            elapsed,
            user: user.saturating_sub(user_before),
            sys: sys.saturating_sub(sys_before),
            has_cpu_time: settings.target == Target::Command,
            status: status.unwrap_or(0),
            stopped: end == End::Stop,
        })
    }

    /// Counts until something ends that, and prints intervals.
    fn count(
        &self,
        run: &mut Ongoing<'_, '_>,
        mut workload: Option<&mut Workload>,
        mut ends: Ends,
    ) -> Result<End> {
        let mut child_ended = true;
        loop {
            // Asked for only when a child has ended, as each interval should cost little.
            let command = workload.as_deref_mut().filter(|_| child_ended);
            if command.is_some_and(|workload| workload.ended().is_some()) {
                return Ok(End::Target);
            }
            let now = Instant::now();
            if run.times.starts(now) {
                run.table.counters.set_enabled(self.kernel, None, true)?;
                run.times.start = Instant::now();
            }
            if run.times.interval_is_over(now) {
                self.interval(run)?;
                if self.has_all_intervals(run) {
                    return Ok(End::Limit);
                }
            }
            if run.times.deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(End::Limit);
            }
            match self.wait(&run.times, workload.is_some(), &mut ends) {
                Woken::End(end) => return Ok(end),
                Woken::Child => child_ended = true,
                Woken::Time => child_ended = false,
            }
        }
    }

    fn has_all_intervals(&self, run: &Ongoing<'_, '_>) -> bool {
        self.settings.interval_count.is_some_and(|count| run.times.intervals >= count)
    }

    /// Ends the command and stops the counters, and reads them a last time. Returns the exit status
    /// of the command.
    fn stop(
        &self,
        run: &mut Ongoing<'_, '_>,
        workload: Option<Workload>,
        end: End,
    ) -> Result<Option<u8>> {
        let is_of_command = self.settings.target == Target::Command;
        if !is_of_command {
            run.times.end = Some(run.times.start.elapsed());
            run.table.counters.disable(self.kernel)?;
        }
        let status = workload.map(|workload| match end {
            End::Stop => end_of_command(workload, self.signals, self.messages),
            End::Target | End::Limit => workload.finish(),
        });
        // What ends only now is counted up to its end.
        if is_of_command {
            run.times.end = Some(run.times.start.elapsed());
            run.table.counters.disable(self.kernel)?;
        }
        if self.has_all_intervals(run) {
            // The last interval is printed.
        } else if self.settings.interval.is_some() {
            self.interval(run)?;
        } else {
            self.read(run)?;
            if let Some(file) = &mut run.file {
                file.round(&run.table, run.times.elapsed(), true)?;
            }
        }
        Ok(status)
    }

    /// Opens the counters. The probes are to be dropped after them.
    fn open(&self, workload: Option<&Workload>, tasks: &[Task]) -> Result<(Table, Probes)> {
        let settings = self.settings;
        let machine = &settings.machine;
        let system = settings.target == Target::System;
        let cpus = match &settings.cpus {
            None => machine.online.clone(),
            Some(cpus) => match cpus.iter().find(|cpu| !machine.online.contains(cpu)) {
                None => cpus.clone(),
                Some(cpu) => {
                    return Err(Error::Failed(format!(
                        "cannot count on CPU {cpu} (-C): online CPUs are {}",
                        tasks::ranges(&machine.online)
                    )));
                }
            },
        };
        let counting = Counting {
            cpus,
            system,
            by_cpu: !matches!(settings.by, Aggregation::Whole | Aggregation::Thread),
            inherits: !settings.no_inherit && !system,
            starts_on_exec: settings.target == Target::Command && settings.delay.is_none(),
            only: settings.only,
        };
        let mut plan = counting::plan(&self.chosen.specs, &self.chosen.cgroups, counting)?;
        let probes = Probes::register(&mut plan.events, machine.tracefs.as_deref())?;
        let mut threads = || match &settings.target {
            Target::System => vec![None],
            Target::Command => workload.map(|workload| Some(workload.pid())).into_iter().collect(),
            target => {
                target.tasks().unwrap_or_default().iter().map(|task| Some(task.tid)).collect()
            }
        };
        let with =
            Circumstances { counting: true, ..Circumstances::new(&settings.target, machine) };
        let mut opened =
            counters::open_counters(self.kernel, &plan, &mut threads, with, self.messages)?;
        let mut of_cpu = (0..).zip(&plan.events).filter(|(_, event)| is_of_cpu(event.attr.kind));
        if self.chosen.by_default && of_cpu.all(|(index, _)| opened.left_out.contains(&index)) {
            // Nobody expects the cycles of a CPU that counts nothing.
            opened.remove_left_out();
        }
        Ok((Table::new(settings, &self.chosen, opened, tasks), probes))
    }

    /// Reads the counters, and prints what they counted since the interval before.
    fn interval(&self, run: &mut Ongoing<'_, '_>) -> Result<()> {
        self.read(run)?;
        let Ongoing { table, report, times, output, file, .. } = run;
        let now = times.elapsed();
        if let Some(file) = file {
            file.round(table, now, false)?;
        }
        let length = now.saturating_sub(times.last_interval);
        times.last_interval = now;
        times.intervals += 1;
        let readings = table.readings(false);
        report.rows = table.rows(&readings);
        report.interval_end = Some(now);
        report.elapsed = Spread::of(length.as_secs_f64());
        add_ratios(&mut report.rows, &report.events, length);
        // The CPU time of a command is known at its end.
        let cpu_times = Times { elapsed: Some(length.as_secs_f64()), ..Times::default() };
        report.metrics = measure(&table.metrics, &report.rows, cpu_times);
        output.print(report, &[])
    }

    /// Reads the counters, and the times that are events.
    fn read(&self, run: &mut Ongoing<'_, '_>) -> Result<()> {
        run.table.read(self.kernel, self.messages)?;
        if run.table.has_times() {
            let (duration, cpu) = (run.times.elapsed(), run.cpu_clock.elapsed());
            run.table.set_times(&ToolTimes { duration, cpu });
        }
        Ok(())
    }

    /// Waits for the next thing to do.
    fn wait(&self, times: &RunTimes, has_command: bool, ends: &mut Ends) -> Woken {
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.signals.stop(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.signals.child(), PollFlags::IN),
        ];
        if let Some(next) = ends.0.last().filter(|_| !has_command) {
            fds.push(PollFd::new(next, PollFlags::IN));
        }
        let limit = times.next().map(|next| next.saturating_duration_since(Instant::now()));
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        // An interrupted poll is no error: the next one finds the reason.
        let _ = poll(&mut fds, limit.as_ref());
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        if is_ready(0) {
            return Woken::End(End::Stop);
        }
        if is_ready(1) {
            self.signals.clear_child();
            return Woken::Child;
        }
        if is_ready(2) {
            ends.0.pop();
            if ends.0.is_empty() {
                return Woken::End(End::Target);
            }
        }
        Woken::Time
    }
}

/// The ends of the counted processes or threads that are waited for, one after the other.
struct Ends(Vec<OwnedFd>);

impl Ends {
    fn new(settings: &Settings, tasks: &[Task]) -> Result<Self> {
        if !settings.target.is_attached() || !settings.command.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let threads = matches!(settings.target, Target::Threads(_));
        let whole = tasks.iter().filter(|task| threads || task.tid == task.pid);
        let mut ends = Vec::new();
        for task in whole {
            ends.extend(tasks::end(*task, threads)?);
        }
        Ok(Self(ends))
    }
}

/// Times of a run.
struct RunTimes {
    /// Start of counting.
    start: Instant,
    /// Time at which counting starts, if it has not.
    starts_at: Option<Instant>,
    interval: Option<Duration>,
    /// End of the interval before, since the start.
    last_interval: Duration,
    /// Number of intervals.
    intervals: u32,
    /// Time at which counting ends.
    deadline: Option<Instant>,
    /// Length of the run, once it has ended.
    end: Option<Duration>,
}

impl RunTimes {
    /// Returns the length of the run so far, or of one that has ended.
    fn elapsed(&self) -> Duration {
        self.end.unwrap_or_else(|| self.start.elapsed())
    }

    fn new(settings: &Settings) -> Self {
        let start = Instant::now();
        Self {
            start,
            starts_at: settings.delay.map(|delay| start + delay),
            interval: settings.interval,
            last_interval: Duration::ZERO,
            intervals: 0,
            deadline: settings
                .timeout
                .map(|timeout| start + timeout + settings.delay.unwrap_or_default()),
            end: None,
        }
    }

    /// Returns whether counting is to start now.
    fn starts(&mut self, now: Instant) -> bool {
        self.starts_at.take_if(|at| now >= *at).is_some()
    }

    /// Returns the end of this interval. Each ends a whole number of them after the start.
    fn interval_end(&self) -> Option<Instant> {
        let interval = self.interval.filter(|_| self.starts_at.is_none())?;
        let passed = self.last_interval.as_nanos() / interval.as_nanos().max(1);
        let next = u32::try_from(passed + 1).unwrap_or(u32::MAX);
        Some(self.start + interval.saturating_mul(next))
    }

    fn interval_is_over(&self, now: Instant) -> bool {
        self.interval_end().is_some_and(|end| now >= end)
    }

    /// Returns the time of the next thing to do.
    fn next(&self) -> Option<Instant> {
        [self.starts_at, self.interval_end(), self.deadline].into_iter().flatten().min()
    }
}

fn list(ids: &[u32]) -> String {
    ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Returns what is counted, as the heading says it.
fn target(settings: &Settings) -> String {
    match &settings.target {
        Target::Command => {
            let words = settings.command.iter().map(|word| word.to_string_lossy());
            format!("'{}'", words.collect::<Vec<_>>().join(" "))
        }
        Target::System => match &settings.cpus {
            None => "'system wide'".to_owned(),
            Some(cpus) => format!("'CPU(s) {}'", tasks::ranges(cpus)),
        },
        Target::Processes(pids) => format!("process id '{}'", list(pids)),
        Target::Threads(tids) => format!("thread id '{}'", list(tids)),
        Target::User(uid) => format!("user id '{uid}'"),
    }
}
