//! `rec stat`: counts events with counters that are read, and prints the counts.
//!
//! ```text
//!  cli::stat ──▶ Settings ──▶ events: defaults, cgroups ──▶ plan::counting ──▶ kernel::counters
//!                                                                                │
//!  run: start, intervals, end ◀── signals, timers, the command's end             │ read
//!    │                                                                           ▼
//!    ├──────────────▶ record_file: STAT records          table: readings by event and place
//!    ▼                                                                           │
//!  output: terminal, file ◀── recrep_counts: rows, ratios, text, CSV, JSON ◀┘
//! ```
//!
//! `metrics` chooses the events of `-M`; their formulas are computed from the rows.
//!
//! It starts fast: no rings, no side-band, nothing is read from `/proc` that is not needed.

mod events;
pub(crate) mod metrics;
mod output;
mod record_file;
mod run;
mod table;
#[cfg(test)]
mod tests;
mod tool_time;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use recrep_counts::{Aggregation, CpuTime, Format, Runs, Spread, Times, measure};

use crate::event::EventSpec;
use crate::kernel::Kernel;
use crate::kernel::signals::Signals;
use crate::machine::Machine;
use crate::machine::sources::EventSources;
use crate::messages::error::{Error, Result};
use crate::messages::{Messages, Verbosity};
use crate::plan::config::Only;
use crate::tasks::Target;
use crate::tasks::workload::Inherited;
use metrics::MetricRequest;
use output::CountOutput;
use record_file::RecordFile;
use run::{Run, Runner};

/// Settings of `rec stat`, independent of the command line's syntax.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent setting")]
pub(crate) struct Settings {
    /// Events; empty for the default ones.
    pub events: Vec<EventSpec>,
    /// Cgroup of each event (`-G`).
    pub cgroups: Vec<Option<String>>,
    /// Cgroups in each of which all events are counted (`--for-each-cgroup`).
    pub each_cgroup: Vec<String>,
    /// Level of detail of the default events (`-d`).
    pub detail: u8,
    /// Metrics of the event tables (`-M`, `--topdown`).
    pub metrics: MetricRequest,
    /// Sources of their events.
    pub sources: EventSources,
    /// Count nothing (`-n`).
    pub null: bool,
    pub target: Target,
    /// CPUs to count on (`-C`); `None` for all.
    pub cpus: Option<Vec<u32>>,
    pub no_inherit: bool,
    pub only: Option<Only>,
    /// Kind of sums (`-A`, `--per-core`, …).
    pub by: Aggregation,
    /// Print values as they were counted (`--no-scale`).
    pub unscaled: bool,
    /// Keep the same events of several PMUs apart (`--no-merge`).
    pub no_merge: bool,
    pub repeat: Repeat,
    /// Print the time of each run (`--table`).
    pub table: bool,
    /// Shell commands before and after each run.
    pub pre: Option<String>,
    pub post: Option<String>,
    pub sync: bool,
    /// Time after which counting starts (`-D`).
    pub delay: Option<Duration>,
    pub timeout: Option<Duration>,
    pub interval: Option<Duration>,
    pub interval_count: Option<u32>,
    pub interval_clear: bool,
    /// Print the sums after intervals.
    pub summary: bool,
    /// Begin the lines of the sums with `summary` in CSV.
    pub csv_summary: bool,
    pub format: Format,
    /// Print ratios and metrics without the counts.
    pub metric_only: bool,
    pub destination: Destination,
    /// Data file (`rec stat record`).
    pub record: Option<PathBuf>,
    /// Print no counts.
    pub quiet: bool,
    pub verbosity: Verbosity,
    /// Command to run; empty for none.
    pub command: Vec<OsString>,
    /// Command line for the file's header.
    pub cmdline: Vec<String>,
    pub machine: Machine,
}

/// Number of runs of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    Times(u32),
    /// Until a signal.
    Forever,
}

impl Default for Repeat {
    fn default() -> Self {
        Self::Times(1)
    }
}

/// Destination of printed counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    StandardError,
    File { path: PathBuf, append: bool },
    Descriptor(i32),
}

/// Counts, prints, and returns the exit status.
pub(crate) fn run<K: Kernel>(settings: &Settings, kernel: &K, messages: &Messages) -> Result<u8> {
    let before = Inherited::now();
    let signals = Signals::install()?;
    if !settings.command.is_empty() {
        Signals::leave_quit_to_command()?;
    }
    let chosen = events::choose(settings)?;
    for note in &chosen.notes {
        messages.note(note);
    }
    let runner = Runner { settings, kernel, messages, signals: &signals, before, chosen };
    let mut output = CountOutput::open(settings)?;
    let mut file = settings.record.as_deref().map(RecordFile::create).transpose()?;
    let mut sums = Sums::default();
    loop {
        if let Some(command) = &settings.pre {
            shell("--pre", command)?;
        }
        if settings.sync {
            rustix::fs::sync();
        }
        let mut run = runner.run(&mut output, file.as_mut())?;
        if let Some(command) = &settings.post {
            shell("--post", command)?;
        }
        if settings.interval.is_none() || settings.summary {
            sums.add(&mut run, settings);
            if settings.repeat == Repeat::Forever && !run.stopped {
                sums.print(&mut output, run, settings)?;
                sums = Sums::default();
                continue;
            }
        }
        let is_last = match settings.repeat {
            Repeat::Times(times) => sums.elapsed.runs() >= times || run.stopped,
            Repeat::Forever => run.stopped,
        };
        if is_last || settings.interval.is_some() {
            let status = run.status;
            if settings.interval.is_none() || settings.summary {
                sums.print(&mut output, run, settings)?;
            }
            if let Some(file) = file {
                file.finish()?;
            }
            return Ok(status);
        }
    }
}

/// Runs a shell command, which must succeed.
fn shell(flag: &str, command: &str) -> Result<()> {
    let failed = |why: String| Error::Failed(format!("{flag}: '{command}' {why}"));
    let status = std::process::Command::new("sh")
        .args(["-c", command])
        .status()
        .map_err(|why| failed(format!("cannot be run: {why}")))?;
    if status.success() { Ok(()) } else { Err(failed(format!("failed: {status}"))) }
}

/// Sums over the runs.
#[derive(Default)]
struct Sums {
    rows: Runs,
    elapsed: Spread,
    cpu_time: CpuTime,
    /// Seconds of each run.
    times: Vec<f64>,
}

impl Sums {
    fn add(&mut self, run: &mut Run, settings: &Settings) {
        self.rows.add(&run.rows);
        self.elapsed.add(run.elapsed.as_secs_f64());
        self.cpu_time.user.add(run.user.as_secs_f64());
        self.cpu_time.sys.add(run.sys.as_secs_f64());
        if settings.table {
            self.times.push(run.elapsed.as_secs_f64());
        }
    }

    fn print(&self, output: &mut CountOutput<'_>, run: Run, settings: &Settings) -> Result<()> {
        let label = (settings.summary && settings.csv_summary).then_some("summary");
        let mut report = run.report;
        report.rows = match self.elapsed.runs() {
            0 | 1 => run.rows,
            _ => self.rows.rows(),
        };
        report.elapsed = self.elapsed;
        report.cpu_time = run.has_cpu_time.then_some(self.cpu_time);
        report.interval_end = None;
        let elapsed = Duration::try_from_secs_f64(self.elapsed.mean()).unwrap_or_default();
        recrep_counts::add_ratios(&mut report.rows, &report.events, elapsed);
        let times = Times {
            elapsed: Some(self.elapsed.mean()),
            user: report.cpu_time.map(|time| time.user.mean()),
            sys: report.cpu_time.map(|time| time.sys.mean()),
        };
        report.metrics = measure(&run.metrics, &report.rows, times);
        report.csv_label = label;
        output.print(&report, &self.times)
    }
}
