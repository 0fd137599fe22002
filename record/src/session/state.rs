//! State of a recording: a constant part and a changing part.

use recrep_console::units;
use recrep_format::attr::AttrEntry;
use recrep_format::write::FeatureWriter;

use super::coverage::Coverage;
use super::delays::Delays;
use super::losses::Losses;
use super::schedule::{self, Priority};
use crate::aux::Areas;
use crate::drain::threads::Drainers;
use crate::drain::{Drain, StackCopies};
use crate::kernel::Kernel;
use crate::kernel::counters::{Counters, allow_files};
use crate::kernel::ring::Ring;
use crate::kernel::signals::Signals;
use crate::machine::Machine;
use crate::machine::tracepoint;
use crate::messages::Messages;
use crate::messages::error::{Error, Result};
use crate::output::build_ids::{BuildIdReader, Modules};
use crate::output::features;
use crate::output::keep::Keeper;
use crate::output::tally::Tally;
use crate::output::unwind::Unwinding;
use crate::output::{Layout, Names};
use crate::plan::config::{BuildIds, Config, Delay, Switch};
use crate::plan::unwinding::is_unwound;
use crate::session::control::Channel;
use crate::session::timer::Timer;
use crate::session::usage::Usage;
use crate::tasks::Task;

/// Constant part of a recording's state.
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
    /// Features that are known at the start of each file.
    pub(super) head: FeatureWriter,
    pub(super) usage: Usage,
    /// No mapped files yet, of which the build IDs are read by one thread.
    pub(super) modules: Modules,
}

/// Changing part of a recording's state.
pub(super) struct State {
    pub(super) rings: Vec<Ring>,
    pub(super) areas: Areas,
    pub(super) drain: Drain,
    /// The threads that drain, always (`--threads`) or while the main thread is busy.
    pub(super) drainers: Drainers,
    /// `true` if they always do.
    pub(super) threaded: bool,
    /// Distribution of the recording over files.
    pub(super) layout: Layout,
    pub(super) progress: Progress,
    pub(super) channel: Option<Channel>,
    pub(super) delays: Delays,
    pub(super) switch: Option<Timer>,
    /// As long as nothing but draining is to be done.
    pub(super) priority: Option<Priority>,
    /// `true` if rings may be full before a busy machine lets rec drain them.
    pub(super) are_full_soon: bool,
    /// Pid of the command.
    pub(super) child: Option<u32>,
}

/// State that goes on from one file to the next.
pub(super) struct Progress {
    pub(super) losses: Losses,
    pub(super) names: Names,
    /// `true` if there are AUX areas, of which files have an index.
    pub(super) has_areas: bool,
    /// `true` once events were enabled, by the start or later (`-D`, `--control`).
    pub(super) was_enabled: bool,
    /// Number of files that were completed.
    pub(super) pieces: usize,
    /// Programs that the kernel stopped recording, known at the end of the last file.
    pub(super) silenced: Vec<String>,
    /// `true` for the last file.
    pub(super) is_last: bool,
}

/// Bytes that may wait to be written, if the rings have no more: at 20 MB a second, a disk may take
/// nothing for three seconds.
const QUEUE: usize = 64 << 20;

impl State {
    /// Creates the state before the first file.
    pub(super) fn new<K: Kernel>(
        recording: &Recording<'_, K>,
        rings: Vec<Ring>,
        areas: Areas,
        channel: Option<Channel>,
    ) -> Result<Self> {
        let (config, counters) = (recording.config, recording.counters);
        let Some(first) = recording.entries.first() else {
            return Err(Error::Failed(
                "no event was opened; choose another (-e; see rec list)".to_owned(),
            ));
        };
        let smallest = rings.iter().map(Ring::size).min().unwrap_or(0);
        // A larger minimum than a quarter of the ring would let the ring fill up before it is
        // drained.
        let least = config.rings.flush.unwrap_or(1).min(smallest / 4).max(1);
        let places = schedule::places(config.rings.threads.affinity, counters);
        let drainers = drainers(recording, &rings, &areas)?;
        let threaded = config.rings.threads.split.is_some();
        let groups = match threaded && !config.output.is_stdout() {
            true => drainers.rings(),
            false => Vec::new(),
        };
        let is_unwound = counters.events.iter().any(|event| is_unwound(&event.attr));
        let queue = queue_size(config, &rings, is_unwound);
        let filter =
            recording.coverage.filter(config, counters, recording.tasks, recording.machine)?;
        let progress = Progress {
            losses: Losses::default(),
            names: Names::new(&config.output),
            has_areas: !areas.is_empty(),
            was_enabled: config.delay == Delay::None,
            pieces: 0,
            silenced: Vec::new(),
            is_last: false,
        };
        let switch = match config.output.switch {
            Some(Switch::Time(_)) => Some(Timer::new()?),
            _ => None,
        };
        let mut tally = Tally::new(&first.attr);
        tally.modules = recording.modules.renewed();
        tally.unwinding = Unwinding::of(&recording.entries, config.sample.max_stack, config.waits);
        let unwinding = tally.unwinding.clone();
        let copy = counters.events.iter().map(|event| event.attr.sample_stack_user).max();
        if let Some(copy) = copy.filter(|_| is_unwound) {
            recording.messages.explain(|| {
                let (copy, ring) = (units::bytes(copy.into()), units::bytes(smallest as u64));
                format!("unwinding callchains of copies of {copy} of the stack, in rings of {ring}")
            });
        }
        Ok(Self {
            rings,
            areas,
            drain: Drain::new(tally)
                .at_least(least)
                .at(places)
                .with(filter)
                .trimming(StackCopies::of(&recording.entries)),
            drainers,
            threaded,
            layout: Layout { groups, queue, unwinding },
            progress,
            channel,
            delays: Delays::new(&config.delay)?,
            switch,
            priority: None,
            are_full_soon: schedule::is_full_soon(&counters.events, smallest),
            child: None,
        })
    }
}

/// Returns what drains the rings.
fn drainers<K: Kernel>(
    recording: &Recording<'_, K>,
    rings: &[Ring],
    areas: &Areas,
) -> Result<Drainers> {
    let counters = recording.counters;
    let Some(split) = &recording.config.rings.threads.split else {
        return Drainers::one(counters);
    };
    if !areas.is_empty() {
        let why = "--threads: AUX areas can be read by one thread only; leave --threads out";
        return Err(Error::Usage(why.to_owned()));
    }
    // A ring has a file, another one in the next directory, and a thread with an epoll and an
    // eventfd.
    allow_files(counters.all.len() + 5 * rings.len());
    Drainers::new(split, counters, recording.machine)
}

/// Returns the number of bytes that may wait to be written.
fn queue_size(config: &Config, rings: &[Ring], is_unwound: bool) -> usize {
    if let Some(size) = config.output.queue {
        return usize::try_from(size).unwrap_or(usize::MAX);
    }
    let all = rings.iter().map(Ring::size).sum::<usize>();
    // Samples wait for another round to be unwound.
    let waiting = if is_unwound { all * 4 } else { all };
    waiting.max(QUEUE)
}

/// The tasks that are recorded, and what counters were opened for.
#[derive(Clone, Copy)]
pub(super) struct RecordedTasks<'a> {
    pub(super) tasks: &'a [Task],
    pub(super) coverage: &'a Coverage,
}

impl<'a, K: Kernel> Recording<'a, K> {
    /// Creates the constant state, with the events as files describe them.
    pub(super) fn new(
        config: &'a Config,
        kernel: &'a K,
        messages: &'a Messages,
        machine: &'a Machine,
        RecordedTasks { tasks, coverage }: RecordedTasks<'a>,
        counters: &'a Counters,
        signals: &'a Signals,
    ) -> Result<Self> {
        let tracing = tracepoint::formats(
            &counters.tracepoints(),
            machine.tracefs.as_deref(),
            machine.page_size,
        )?;
        let head = features::at_start(
            config,
            machine,
            counters,
            tracing.as_deref(),
            kernel.now(config.clock),
        );
        let events = counters.events.iter().enumerate();
        let entries = events
            .map(|(index, event)| AttrEntry {
                attr: event.attr.clone(),
                ids: counters.ids(index),
                name: Some(event.full_name()),
            })
            .collect();
        let directory = config.keep.and_then(|_| Keeper::default_directory());
        let keeper =
            directory.zip(config.keep).map(|(directory, limit)| Keeper::new(directory, limit));
        let modules = match config.build_ids {
            BuildIds::None => Modules::default(),
            BuildIds::InMmap | BuildIds::Table => {
                Modules::read_by(BuildIdReader::in_thread(keeper))
            }
        };
        Ok(Self {
            config,
            kernel,
            messages,
            machine,
            counters,
            signals,
            tasks,
            coverage,
            entries,
            head,
            usage: Usage::begin(),
            modules,
        })
    }
}
