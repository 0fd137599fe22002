//! The answer: rows with times and wakers, as text, JSON and CSV.

use std::cmp::Reverse;
use std::io::{self, Write};

use recrep_console::units;
use serde::Serialize;

use super::found::{FoundWait, FoundWaits, WaitKey, WakerCount, WakerKey, WakerKind};
use super::{WaitsBy, WaitsQuery};
use crate::analyses::callers::Caller;
use crate::count::metrics::share;
use crate::exports::sheet::{Analysis, Sheet, SheetCell, SheetColumn};
use crate::terminal::escape::escape;
use crate::timeline::WaitKind;

#[derive(Serialize)]
pub(super) struct WaitsAnalysis {
    by: Vec<WaitsBy>,
    /// Number of threads that waited.
    threads: u64,
    count: u64,
    waited: u64,
    runnable: u64,
    without_waker: u64,
    unfinished: u64,
    lost_events: u64,
    waits: Vec<WaitRow>,
    /// `false` if wakes were not recorded, so that nothing is said of wakers.
    #[serde(skip)]
    has_wakes: bool,
}

/// Waits with one key.
#[derive(Debug, Serialize)]
struct WaitRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<WaitKind>,
    /// With a page fault, what it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<WaitKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<Site>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    count: u64,
    waited: u64,
    runnable: u64,
    max: u64,
    p99: u64,
    wakers: Vec<WakerRow>,
}

/// Function that waits.
#[derive(Debug, Serialize)]
struct Site {
    function: String,
    dso: String,
}

#[derive(Debug, Serialize)]
struct WakerRow {
    kind: WakerKind,
    /// Thread, or device of an interrupt; `None` if unknown.
    thread: Option<String>,
    site: Option<String>,
    count: u64,
    waited: u64,
}

impl WakerRow {
    fn of(
        (WakerKey { kind, name, site }, WakerCount { count, waited }): (WakerKey, WakerCount),
    ) -> Self {
        Self { kind, thread: name, site, count, waited }
    }

    /// Returns the waker as text has it.
    fn name(&self) -> String {
        waker_text(self.thread.as_deref(), self.site.as_deref())
    }
}

impl WaitRow {
    fn of((key, found): (WaitKey, FoundWait)) -> Self {
        let FoundWait { mut waited, runnable, wakers } = found;
        let count = waited.len();
        let total = waited.iter().fold(0, |sum: u64, time| sum.saturating_add(*time));
        let rank = count.saturating_mul(99).div_ceil(100).max(1);
        let p99 = match count {
            0 => 0,
            _ => *waited.select_nth_unstable(rank - 1).1,
        };
        let mut wakers: Vec<WakerRow> = wakers.into_iter().map(WakerRow::of).collect();
        wakers.sort_by_cached_key(|waker| (Reverse(waker.waited), waker.kind, waker.name()));
        let site = key.site.map(|Caller { name, module }| Site { function: name, dso: module });
        Self {
            kind: key.kind,
            fault: key.behind_fault,
            object: key.object,
            site,
            thread: key.thread,
            count: count as u64,
            waited: total,
            runnable,
            max: waited.iter().copied().max().unwrap_or(0),
            p99,
            wakers,
        }
    }

    /// Returns what is waited for, as text has it.
    fn what(&self) -> Option<String> {
        Some(wait_text(self.kind?, self.fault, self.object.as_deref()))
    }

    fn place(&self) -> Option<String> {
        self.site.as_ref().map(|site| match &*site.function {
            "[unknown]" => site.dso.clone(),
            function => function.to_owned(),
        })
    }
}

/// Returns the text of what is waited for.
pub(super) fn wait_text(kind: WaitKind, fault: Option<WaitKind>, object: Option<&str>) -> String {
    match fault.map(WaitKind::name).or(object) {
        Some(inner) => format!("{} ({inner})", kind.name()),
        None => kind.name().to_owned(),
    }
}

/// Returns the text of who ended a wait.
pub(super) fn waker_text(name: Option<&str>, site: Option<&str>) -> String {
    let name = name.unwrap_or("unknown");
    site.map_or_else(|| name.to_owned(), |site| format!("{name} {site}"))
}

impl WaitsAnalysis {
    pub(super) fn of(found: FoundWaits, asked: &WaitsQuery, lost_events: u64) -> Self {
        let FoundWaits { threads, without_waker, unfinished, has_wakes, .. } = found;
        let mut waits: Vec<WaitRow> = found.waits.into_iter().map(WaitRow::of).collect();
        let sum = |of: fn(&WaitRow) -> u64| waits.iter().map(of).fold(0, u64::saturating_add);
        let (count, waited, runnable) =
            (sum(|row| row.count), sum(|row| row.waited), sum(|row| row.runnable));
        waits.sort_by_cached_key(|row| {
            let names = (row.what(), row.place(), row.thread.clone());
            (Reverse(row.waited), names, row.wakers.first().map(WakerRow::name))
        });
        waits.truncate(asked.query.limit.unwrap_or(usize::MAX));
        let by = asked.by.clone();
        Self {
            by,
            threads,
            count,
            waited,
            runnable,
            without_waker,
            unfinished,
            lost_events,
            waits,
            has_wakes,
        }
    }

    fn title(&self) -> Vec<String> {
        let Self { threads, count, waited, runnable, .. } = self;
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let mut line = format!(
            "# {threads} thread{} waited {count} time{}, {} in all",
            plural(*threads),
            plural(*count),
            units::time(*waited),
        );
        if self.has_wakes {
            let with = count.saturating_sub(self.without_waker + self.unfinished);
            line += &format!(
                ", and {} more until they ran. {with} of {count} have a waker.",
                units::time(*runnable)
            );
        } else {
            line += ". Who ended them was not recorded: rec --waits does that.";
        }
        let mut title = vec![line];
        if self.unfinished > 0 {
            title.push(format!("# {} lasted until the end of the recording", self.unfinished));
        }
        title.push("#".to_owned());
        title
    }
}

/// A row, and one of its wakers.
#[derive(Clone, Copy)]
struct RowOfWaker<'a> {
    row: &'a WaitRow,
    waker: Option<&'a WakerRow>,
}

type WaitColumn<'a> = SheetColumn<'a, RowOfWaker<'a>>;

/// Returns the columns of text and CSV.
fn columns<'a>(by: &[WaitsBy], has_wakes: bool) -> Vec<WaitColumn<'a>> {
    let is_by = |one: WaitsBy| by.contains(&one);
    let by_all = by.is_empty();
    let time = |nanoseconds: u64| SheetCell::from(units::time(nanoseconds));
    vec![
        WaitColumn::shown("Waited", 9, move |of| time(of.row.waited)),
        WaitColumn::unshown("kind", |of| of.row.kind.map(WaitKind::name).into()),
        WaitColumn::unshown("fault", |of| of.row.fault.map(WaitKind::name).into()),
        WaitColumn::unshown("object", |of| of.row.object.as_ref().into()),
        WaitColumn::number("count", "Waits", 8, |of| of.row.count.into()),
        WaitColumn::unshown("waited", |of| of.row.waited.into()),
        WaitColumn::unshown("runnable", |of| of.row.runnable.into()),
        WaitColumn::unshown("max", |of| of.row.max.into()),
        WaitColumn::unshown("p99", |of| of.row.p99.into()),
        WaitColumn::shown("Max", 9, move |of| time(of.row.max)),
        WaitColumn::shown("p99", 9, move |of| time(of.row.p99)),
        WaitColumn::shown("To run", 9, move |of| time(of.row.runnable)).shown_if(has_wakes),
        WaitColumn::shown("What                    ", WHAT, |of| {
            padded(&of.row.what().unwrap_or_default(), WHAT)
        })
        .shown_if(by_all || is_by(WaitsBy::Object)),
        WaitColumn::unshown("site", |of| of.row.site.as_ref().map(|site| &site.function).into()),
        WaitColumn::unshown("dso", |of| of.row.site.as_ref().map(|site| &site.dso).into()),
        WaitColumn::shown("Where                   ", WHERE, |of| {
            padded(&of.row.place().unwrap_or_default(), WHERE)
        })
        .shown_if(by_all || is_by(WaitsBy::Site)),
        WaitColumn::text("thread", "Thread", |of| of.row.thread.as_ref().into())
            .shown_if(is_by(WaitsBy::Thread)),
        WaitColumn::unshown("waker_kind", |of| of.waker.map(|waker| waker.kind.name()).into()),
        WaitColumn::unshown("waker", |of| of.waker.map(|waker| waker.thread.as_ref()).into()),
        WaitColumn::unshown("waker_site", |of| of.waker.map(|waker| waker.site.as_ref()).into()),
        WaitColumn::unshown("waker_count", |of| of.waker.map(|waker| waker.count).into()),
        WaitColumn::unshown("waker_waited", |of| of.waker.map(|waker| waker.waited).into()),
        WaitColumn::shown("Woken by", 0, |of| of.woken_by().into()).shown_if(has_wakes),
    ]
}

/// Widths of texts before others.
const WHAT: usize = 24;
const WHERE: usize = 24;
/// Most wakers of a row that text shows.
const MOST_WAKERS: usize = 3;

/// Returns a text with spaces behind it.
fn padded<'a>(text: &str, width: usize) -> SheetCell<'a> {
    format!("{text:<width$}").into()
}

impl RowOfWaker<'_> {
    /// Returns the waker with its share of the row's waits.
    fn woken_by(self) -> String {
        let Some(waker) = self.waker else { return String::new() };
        // Waits that were woken at once have no time to share.
        let share = match self.row.waited {
            0 => share(waker.count, self.row.count),
            all => share(waker.waited, all),
        };
        format!("{} {share:.0} %", waker.name())
    }
}

impl Analysis for WaitsAnalysis {
    const SCHEMA: &'static str = "recrep-waits/1";

    fn sheets(&self) -> Vec<Sheet<'_>> {
        let rows = self.waits.iter().flat_map(|row| {
            row.wakers.iter().map(move |waker| RowOfWaker { row, waker: Some(waker) })
        });
        vec![Sheet::new(self.title(), &columns(&self.by, self.has_wakes), rows)]
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = columns(&self.by, self.has_wakes);
        let rows = self.waits.iter().map(|row| RowOfWaker { row, waker: row.wakers.first() });
        let mut sheet = Sheet::new(self.title(), &columns, rows);
        let widths = columns.iter().filter_map(SheetColumn::shown_width);
        let indent: usize = widths.filter(|width| *width > 0).map(|width| width + 2).sum();
        for (shown, row) in sheet.rows.iter_mut().zip(&self.waits) {
            let others = row.wakers.get(1..).unwrap_or_default().iter().take(MOST_WAKERS - 1);
            for waker in others.filter(|_| self.has_wakes) {
                let of = RowOfWaker { row, waker: Some(waker) };
                let woken_by = of.woken_by();
                shown.below.push(format!("{:indent$}{}", "", escape(&woken_by)));
            }
            let left = row.wakers.len().saturating_sub(MOST_WAKERS);
            if left > 0 && self.has_wakes {
                shown.below.push(format!("{:indent$}{left} more", ""));
            }
        }
        sheet.print(out)
    }
}
