//! Counters that were on their PMU for a part of the time only: multiplexed, or never.
//!
//! Samples with counter values tell their times ([`crate::count::CounterTimes`]); of other events
//! the READ records do, that threads leave when they end (`rec -s`).

use recrep_format::abi::RecordType;
use recrep_format::record::{Body, RawRecord, ReadRecord};

use crate::count::{CounterTimes, Reading, times};
use crate::query::Warning;
use crate::samples::Session;

/// Returns warnings about multiplexed events, given the times that samples tell, and which events
/// are scaled.
pub(crate) fn warnings(
    session: &Session<'_>,
    of_samples: &[CounterTimes],
    scales: &[bool],
) -> Vec<Warning> {
    let of_records = of_read_records(session, scales);
    let (mut scaled, mut unscaled, mut never) = (Vec::new(), Vec::new(), Vec::new());
    for (event, name) in session.events.iter().enumerate() {
        let known =
            |times: &[CounterTimes]| times.get(event).copied().filter(|times| times.enabled > 0);
        let is_read = known(of_samples).is_some();
        let Some(times) = known(of_samples).or_else(|| known(&of_records)) else { continue };
        if times.running == 0 {
            never.push(name.clone());
        } else if times.are_shared() && scales.get(event) == Some(&true) {
            // Where the times do not tell, threads may as well have run on other CPUs.
            let list = if is_read { &mut scaled } else { &mut unscaled };
            list.push(format!("{name} {:.1} %", times.share()));
        }
    }
    let why = "as the PMU has too few counters";
    let all = [
        (
            scaled,
            "multiplexed",
            format!("was counted part of the time, {why}; its counts are scaled to the whole time"),
        ),
        (
            unscaled,
            "multiplexed",
            format!("was counted part of the time, {why}; its counts are not scaled"),
        ),
        (
            never,
            "never-counted",
            "was never on the PMU: a pinned counter in error state, or a PMU without room".into(),
        ),
    ];
    let some = all.into_iter().filter(|(events, ..)| !events.is_empty());
    some.map(|(events, code, what)| Warning::new(code, format!("{}: {what}", events.join(", "))))
        .collect()
}

/// Returns the times of each event's counters in READ records.
fn of_read_records(session: &Session<'_>, scales: &[bool]) -> Vec<CounterTimes> {
    let attrs = &session.file.attrs;
    let mut readings = Vec::new();
    let is_read = |raw: &&RawRecord<'_>| raw.header.kind == RecordType::READ;
    for raw in session.split.side_band.iter().filter(is_read) {
        let Ok(Body::Read(ReadRecord { tid, values, .. })) =
            attrs.decode(raw).map(|record| record.body)
        else {
            continue;
        };
        for counter in values.counters() {
            let own = attrs.event_of(raw);
            let Some(event) = counter.id.and_then(|id| attrs.by_id(id)).or(own) else { continue };
            let scales = scales.get(event.0) == Some(&true);
            readings.push((event.0, u64::from(tid), Reading::of(&values, &counter, scales)));
        }
    }
    times(readings)
}
