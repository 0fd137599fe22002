//! The functions that samples are in, and their instructions.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use rayon::prelude::*;

use super::branches::{BranchTotals, SourceBranches};
use super::source::SourceTexts;
use crate::analyses::derived;
use crate::code::{CodeRow, ListingExtent, listing};
use crate::count::Count;
use crate::count::metrics::share;
use crate::exports::outputs;
use crate::profile::Profile;
use crate::query::{Column, Query, SortKey, Source, Warning};
use crate::symbols::FunctionPlace;
use crate::table::{self, EventTable, Row};

/// An event and its annotated functions, hottest first.
#[derive(Debug)]
pub(crate) struct AnnotatedEvent {
    /// Number of the event among those of the profile.
    pub index: usize,
    pub name: String,
    pub total: Count,
    pub functions: Vec<AnnotatedFunction>,
}

/// A function with its instructions.
#[derive(Debug)]
pub(crate) struct AnnotatedFunction {
    pub dso: String,
    pub symbol: String,
    pub cpu_mode: String,
    /// Name as the file spells it, if it is shown otherwise.
    pub mangled: Option<String>,
    /// Path of the module.
    pub path: String,
    pub count: Count,
    /// File that the code was read from; the reason if there is none.
    pub code: Result<String, String>,
    pub rows: Vec<AnnotatedRow>,
}

/// An instruction with what is known of it.
#[derive(Debug)]
pub(crate) struct AnnotatedRow {
    pub row: CodeRow,
    /// Text of the source line, if its file is there.
    pub source_text: Option<String>,
    /// Branches in branch stacks that it made.
    pub branches: Option<BranchTotals>,
}

impl AnnotatedFunction {
    /// Returns the percentage of the function's period (of its samples, if that is 0) at a row.
    pub(super) fn percent(&self, row: &AnnotatedRow) -> f64 {
        match self.count.period {
            0 => share(row.row.count.samples, self.count.samples),
            period => share(row.row.count.period, period),
        }
    }

    /// Iterates over the rows, each with its source line if that is not the one of the row before.
    pub(super) fn with_sources(
        &self,
    ) -> impl Iterator<Item = (&AnnotatedRow, Option<(&str, u32)>)> {
        let mut before = None;
        self.rows.iter().map(move |row| {
            let source = row.row.source.as_ref().map(|(file, line)| (file.as_str(), *line));
            let is_new = source != before;
            before = source;
            (row, source.filter(|_| is_new))
        })
    }
}

/// A function of an event, while its samples are counted.
struct CountedFunction {
    dso: String,
    symbol: String,
    cpu_mode: String,
    mangled: Option<String>,
    place: FunctionPlace,
    count: Count,
    by_address: BTreeMap<u64, Count>,
}

/// Columns of the histogram; the CPU mode of the function, its place, and the offset in it follow.
const COLUMNS: &str = "dso,symbol";
const SYMBOL: usize = 1;
const CPU_MODE: usize = 2;
const PLACE: usize = 3;
const OFFSET: usize = 4;

const UNREAD: &str = "standard input is read only once, so mispredictions and cycles of its branch \
                      stacks are not shown: give a file";

/// Which functions of an event are annotated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Most functions; the hottest are.
    pub most: usize,
    /// Least share of the event's period, in percent.
    pub least: f64,
    /// Instructions of each.
    pub extent: ListingExtent,
}

/// Annotates the functions whose names match a pattern, or all that the query's filters take, of
/// each event within limits. Functions that share a name are apart, and so are
/// versions of one in several builds.
pub(crate) fn annotated(
    query: &Query,
    pattern: Option<&str>,
    limits: Limits,
) -> anyhow::Result<(Profile, Vec<AnnotatedEvent>)> {
    let query = by_instruction(query)?;
    let (mut profile, answered, has_branches) =
        derived::profile(&query, query.columns.clone(), SourceBranches::are_recorded)?;
    let counted = counted_events(&profile, &answered, pattern, limits);
    let is_any = counted.iter().any(|event| !event.functions.is_empty());
    let mut branches = SourceBranches::default();
    if is_any && !has_branches.is_empty() && has_branches.iter().all(|has| *has) {
        match query.sources.contains(&Source::Stdin) {
            false => branches = SourceBranches::read(&query, &mut profile.warnings)?,
            true => profile.warnings.push(Warning::new("unread-branches", UNREAD)),
        }
    }
    Ok((profile, annotated_events(counted, &query, limits, &branches)))
}

/// Annotates functions as [`annotated`] does, but for what branch stacks say, given the answer to
/// [`by_instruction`].
pub(crate) fn annotated_answer(
    profile: &Profile,
    query: &Query,
    limits: Limits,
) -> Vec<AnnotatedEvent> {
    let counted = counted_events(profile, query, None, limits);
    annotated_events(counted, query, limits, &SourceBranches::default())
}

/// Returns the query that counts the samples of each instruction.
pub(crate) fn by_instruction(query: &Query) -> anyhow::Result<Query> {
    // All formats have the CPU mode apart from the name.
    let needs = outputs::COMPANIONS;
    let columns = Column::list(COLUMNS, query.mode)?;
    let mut columns = Column::with_companions(columns, needs);
    columns.extend(
        [SortKey::FunctionPlace, SortKey::Offset].map(|key| Column { typed: String::new(), key }),
    );
    Ok(Query { needs, columns, limit: None, percent_limit: None, ..query.clone() })
}

/// An event with its functions whose samples are counted.
struct CountedEvent {
    name: String,
    total: Count,
    functions: Vec<CountedFunction>,
}

/// Returns the functions of each event within limits.
fn counted_events(
    profile: &Profile,
    query: &Query,
    pattern: Option<&str>,
    limits: Limits,
) -> Vec<CountedEvent> {
    let mut events = Vec::new();
    for table in &table::tables(profile, query) {
        let functions = hottest(table, pattern, limits);
        events.push(CountedEvent { name: table.name.to_owned(), total: table.total, functions });
    }
    events
}

/// Reads the code of the functions of all events.
fn annotated_events(
    counted: Vec<CountedEvent>,
    query: &Query,
    limits: Limits,
    branches: &SourceBranches,
) -> Vec<AnnotatedEvent> {
    let sources = SourceTexts::new(query.symbol_sources.symfs.clone());
    let mut events = Vec::new();
    for (index, CountedEvent { name, total, functions }) in counted.into_iter().enumerate() {
        let functions =
            functions.into_par_iter().map(|one| one.annotated(limits.extent, branches, &sources));
        events.push(AnnotatedEvent { index, name, total, functions: functions.collect() });
    }
    events
}

/// Returns the functions of an event's table, hottest first.
fn hottest(table: &EventTable<'_>, pattern: Option<&str>, limits: Limits) -> Vec<CountedFunction> {
    let mut all = IndexMap::<(u64, u64, u64), Vec<CountedFunction>>::new();
    for row in table.rows() {
        let Some(function) = row.function_place(PLACE) else { continue };
        if !pattern.is_none_or(|pattern| is_named(row, pattern)) {
            continue;
        }
        // Equal names of several builds are one label.
        let named = all.entry((row.cell(0), row.cell(SYMBOL), row.cell(CPU_MODE))).or_default();
        let at = named.iter().position(|one| one.place == *function).unwrap_or_else(|| {
            let [dso, symbol, cpu_mode] =
                [0, SYMBOL, CPU_MODE].map(|column| row.text(column).into_owned());
            named.push(CountedFunction {
                dso,
                symbol,
                cpu_mode,
                mangled: row.mangled(SYMBOL),
                place: function.clone(),
                count: Count::default(),
                by_address: BTreeMap::new(),
            });
            named.len() - 1
        });
        if let Some(one) = named.get_mut(at) {
            one.count.add(row.count());
            let address = function.range().start.wrapping_add(row.cell(OFFSET));
            one.by_address.entry(address).or_default().add(row.count());
        }
    }
    let mut all: Vec<CountedFunction> = all.into_values().flatten().collect();
    all.sort_by(|a, b| {
        let by_count = (b.count.period, b.count.samples).cmp(&(a.count.period, a.count.samples));
        let by_name = || (&a.dso, &a.symbol).cmp(&(&b.dso, &b.symbol));
        let by_place = || {
            let place =
                |one: &CountedFunction| (one.place.module().clone(), one.place.range().start);
            place(a).cmp(&place(b))
        };
        by_count.then_with(by_name).then_with(by_place)
    });
    all.retain(|one| share(one.count.period, table.total.period) >= limits.least);
    all.truncate(limits.most);
    all
}

/// Returns whether a name of a row's function (short, full or mangled) matches a pattern.
fn is_named(row: Row<'_>, pattern: &str) -> bool {
    matches(pattern, &row.text(SYMBOL))
        || row.full_name(SYMBOL).is_some_and(|name| matches(pattern, &name))
        || row.mangled(SYMBOL).is_some_and(|name| matches(pattern, &name))
}

/// Returns whether a name matches a pattern in which `*` stands for any characters and `?` for one.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut from) = (0, 0);
    // Where the last `*` was, and the end of what it stands for.
    let mut star: Option<(usize, usize)> = None;
    while let Some(next) = name.get(from) {
        match (pattern.get(at), star) {
            (Some('*'), _) => {
                star = Some((at, from));
                at += 1;
            }
            (Some(expected), _) if *expected == '?' || expected == next => {
                at += 1;
                from += 1;
            }
            (_, Some((place, end))) => {
                star = Some((place, end + 1));
                (at, from) = (place + 1, end + 1);
            }
            _ => return false,
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|next| *next == '*'))
}

impl CountedFunction {
    fn annotated(
        self,
        extent: ListingExtent,
        branches: &SourceBranches,
        sources: &SourceTexts,
    ) -> AnnotatedFunction {
        let (code, rows) = match listing(&self.place, &self.by_address, extent) {
            Ok(listing) => (Ok(listing.path.to_string_lossy().into_owned()), listing.rows),
            Err(reason) => {
                let row = |(address, count): (&u64, &Count)| CodeRow {
                    address: *address,
                    at: *address,
                    count: *count,
                    ..CodeRow::default()
                };
                (Err(reason.to_string()), self.by_address.iter().map(row).collect())
            }
        };
        let of_function = branches.of(self.place.module());
        let rows = rows.into_iter().map(|row| AnnotatedRow {
            source_text: row.source.as_ref().and_then(|(file, line)| sources.line(file, *line)),
            branches: of_function.and_then(|all| all.get(&row.at)).copied(),
            row,
        });
        AnnotatedFunction {
            rows: rows.collect(),
            path: self.place.module().long_name().into_owned(),
            dso: self.dso,
            symbol: self.symbol,
            cpu_mode: self.cpu_mode,
            mangled: self.mangled,
            count: self.count,
            code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name) in [
            ("f", "f"),
            ("f*", "f"),
            ("*::f", "a::b::f"),
            ("a*b*c", "axbxbyc"),
            ("f?", "fo"),
            ("*", ""),
            ("f(char*)", "f(char*)"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("f", "fo"), ("f?", "f"), ("*b", "abc"), ("", "x"), ("a*a", "a")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
