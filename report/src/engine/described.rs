//! What is said of an input: its summary, warnings, and hints at options that would show more.

use std::path::Path;

use recrep_console::units;
use recrep_format::abi::{BranchSampleType, RecordType, SampleType};
use recrep_format::attr::AttrEntry;
use recrep_format::feature::UnwoundChains;

use crate::callchain::RecordedCauses;
use crate::count::LOWER_VALUES;
use crate::input::split::Split;
use crate::profile::recording::{Recording, When};
use crate::profile::{InputSummary, Profile};
use crate::query::{Mode, Query, Warning};
use crate::samples::Session;
use crate::scan::Dropped;
use crate::timeline::{BusyTime, IdleThreads, SwitchCounts, is_switches, total};

/// Adds to the profile of an input what is said of it.
pub(super) fn describe(
    profile: &mut Profile,
    query: &Query,
    session: &Session<'_>,
    not_fetched: Vec<Warning>,
    dropped: Dropped,
) {
    profile.hints = hints(query, &session.input.name, session);
    profile.inputs.push(summary(query, session));
    profile.warnings.extend(session.warnings());
    profile.warnings.extend(not_fetched);
    profile.warnings.extend(dropped_warnings(&dropped));
    let mut ends = dropped.ends;
    ends.take_causes(recorded_causes(session).unwrap_or_default());
    profile.warnings.extend(ends.warnings());
    profile.chain_ends = ends;
    // What these say of waits does not matter for what ran.
    if let Some(times) = session.off_cpu.as_ref().filter(|_| query.mode != Mode::Latency) {
        profile.warnings.extend(time_warnings(&times.counts));
    }
}

/// Returns how the recorder could unwind callchains; `None` if it did not, or does not say.
pub(super) fn recorded_causes(session: &Session<'_>) -> Option<RecordedCauses> {
    let chains: UnwoundChains<'_> = session.file.feature()?.ok()?;
    Some(RecordedCauses::of(&chains))
}

/// Returns the summary of an input.
pub(crate) fn summary(query: &Query, session: &Session<'_>) -> InputSummary {
    let Session { input, split, side_band, .. } = session;
    let count = |kind: RecordType| split.counts.get(&kind).copied().unwrap_or(0);
    let mut recording = Recording::of(session.file, count(RecordType::THROTTLE));
    if query.is_default_input {
        recording.when = When::of(session.file, Path::new(&input.name));
    }
    let summed = input.profile_samples().map(Split::counts_of_profile);
    let records = summed.as_ref().unwrap_or(&split.counts);
    InputSummary {
        path: input.name.clone(),
        bytes: input.len(),
        samples: input.profile_samples().unwrap_or_else(|| session.samples()),
        records: records.iter().map(|(kind, count)| (kind.to_string(), *count)).collect(),
        lost_events: side_band.lost_events,
        lost_samples: total(&side_band.lost_samples),
        filtered_samples: total(&side_band.filtered_samples),
        complete: session.is_complete(),
        recording,
    }
}

/// Returns options that would show more of an input.
fn hints(query: &Query, name: &str, session: &Session<'_>) -> Vec<String> {
    let mut hints = Vec::new();
    if query.mode == Mode::Latency {
        hints.push(busy(name, session.parallelism().busy()));
        return hints;
    }
    let times = session.off_cpu.as_ref().filter(|_| session.waits.is_none());
    if let Some(times) = times {
        let SwitchCounts { unfinished, never_ran, .. } = times.counts;
        let went_off = unfinished.saturating_sub(never_ran);
        if went_off > 0 {
            let were = if went_off == 1 {
                "thread was off its CPU"
            } else {
                "threads were off their CPUs"
            };
            hints.push(format!(
                "{name}: {went_off} {were} when the recording ended; that time counts until its \
                 last record"
            ));
        }
        if never_ran > 0 && times.idle.threads == 0 {
            let threads = if never_ran == 1 { "thread" } else { "threads" };
            hints.push(format!(
                "{name}: {never_ran} {threads} did not run in the whole recording, and waited from \
                 its start to its end"
            ));
        }
        hints.extend(idle(name, query, &times.idle));
    }
    if query.mode == Mode::Samples && have_switches(session) {
        hints.push(format!(
            "{name} also has waits of threads: see where with --off-cpu, or waiting and running \
             with --wall"
        ));
    }
    if query.mode == Mode::Samples && !query.chains.branches && have_branches(session) {
        hints.push(format!("{name} has branch stacks: -b counts the branches in them"));
    }
    hints
}

/// Returns how long threads ran, at once and in all.
#[allow(clippy::cast_precision_loss, reason = "one decimal is shown")]
fn busy(name: &str, BusyTime { wall, cpu }: BusyTime) -> String {
    format!(
        "{name}: at least one thread ran for {}, threads in all for {}: {:.1} at a time",
        units::time(wall),
        units::time(cpu),
        cpu as f64 / wall.max(1) as f64
    )
}

/// Returns what is said of threads whose waits are told apart.
fn idle(name: &str, query: &Query, idle: &IdleThreads) -> Option<String> {
    if idle.threads == 0 {
        return None;
    }
    let (time, threads) = (units::time(idle.time), idle.described());
    Some(match query.shows_idle() {
        true => format!("{name}: {time} of the waits are those of {threads}"),
        false => format!(
            "{name}: left out are {time} of waits of {threads}: the sort key `switch` tells them \
             apart, and --comm, --pid and --tid show them"
        ),
    })
}

/// Returns whether samples have branch stacks other than the hardware's call stack.
pub(crate) fn have_branches(session: &Session<'_>) -> bool {
    session.file.attrs.entries().iter().any(|AttrEntry { attr, .. }| {
        attr.sample_type.contains(SampleType::BRANCH_STACK)
            && !attr.branch_sample_type.contains(BranchSampleType::CALL_STACK)
    })
}

/// Returns whether a report by samples could be one on time.
pub(crate) fn have_switches(session: &Session<'_>) -> bool {
    let counts = &session.split.counts;
    let has_records = [RecordType::SWITCH, RecordType::SWITCH_CPU_WIDE]
        .iter()
        .any(|kind| counts.contains_key(kind));
    has_records && session.file.attrs.entries().iter().any(|entry| is_switches(&entry.attr))
}

/// Returns warnings of times that are missing, or shown at another stack.
fn time_warnings(counts: &SwitchCounts) -> impl Iterator<Item = Warning> {
    let unpaired = [
        "switch lacks the record of the switch out or in (lost?), so its time is unknown and left \
         out",
        "switches lack the record of the switch out or in (lost?), so their time is unknown and \
         left out",
    ];
    let unsampled = [("has no stack of its", "its"), ("have no stack of their", "their")];
    let unsampled = unsampled.map(|(have, of)| {
        format!(
            "of {} waits {have} own: {of} time is shown at the stack of the thread's CPU sample \
             before, below `[nearest sample]`, or at `[no sample]`",
            counts.stretches
        )
    });
    let all = [
        Warning::counted(counts.unpaired, "unpaired-switches", unpaired),
        Warning::counted(
            counts.unsampled,
            "unsampled-switches",
            unsampled.each_ref().map(String::as_str),
        ),
    ];
    all.into_iter().flatten()
}

pub(crate) fn dropped_warnings(dropped: &Dropped) -> impl Iterator<Item = Warning> {
    let Dropped { unknown_id, malformed, torn_chains, lower_values, .. } = *dropped;
    let of_ids = [
        "sample has an id that no event in the file has, and is left out",
        "samples have an id that no event in the file has, and are left out",
    ];
    let of_fields = [
        "sample is too short for the fields of its event, and is left out",
        "samples are too short for the fields of their event, and are left out",
    ];
    let of_chains = [
        "sample ends inside its callchain, and counts without it",
        "samples end inside their callchains, and count without them",
    ];
    let all = [
        Warning::counted(lower_values, "counter-reset", LOWER_VALUES),
        Warning::counted(unknown_id, "unknown-id", of_ids),
        Warning::counted(malformed, "bad-sample", of_fields),
        Warning::counted(torn_chains, "torn-callchain", of_chains),
    ];
    all.into_iter().flatten()
}
