//! What a recording has: what stays as it is, and what changes.

use recrep_format::attr::AttrEntry;
use recrep_format::write::FeatureWriter;

use super::coverage::Coverage;
use super::delays::Delays;
use super::losses::Losses;
use super::schedule::{self, Urgent};
use crate::aux::Areas;
use crate::drain::Drain;
use crate::drain::threads::Drainers;
use crate::kernel::Kernel;
use crate::kernel::counters::Counters;
use crate::kernel::ring::Ring;
use crate::kernel::signals::Signals;
use crate::machine::Machine;
use crate::machine::tracepoint;
use crate::messages::Messages;
use crate::messages::error::{Error, Result};
use crate::output::Names;
use crate::output::build_ids::{BuildIdReader, Modules};
use crate::output::features;
use crate::output::tally::Tally;
use crate::plan::PlannedEvent;
use crate::plan::config::{BuildIds, Config, Switch};
use crate::session::control::Channel;
use crate::session::timer::Timer;
use crate::target::Task;

/// What stays as it is while recording.
pub(super) struct Recording<'a, K> {
    pub(super) config: &'a Config,
    pub(super) kernel: &'a K,
    pub(super) messages: &'a Messages,
    pub(super) machine: &'a Machine,
    pub(super) counters: &'a Counters,
    pub(super) signals: &'a Signals,
    pub(super) tasks: &'a [Task],
    pub(super) coverage: &'a Coverage,
    /// The events as files describe them.
    pub(super) entries: Vec<AttrEntry>,
    /// What is known at the start of any file.
    pub(super) head: FeatureWriter,
}

/// What changes while recording.
pub(super) struct Live {
    pub(super) rings: Vec<Ring>,
    pub(super) areas: Areas,
    pub(super) drain: Drain,
    /// The threads that drain; none: this one does.
    pub(super) drainers: Option<Drainers>,
    pub(super) losses: Losses,
    pub(super) names: Names,
    pub(super) channel: Option<Channel>,
    pub(super) delays: Delays,
    pub(super) switch: Option<Timer>,
    /// As long as nothing but draining is to be done.
    pub(super) urgent: Option<Urgent>,
    /// The command's process.
    pub(super) child: Option<u32>,
    /// How many files were completed.
    pub(super) pieces: usize,
}

impl Live {
    /// Before the first file.
    pub(super) fn new<K: Kernel>(
        recording: &Recording<'_, K>,
        (rings, areas): (Vec<Ring>, Areas),
        channel: Option<Channel>,
    ) -> Result<Self> {
        let (config, counters) = (recording.config, recording.counters);
        let Some(first) = recording.entries.first() else {
            return Err(Error::Failed("no event was opened".to_owned()));
        };
        let smallest = rings.iter().map(Ring::size).min().unwrap_or(0);
        let least = config.rings.flush.map_or(1, |size| size.bytes(recording.machine.page_size));
        // More than a part of the ring would fill it up while it is waited for.
        let least = usize::try_from(least).unwrap_or(usize::MAX).min(smallest / 4).max(1);
        let places = schedule::places(config.rings.threads.affinity, counters);
        let split = config.rings.threads.split.as_ref();
        if split.is_some() && !areas.is_empty() {
            let why = "--threads: AUX areas are read by one thread, with all rings; leave --threads out";
            return Err(Error::Usage(why.to_owned()));
        }
        let drainers = split.map(|split| Drainers::new(split, counters, recording.machine)).transpose()?;
        let filter = recording.coverage.filter(config, counters, recording.tasks);
        let switch = match config.output.switch {
            Some(Switch::Time(_)) => Some(Timer::new()?),
            _ => None,
        };
        let mut tally = Tally::new(&first.attr);
        if config.build_ids != BuildIds::None {
            tally.modules = Modules::read_by(BuildIdReader::in_thread());
        }
        Ok(Self {
            rings,
            areas,
            drain: Drain::new(tally).at_least(least).at(places).with(filter),
            drainers,
            losses: Losses::default(),
            names: Names::new(&config.output),
            channel,
            delays: Delays::new(&config.delay)?,
            switch,
            urgent: None,
            child: None,
            pieces: 0,
        })
    }
}

impl<'a, K: Kernel> Recording<'a, K> {
    /// What is recorded, and by what.
    pub(super) fn new(
        config: &'a Config,
        (kernel, messages): (&'a K, &'a Messages),
        (machine, tasks, coverage): (&'a Machine, &'a [Task], &'a Coverage),
        counters: &'a Counters,
        signals: &'a Signals,
    ) -> Result<Self> {
        let tracing = tracepoint::formats(&counters.tracepoints(), machine.tracefs.as_deref(), machine.page_size)?;
        let head = features::at_start(config, machine, counters, tracing.as_deref());
        let events = counters.events.iter().enumerate();
        let entry = |(index, event): (usize, &PlannedEvent)| AttrEntry {
            attr: event.attr.clone(),
            ids: counters.ids(index),
            name: Some(event.full_name()),
        };
        let entries = events.map(entry).collect();
        Ok(Self { config, kernel, messages, machine, counters, signals, tasks, coverage, entries, head })
    }
}
