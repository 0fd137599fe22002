//! Samples that the kernel left out because they came too fast.

use recrep_console::units;

use crate::machine::Machine;
use crate::plan::PlannedEvent;

/// The kernel's limits as they are now.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// `kernel.perf_event_max_sample_rate`, in Hz, before the recording.
    before: u64,
    /// Number at its end.
    now: u64,
    /// `kernel.perf_cpu_time_max_percent`, if known.
    percent: Option<u64>,
}

/// Returns what the kernel did to the rates of events: it throttles those that sample faster than
/// it allows, and lowers its limit when sampling takes too much of the CPU's time.
pub(super) fn limited(events: &[PlannedEvent], throttled: u64, machine: &Machine) -> Vec<String> {
    let limits = Limits {
        before: machine.max_rate,
        now: machine.max_rate_now(),
        percent: machine.sampling_time_percent(),
    };
    let fastest = events.iter().filter_map(|event| event.attr.frequency()).max().unwrap_or(0);
    [lowered(limits, fastest), throttling(throttled)].into_iter().flatten().collect()
}

fn lowered(limits: Limits, fastest: u64) -> Option<String> {
    let Limits { before, now, percent } = limits;
    let is_lowered = now < before && now < fastest;
    is_lowered.then(|| {
        let percent = percent.map(|percent| format!(" ({percent} %)")).unwrap_or_default();
        format!(
            "the kernel lowered its limit from {} to {} samples a second on a CPU, as sampling \
             took more than kernel.perf_cpu_time_max_percent{percent} of the time; sample less \
             often (-F)",
            units::grouped(before),
            units::grouped(now)
        )
    })
}

fn throttling(times: u64) -> Option<String> {
    let often = match times {
        0 => return None,
        1 => "once".to_owned(),
        _ => format!("{} times", units::grouped(times)),
    };
    Some(format!(
        "the kernel throttled sampling {often}, and left out what came faster than \
         kernel.perf_event_max_sample_rate allows; sample less often (-F, -c)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_was_lowered_below_a_rate_is_told() {
        let limits = |before, now| Limits { before, now, percent: Some(25) };
        assert_eq!(lowered(limits(100_000, 100_000), 100_000), None);
        assert_eq!(
            lowered(limits(100_000, 50_000), 4000),
            None,
            "4000 samples a second are taken all the same"
        );
        let told = lowered(limits(100_000, 3000), 4000).unwrap();
        assert!(
            told.contains("from 100,000 to 3,000 samples a second") && told.contains("(25 %)"),
            "{told}"
        );
    }

    #[test]
    fn throttling_is_told() {
        assert_eq!(throttling(0), None);
        assert!(throttling(1).unwrap().contains("throttled sampling once, and"));
        assert!(throttling(1200).unwrap().contains("throttled sampling 1,200 times, and"));
    }
}
