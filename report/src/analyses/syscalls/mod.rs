//! `rep syscalls`: system calls by name, with errors and the distribution of their latencies.
//!
//! ```text
//!   samples of raw_syscalls:*, syscalls:* ─► crossings of each thread    all cores, each worker its pieces
//!            sorted by time, paired (pair) ─► calls                      all cores, each thread for itself
//!     grouped (--by), latencies sorted     ─► rows ─► text, JSON, CSV
//! ```
//!
//! The two samples of a call may be in the rings of two CPUs, so they are paired once those of the
//! whole file are sorted. Latencies are kept whole, 8 bytes a call: percentiles are exact. The p-th
//! percentile is the smallest latency that at least p percent of the calls do not exceed.

mod callers;
mod crossings;
mod names;
mod pair;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::{Parser, ValueEnum};
use indexmap::IndexMap;
use rayon::prelude::*;
use recrep_format::abi::SampleType;
use rustc_hash::{FxBuildHasher, FxHashMap};
use serde::Serialize;

use self::callers::{Caller, Callers};
use self::crossings::{Collected, CrossingThread, SyscallEvents};
use self::names::Names;
use self::pair::{Call, CallCounter, CallResult, Crossings, Untimed};
use crate::analyses::derived::{self, Format};
use crate::callchain::deferred_chains;
use crate::cli::{SourcesArgs, SymbolArgs, TaskFilterArgs};
use crate::engine::session::{self, Session};
use crate::engine::unmatched::{self, Recorded};
use crate::engine::{fetching, report};
use crate::exports::sheet::{Analysis, Cell, Sheet, SheetColumn, SheetRow};
use crate::input::{Input, Keep, each, settled};
use crate::profile::InputSummary;
use crate::query::{ChainOptions, Column, FilterValues, Filters, Query, Warning};
use crate::symbols::Resolver;
use crate::terminal::escape::escape;
use crate::terminal::units;
use crate::timeline::ThreadRef;

/// Show system calls: how many, which errors, how long they took
#[derive(Debug, Parser)]
#[command(name = "rep syscalls", version, long_about = None, args_override_self = true)]
#[command(after_help = "Record them with rec trace -- ./app, or with perf record -e \
                        'raw_syscalls:*'")]
// What these show is no part of the answer.
#[command(mut_arg("source_paths", |arg| arg.hide(true)))]
pub(crate) struct SyscallsArgs {
    /// Show the calls of each of these apart
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT[,WHAT]")]
    by: Vec<By>,

    /// Same as --by thread
    #[arg(long)]
    per_thread: bool,

    /// Order of the rows, largest first
    #[arg(short, long, value_enum, value_name = "KEY", default_value = "total")]
    sort: SortBy,

    /// Same as --format json
    #[arg(long)]
    json: bool,

    /// Print at most N entries of each table
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,

    #[command(flatten)]
    sources: SourcesArgs,

    #[command(flatten)]
    filters: TaskFilterArgs,

    #[command(flatten)]
    symbols: SymbolArgs,
}

/// What calls are told apart by, besides their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum By {
    /// Process
    Process,
    /// Thread
    Thread,
    /// Innermost function outside of the C library; needs callchains
    Caller,
}

/// Order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SortBy {
    /// Time of all calls
    Total,
    /// Number of calls
    Calls,
    /// Number of calls that failed
    Errors,
    /// Time of the longest call
    Max,
    /// Time of the average call
    Mean,
    /// Name, in alphabetical order
    Name,
}

/// Which calls are shown, and how.
#[derive(Clone, Debug)]
pub(crate) struct SyscallsQuery {
    query: Query,
    by: Vec<By>,
    sort: SortBy,
    format: Format,
}

pub(crate) fn query(args: SyscallsArgs) -> Result<SyscallsQuery, String> {
    let format = if args.json { Format::Json } else { args.format };
    let mut by = args.by;
    if args.per_thread {
        by.push(By::Thread);
    }
    let filters = Filters { samples: args.filters.filters(), ..Filters::default() };
    let query = Query {
        sources: args.sources.sources(),
        limit: args.limit,
        filters,
        symbol_sources: args.symbols.options(true)?,
        ..Query::default()
    };
    Ok(SyscallsQuery { query, by, sort: args.sort, format })
}

/// What calls are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    process: Option<String>,
    thread: Option<String>,
    caller: Option<Caller>,
    syscall: String,
}

/// Calls with one key.
#[derive(Debug, Default)]
struct Calls {
    number: Option<i32>,
    /// Latency of each call that returned, in nanoseconds.
    latencies: Vec<u64>,
    /// Number of calls that returned, and whose entry is unknown.
    untimed: u64,
    /// Number of calls that failed, by the error's number and name.
    errors: BTreeMap<(i32, Option<&'static str>), u64>,
    /// Number of calls that had not returned when the recording ended.
    unfinished: u64,
    /// The longest time from the entry of such a call to the end of the recording.
    longest_unfinished: u64,
}

impl Calls {
    /// Counts the error, if a call returned one.
    #[inline]
    fn fail(&mut self, result: CallResult) {
        if let Some(errno) = result.errno() {
            *self.errors.entry((errno, None)).or_default() += 1;
        }
    }

    fn add(&mut self, mut other: Self) {
        self.number = self.number.or(other.number);
        if self.latencies.is_empty() {
            self.latencies = other.latencies;
        } else {
            self.latencies.append(&mut other.latencies);
        }
        for (error, calls) in other.errors {
            *self.errors.entry(error).or_default() += calls;
        }
        self.untimed += other.untimed;
        self.unfinished += other.unfinished;
        self.longest_unfinished = self.longest_unfinished.max(other.longest_unfinished);
    }
}

/// Numbers of calls of which one side was not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct OneSided {
    /// Calls that were entered before the recording of their thread began.
    entered_before: u64,
    /// Calls whose entry is missing.
    without_entry: u64,
    /// Calls whose exit is missing.
    without_exit: u64,
}

impl OneSided {
    fn add(&mut self, other: Self) {
        self.entered_before += other.entered_before;
        self.without_entry += other.without_entry;
        self.without_exit += other.without_exit;
    }
}

/// Calls of a thread, or of more.
#[derive(Debug, Default)]
struct Found {
    calls: IndexMap<Key, Calls, FxBuildHasher>,
    one_sided: OneSided,
    warnings: Vec<Warning>,
    /// `true` if system calls were recorded.
    is_recorded: bool,
    /// `true` if a caller was asked for, and there are callchains.
    has_callers: bool,
}

impl Found {
    fn add(&mut self, other: Self) {
        for (key, calls) in other.calls {
            self.calls.entry(key).or_default().add(calls);
        }
        self.one_sided.add(other.one_sided);
        self.warnings.extend(other.warnings);
        self.is_recorded |= other.is_recorded;
        self.has_callers |= other.has_callers;
    }

    /// Finds the calls of an input.
    fn of(session: &Session<'_>, asked: &SyscallsQuery, resolver: &Resolver) -> Self {
        let Some(events) = SyscallEvents::of(session.file) else { return Self::default() };
        let has_chains = session.samples_have(SampleType::CALLCHAIN);
        let mut found = Self {
            is_recorded: true,
            has_callers: asked.by.contains(&By::Caller) && has_chains,
            ..Self::default()
        };
        if !events.have_both_sides() {
            let message = "entries or exits of system calls were not recorded, so no call is whole";
            found.warnings.push(Warning::new("one-sided", message));
        }
        let (deferred, functions, unwinding);
        let collected = {
            let filter = session.filters(&asked.query.filters.samples, None, None);
            if found.has_callers {
                found.warnings.extend(fetch(session, asked, resolver));
                deferred = deferred_chains(session.file, &session.split.side_band);
                functions = session.functions(resolver);
                unwinding = session.unwinding(resolver);
                let callers =
                    || Some(Callers::new(session, &functions, &deferred, unwinding.as_ref()));
                Collected::read(session, &events, &filter, &callers)
            } else {
                Collected::read(session, &events, &filter, &|| None)
            }
        };
        let Collected { threads, callers, names, end, unusable } = collected;
        let message = "samples of system calls lack their thread, time or fields, and are left out";
        found.warnings.extend(Warning::counted(unusable, "bad-sample", message));
        let names = Names::new(session.file, names);
        let of_thread = |CrossingThread { thread, pid, crossings }| {
            Labels::new(session, thread, pid, &asked.by).calls(crossings, end, &names, &callers)
        };
        let threads: Vec<Self> = threads.into_par_iter().map(of_thread).collect();
        for thread in threads {
            found.add(thread);
        }
        found
    }
}

/// Fetches debug files for the functions that call the system.
fn fetch(session: &Session<'_>, asked: &SyscallsQuery, resolver: &Resolver) -> Vec<Warning> {
    let Ok(columns) = Column::list("symbol", asked.query.mode) else { return Vec::new() };
    let chains = ChainOptions { children: true, ..ChainOptions::default() };
    let query = Query { columns, chains, ..asked.query.clone() };
    fetching::fetch(&query, session, resolver).unwrap_or_default()
}

/// Calls of a thread, by number and caller.
#[derive(Default)]
struct ThreadCalls {
    calls: FxHashMap<(i32, u32), Calls>,
    one_sided: OneSided,
}

impl CallCounter for ThreadCalls {
    #[inline]
    fn add(&mut self, call: Call) {
        match call {
            Call::Returned { number, caller, result, duration } => {
                let calls = self.calls.entry((number, caller)).or_default();
                calls.latencies.push(duration);
                calls.fail(result);
            }
            Call::Unfinished { number, caller, since } => {
                let calls = self.calls.entry((number, caller)).or_default();
                calls.unfinished += 1;
                calls.longest_unfinished = calls.longest_unfinished.max(since);
            }
            Call::Untimed { number, result, why } => {
                let calls = self.calls.entry((number, 0)).or_default();
                calls.untimed += 1;
                calls.fail(result);
                match why {
                    Untimed::EnteredBefore => self.one_sided.entered_before += 1,
                    Untimed::LostEntry => self.one_sided.without_entry += 1,
                }
            }
            Call::LostExit => self.one_sided.without_exit += 1,
        }
    }
}

/// Texts of a thread, as far as calls are told apart by them.
struct Labels {
    process: Option<String>,
    thread: Option<String>,
    by_caller: bool,
}

impl Labels {
    fn new(session: &Session<'_>, thread: ThreadRef, pid: i32, by: &[By]) -> Self {
        let timeline = &session.timeline;
        let process = || format!("{pid}:{}", timeline.comm(timeline.process_comm(pid)));
        let of_thread = || {
            let (tid, comm) = timeline.thread_label(thread);
            format!("{tid}:{}", timeline.comm(comm))
        };
        Self {
            process: by.contains(&By::Process).then(process),
            thread: by.contains(&By::Thread).then(of_thread),
            by_caller: by.contains(&By::Caller),
        }
    }

    /// Returns the calls of the thread.
    fn calls(self, crossings: Crossings, end: u64, names: &Names, callers: &[Caller]) -> Found {
        let mut counters = crossings.counted::<ThreadCalls>(end, names).into_iter();
        let ThreadCalls { mut calls, mut one_sided } = counters.next().unwrap_or_default();
        for other in counters {
            one_sided.add(other.one_sided);
            for (key, of_key) in other.calls {
                calls.entry(key).or_default().add(of_key);
            }
        }
        let mut calls: Vec<_> = calls.into_iter().collect();
        calls.sort_by_key(|(key, _)| *key);
        let mut found = Found { one_sided, ..Found::default() };
        for ((number, caller), calls) in calls {
            let caller = callers.get(caller as usize).filter(|_| self.by_caller);
            let key = Key {
                process: self.process.clone(),
                thread: self.thread.clone(),
                caller: caller.cloned(),
                syscall: names.shown(number).into_owned(),
            };
            let errors = calls.errors.into_iter();
            let errors = errors.map(|((errno, _), calls)| ((errno, names.error(errno)), calls));
            let calls = Calls { number: Some(number), errors: errors.collect(), ..calls };
            found.calls.entry(key).or_default().add(calls);
        }
        found
    }
}

#[derive(Serialize)]
struct SyscallsAnalysis {
    by: Vec<By>,
    #[serde(flatten)]
    one_sided: OneSided,
    groups: Vec<Group>,
}

/// Calls of a thread or process; all of them if they are not told apart.
#[derive(Debug, Serialize)]
struct Group {
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    calls: u64,
    failed: u64,
    total_ns: u64,
    unfinished: u64,
    rows: Vec<SyscallRow>,
}

/// Calls with one name, and by one caller if they are told apart by callers.
#[derive(Debug, Serialize)]
struct SyscallRow {
    key: RowKey,
    /// Number on the recorded architecture.
    number: Option<i32>,
    /// Number of calls that returned.
    calls: u64,
    failed: u64,
    /// Number of calls whose entry is unknown, so that they have no latency.
    untimed: u64,
    total_ns: u64,
    /// Distribution of the latencies; `None` if no call has one.
    latency_ns: Option<Latency>,
    errors: Vec<ErrorCount>,
    unfinished: u64,
    longest_unfinished_ns: Option<u64>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct RowKey {
    syscall: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    caller: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dso: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Latency {
    min: u64,
    mean: f64,
    p50: u64,
    p95: u64,
    p99: u64,
    max: u64,
}

#[derive(Debug, Serialize)]
struct ErrorCount {
    errno: i32,
    /// Its name; `None` if unknown.
    name: Option<&'static str>,
    calls: u64,
}

impl Latency {
    /// Computes the distribution of latencies, whose order changes; `None` if there are none.
    #[expect(clippy::cast_precision_loss, reason = "the mean is rounded")]
    fn of(latencies: &mut [u64]) -> Option<Self> {
        let count = latencies.len();
        let (min, max) = (*latencies.iter().min()?, *latencies.iter().max()?);
        let mean = sum(latencies.iter().copied()) as f64 / count as f64;
        // Each percentile leaves those that do not exceed it before it.
        let mut left = latencies;
        let [p99, p95, p50] = [99, 95, 50].map(|percent: usize| {
            let rank = count.saturating_mul(percent).div_ceil(100).clamp(1, left.len());
            let found = *left.select_nth_unstable(rank - 1).1;
            left = std::mem::take(&mut left).get_mut(..rank).unwrap_or_default();
            found
        });
        Some(Self { min, mean, p50, p95, p99, max })
    }
}

impl SyscallRow {
    fn new(syscall: String, caller: Option<Caller>, mut calls: Calls) -> Self {
        let latency_ns = Latency::of(&mut calls.latencies);
        let (caller, dso) = caller.map(|Caller { name, module }| (name, module)).unzip();
        let errors = calls.errors.into_iter();
        let errors = errors.map(|((errno, name), calls)| ErrorCount { errno, name, calls });
        let errors: Vec<ErrorCount> = errors.collect();
        Self {
            key: RowKey { syscall, caller, dso },
            number: calls.number,
            calls: calls.untimed + calls.latencies.len() as u64,
            untimed: calls.untimed,
            failed: errors.iter().map(|error| error.calls).sum(),
            total_ns: sum(calls.latencies.iter().copied()),
            latency_ns,
            errors,
            unfinished: calls.unfinished,
            longest_unfinished_ns: (calls.unfinished > 0).then_some(calls.longest_unfinished),
        }
    }

    /// Returns whether the call never returns.
    fn never_returns(&self) -> bool {
        matches!(self.key.syscall.as_str(), "exit" | "exit_group")
    }

    /// Compares two rows by their place in a table.
    fn in_order(&self, other: &Self, sort: SortBy) -> Ordering {
        let max = |row: &Self| row.latency_ns.map_or(0, |latency| latency.max);
        let mean = |row: &Self| row.latency_ns.map_or(0.0, |latency| latency.mean);
        let by_sort = match sort {
            SortBy::Total => other.total_ns.cmp(&self.total_ns),
            SortBy::Calls => other.calls.cmp(&self.calls),
            SortBy::Errors => other.failed.cmp(&self.failed),
            SortBy::Max => max(other).cmp(&max(self)),
            SortBy::Mean => mean(other).total_cmp(&mean(self)),
            SortBy::Name => Ordering::Equal,
        };
        by_sort.then_with(|| self.key.cmp(&other.key))
    }
}

/// Returns the sum, as far as a number holds it.
fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

pub(crate) fn run(asked: &SyscallsQuery, out: &mut impl Write) -> anyhow::Result<Vec<Warning>> {
    let query = &asked.query;
    let resolver = Resolver::new(query.symbol_sources.clone());
    let (found, inputs, filters, mut warnings) = settled(&query.sources, || {
        let (mut found, mut inputs, mut filters) = (Found::default(), Vec::new(), Vec::new());
        let warnings = each(&query.sources, |source| {
            let input = Input::recording(source, "single system calls")?;
            session::named_on(&input, Keep::Some, &resolver, |session| {
                let of_input = Found::of(session, asked, &resolver);
                let recorded = Recorded {
                    session,
                    resolver: &resolver,
                    symbol_sources: &query.symbol_sources,
                    mode: query.mode,
                };
                let is_empty = of_input.calls.is_empty();
                let values = unmatched::filter_values(&query.filters, is_empty, recorded)?;
                FilterValues::merge(&mut filters, values);
                found.add(of_input);
                inputs.push(report::summary(query, &input, session));
                Ok(session.warnings())
            })
        })?;
        resolver.check_unchanged()?;
        Ok((found, inputs, filters, warnings))
    })?;
    let samples: u64 = inputs.iter().map(|input| input.samples).sum();
    if !found.is_recorded && samples > 0 {
        anyhow::bail!(
            "no system calls were recorded: no input has samples of raw_syscalls:* or \
             syscalls:sys_* with their formats; record with rec trace"
        );
    }
    if asked.by.contains(&By::Caller) && !found.has_callers && found.is_recorded {
        anyhow::bail!(
            "no callchains were recorded, so callers are unknown; record with rec trace -g, or \
             leave --by caller out"
        );
    }
    if found.calls.is_empty() {
        warnings.push(FilterValues::failure(&filters, samples));
    } else {
        warnings.extend(FilterValues::partly(&filters));
    }
    warnings.extend(found.warnings.iter().cloned());
    warnings.extend(lost(&inputs, found.one_sided));
    let answer = SyscallsAnalysis::of(found, asked);
    derived::print(asked.format, &inputs, &answer, &warnings, out)
}

/// Returns warnings of calls that are missing.
fn lost(inputs: &[InputSummary], one_sided: OneSided) -> impl Iterator<Item = Warning> {
    let lost = inputs.iter().map(|input| input.lost_events.max(input.lost_samples)).sum();
    let of_records = "records were lost, as rings were full: calls are missing, and those around \
                      gaps may have the wrong latency (larger rings, -m, lose fewer)";
    let of_entries = "calls lack the sample of their entry, so their latency is unknown";
    let of_exits = "calls lack the sample of their exit, and are left out";
    [
        Warning::counted(lost, "lost-records", of_records),
        Warning::counted(one_sided.without_entry, "without-entry", of_entries),
        Warning::counted(one_sided.without_exit, "without-exit", of_exits),
    ]
    .into_iter()
    .flatten()
}

impl SyscallsAnalysis {
    fn of(found: Found, asked: &SyscallsQuery) -> Self {
        let calls: Vec<(Key, Calls)> = found.calls.into_iter().collect();
        let rows = calls.into_par_iter().map(|(key, calls)| {
            let Key { process, thread, caller, syscall } = key;
            ((process, thread), SyscallRow::new(syscall, caller, calls))
        });
        let rows: Vec<_> = rows.collect();
        let mut groups = IndexMap::<_, Vec<SyscallRow>, FxBuildHasher>::default();
        for (group, row) in rows {
            groups.entry(group).or_default().push(row);
        }
        let group = |((process, thread), mut rows): (_, Vec<SyscallRow>)| {
            let of_rows = |of: fn(&SyscallRow) -> u64| sum(rows.iter().map(of));
            let (calls, failed) = (of_rows(|row| row.calls), of_rows(|row| row.failed));
            let (total_ns, unfinished) =
                (of_rows(|row| row.total_ns), of_rows(|row| row.unfinished));
            rows.sort_by(|a, b| a.in_order(b, asked.sort));
            rows.truncate(asked.query.limit.unwrap_or(usize::MAX));
            Group { process, thread, calls, failed, total_ns, unfinished, rows }
        };
        let mut groups: Vec<Group> = groups.into_iter().map(group).collect();
        let name = |group: &Group| (group.process.clone(), group.thread.clone());
        groups.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| name(a).cmp(&name(b))));
        Self { by: asked.by.clone(), one_sided: found.one_sided, groups }
    }
}

impl Group {
    /// Returns the lines above the group's table.
    fn title(&self, one_sided: Option<OneSided>) -> Vec<String> {
        let names = [("process", &self.process), ("thread", &self.thread)];
        let names = names.iter().filter_map(|(what, name)| Some((what, name.as_deref()?)));
        let names = names.map(|(what, name)| format!("{what} {}, ", escape(name)));
        let Self { calls, failed, total_ns, .. } = self;
        let mut title = vec![format!(
            "# {}{calls} system calls, {failed} with errors, {} in all",
            names.collect::<String>(),
            units::time(*total_ns)
        )];
        let open = self.rows.iter().filter(|row| row.unfinished > 0 && !row.never_returns());
        let open = open.map(|row| {
            let name = escape(&row.key.syscall);
            let longest = units::time(row.longest_unfinished_ns.unwrap_or(0));
            format!("{name} {} (entered {longest} before)", row.unfinished)
        });
        let open: Vec<String> = open.collect();
        if !open.is_empty() {
            title.push(format!("# Had not returned at the end: {}", open.join(", ")));
        }
        if let Some(OneSided { entered_before: before @ 1.., .. }) = one_sided {
            title.push(format!(
                "# {before} without a latency, as the recording began after their entry"
            ));
        }
        title.push("#".into());
        title
    }
}

/// Returns nanoseconds in a longer unit, with three decimals.
fn in_units(nanoseconds: f64, unit: f64) -> Cell<'static> {
    Cell::Text(format!("{:.3}", nanoseconds / unit).into())
}

impl SyscallRow {
    /// Returns the cells of both text and CSV.
    #[expect(clippy::cast_precision_loss, reason = "a few decimal places are shown")]
    fn sheet_row<'a>(&'a self, group: &'a Group) -> SheetRow<'a> {
        const MICROSECOND: f64 = 1e3;
        const MILLISECOND: f64 = 1e6;
        let named = |name: &'a Option<String>| name.as_deref().map_or(Cell::Unknown, Cell::from);
        let latency = |of: fn(Latency) -> u64| self.latency_ns.map(of);
        let [min, p50, p95, p99, max] = [
            latency(|l| l.min),
            latency(|l| l.p50),
            latency(|l| l.p95),
            latency(|l| l.p99),
            latency(|l| l.max),
        ];
        let mean = self.latency_ns.map(|latency| latency.mean);
        let whole = |number: Option<u64>| number.map_or(Cell::Unknown, Cell::from);
        let short = |number: Option<f64>| {
            number.map_or(Cell::Unknown, |number| in_units(number, MICROSECOND))
        };
        let of_whole = |number: Option<u64>| short(number.map(|number| number as f64));
        let errors: Vec<String> = self.errors.iter().map(ErrorCount::text).collect();
        let cells = vec![
            named(&group.process),
            named(&group.thread),
            self.calls.into(),
            self.failed.into(),
            in_units(self.total_ns as f64, MILLISECOND),
            of_whole(min),
            short(mean),
            of_whole(p50),
            of_whole(p95),
            of_whole(p99),
            of_whole(max),
            self.untimed.into(),
            self.total_ns.into(),
            whole(min),
            mean.map_or(Cell::Unknown, Cell::Mean),
            whole(p50),
            whole(p95),
            whole(p99),
            whole(max),
            self.unfinished.into(),
            self.key.syscall.as_str().into(),
            self.number
                .and_then(|number| u64::try_from(number).ok())
                .map_or(Cell::Unknown, Cell::from),
            Cell::Text(errors.join(" ").into()),
            named(&self.key.caller),
            named(&self.key.dso),
        ];
        let below = if errors.is_empty() {
            Vec::new()
        } else {
            vec![format!("{:>17}  {}", "", errors.join(" "))]
        };
        SheetRow { cells, below }
    }
}

impl ErrorCount {
    /// Returns the error's name and how often it was returned.
    fn text(&self) -> String {
        match self.name {
            Some(name) => format!("{name}({}):{}", self.errno, self.calls),
            None => format!("{}:{}", self.errno, self.calls),
        }
    }
}

impl Analysis for SyscallsAnalysis {
    const SCHEMA: &'static str = "recrep-syscalls/1";

    fn sheets(&self) -> Vec<Sheet<'_>> {
        let shown = |heading, width| SheetColumn { name: None, heading: Some(heading), width };
        let mut columns = vec![SheetColumn::unshown("process"), SheetColumn::unshown("thread")];
        columns.extend([
            SheetColumn::number("calls", "Calls", 9),
            SheetColumn::number("failed", "Errors", 7),
            shown("Total ms", 12),
            shown("Min us", 10),
            shown("Mean us", 10),
            shown("p50 us", 10),
            shown("p95 us", 10),
            shown("p99 us", 10),
            shown("Max us", 12),
        ]);
        let exact = [
            "untimed",
            "total_ns",
            "min_ns",
            "mean_ns",
            "p50_ns",
            "p95_ns",
            "p99_ns",
            "max_ns",
            "unfinished",
        ];
        columns.extend(exact.map(SheetColumn::unshown));
        columns.push(SheetColumn::text("syscall", "System call"));
        columns.extend(["number", "errors"].map(SheetColumn::unshown));
        if self.by.contains(&By::Caller) {
            columns.push(SheetColumn::text("caller", "Caller"));
            columns.push(SheetColumn::text("dso", "Module"));
        } else {
            columns.extend(["caller", "dso"].map(SheetColumn::unshown));
        }
        let sheets = self.groups.iter().enumerate().map(|(index, group)| Sheet {
            title: group.title((index == 0).then_some(self.one_sided)),
            columns: columns.clone(),
            rows: group.rows.iter().map(|row| row.sheet_row(group)).collect(),
        });
        sheets.collect()
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        for (mut sheet, group) in self.sheets().into_iter().zip(&self.groups) {
            // The title tells of those that have not returned.
            let mut has_returned = group.rows.iter().map(|row| row.calls > 0);
            sheet.rows.retain(|_| has_returned.next() == Some(true));
            sheet.print(out)?;
            writeln!(out)?;
        }
        Ok(())
    }
}
