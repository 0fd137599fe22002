//! Tracepoint columns: the texts that a query shows of samples' raw bytes, each stored once.
//!
//! ```text
//!  -s comm,prev_comm,trace   ─►  for each event: [Field(index), Text]
//!  raw bytes ─► (in the worker's cache?) ─► texts of these columns ─► one number for all of them, in the key
//! ```

use std::sync::{PoisonError, RwLock};

use indexmap::IndexSet;
use rustc_hash::FxHashMap;

use super::eval::FieldValues;
use super::event::Tracepoint;
use super::formats::RecordedKernel;
use crate::query::{KeyError, SortKey, TraceColumn};

/// The content of a column for an event.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    /// The event lacks the field.
    Nothing,
    Text,
    RawText,
    /// All fields, as the kernel prints them.
    Fields,
    /// A field by index, and whether it is shown raw.
    Field(usize, bool),
}

/// The contents of all columns for an event.
#[derive(Debug)]
struct Plan {
    parts: Vec<Content>,
    /// Number of leading bytes that no column shows: those of the common fields.
    skipped: usize,
}

/// The tracepoint columns of a query for one file, and the texts found so far.
#[derive(Debug)]
pub(crate) struct Traced<'f> {
    kernel: RecordedKernel<'f>,
    keys: Vec<SortKey>,
    plans: Vec<Option<Plan>>,
    /// The distinct tuples of column texts; the first is for samples without any.
    found: RwLock<IndexSet<Vec<String>>>,
}

/// A worker's cache of the payloads it has seen.
#[derive(Debug, Default)]
pub(crate) struct PayloadTexts {
    /// For each event, the number of each payload, without its skipped bytes.
    numbers: Vec<FxHashMap<Box<[u8]>, u64>>,
}

/// Text of a column that a sample has no value for.
const NOTHING: &str = "N/A";

impl<'f> Traced<'f> {
    /// Matches the columns to the events with these names. Also returns for each column whether any
    /// event has it. Fails if a column's event name matches several events.
    pub(crate) fn new(
        columns: &[(SortKey, TraceColumn)],
        names: &[String],
        kernel: RecordedKernel<'f>,
    ) -> Result<(Self, Vec<bool>), KeyError> {
        let plan =
            |place| Some(Plan { parts: Vec::new(), skipped: kernel.formats.event(place)?.hidden });
        let mut plans: Vec<Option<Plan>> = (0..names.len()).map(plan).collect();
        let mut found = Vec::new();
        for (_, column) in columns {
            let events = match column {
                TraceColumn::Field(spec) => Some(spec.events(names).map_err(|events| {
                    KeyError::Ambiguous(spec.event.clone().unwrap_or_default(), events.join(", "))
                })?),
                _ => None,
            };
            let mut is_found = events.is_none();
            for (place, plan) in plans.iter_mut().enumerate() {
                let Some((plan, event)) = plan.as_mut().zip(kernel.formats.event(place)) else {
                    continue;
                };
                let applies = events.as_ref().is_none_or(|events| events.contains(&place));
                let part = if applies { part(column, event) } else { Content::Nothing };
                is_found |= part != Content::Nothing;
                if matches!(part, Content::Field(field, _) if field < event.common) {
                    plan.skipped = 0;
                }
                plan.parts.push(part);
            }
            found.push(is_found);
        }
        let keys = columns.iter().map(|(key, _)| *key).collect();
        let none = vec![NOTHING.to_owned(); columns.len()];
        Ok((Self { kernel, keys, plans, found: RwLock::new([none].into()) }, found))
    }

    /// Returns the number of the texts that a sample shows.
    pub(crate) fn number(&self, event: u16, raw: Option<&[u8]>, cache: &mut PayloadTexts) -> u64 {
        let place = usize::from(event);
        let plan = self.plans.get(place).and_then(Option::as_ref);
        let (Some(plan), Some(raw), Some(format)) = (plan, raw, self.kernel.formats.event(place))
        else {
            return 0;
        };
        // Payloads that differ only in bytes that are not shown are the same.
        let shown = raw.get(plan.skipped..).unwrap_or_default();
        cache.number(event, shown, || {
            self.intern(texts(format, &format.values(raw, &self.kernel), plan))
        })
    }

    fn intern(&self, texts: Vec<String>) -> u64 {
        let known = self.found.read().unwrap_or_else(PoisonError::into_inner).get_index_of(&texts);
        let place = match known {
            Some(place) => place,
            None => self.found.write().unwrap_or_else(PoisonError::into_inner).insert_full(texts).0,
        };
        place as u64
    }

    /// Returns the text of a column, by the number that [`Self::number`] returned.
    pub(crate) fn text(&self, number: u64, column: SortKey) -> String {
        let place = self.keys.iter().position(|key| *key == column);
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
        let texts = usize::try_from(number).ok().and_then(|place| found.get_index(place));
        texts.and_then(|texts| texts.get(place?)).map_or_else(|| NOTHING.to_owned(), Clone::clone)
    }
}

impl PayloadTexts {
    /// Maximum number of payloads kept per event. Payloads that never repeat would otherwise fill
    /// the memory.
    const MAX_PER_EVENT: usize = 1 << 16;

    fn number(&mut self, event: u16, bytes: &[u8], make: impl FnOnce() -> u64) -> u64 {
        let place = usize::from(event);
        if self.numbers.len() <= place {
            self.numbers.resize_with(place + 1, FxHashMap::default);
        }
        let Some(numbers) = self.numbers.get_mut(place) else { return 0 };
        if let Some(number) = numbers.get(bytes) {
            return *number;
        }
        if numbers.len() >= Self::MAX_PER_EVENT {
            numbers.clear();
        }
        let number = make();
        numbers.insert(bytes.into(), number);
        number
    }
}

fn part(column: &TraceColumn, event: &Tracepoint) -> Content {
    match column {
        TraceColumn::Text => Content::Text,
        TraceColumn::RawText => Content::RawText,
        TraceColumn::Field(spec) if spec.is_all() && spec.is_raw => Content::RawText,
        TraceColumn::Field(spec) if spec.is_all() => Content::Fields,
        TraceColumn::Field(spec) => {
            let place = event.fields.iter().position(|field| field.name == spec.field);
            place.map_or(Content::Nothing, |place| Content::Field(place, spec.is_raw))
        }
    }
}

fn texts(event: &Tracepoint, values: &FieldValues<'_>, plan: &Plan) -> Vec<String> {
    let needs_text = plan
        .parts
        .iter()
        .any(|part| matches!(part, Content::Text | Content::Fields | Content::Field(_, false)));
    let text = if needs_text { event.text_of(values) } else { String::new() };
    let printed = |place: usize| {
        let name = event.fields.get(place).map_or("", |field| field.name.as_str());
        let value = printed_value(&text, name).map(str::to_owned);
        (name, value.unwrap_or_else(|| event.field_of(values, place)))
    };
    let shown = plan.parts.iter().map(|part| match part {
        Content::Nothing => NOTHING.to_owned(),
        Content::Text => text.clone(),
        Content::RawText => event.fields_of(values).trim_start().to_owned(),
        Content::Fields => {
            let all = (event.common..event.fields.len()).map(printed);
            all.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        }
        Content::Field(place, true) => event.field_of(values, *place),
        Content::Field(place, false) => printed(*place).1,
    });
    shown.collect()
}

/// Returns the value of a field in the text that the kernel prints: of a word `name=value` or
/// `name:value`.
fn printed_value<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix(['=', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_field_in_printed_text() {
        let text = "prev_comm=a prev_pid=12 ==> next_comm=b next_pid:7";
        assert_eq!(printed_value(text, "prev_pid"), Some("12"));
        assert_eq!(printed_value(text, "next_pid"), Some("7"));
        assert_eq!(printed_value(text, "prev_p"), None);
        assert_eq!(printed_value(text, "pid"), None);
    }

    #[test]
    fn caches_payloads_up_to_a_limit() {
        let mut cache = PayloadTexts::default();
        assert_eq!(cache.number(0, b"a", || 7), 7);
        assert_eq!(cache.number(0, b"a", || 8), 7);
        assert_eq!(cache.number(1, b"a", || 9), 9);
        for value in 0..100_000u32 {
            cache.number(0, &value.to_le_bytes(), || 0);
        }
        assert!(cache.numbers[0].len() <= PayloadTexts::MAX_PER_EVENT);
    }
}
