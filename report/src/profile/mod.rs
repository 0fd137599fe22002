//! The profile: what was counted, of one file or of several merged. Outputs and analyses read it;
//! nothing in it depends on how it is printed.
//!
//! ```text
//!   Profile ─┬─ inputs          recordings: command, machine, numbers of records, losses
//!            ├─ events          names and totals
//!            ├─ rows            event, a cell for each column ─► metrics
//!            │    cells         numbers, or numbers of labels: functions, threads, offsets in files …
//!            ├─ paths           critical paths of the inputs
//!            ├─ calls           callchains of rows, of numbered frames
//!            ├─ names           what the numbers of labels, frames, functions and modules stand for
//!            ├─ module_uses     samples of each module, with and without functions
//!            ├─ program_stacks  user stacks of each program, and how many do not reach its start
//!            └─ warnings, hints, filter_values
//! ```

pub(crate) mod counts;
pub(crate) mod critical_path;
mod merge;
pub(crate) mod modules;
pub(crate) mod names;
pub(crate) mod recording;
pub(crate) mod stacks;
pub(crate) mod user_stacks;

use std::collections::BTreeMap;

use self::counts::{EventCount, ThreadCounts};
use self::critical_path::PathOfInput;
use crate::callchain::ChainEnds;
use crate::count::metrics::Metrics;
use crate::count::{Count, Partition, distinct};
use crate::profile::modules::ModuleUses;
use crate::profile::names::ProfileNames;
use crate::profile::recording::Recording;
use crate::profile::stacks::{CallTrees, RowIndex};
use crate::profile::user_stacks::{ProgramStacks, UserStacks};
use crate::query::{FilterValues, Warning};

/// Summary of one input.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct InputSummary {
    /// Path of the file, as the user named it.
    pub path: String,
    /// Size of the file.
    pub bytes: u64,
    /// Number of records by type.
    pub records: BTreeMap<String, u64>,
    /// Number of samples among them.
    #[serde(skip)]
    pub samples: u64,
    /// Number of records lost because they did not fit in a ring.
    pub lost_events: u64,
    pub lost_samples: u64,
    /// Number of samples dropped by BPF filters.
    pub filtered_samples: u64,
    /// `true` if the recording was ended properly and the file has all of it.
    pub complete: bool,
    /// Command, machine and duration of the recording.
    #[serde(skip)]
    pub recording: Recording,
}

impl InputSummary {
    /// Returns whether it has records of switches of threads from their CPUs.
    pub(crate) fn has_switches(&self) -> bool {
        ["SWITCH", "SWITCH_CPU_WIDE"].iter().any(|kind| self.records.contains_key(*kind))
    }
}

/// An event, and all of its samples.
#[derive(Debug, Default)]
pub struct Event {
    pub name: String,
    /// `true` if periods are times, in nanoseconds.
    pub counts_time: bool,
    pub is_tracepoint: bool,
    /// `true` if it only tells where threads wait: reports on time show that.
    pub is_of_waits: bool,
    pub total: Count,
    pub lost_samples: u64,
    pub filtered_samples: u64,
    /// What its counters counted; `None` if that is not recorded.
    pub(crate) count: Option<EventCount>,
}

impl Event {
    /// Creates an event without samples.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

/// Everything that the views print.
#[derive(Debug, Default)]
pub struct Profile {
    pub inputs: Vec<InputSummary>,
    /// Problems with the inputs or the result.
    pub warnings: Vec<Warning>,
    /// The filters with the values that no sample has.
    pub(crate) filter_values: Vec<FilterValues>,
    /// Options that would show more of the inputs.
    pub hints: Vec<String>,
    /// Samples per module, counted if functions are shown.
    pub module_uses: ModuleUses,
    /// Names of the cells of rows and the frames of callchains.
    pub names: ProfileNames,
    /// Values of the counters of threads that exited, in the order of threads; of several files one
    /// after the other.
    pub(crate) thread_counts: Vec<ThreadCounts>,
    /// Critical path of each input, if it is counted.
    pub(crate) paths: Vec<PathOfInput>,
    /// Callchains, if rows show them or the output needs them.
    pub calls: CallTrees,
    /// User stacks, if callchains were counted.
    pub(crate) user_stacks: UserStacks,
    /// The same by program, with what gives longer ones.
    pub(crate) program_stacks: ProgramStacks,
    /// How unwound user stacks ended.
    pub chain_ends: ChainEnds,
    /// `true` if samples are also counted in their callers.
    pub children: bool,
    /// Whether any input has the tracepoint column, for each such column.
    pub traced: Vec<bool>,
    pub(crate) events: Vec<Event>,
    /// Rows of one file, or of several once they are settled.
    pub(crate) rows: Partition<Metrics>,
    /// Rows and callchains of several files, each file's apart. Rows of different files may be
    /// equal.
    waiting: Vec<(Partition<Metrics>, CallTrees)>,
    /// Merged rows of several files; callchains refer to them by index.
    table: Vec<Partition<Metrics>>,
}

impl Profile {
    /// Creates the profile of a file with these events.
    pub fn of_events(events: Vec<Event>) -> Self {
        Self { events, ..Self::default() }
    }

    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns whether no sample is in it: of several files, once they are settled.
    pub fn is_without_rows(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the number of samples in the inputs, whether they were counted or not.
    pub fn samples(&self) -> u64 {
        self.inputs.iter().map(|input| input.samples).sum()
    }

    /// Records which tracepoint columns an input has.
    pub fn add_traced(&mut self, found: &[bool]) {
        self.traced.resize(self.traced.len().max(found.len()), false);
        self.traced.iter_mut().zip(found).for_each(|(all, one)| *all |= one);
    }

    pub fn add_total(
        &mut self,
        place: usize,
        total: Count,
        lost_samples: u64,
        filtered_samples: u64,
    ) {
        if let Some(event) = self.events.get_mut(place) {
            event.total.add(total);
            event.lost_samples = event.lost_samples.saturating_add(lost_samples);
            event.filtered_samples = event.filtered_samples.saturating_add(filtered_samples);
        }
    }

    /// Adds the counter values of an event.
    pub(crate) fn add_count(&mut self, place: usize, count: Option<EventCount>) {
        if let (Some(event), Some(count)) = (self.events.get_mut(place), count) {
            event.count.get_or_insert_default().add(count);
        }
    }

    /// Returns whether counter values were recorded, with or without samples.
    pub(crate) fn has_counts(&self) -> bool {
        self.events.iter().any(|event| event.count.is_some())
    }

    /// Sets the rows, given their words, and returns the number of each in the profile: equal rows
    /// become one. With `are_distinct` no rows are equal, and the numbers are not listed: they are
    /// those of the rows.
    pub fn set_rows(
        &mut self,
        words: Vec<u64>,
        metrics: Vec<Metrics>,
        are_distinct: bool,
    ) -> Vec<RowIndex> {
        let width = words.len() / metrics.len().max(1);
        let (rows, places) = match are_distinct {
            true => (Partition::of_distinct(width, words, metrics), Vec::new()),
            false => distinct(width, words, metrics),
        };
        self.rows = rows;
        places
    }
}
