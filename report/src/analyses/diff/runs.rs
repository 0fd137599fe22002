//! What is known of a recording beside its samples: when it began, where, and how it ended.

use std::collections::BTreeSet;
use std::time::UNIX_EPOCH;

use recrep_format::abi::AttrFlags;
use recrep_format::feature::{
    ClockData, Cmdline, CpuDesc, HeaderString, Hostname, NrCpus, OsRelease,
};

use crate::compare::SideRun;
use crate::engine::gather::Apart;
use crate::profile::recording::known;
use crate::query::Warning;
use crate::samples::Session;

/// A recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunFacts {
    /// Host, processor, kernel and number of CPUs, as far as the file has them.
    machine: [Option<String>; 4],
    /// Start by the wall clock, if the file has that.
    wall: Option<f64>,
    /// Time of the first sample, in seconds of the clock of the records.
    first: Option<f64>,
    /// Moment at which that clock was 0, if the file was written when the last sample was taken.
    boot: Option<f64>,
    /// Length, if it has two samples at different times.
    pub(crate) seconds: Option<f64>,
    is_cut: bool,
    /// Frequency or period of each event.
    pub(crate) rates: Vec<String>,
}

/// Warnings if the values of [`RunFacts::machine`] differ, and what these are.
const MACHINE: [(&str, &str); 4] = [
    ("different-host", "hosts"),
    ("different-cpu", "processors"),
    ("different-kernel", "kernels"),
    ("different-cpus", "numbers of CPUs"),
];

/// Number of [`MACHINE`]'s values that show another machine: CPUs are also switched off.
const OF_MACHINE: usize = 3;

/// Seconds by which two computations of the time of the boot may differ.
const BOOT: f64 = 120.0;

#[expect(clippy::cast_precision_loss, reason = "microseconds do not matter")]
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

impl RunFacts {
    pub(crate) fn of(session: &Session<'_>) -> Self {
        let file = session.file;
        let machine = [
            known(file).and_then(|Hostname(name)| text(&name)),
            known(file).and_then(|CpuDesc(name)| text(&name)),
            known(file).and_then(|OsRelease(name)| text(&name)),
            known(file).map(|cpus: NrCpus| cpus.online.to_string()),
        ];
        let times = Some(session.sampled_between()).filter(|times| *times != (0, 0));
        let times = times.map(|(first, last)| (seconds(first), seconds(last)));
        let clock = known(file).filter(|clock: &ClockData| clock.wall_clock > 0);
        let wall = clock
            .zip(times)
            .map(|(clock, (first, _))| seconds(clock.wall_clock) + first - seconds(clock.clock));
        let written = session.input.written().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let boot = written.zip(times).map(|(written, (_, last))| written.as_secs_f64() - last);
        let rates = file.attrs.entries().iter().map(|entry| match entry.attr.frequency() {
            Some(frequency) => format!("{frequency} Hz"),
            None => format!("period {}", entry.attr.sample_period),
        });
        Self {
            machine,
            wall,
            first: times.map(|(first, _)| first),
            boot,
            seconds: times.map(|(first, last)| last - first).filter(|length| *length > 0.0),
            is_cut: is_cut(session),
            rates: rates.collect(),
        }
    }
}

fn text(name: &HeaderString<'_>) -> Option<String> {
    Some(name.to_text().into_owned()).filter(|text| !text.is_empty())
}

/// Returns whether a recording ended at a moment of someone's choice, not with its command.
fn is_cut(session: &Session<'_>) -> bool {
    let mut attrs = session.file.attrs.entries().iter().map(|entry| &entry.attr);
    if attrs.any(|attr| attr.flags.contains(AttrFlags::ENABLE_ON_EXEC)) {
        return session.side_band.outlives() == Some(true);
    }
    // Without a command of its own there is none to start with, and the flags say what was recorded.
    let Some(Cmdline { args }) = known(session.file) else { return false };
    let words: Vec<_> = args.0.iter().map(HeaderString::to_text).collect();
    words.iter().take_while(|word| *word != "--").any(|word| {
        let is_long = ["--all-cpus", "--pid", "--tid", "--cpu", "--uid"].iter().any(|flag| {
            word.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        });
        let is_short = word.strip_prefix('-').is_some_and(|flags| !flags.starts_with('-'))
            && ["-a", "-p", "-t", "-C", "-u"].iter().any(|flag| word.starts_with(flag));
        is_long || is_short
    })
}

/// Returns the runs of both sides, with starts from an origin that all share if there is one.
pub(crate) fn runs(sides: [&[RunFacts]; 2]) -> [Vec<SideRun>; 2] {
    let start = origin(sides);
    sides.map(|side| {
        let runs = side.iter().map(|recorded| SideRun {
            start: start.and_then(|start| start(recorded)),
            seconds: recorded.seconds,
            samples: 0,
            is_cut: recorded.is_cut,
        });
        runs.collect()
    })
}

type Start = fn(&RunFacts) -> Option<f64>;

/// Returns where starts are comparable: by the wall clock, else by the clock of one machine since
/// its last boot.
fn origin(sides: [&[RunFacts]; 2]) -> Option<Start> {
    let all = || sides.into_iter().flatten();
    if all().all(|run| run.wall.is_some()) {
        return Some(|run| run.wall);
    }
    let first = all().next()?;
    let [host, _, release, _] = &first.machine;
    let is_same = |run: &RunFacts| {
        let is_near = run.boot.zip(first.boot).is_some_and(|(a, b)| (a - b).abs() <= BOOT);
        let [of_host, _, of_release, _] = &run.machine;
        is_near && of_host == host && of_release == release
    };
    let is_one = host.is_some() && release.is_some() && all().all(is_same);
    is_one.then_some(|run| run.first)
}

/// Returns warnings of what makes the comparison of two sides doubtful, and whether they were
/// recorded on different machines.
pub(crate) fn differences(sides: [&[RunFacts]; 2]) -> (Vec<Warning>, bool) {
    let (mut warnings, mut are_machines) = (Vec::new(), false);
    for (place, (code, plural)) in MACHINE.iter().enumerate() {
        let [base, new] = sides.map(|side| {
            let known = side.iter().filter_map(|run| run.machine.get(place)?.clone());
            known.collect::<BTreeSet<String>>()
        });
        if base.is_empty() || new.is_empty() || base == new {
            continue;
        }
        are_machines |= place < OF_MACHINE;
        let [base, new] =
            [base, new].map(|names| names.into_iter().collect::<Vec<String>>().join(", "));
        let message = format!("the sides were recorded with different {plural}: {base} and {new}");
        warnings.push(Warning::new(code, message));
    }
    (warnings, are_machines)
}

/// Leaves recordings without samples out.
pub(super) fn leave_out_empty(apart: &mut Apart<RunFacts>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for group in &mut apart.groups {
        group.retain(|(profile, _)| {
            let has_samples = profile.samples() > 0
                || profile.events().iter().any(|event| event.total.samples > 0);
            if !has_samples {
                let path = profile.inputs.first().map_or("", |input| input.path.as_str());
                let message = format!("{path}: there are no samples in it; it is left out");
                warnings.push(Warning::new("empty", message));
            }
            has_samples
        });
    }
    warnings
}
