//! The reason why a recording has no samples, or none of some programs, as far as records and
//! counters show it; and the counts of events that are not sampled.

use recrep_console::units;
use recrep_format::abi::AttrFlags;

use super::losses;
use super::state::Progress;
use crate::kernel::counters::{Counters, Reading};
use crate::plan::PlannedEvent;
use crate::plan::config::{Config, Delay};

/// An event, and how often it occurred.
#[derive(Clone, Copy)]
struct Occurred<'a> {
    event: &'a PlannedEvent,
    count: u64,
}

/// Returns why no sample came. `None`: none was asked for, or the file is one of many, or has
/// traces instead.
pub(super) fn why(
    config: &Config,
    counters: &Counters,
    readings: &[Reading],
    progress: &Progress,
) -> Option<String> {
    if config.output.switch.is_some() || config.rings.overwrite || progress.has_areas {
        return None;
    }
    let delay = if progress.was_enabled { &Delay::None } else { &config.delay };
    let sampled = sampled(counters, readings);
    let has_run = sampled.iter().any(|it| it.count > 0);
    if config.off_cpu && !has_run && never_enabled(delay).is_none() {
        return Some("no thread ran; rep --off-cpu shows how long they waited".to_owned());
    }
    reason(delay, &sampled)
}

/// Returns a warning about programs that the kernel stopped recording when they were executed.
pub(super) fn silenced(names: &[String]) -> Option<String> {
    const SHOWN: usize = 5;
    let (first, others) = names.split_first()?;
    let mut list = format!("'{first}'");
    for name in others.iter().take(SHOWN - 1) {
        list = format!("{list}, '{name}'");
    }
    let (more, are) = (
        if names.len() > SHOWN { ", …" } else { "" },
        if others.is_empty() { "is" } else { "are" },
    );
    Some(format!(
        "{list}{more} {are} not recorded: the kernel ends counters at the execution of a program \
         with rights of its own (setuid, file capabilities), or that the user cannot read; record \
         it as root, with -a"
    ))
}

/// Returns how often the events that are not sampled occurred (`-n`, and the members of groups whose
/// leader is sampled for all), as a line; `None` if all are sampled.
pub(super) fn counted(counters: &Counters, readings: &[Reading]) -> Option<String> {
    let mut texts = Vec::new();
    for Occurred { event, count } in occurred(counters, readings) {
        if event.attr.sample_period == 0 {
            let is_time = event.is_clock();
            let count = if is_time { units::rough_time(count) } else { units::grouped(count) };
            texts.push(format!("{} {count}", event.full_name()));
        }
    }
    (!texts.is_empty()).then(|| format!("counted, not sampled: {}", texts.join(", ")))
}

fn sampled<'a>(counters: &'a Counters, readings: &[Reading]) -> Vec<Occurred<'a>> {
    let mut all = occurred(counters, readings);
    all.retain(|it| it.event.attr.sample_period > 0);
    all
}

/// Returns the events that the user asked for, and how often they occurred: scaled to all of the
/// time, if they shared their PMU.
fn occurred<'a>(counters: &'a Counters, readings: &[Reading]) -> Vec<Occurred<'a>> {
    let mut all = Vec::new();
    for (event, total) in counters.events.iter().zip(losses::totals(counters, readings)) {
        if !event.is_dummy() && event.added.is_none() {
            let scaled = total.scaled().filter(|_| losses::is_multiplexed(total));
            all.push(Occurred { event, count: scaled.unwrap_or(total.value) });
        }
    }
    all
}

/// Returns why events were never enabled.
fn never_enabled(delay: &Delay) -> Option<&'static str> {
    match delay {
        Delay::None => None,
        Delay::Off => Some("events were never enabled (-D -1): send 'enable' by --control"),
        Delay::After(_) => Some("the end came before the time of -D was over"),
        Delay::Ranges(_) => Some("the end came before the first span of -D"),
    }
}

fn reason(delay: &Delay, sampled: &[Occurred<'_>]) -> Option<String> {
    let most = sampled.iter().max_by_key(|it| it.count)?;
    let name = most.event.full_name();
    let all_have = |flags| sampled.iter().all(|it| it.event.attr.flags.contains(flags));
    let (no_user, no_kernel) =
        (all_have(AttrFlags::EXCLUDE_USER), all_have(AttrFlags::EXCLUDE_KERNEL));
    if let Some(why) = never_enabled(delay) {
        return Some(why.to_owned());
    }
    if no_user && no_kernel {
        return Some(format!(
            "{name} is of neither user space nor the kernel (:h); leave out the modifier"
        ));
    }
    if most.count == 0 {
        let place = match (no_user, no_kernel) {
            (true, _) => " in the kernel",
            (_, true) => " in user space",
            _ => "",
        };
        let passed = if most.event.filter.is_some() { ", or never as --filter has it" } else { "" };
        return Some(format!("{name} did not occur{place}{passed}"));
    }
    let attr = &most.event.attr;
    let period = match attr.frequency() {
        None => attr.sample_period,
        Some(hertz) if most.event.is_clock() => 1_000_000_000_u64.checked_div(hertz)?,
        // The kernel begins with single events, and finds the period then.
        Some(_) => 1,
    };
    if most.count < period {
        return Some(if most.event.is_clock() {
            let [ran, due] = [most.count, period].map(units::rough_time);
            format!(
                "the end came before one was due: {ran} of CPU time, a sample every {due} (-F and \
                 -c change that)"
            )
        } else {
            let [count, period] = [most.count, period].map(units::grouped);
            format!(
                "the end came before one was due: {name} occurred {count} times, a sample every \
                 {period} (-c)"
            )
        });
    }
    match (no_user, no_kernel) {
        (true, _) => {
            Some(format!("whenever one was due, user space ran, and {name} is of the kernel only"))
        }
        (_, true) => {
            Some(format!("whenever one was due, the kernel ran, and {name} is of user space only"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use recrep_format::abi::{EventType, SwEvent};

    use super::*;

    fn event(name: &str, modifiers: &str, flags: AttrFlags) -> PlannedEvent {
        let mut event = PlannedEvent {
            name: name.to_owned(),
            modifiers: modifiers.to_owned(),
            ..PlannedEvent::default()
        };
        event.attr.kind = EventType::SOFTWARE;
        event.attr.config =
            if name == "cpu-clock" { SwEvent::CPU_CLOCK.0 } else { SwEvent::PAGE_FAULTS.0 };
        event.attr.sample_period = 4000;
        event.attr.flags = flags;
        event
    }

    fn said(event: &PlannedEvent, count: u64) -> String {
        reason(&Delay::None, &[Occurred { event, count }]).unwrap_or_default()
    }

    #[test]
    fn the_reason_is_that_of_the_events() {
        use AttrFlags as F;
        let clock = event("cpu-clock", "", F::FREQ);
        assert_eq!(
            said(&clock, 120_000),
            "the end came before one was due: 0.1 ms of CPU time, a sample every 0.2 ms (-F and \
             -c change that)"
        );
        assert_eq!(said(&clock, 900_000), "", "not known");
        let user = event("cpu-clock", "u", F::FREQ | F::EXCLUDE_KERNEL);
        assert!(
            said(&user, 900_000).contains("the kernel ran, and cpu-clock:u is of user space only")
        );
        let kernel = event("cpu-clock", "k", F::FREQ | F::EXCLUDE_USER);
        assert!(
            said(&kernel, 900_000)
                .contains("user space ran, and cpu-clock:k is of the kernel only")
        );
        let hypervisor = event("cpu-clock", "h", F::FREQ | F::EXCLUDE_USER | F::EXCLUDE_KERNEL);
        assert!(
            said(&hypervisor, 900_000)
                .contains("cpu-clock:h is of neither user space nor the kernel")
        );
        let faults = event("faults", "u", F::EXCLUDE_KERNEL);
        assert_eq!(said(&faults, 0), "faults:u did not occur in user space");
        assert!(
            said(&faults, 1234)
                .contains("faults:u occurred 1,234 times, a sample every 4,000 (-c)")
        );
    }

    #[test]
    fn silenced_programs_are_named() {
        let silenced = |names: &[&str]| {
            silenced(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(silenced(&[]), None);
        assert!(
            silenced(&["su"])
                .unwrap()
                .starts_with("'su' is not recorded: the kernel ends counters")
        );
        assert!(silenced(&["a", "b"]).unwrap().starts_with("'a', 'b' are not recorded"));
        assert!(
            silenced(&["a", "b", "c", "d", "e", "f"])
                .unwrap()
                .starts_with("'a', 'b', 'c', 'd', 'e', … are not")
        );
    }

    #[test]
    fn events_that_were_not_enabled_have_no_other_reason() {
        let event = event("cpu-clock", "u", AttrFlags::EXCLUDE_KERNEL);
        let said = |delay| reason(&delay, &[Occurred { event: &event, count: 0 }]).unwrap();
        assert!(said(Delay::Off).contains("never enabled (-D -1)"));
        assert!(said(Delay::After(Duration::from_secs(1))).contains("time of -D"));
        assert!(said(Delay::Ranges(Vec::new())).contains("span of -D"));
        assert_eq!(reason(&Delay::Off, &[]), None, "nothing is sampled");
    }
}
