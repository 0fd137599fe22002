//! Checks of the inputs of a report on time: for what they lack, and how far it can be trusted.

use recrep_format::abi::RecordType;

use crate::pipeline::session::Session;
use crate::query::{Mode, Warning};
use crate::timeline::off_cpu::{Role, SwitchCounts, is_switches};

/// Commands that record what is missing.
const ADVICE: &str = "record with `rec --off-cpu`, or with `perf record --switch-events -e cpu-clock \
                      -e context-switches/period=1/ -g`";

/// Returns an error if the records that counting time needs were not recorded.
pub(super) fn check_recorded(name: &str, mode: Mode, session: &Session<'_>) -> anyhow::Result<()> {
    let Some(times) = &session.off_cpu else { return Ok(()) };
    if times.counts.records == 0 {
        anyhow::bail!("{name}: no switches of threads (SWITCH records with times) were recorded; {ADVICE}");
    }
    let has_cpu = times.roles.iter().any(|role| matches!(role, Role::Clock | Role::Cycles));
    if mode == Mode::Wall && !has_cpu {
        anyhow::bail!("{name}: no clock or hardware event was sampled, so running time is unknown; {ADVICE}");
    }
    Ok(())
}

/// Returns a hint that a report by samples could be one on time.
pub(super) fn hint(name: &str, session: &Session<'_>) -> Option<String> {
    let counts = &session.split.counts;
    let has_records = [RecordType::SWITCH, RecordType::SWITCH_CPU_WIDE].iter().any(|kind| counts.contains_key(kind));
    let is_sampled = || session.file.attrs.entries().iter().any(|entry| is_switches(&entry.attr));
    (has_records && is_sampled()).then(|| {
        format!("{name} has switches of threads: --off-cpu shows where they waited, --wall where they ran, too")
    })
}

/// Returns warnings of times that are missing, or shown at another stack.
pub(super) fn warnings(counts: &SwitchCounts) -> impl Iterator<Item = Warning> {
    let unpaired = "switches lack the record of the switch out or in (lost?), so their time is unknown and left out";
    let unsampled = format!(
        "of {} switches have no sample of their own: their time is shown below `[nearest sample]`, called by the \
         stack of the thread's CPU sample before, or `[no sample]`",
        counts.stretches
    );
    let all = [
        Warning::counted(counts.unpaired, "unpaired-switches", unpaired),
        Warning::counted(counts.unsampled, "unsampled-switches", &unsampled),
    ];
    all.into_iter().flatten()
}

/// Returns a hint on threads that were off their CPUs when the recording ended.
pub(super) fn unfinished(counts: &SwitchCounts) -> Option<String> {
    let message = "threads were off their CPUs when the recording ended; that time counts until its last record";
    (counts.unfinished > 0).then(|| format!("{} {message}", counts.unfinished))
}
