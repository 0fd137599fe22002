//! The answer: rows of text with counts, of one file or of several together. This is what the views see.

use std::borrow::Cow;
use std::collections::BTreeMap;

use indexmap::{IndexMap, IndexSet};
use rayon::prelude::*;
use rustc_hash::FxBuildHasher;

use crate::aggregate::Count;
use crate::calls::Calls;
use crate::fields::{Number, Shown};
use crate::folded::Folded;
use crate::gathered::{Gathered, share};
use crate::module_use::ModuleUses;
use crate::query::Query;
use crate::recording::Recording;
use crate::unwind::Ends;
use crate::warning::Warning;

/// The number of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LabelId(u32);

/// Texts, each once.
#[derive(Debug, Default)]
pub struct Labels {
    texts: IndexSet<String>,
}

impl Labels {
    /// The number of this text.
    pub fn intern(&mut self, text: String) -> LabelId {
        LabelId(u32::try_from(self.texts.insert_full(text).0).unwrap_or(u32::MAX))
    }

    /// The text of a number.
    #[must_use]
    pub fn text(&self, id: LabelId) -> &str {
        self.texts.get_index(id.0 as usize).map_or("", String::as_str)
    }
}

/// What an input is, in numbers.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct InputSummary {
    /// Its name.
    pub path: String,
    /// How long it is.
    pub bytes: u64,
    /// How many records of each type.
    pub records: BTreeMap<String, u64>,
    /// Records that did not fit in a ring.
    pub lost_events: u64,
    /// Samples lost.
    pub lost_samples: u64,
    /// Samples that BPF filters dropped.
    pub filtered_samples: u64,
    /// Whether the recording was ended properly and all of it is here.
    pub complete: bool,
    /// How it was recorded.
    #[serde(skip)]
    pub recording: Recording,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'l> {
    /// The text of each column.
    pub columns: Vec<Cow<'l, str>>,
    /// What it has gathered.
    pub count: Count,
    /// The same with its parts.
    pub gathered: Gathered,
    /// Its share of the event's period.
    pub percent: f64,
    /// The same of what it has gathered in callchains, where that was counted.
    pub children: Option<(Count, f64)>,
    /// Its place among the event's rows, for [`Profile::calls`].
    pub place: usize,
}

impl Row<'_> {
    /// What it is sorted by.
    fn weight(&self) -> u64 {
        self.children.map_or(self.count.period, |(count, _)| count.period)
    }

    /// Its share in what it is sorted by.
    fn share(&self) -> f64 {
        self.children.map_or(self.percent, |(_, percent)| percent)
    }
}

/// An event and its rows.
#[derive(Clone, Debug)]
pub struct EventTable<'l> {
    /// Its name.
    pub name: &'l str,
    /// All its samples, in rows or not; only those in rows where shares are of these.
    pub total: Count,
    /// Its lost samples.
    pub lost_samples: u64,
    /// Its samples that a BPF filter dropped.
    pub filtered_samples: u64,
    /// By period, largest first, then by text. With children by theirs, callers before what they call.
    pub rows: Vec<Row<'l>>,
    /// The event's place in the profile.
    pub place: usize,
}

#[derive(Debug)]
struct EventRows {
    name: String,
    total: Count,
    lost_samples: u64,
    filtered_samples: u64,
    rows: IndexMap<Vec<LabelId>, Gathered, FxBuildHasher>,
}

impl EventRows {
    /// What the rows have together: what filters left.
    fn in_rows(&self) -> Count {
        let mut total = Count::default();
        self.rows.values().for_each(|gathered| total.add(gathered.count));
        total
    }
}

/// Everything that was found.
#[derive(Debug, Default)]
pub struct Profile {
    /// The inputs.
    pub inputs: Vec<InputSummary>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
    /// What else could be asked of the inputs.
    pub hints: Vec<String>,
    /// What each module is to it, where functions were asked for.
    pub module_uses: ModuleUses,
    /// The texts of all rows.
    pub labels: Labels,
    /// Callchains as lines.
    pub folded: Folded,
    /// Callchains for trees.
    pub calls: Calls,
    /// How callchains on copied stacks end.
    pub chain_ends: Ends,
    /// Whether samples were counted in their callers too.
    pub children: bool,
    /// Which columns of tracepoints any input has.
    pub traced: Vec<bool>,
    events: Vec<EventRows>,
}

impl Profile {
    /// The places of a file's events in the profile. An event of a later file with the name of one that is there is
    /// the same; a file's second event of a name is the second of that name.
    pub fn places(&mut self, names: &[String]) -> Vec<usize> {
        let mut taken = Vec::new();
        for name in names {
            let free =
                |(place, event): (usize, &EventRows)| (event.name == *name && !taken.contains(&place)).then_some(place);
            let place = self.events.iter().enumerate().find_map(free).unwrap_or_else(|| {
                let (total, rows) = (Count::default(), IndexMap::default());
                self.events.push(EventRows { name: name.clone(), total, lost_samples: 0, filtered_samples: 0, rows });
                self.events.len() - 1
            });
            taken.push(place);
        }
        taken
    }

    /// Remembers which of the columns of tracepoints an input has.
    pub fn add_traced(&mut self, found: &[bool]) {
        self.traced.resize(self.traced.len().max(found.len()), false);
        self.traced.iter_mut().zip(found).for_each(|(all, one)| *all |= one);
    }

    /// Adds to an event's totals.
    pub fn add_total(&mut self, place: usize, total: Count, lost_samples: u64, filtered_samples: u64) {
        if let Some(event) = self.events.get_mut(place) {
            event.total.add(total);
            event.lost_samples = event.lost_samples.saturating_add(lost_samples);
            event.filtered_samples = event.filtered_samples.saturating_add(filtered_samples);
        }
    }

    /// Adds to a row; its place among the event's rows.
    pub fn add_row(&mut self, place: usize, columns: Vec<LabelId>, gathered: &Gathered) -> Option<usize> {
        let entry = self.events.get_mut(place)?.rows.entry(columns);
        let row = entry.index();
        entry.or_default().add(gathered);
        Some(row)
    }

    /// The columns of tables: before the share of what is a row's own, that with its callees, where those were counted.
    #[must_use]
    pub fn shown(&self, query: &Query) -> Vec<Shown> {
        let mut shown = query.shown.clone();
        let own = Shown::Number(Number::Overhead);
        if self.children && shown.first() == Some(&own) && !shown.contains(&Shown::Number(Number::Children)) {
            shown.insert(0, Shown::Number(Number::Children));
        }
        shown
    }

    /// The tables to show: sorted, and cut as the query says.
    #[must_use]
    pub fn tables(&self, query: &Query) -> Vec<EventTable<'_>> {
        self.events.iter().enumerate().map(|(place, event)| self.table(place, event, query)).collect()
    }

    fn table<'l>(&'l self, event_place: usize, event: &'l EventRows, query: &Query) -> EventTable<'l> {
        let text = |columns: &[LabelId], count: &Count| {
            let texts = columns.iter().map(|id| self.labels.text(*id)).zip(&query.columns);
            texts
                .map(|(text, column)| if column.key.is_times_samples() { times(text, count) } else { text.into() })
                .collect()
        };
        // These are cut when they are put together.
        let is_nested = query.hierarchy || query.group;
        let total = if query.looks.relative { event.in_rows() } else { event.total };
        let percent = |count: Count| share(count.period, total.period);
        let row = |place: usize| {
            let (columns, gathered) = event.rows.get_index(place)?;
            let Gathered { count, all, .. } = *gathered;
            let children = self.children.then(|| (all, percent(all)));
            let percent = percent(count);
            Some(Row { columns: text(columns, &count), count, gathered: *gathered, percent, children, place })
        };
        let mut rows: Vec<Row<'l>> = (0..event.rows.len())
            .into_par_iter()
            .filter_map(row)
            .filter(|row| is_nested || query.percent_limit.is_none_or(|limit| row.share() >= limit))
            .collect();
        rows.par_sort_unstable_by(|a, b| {
            let by_weight = b.weight().cmp(&a.weight());
            let depth = |row: &Row<'_>| row.children.map(|_| row.gathered.depth);
            let by_children = depth(b).cmp(&depth(a));
            let by_own = b.count.period.cmp(&a.count.period);
            by_weight.then(by_children).then(by_own).then_with(|| a.columns.cmp(&b.columns))
        });
        rows.truncate(query.limit.filter(|_| !is_nested).unwrap_or(usize::MAX));
        let EventRows { name, lost_samples, filtered_samples, .. } = event;
        let (lost_samples, filtered_samples) = (*lost_samples, *filtered_samples);
        EventTable { name, total, lost_samples, filtered_samples, rows, place: event_place }
    }
}

/// What each sample has of something, as what all have together.
fn times<'l>(text: &'l str, count: &Count) -> Cow<'l, str> {
    text.parse().map_or(text.into(), |each: u64| each.saturating_mul(count.samples).to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_several_files_meet_by_name() {
        let mut profile = Profile::default();
        let names = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert_eq!(profile.places(&names(&["a", "b", "a"])), [0, 1, 2]);
        assert_eq!(profile.places(&names(&["b", "a", "c", "a"])), [1, 0, 3, 2]);
    }

    #[test]
    fn rows_are_sorted_by_period_then_by_text_and_cut() {
        let mut profile = Profile::default();
        profile.places(&["e".into()]);
        for (text, period) in [("b", 5), ("a", 5), ("c", 90), ("b", 0)] {
            let label = profile.labels.intern(text.into());
            let count = Count { samples: 1, period };
            profile.add_row(0, vec![label], &Gathered { count, ..Gathered::default() });
        }
        profile.add_total(0, Count { samples: 4, period: 100 }, 0, 0);
        let query = |line: &str| crate::args::parse(line.split(' ').map(Into::into)).unwrap();
        let shown = |line: &str| {
            let tables = profile.tables(&query(line));
            tables[0].rows.iter().map(|r| (r.columns[0].to_string(), r.percent)).collect::<Vec<_>>()
        };
        let rows = |list: &[(&str, f64)]| list.iter().map(|(t, p)| ((*t).to_owned(), *p)).collect::<Vec<_>>();
        assert_eq!(shown("rep x"), rows(&[("c", 90.0), ("a", 5.0), ("b", 5.0)]));
        assert_eq!(shown("rep --limit 2 x"), rows(&[("c", 90.0), ("a", 5.0)]));
        assert_eq!(shown("rep --percent-limit 5.1 x"), rows(&[("c", 90.0)]));
    }
}
