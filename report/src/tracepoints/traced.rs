//! The columns of tracepoints: what a query asks of raw bytes, and the texts that were found, each once.
//!
//! ```text
//!  -s comm,prev_comm,trace   ─►  for each event: [Field(place), Text]
//!  raw bytes ─► (a worker has seen them?) ─► texts of these columns ─► one number for all of them, in the key
//! ```

use std::sync::{PoisonError, RwLock};

use indexmap::IndexSet;
use rustc_hash::FxHashMap;

use super::event::{Event, RawSample};
use super::formats::Formats;
use super::running::Running;
use crate::query::sort_key::SortKey;
use crate::query::{Ambiguous, TraceColumn};

/// What a column shows of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// The event does not have it.
    Nothing,
    Text,
    RawText,
    /// All fields, as the kernel prints them.
    Fields,
    /// A field by its place; whether as it lies in the raw bytes.
    Field(usize, bool),
}

/// What of a sample of an event is shown.
#[derive(Debug)]
struct Plan {
    parts: Vec<Part>,
    /// How many bytes are the same for what is shown: those that all events have.
    skipped: usize,
}

/// What is asked of the tracepoints of a file, and what was found.
#[derive(Debug)]
pub struct Traced<'f> {
    formats: &'f Formats,
    kernel: Running<'f>,
    keys: Vec<SortKey>,
    plans: Vec<Option<Plan>>,
    /// The texts of all columns together; the first are of samples that have none.
    found: RwLock<IndexSet<Vec<String>>>,
}

/// What one worker has seen.
#[derive(Debug, Default)]
pub struct PayloadTexts {
    /// For each event, numbers by the bytes that are shown.
    numbers: Vec<FxHashMap<Box<[u8]>, u64>>,
}

/// Where a sample has nothing to show.
const NOTHING: &str = "N/A";

impl<'f> Traced<'f> {
    /// What these columns show of events with these names. The second part tells of each column whether any event has it.
    ///
    /// # Errors
    /// A column that could mean several events.
    pub fn new(
        columns: &[(SortKey, TraceColumn)],
        names: &[String],
        formats: &'f Formats,
        kernel: Running<'f>,
    ) -> Result<(Self, Vec<bool>), Ambiguous> {
        let (keys, columns): (Vec<SortKey>, Vec<&TraceColumn>) =
            columns.iter().map(|(key, column)| (*key, column)).unzip();
        let mut meant = Vec::new();
        for column in &columns {
            meant.push(match column {
                TraceColumn::Field(spec) => Some(spec.events(names).map_err(|events| Ambiguous {
                    name: spec.event.clone().unwrap_or_default(),
                    events: events.join(", "),
                })?),
                _ => None,
            });
        }
        let plan = |(place, _): (usize, &String)| {
            let event = formats.event(place)?;
            let part = |(column, meant): (&&TraceColumn, &Option<Vec<usize>>)| {
                let is_meant = meant.as_ref().is_none_or(|meant| meant.contains(&place));
                if is_meant { part(column, event) } else { Part::Nothing }
            };
            let parts: Vec<Part> = columns.iter().zip(&meant).map(part).collect();
            let skipped = skipped(&parts, event);
            Some(Plan { parts, skipped })
        };
        let plans: Vec<Option<Plan>> = names.iter().enumerate().map(plan).collect();
        let has = |(place, column): (usize, &&TraceColumn)| {
            let shown = |plan: &Plan| plan.parts.get(place).is_some_and(|part| *part != Part::Nothing);
            !matches!(column, TraceColumn::Field(_)) || plans.iter().flatten().any(shown)
        };
        let found = columns.iter().enumerate().map(has).collect();
        let none = vec![NOTHING.to_owned(); columns.len()];
        Ok((Self { formats, kernel, keys, plans, found: RwLock::new([none].into()) }, found))
    }

    /// The number of what a sample shows.
    pub fn number(&self, event: u16, raw: Option<&[u8]>, seen: &mut PayloadTexts) -> u64 {
        let place = usize::from(event);
        let plan = self.plans.get(place).and_then(Option::as_ref);
        let (Some(plan), Some(raw), Some(format)) = (plan, raw, self.formats.event(place)) else { return 0 };
        // What is not shown does not make two payloads of one.
        let shown = raw.get(plan.skipped..).unwrap_or_default();
        seen.number(event, shown, || self.intern(format.with(raw, &self.kernel, |asked| texts(&asked, plan))))
    }

    fn intern(&self, texts: Vec<String>) -> u64 {
        let known = self.found.read().unwrap_or_else(PoisonError::into_inner).get_index_of(&texts);
        let place = match known {
            Some(place) => place,
            None => self.found.write().unwrap_or_else(PoisonError::into_inner).insert_full(texts).0,
        };
        place as u64
    }

    /// The text of a column, by the number of what a sample shows.
    #[must_use]
    pub fn text(&self, number: u64, column: SortKey) -> String {
        let place = self.keys.iter().position(|key| *key == column);
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
        let texts = usize::try_from(number).ok().and_then(|place| found.get_index(place));
        texts.and_then(|texts| texts.get(place?)).map_or_else(|| NOTHING.to_owned(), Clone::clone)
    }
}

impl PayloadTexts {
    /// More are not kept of an event: events whose bytes are never the same twice would fill the memory.
    const MOST: usize = 1 << 16;

    fn number(&mut self, event: u16, bytes: &[u8], make: impl FnOnce() -> u64) -> u64 {
        let place = usize::from(event);
        if self.numbers.len() <= place {
            self.numbers.resize_with(place + 1, FxHashMap::default);
        }
        let Some(numbers) = self.numbers.get_mut(place) else { return 0 };
        if let Some(number) = numbers.get(bytes) {
            return *number;
        }
        if numbers.len() >= Self::MOST {
            numbers.clear();
        }
        let number = make();
        numbers.insert(bytes.into(), number);
        number
    }
}

fn part(column: &TraceColumn, event: &Event) -> Part {
    match column {
        TraceColumn::Text => Part::Text,
        TraceColumn::RawText => Part::RawText,
        TraceColumn::Field(spec) if spec.is_all() && spec.is_raw => Part::RawText,
        TraceColumn::Field(spec) if spec.is_all() => Part::Fields,
        TraceColumn::Field(spec) => {
            event.place_of(&spec.field).map_or(Part::Nothing, |place| Part::Field(place, spec.is_raw))
        }
    }
}

/// How many bytes at the beginning nothing is shown of.
fn skipped(parts: &[Part], event: &Event) -> usize {
    let format = event.format();
    let common = format.common.len();
    let is_of_common = |part: &Part| matches!(part, Part::Field(place, _) if *place < common);
    if parts.iter().any(is_of_common) || format.print_fmt.contains("common_") {
        return 0;
    }
    format.fields.iter().map(|field| field.offset).min().unwrap_or(0)
}

fn texts(asked: &RawSample<'_, '_>, plan: &Plan) -> Vec<String> {
    let needs_text = plan.parts.iter().any(|part| matches!(part, Part::Text | Part::Fields | Part::Field(_, false)));
    let text = if needs_text { asked.text() } else { String::new() };
    let shown = |part: &Part| match part {
        Part::Nothing => NOTHING.to_owned(),
        Part::Text => text.clone(),
        Part::RawText => asked.fields().trim_start().to_owned(),
        Part::Fields => {
            asked.each_field(|place, name| told(&text, name).map_or_else(|| asked.field(place), str::to_owned))
        }
        Part::Field(place, true) => asked.field(*place),
        Part::Field(place, false) => told(&text, asked.name(*place)).map_or_else(|| asked.field(*place), str::to_owned),
    };
    plan.parts.iter().map(shown).collect()
}

/// What the kernel prints of a field: of a word `name=value`, the value.
fn told<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix(['=', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_in_what_is_printed() {
        let text = "prev_comm=a prev_pid=12 ==> next_comm=b next_pid:7";
        assert_eq!(told(text, "prev_pid"), Some("12"));
        assert_eq!(told(text, "next_pid"), Some("7"));
        assert_eq!(told(text, "prev_p"), None);
        assert_eq!(told(text, "pid"), None);
    }

    #[test]
    fn what_was_seen_is_asked_for_once() {
        let mut seen = PayloadTexts::default();
        assert_eq!(seen.number(0, b"a", || 7), 7);
        assert_eq!(seen.number(0, b"a", || 8), 7);
        assert_eq!(seen.number(1, b"a", || 9), 9);
        for value in 0..100_000u32 {
            seen.number(0, &value.to_le_bytes(), || 0);
        }
        assert!(seen.numbers[0].len() <= PayloadTexts::MOST);
    }
}
