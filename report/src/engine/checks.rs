//! Whether an input has what a query asks for.

use recrep_format::abi::SampleType;

use crate::query::{Field, Mode, Query};
use crate::samples::Session;
use crate::timeline::Role;

/// Returns an error if the data that the query needs was not recorded.
pub(super) fn check(query: &Query, session: &Session<'_>) -> anyhow::Result<()> {
    let input = session.input;
    let is_timed = query.needs(Field::Time) || query.filters.samples.times.is_some();
    if is_timed || query.mode != Mode::Samples {
        input.check_recording("what has times, branches or memory accesses")?;
    }
    check_recorded(&input.name, query.mode, session)?;
    if query.needs_parallelism() && session.parallelism().records == 0 {
        let name = &input.name;
        anyhow::bail!(
            "{name}: no switches of threads were recorded, so how many ran at a time is unknown; \
             record with `rec --latency`, or with `perf record --switch-events`"
        );
    }
    check_chains(&input.name, query, session)
}

/// Returns an error if the data that the mode needs was not recorded.
fn check_recorded(name: &str, mode: Mode, session: &Session<'_>) -> anyhow::Result<()> {
    let access =
        SampleType::DATA_SRC | SampleType::WEIGHT | SampleType::WEIGHT_STRUCT | SampleType::ADDR;
    match mode {
        Mode::Branches | Mode::FallThroughs if !session.samples_have(SampleType::BRANCH_STACK) => {
            anyhow::bail!(
                "{name}: no branch stacks were recorded; record with rec -b, where the CPU has them"
            )
        }
        Mode::Memory if !session.samples_have(access) => {
            anyhow::bail!(
                "{name}: no memory accesses were recorded; record with rec mem (rec c2c, or -d and -W)"
            )
        }
        _ => check_times(name, mode, session),
    }
}

/// Returns an error if the records that counting time needs were not recorded.
fn check_times(name: &str, mode: Mode, session: &Session<'_>) -> anyhow::Result<()> {
    let Some(times) = &session.off_cpu else { return Ok(()) };
    if times.counts.records == 0 {
        anyhow::bail!(
            "{name}: no switches of threads (SWITCH records with times) were recorded; {ADVICE}"
        );
    }
    if session.waits.as_ref().is_some_and(|waits| !waits.has_wakes) {
        anyhow::bail!(
            "{name}: no wakes of threads (sched:sched_waking) were recorded, so it is not known who \
             ended waits; record with `rec --waits`"
        );
    }
    let has_cpu = times.roles.iter().any(|role| matches!(role, Role::Clock | Role::Cycles));
    if mode != Mode::OffCpu && !has_cpu {
        anyhow::bail!(
            "{name}: no clock or hardware event was sampled, so running time is unknown; {ADVICE}"
        );
    }
    Ok(())
}

/// Commands that record what reports on time need.
const ADVICE: &str = "record with `rec --off-cpu`, or with `perf record --switch-events -e \
                      cpu-clock -e context-switches/period=1/ -g`";

/// Returns an error if the query asks for callchains of which none were recorded.
fn check_chains(name: &str, query: &Query, session: &Session<'_>) -> anyhow::Result<()> {
    let has_history = query.chains.branches && session.samples_have(SampleType::BRANCH_STACK);
    if !query.chains.is_asked || session.samples_have(SampleType::CALLCHAIN) || has_history {
        return Ok(());
    }
    if query.chains.branches {
        anyhow::bail!(
            "{name}: no branch stacks or callchains were recorded; record with -b or leave \
             --branch-history out"
        );
    }
    anyhow::bail!(
        "{name}: no callchains were recorded; record with -g, or leave --children, -g and -G out"
    )
}
