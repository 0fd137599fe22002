//! Facts about the recording of an input that stay with what is exported of it.

use std::time::UNIX_EPOCH;

use recrep_format::abi::SampleType;
use recrep_format::attr::AttrIndex;
use recrep_format::feature::{
    Arch, ClockData, Cmdline, CpuDesc, CpuId, Feature, HeaderString, Hostname, NrCpus, OsRelease,
    Version,
};

use super::schedule::Schedule;
use crate::pprof::{EventFacts, Facts};
use crate::query::SymbolOptions;
use crate::samples::{Session, shows_inlined};
use crate::symbols::Resolver;

/// Facts about a recording, and when it began.
pub(crate) struct RecordingFacts {
    pub(crate) facts: Facts,
    /// Time of the first sample, in nanoseconds since 1970, if the recording has it.
    pub(crate) began: Option<u64>,
    /// Threads over time, if they were asked for.
    pub(crate) schedule: Schedule,
}

/// Returns the facts about the recording of an input.
pub(crate) fn facts(session: &Session<'_>) -> RecordingFacts {
    let file = session.file;
    let times = Some(session.sampled_between()).filter(|times| *times != (0, 0));
    let clock = known::<ClockData>(session).filter(|clock| clock.wall_clock > 0);
    let began = clock.zip(times).and_then(|(clock, (first, _))| {
        let since = i128::from(first) - i128::from(clock.clock);
        u64::try_from(i128::from(clock.wall_clock) + since).ok()
    });
    let written = session.input.written().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let written = written.and_then(|time| u64::try_from(time.as_nanos()).ok());
    let side_band = &session.side_band;
    let events = (0..).zip(file.attrs.entries()).zip(&session.events);
    let events = events.map(|((number, entry), name)| EventFacts {
        name: name.clone(),
        kind: entry.attr.kind.0,
        config: entry.attr.config,
        frequency: entry.attr.frequency(),
        period: if entry.attr.frequency().is_some() { 0 } else { entry.attr.sample_period },
        callchains: entry.attr.sample_type.contains(SampleType::CALLCHAIN),
        lost_samples: side_band.lost_samples.get(&Some(AttrIndex(number))).copied().unwrap_or(0),
    });
    let resolver = Resolver::new(SymbolOptions::default());
    let facts = Facts {
        recrep: Facts::VERSION,
        command: known::<Cmdline<'_>>(session).map_or_else(Vec::new, |Cmdline { args }| {
            args.0.iter().map(|arg| arg.to_text().into_owned()).collect()
        }),
        recorder: text(known(session).map(|Version(name)| name)),
        host: text(known(session).map(|Hostname(name)| name)),
        kernel: text(known(session).map(|OsRelease(name)| name)),
        arch: text(known(session).map(|Arch(name)| name)),
        cpu: text(known(session).map(|CpuDesc(name)| name)),
        cpu_id: text(known(session).map(|CpuId(name)| name)),
        cpus: known(session).map(|cpus: NrCpus| [cpus.available, cpus.online]),
        sample_times: times.map(|(first, last)| [first, last]),
        written: written.filter(|_| began.is_none()),
        lost_events: side_band.lost_events,
        inlined: shows_inlined(session, session.unwinding(&resolver).is_some()),
        incomplete: !session.is_complete(),
        events: events.collect(),
    };
    RecordingFacts { facts, began, schedule: Schedule::default() }
}

/// Returns a feature of the header; `None` if the file lacks it or it is damaged.
fn known<'f, F: Feature<'f>>(session: &Session<'f>) -> Option<F> {
    session.file.feature()?.ok()
}

fn text(name: Option<HeaderString<'_>>) -> Option<String> {
    name.map(|name| name.to_text().into_owned())
}
