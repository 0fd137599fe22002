//! The answer: rows with errors and the distribution of latencies, as text, JSON and CSV.

use std::cmp::Ordering;
use std::io::{self, Write};

use indexmap::IndexMap;
use rayon::prelude::*;
use recrep_console::units;
use rustc_hash::FxBuildHasher;
use serde::Serialize;

use super::calls::{Calls, FoundCalls, OneSided};
use super::key::CallsKey;
use super::{SortBy, SplitBy, SyscallsQuery};
use crate::analyses::callers::Caller;
use crate::exports::sheet::{Analysis, Sheet, SheetCell, SheetColumn};
use crate::terminal::escape::escape;

#[derive(Serialize)]
pub(super) struct SyscallsAnalysis {
    by: Vec<SplitBy>,
    #[serde(flatten)]
    one_sided: OneSided,
    groups: Vec<CallGroup>,
}

/// Calls of a thread or process; all of them if they are not told apart.
#[derive(Debug, Serialize)]
struct CallGroup {
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    calls: u64,
    failed: u64,
    total_ns: u64,
    unfinished: u64,
    /// Calls that had not returned, as the title tells of them: those of all rows, also where a
    /// limit leaves some out.
    #[serde(skip)]
    open: Vec<String>,
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
    latency_ns: Option<CallLatency>,
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
struct CallLatency {
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

impl CallLatency {
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
        let latency_ns = CallLatency::of(&mut calls.latencies);
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

    /// Returns what is said of those calls that had not returned, if they are expected to.
    fn not_returned(&self) -> Option<String> {
        let longest = self.longest_unfinished_ns.filter(|_| !self.never_returns())?;
        let (name, longest) = (escape(&self.key.syscall), units::time(longest));
        Some(format!("{name} {} (entered {longest} before)", self.unfinished))
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

impl SyscallsAnalysis {
    pub(super) fn of(found: FoundCalls, asked: &SyscallsQuery) -> Self {
        let calls: Vec<(CallsKey, Calls)> = found.calls.into_iter().collect();
        let rows = calls.into_par_iter().map(|(key, calls)| {
            let CallsKey { process, thread, caller, syscall } = key;
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
            let open = rows.iter().filter_map(SyscallRow::not_returned).collect();
            rows.truncate(asked.query.limit.unwrap_or(usize::MAX));
            CallGroup { process, thread, calls, failed, total_ns, unfinished, open, rows }
        };
        let mut groups: Vec<CallGroup> = groups.into_iter().map(group).collect();
        let name = |group: &CallGroup| (group.process.clone(), group.thread.clone());
        groups.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| name(a).cmp(&name(b))));
        Self { by: asked.by.clone(), one_sided: found.one_sided, groups }
    }
}

impl CallGroup {
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
        if !self.open.is_empty() {
            title.push(format!("# Had not returned at the end: {}", self.open.join(", ")));
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

/// A row, and the group that it is in.
#[derive(Clone, Copy)]
struct RowInGroup<'a> {
    group: &'a CallGroup,
    row: &'a SyscallRow,
}

type RowColumn<'a> = SheetColumn<'a, RowInGroup<'a>>;

impl<'a> RowInGroup<'a> {
    fn nanoseconds(self, of: fn(CallLatency) -> u64) -> SheetCell<'a> {
        self.row.latency_ns.map(of).into()
    }

    #[expect(clippy::cast_precision_loss, reason = "a few decimal places are shown")]
    fn microseconds(self, of: fn(CallLatency) -> u64) -> SheetCell<'a> {
        in_units(self.row.latency_ns.map(|latency| of(latency) as f64), 1e3)
    }

    fn errors(self) -> String {
        let errors: Vec<String> = self.row.errors.iter().map(ErrorCount::text).collect();
        errors.join(" ")
    }
}

/// Returns nanoseconds in a longer unit, with three decimals.
fn in_units(nanoseconds: Option<f64>, unit: f64) -> SheetCell<'static> {
    nanoseconds.map(|nanoseconds| format!("{:.3}", nanoseconds / unit)).into()
}

/// Returns the columns of text and CSV.
#[expect(clippy::cast_precision_loss, reason = "a few decimal places are shown")]
fn columns<'a>(by: &[SplitBy]) -> Vec<RowColumn<'a>> {
    let has_callers = by.contains(&SplitBy::Caller);
    vec![
        RowColumn::unshown("process", |of| of.group.process.as_ref().into()),
        RowColumn::unshown("thread", |of| of.group.thread.as_ref().into()),
        RowColumn::number("calls", "Calls", 9, |of| of.row.calls.into()),
        RowColumn::number("failed", "Errors", 7, |of| of.row.failed.into()),
        RowColumn::shown("Total ms", 12, |of| in_units(Some(of.row.total_ns as f64), 1e6)),
        RowColumn::shown("Min us", 10, |of| of.microseconds(|latency| latency.min)),
        RowColumn::shown("Mean us", 10, |of| {
            in_units(of.row.latency_ns.map(|latency| latency.mean), 1e3)
        }),
        RowColumn::shown("p50 us", 10, |of| of.microseconds(|latency| latency.p50)),
        RowColumn::shown("p95 us", 10, |of| of.microseconds(|latency| latency.p95)),
        RowColumn::shown("p99 us", 10, |of| of.microseconds(|latency| latency.p99)),
        RowColumn::shown("Max us", 12, |of| of.microseconds(|latency| latency.max)),
        RowColumn::unshown("untimed", |of| of.row.untimed.into()),
        RowColumn::unshown("total_ns", |of| of.row.total_ns.into()),
        RowColumn::unshown("min_ns", |of| of.nanoseconds(|latency| latency.min)),
        RowColumn::unshown("mean_ns", |of| {
            SheetCell::float(of.row.latency_ns.map(|latency| latency.mean))
        }),
        RowColumn::unshown("p50_ns", |of| of.nanoseconds(|latency| latency.p50)),
        RowColumn::unshown("p95_ns", |of| of.nanoseconds(|latency| latency.p95)),
        RowColumn::unshown("p99_ns", |of| of.nanoseconds(|latency| latency.p99)),
        RowColumn::unshown("max_ns", |of| of.nanoseconds(|latency| latency.max)),
        RowColumn::unshown("unfinished", |of| of.row.unfinished.into()),
        RowColumn::text("syscall", "System call", |of| (&of.row.key.syscall).into()),
        RowColumn::unshown("number", |of| {
            of.row.number.and_then(|number| u64::try_from(number).ok()).into()
        }),
        RowColumn::unshown("errors", |of| of.errors().into()),
        RowColumn::text("caller", "Caller", |of| of.row.key.caller.as_ref().into())
            .shown_if(has_callers),
        RowColumn::text("dso", "Module", |of| of.row.key.dso.as_ref().into()).shown_if(has_callers),
    ]
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
        let columns = columns(&self.by);
        let mut sheets = Vec::with_capacity(self.groups.len());
        for (index, group) in self.groups.iter().enumerate() {
            let title = group.title((index == 0).then_some(self.one_sided));
            let rows = group.rows.iter().map(|row| RowInGroup { group, row });
            let mut sheet = Sheet::new(title, &columns, rows.clone());
            for (shown, row) in sheet.rows.iter_mut().zip(rows) {
                let errors = row.errors();
                if !errors.is_empty() {
                    shown.below.push(format!("{:>17}  {errors}", ""));
                }
            }
            sheets.push(sheet);
        }
        sheets
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::outputs;
    use crate::query::Query;

    #[test]
    fn a_limit_hides_no_calls_that_have_not_returned() {
        let mut found = FoundCalls::default();
        for (syscall, latencies, unfinished) in
            [("read", vec![5, 7], 0), ("pause", vec![], 1), ("exit", vec![], 1)]
        {
            let key =
                CallsKey { process: None, thread: None, caller: None, syscall: syscall.into() };
            let longest_unfinished = unfinished * 2_000;
            let calls = Calls { latencies, unfinished, longest_unfinished, ..Calls::default() };
            found.calls.insert(key, calls);
        }
        let query = Query { limit: Some(1), ..Query::default() };
        let (by, sort, output) = (Vec::new(), SortBy::Total, outputs::named("text"));
        let answer = SyscallsAnalysis::of(found, &SyscallsQuery { query, by, sort, output });
        let mut text = Vec::new();
        answer.print(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("# Had not returned at the end: pause 1 (entered 2 us before)"));
        assert!(text.contains("read") && !text.contains("exit"), "{text}");
    }
}
