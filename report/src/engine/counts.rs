//! Values of counters in a recording: those of `perf stat record` and `rec stat record` (STAT
//! records), and those that threads had when they exited (READ records, `-s`).
//!
//! ```text
//!   STAT_CONFIG, THREAD_MAP, EVENT_UPDATE ─► how counts are summed, threads, units
//!   STAT STAT … STAT_ROUND STAT … ─────────► rounds: the readings of each counter (with intervals,
//!                                            what it counted since the round before)
//!   READ READ … ───────────────────────────► one round: the sums of each thread
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use recrep_counts::{
    Aggregation, Count, CpuTopology as CpuPlace, Event, Grouping, Reading, Report, Row, Spread,
    Thread, add_ratios,
};
use recrep_format::abi::{Cpu, EventType, RecordType, StatConfigTag, StatRoundKind};
use recrep_format::attr::{AttrEntry, AttrIndex};
use recrep_format::feature::{Cmdline, CpuTopology, NrCpus, NumaTopology, Version};
use recrep_format::read::File;
use recrep_format::record::{
    Body, EventProperty, EventUpdate, RawRecord, ReadRecord, Stat, StatConfig, ThreadMapEntry,
};
use rustc_hash::FxHashMap;

use crate::profile::counts::{EventCount, ThreadCounts};
use crate::query::Warning;
use crate::query::lists::cpus;
use crate::samples::Session;

/// Counts of a recording.
#[derive(Debug)]
pub(crate) struct RecordedCounts {
    /// What was counted, for the heading.
    target: String,
    events: Vec<Event>,
    /// Threads, and the locations of CPUs.
    grouping: Grouping,
    /// Processes of the threads, if known.
    pids: Vec<u32>,
    rounds: Vec<Round>,
    /// `true` if the rounds are intervals.
    are_intervals: bool,
    pub(crate) warnings: Vec<Warning>,
}

/// Readings between two STAT_ROUND records.
#[derive(Debug, Default)]
struct Round {
    /// Time of its end, in nanoseconds; `None` if that is not recorded.
    end: Option<u64>,
    readings: Vec<Reading>,
}

/// Numbers of records that are left out, by reason.
#[derive(Default)]
struct LeftOut {
    malformed: u64,
    unknown_ids: u64,
    unknown_threads: u64,
}

impl RecordedCounts {
    /// Reads the counts of a recording; `None` if it has none.
    pub(crate) fn of(session: &Session<'_>) -> Option<Self> {
        let has = |kind| session.split.counts.contains_key(&kind);
        match (has(RecordType::STAT), has(RecordType::READ)) {
            (false, false) => None,
            (true, _) => Some(Self::of_stat_records(session)),
            (false, true) => Some(Self::of_read_records(session)),
        }
    }

    /// Creates the counts of a file, before any was read.
    fn new(file: &File<'_>) -> Self {
        let event = |entry: &AttrEntry| Event::new(entry.event_name().into_owned(), &entry.attr);
        Self {
            target: target(file),
            events: file.attrs.entries().iter().map(event).collect(),
            grouping: Grouping { topology: topology(file), ..Grouping::default() },
            pids: Vec::new(),
            rounds: Vec::new(),
            are_intervals: false,
            warnings: Vec::new(),
        }
    }

    fn of_stat_records(session: &Session<'_>) -> Self {
        let attrs = &session.file.attrs;
        let mut counts = Self::new(session.file);
        let (mut open, mut left_out) = (Round::default(), LeftOut::default());
        let mut before = FxHashMap::<(u64, Cpu, u32), Count>::default();
        for raw in &session.split.side_band {
            let Ok(record) = attrs.decode(raw) else {
                let is_of_stat =
                    matches!(raw.header.kind, RecordType::STAT | RecordType::STAT_ROUND);
                left_out.malformed += u64::from(is_of_stat);
                continue;
            };
            match record.body {
                Body::StatConfig(config) => counts.configure(&config, session.file),
                Body::ThreadMap(map) => {
                    let thread = |entry: &ThreadMapEntry| Thread {
                        tid: entry.tid().0,
                        comm: name(&entry.comm),
                    };
                    counts.grouping.threads = map.entries.iter().map(thread).collect();
                }
                Body::EventUpdate(update) => counts.update(session, &update),
                Body::Stat(stat) => {
                    let Some(event) = attrs.by_id(stat.id) else {
                        left_out.unknown_ids += 1;
                        continue;
                    };
                    let Stat { value, enabled, running, .. } = stat;
                    let mut count = Count { value, enabled, running };
                    if counts.are_intervals {
                        let earlier = before.insert((stat.id, stat.cpu, stat.thread), count);
                        count = count.since(earlier.unwrap_or_default());
                    }
                    let thread = usize::try_from(stat.thread).ok();
                    let thread = thread.filter(|place| *place < counts.grouping.threads.len());
                    left_out.unknown_threads += u64::from(thread.is_none());
                    let cpu = Some(stat.cpu).filter(|cpu| *cpu != Cpu::ANY).map(|cpu| cpu.0);
                    open.readings.push(Reading { event: event.0, cpu, thread, count });
                }
                Body::StatRound(round) => {
                    counts.are_intervals |= round.kind == StatRoundKind::INTERVAL;
                    open.end = Some(round.time);
                    counts.rounds.push(std::mem::take(&mut open));
                }
                _ => {}
            }
        }
        // With intervals, recorders read the counters once more when all is over.
        if !open.readings.is_empty() && (!counts.are_intervals || counts.rounds.is_empty()) {
            counts.rounds.push(open);
            let message = "the record that ends the counting is missing: its time is unknown, and \
                           counts may be missing";
            counts.warnings.push(Warning::new("no-round", message));
        }
        counts.warnings.extend(left_out.warnings());
        counts
    }

    fn of_read_records(session: &Session<'_>) -> Self {
        let attrs = &session.file.attrs;
        let mut counts = Self::new(session.file);
        let mut left_out = LeftOut::default();
        // By thread and event, the sum of each counter.
        let mut sums = BTreeMap::<(u32, u32, usize), BTreeMap<u64, Count>>::new();
        let reads = session.split.side_band.iter();
        for raw in reads.filter(|raw| raw.header.kind == RecordType::READ) {
            if !add_read(session, raw, &mut sums, &mut left_out) {
                left_out.malformed += 1;
            }
        }
        let mut round = Round::default();
        for ((pid, tid, event), counters) in sums {
            let is_last = counts.pids.last() == Some(&pid)
                && counts.grouping.threads.last().is_some_and(|thread| thread.tid == tid);
            if !is_last {
                let timeline = &session.timeline;
                let comm = timeline.comm(timeline.process_comm(tid.cast_signed()));
                counts.pids.push(pid);
                counts.grouping.threads.push(Thread { tid, comm: comm.into_owned() });
            }
            // The counter of each CPU is enabled all the time that the thread runs, and counts where
            // it runs.
            let mut count = Count::default();
            for counter in counters.values() {
                count.value = count.value.saturating_add(counter.value);
                count.running = count.running.saturating_add(counter.running);
                count.enabled = count.enabled.max(counter.enabled);
            }
            // Events of the kernel are never multiplexed; where their times differ, it has swapped
            // the counters of two threads, but not the times.
            let kind = attrs.entries().get(event).map(|entry| entry.attr.kind);
            let of_kernel = [EventType::SOFTWARE, EventType::TRACEPOINT, EventType::BREAKPOINT];
            if kind.is_some_and(|kind| of_kernel.contains(&kind)) {
                count.enabled = count.enabled.max(1);
                count.running = count.enabled;
            }
            let thread = Some(counts.pids.len() - 1);
            round.readings.push(Reading { event, cpu: None, thread, count });
        }
        let (first, last) = session.sample_times().unwrap_or_default();
        round.end = (last > first).then(|| last - first);
        counts.grouping.by = Aggregation::Thread;
        counts.rounds.push(round);
        counts.warnings.extend(left_out.warnings());
        counts
    }

    fn configure(&mut self, config: &StatConfig<'_>, file: &File<'_>) {
        self.are_intervals |= config.get(StatConfigTag::INTERVAL).is_some_and(|length| length > 0);
        self.grouping.unscaled = config.get(StatConfigTag::SCALE) == Some(0);
        if let Some(mode) = config.get(StatConfigTag::AGGR_MODE) {
            let has_level = config.get(StatConfigTag::AGGR_LEVEL).is_some();
            self.grouping.by = aggregation(mode, has_level, file);
        }
    }

    fn update(&mut self, session: &Session<'_>, update: &EventUpdate<'_>) {
        let index = session.file.attrs.by_id(update.id);
        let Some(event) = index.and_then(|AttrIndex(index)| self.events.get_mut(index)) else {
            return;
        };
        match &update.property {
            EventProperty::Unit(unit) => {
                event.unit = String::from_utf8_lossy(unit.as_bytes()).into_owned();
            }
            EventProperty::Scale(scale) if scale.value().is_finite() => {
                event.scale = scale.value();
            }
            _ => {}
        }
    }

    /// Returns the reports, one for each round, summed as asked or as the recorder did.
    pub(crate) fn reports(&self, asked: Option<Aggregation>) -> impl Iterator<Item = Report> {
        let grouping = Grouping { by: asked.unwrap_or(self.grouping.by), ..self.grouping.clone() };
        let mut since = 0;
        self.rounds.iter().map(move |round| {
            let mut report = Report::new(self.target.clone(), self.events.clone());
            report.aggregation = grouping.by;
            report.rows = grouping.rows(&self.events, &round.readings);
            let end = round.end.unwrap_or(since);
            let length = Duration::from_nanos(end.saturating_sub(since));
            if self.are_intervals {
                since = end;
                report.interval_end = Some(Duration::from_nanos(end));
            }
            report.elapsed = Spread::of(length.as_secs_f64());
            add_ratios(&mut report.rows, &self.events, length);
            report
        })
    }

    /// Returns the kinds of places that the counters have no location for.
    pub(crate) fn has_no(&self, by: Aggregation) -> Option<&'static str> {
        match by {
            Aggregation::Whole => None,
            Aggregation::Thread => {
                self.readings().all(|reading| reading.thread.is_none()).then_some("threads")
            }
            _ => self.readings().all(|reading| reading.cpu.is_none()).then_some("CPUs"),
        }
    }

    fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.rounds.iter().flat_map(|round| &round.readings)
    }

    /// Returns the total of each event, `None` for those without counts.
    pub(crate) fn totals(&self) -> Vec<Option<EventCount>> {
        let readings: Vec<Reading> = self.readings().copied().collect();
        let whole = Grouping { by: Aggregation::Whole, ..self.grouping.clone() };
        let mut totals = vec![None; self.events.len()];
        for row in whole.rows(&self.events, &readings) {
            if let Some(total) = totals.get_mut(row.event) {
                *total = Some(self::total(&row));
            }
        }
        totals
    }

    /// Returns the counts of each thread at its exit; none of STAT records.
    pub(crate) fn threads(&self) -> Vec<ThreadCounts> {
        let threads = self.pids.iter().zip(&self.grouping.threads);
        let mut threads: Vec<ThreadCounts> = threads
            .map(|(pid, thread)| ThreadCounts { pid: *pid, tid: thread.tid, values: Vec::new() })
            .collect();
        for Reading { event, thread, count, .. } in self.readings() {
            if let Some(thread) = thread.and_then(|place| threads.get_mut(place)) {
                thread.values.push((*event, count.scaled().unwrap_or(0)));
            }
        }
        threads
    }
}

/// Returns the total in a row.
fn total(row: &Row) -> EventCount {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a sum of u64")]
    let value = row.value as u64;
    EventCount { value, enabled_ns: row.enabled, running_ns: row.running }
}

impl LeftOut {
    fn warnings(self) -> impl Iterator<Item = Warning> {
        let of_records = [
            "record of counts does not match its layout, and is left out",
            "records of counts do not match their layout, and are left out",
        ];
        let of_ids = [
            "count has an id that no event in the file has, and is left out",
            "counts have an id that no event in the file has, and are left out",
        ];
        let of_threads = [
            "count is of a thread that the file's list of threads lacks",
            "counts are of threads that the file's list of threads lacks",
        ];
        [
            Warning::counted(self.malformed, "bad-record", of_records),
            Warning::counted(self.unknown_ids, "unknown-id", of_ids),
            Warning::counted(self.unknown_threads, "unknown-thread", of_threads),
        ]
        .into_iter()
        .flatten()
    }
}

/// Adds a READ record; returns whether it could be read.
fn add_read(
    session: &Session<'_>,
    raw: &RawRecord<'_>,
    sums: &mut BTreeMap<(u32, u32, usize), BTreeMap<u64, Count>>,
    left_out: &mut LeftOut,
) -> bool {
    let attrs = &session.file.attrs;
    let Ok(record) = attrs.decode(raw) else { return false };
    let Body::Read(ReadRecord { pid, tid, values }) = record.body else { return false };
    for counter in values.counters() {
        // Without an ID in the values, the counter is that of the record.
        let id = counter.id.or(record.trailer.event_id());
        let event = match id.map(|id| attrs.by_id(id)) {
            Some(event) => event,
            None => Some(AttrIndex(0)).filter(|_| attrs.entries().len() == 1),
        };
        let Some(AttrIndex(event)) = event else {
            left_out.unknown_ids += 1;
            continue;
        };
        // Without times, it is taken as it is.
        let enabled = values.time_enabled().unwrap_or(1);
        let running = values.time_running().unwrap_or(enabled);
        let sum = sums.entry((pid, tid, event)).or_default().entry(id.unwrap_or(0)).or_default();
        sum.value = sum.value.saturating_add(counter.value);
        sum.enabled = sum.enabled.saturating_add(enabled);
        sum.running = sum.running.saturating_add(running);
    }
    true
}

/// Returns what was counted: the recorder's command line, as perf prints it.
fn target(file: &File<'_>) -> String {
    match file.feature::<Cmdline<'_>>() {
        Some(Ok(Cmdline { args })) => {
            let words: Vec<_> = args.0.iter().map(|word| word.to_text().into_owned()).collect();
            format!("'{}'", words.join(" "))
        }
        _ => "'pipe'".to_owned(),
    }
}

/// Returns the kind of places that a number in STAT_CONFIG means: perf has inserted new ones
/// before old ones, in 6.4 (caches, together with AGGR_LEVEL) and in 6.9 (clusters).
fn aggregation(mode: u64, has_level: bool, file: &File<'_>) -> Aggregation {
    let inserted = match (has_level, version(file)) {
        (false, _) => 0,
        (true, Some(version)) if version < (6, 9) => 1,
        (true, _) => 2,
    };
    match mode {
        0 => Aggregation::Cpu,
        2 => Aggregation::Socket,
        3 => Aggregation::Die,
        // Clusters and caches are not known here: their cores are shown.
        4.. if mode <= 4 + inserted => Aggregation::Core,
        _ if mode == 5 + inserted => Aggregation::Thread,
        _ if mode == 7 + inserted => Aggregation::Node,
        _ => Aggregation::Whole,
    }
}

/// Returns the first two numbers of the recorder's version.
fn version(file: &File<'_>) -> Option<(u32, u32)> {
    let version = file.feature::<Version<'_>>()?.ok()?.0.to_text().into_owned();
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn name(comm: &[u8]) -> String {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len());
    String::from_utf8_lossy(comm.get(..end).unwrap_or_default()).into_owned()
}

/// Returns the location of each CPU, as far as the file says it.
fn topology(file: &File<'_>) -> BTreeMap<u32, CpuPlace> {
    let mut places = BTreeMap::<u32, CpuPlace>::new();
    if let (Some(Ok(NrCpus { available, .. })), Some(Ok(CpuTopology { tail, .. }))) =
        (file.feature(), file.feature())
    {
        for (cpu, (core, socket)) in (0..).zip(tail.cpus(available).unwrap_or_default()) {
            places.insert(cpu, CpuPlace { socket, core, ..CpuPlace::default() });
        }
        // Dies have no numbers in the file: they are counted in each socket.
        let mut dies = BTreeMap::<u32, u32>::new();
        for list in tail.dies(available).unwrap_or_default() {
            let cpus = cpus(&list.to_text()).unwrap_or_default();
            let socket = cpus.iter().min().and_then(|cpu| places.get(cpu)).map(|at| at.socket);
            let count = dies.entry(socket.unwrap_or(0)).or_default();
            for cpu in cpus {
                if let Some(place) = places.get_mut(&cpu) {
                    place.die = *count;
                }
            }
            *count += 1;
        }
    }
    if let Some(Ok(NumaTopology { nodes })) = file.feature() {
        for node in &nodes.0 {
            for cpu in cpus(&node.cpus.to_text()).unwrap_or_default() {
                places.entry(cpu).or_insert(CpuPlace { core: cpu, ..CpuPlace::default() }).node =
                    node.node;
            }
        }
    }
    places
}
