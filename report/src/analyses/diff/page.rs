//! What a page of two sides says of them: the verdicts of `rep diff`, and what it marks.

use super::answer::{ComparedEvent, answer};
use super::args::DiffQuery;
use super::numbers::short_interval;
use super::words::{self, Headline};
use crate::compare::RowChange;
use crate::query::{Query, Source};

/// The comparison of an event.
pub(crate) struct EventVerdict {
    pub(crate) event: String,
    pub(crate) word: &'static str,
    /// Sentences, the verdict's first.
    pub(crate) lines: Vec<String>,
    /// The marked functions, largest impact first.
    pub(crate) changes: Vec<MarkedChange>,
}

/// A function that changed.
pub(crate) struct MarkedChange {
    /// Its modules and names on both sides.
    pub(crate) names: Vec<(String, String)>,
    /// Binary logarithm of the ratio of new to base, no farther than [`FARTHEST`] from 0.
    pub(crate) change: f64,
    pub(crate) text: String,
}

/// Bound of logarithms, that of functions which only one side has.
const FARTHEST: f64 = 6.0;

/// Compares what a picture is made of, with the samples of callees if `has_chains`. Why sides cannot be
/// compared is a verdict, too.
pub(crate) fn verdicts(
    picture: &Query,
    base: &[Source],
    new: &[Source],
    has_chains: bool,
) -> Vec<EventVerdict> {
    let asked = DiffQuery::of_picture(picture, base, new, has_chains);
    let refused = |error: String| EventVerdict {
        event: picture.mode.event().unwrap_or_default().to_owned(),
        word: "NOT COMPARED",
        lines: vec![error],
        changes: Vec::new(),
    };
    match asked.and_then(|asked| {
        let answer = answer(&asked).map_err(|error| format!("{error:#}"))?;
        Ok(answer.events.iter().map(|event| EventVerdict::of(event, &asked)).collect())
    }) {
        Ok(verdicts) => verdicts,
        Err(error) => vec![refused(error)],
    }
}

impl EventVerdict {
    fn of(event: &ComparedEvent, asked: &DiffQuery) -> Self {
        let Headline { total, word, text, notes } = Headline::of(event, &asked.options);
        let marked = event.listed().into_iter().filter(|row| row.marked);
        Self {
            event: event.name.clone(),
            word,
            lines: total.into_iter().chain([text]).chain(notes).collect(),
            changes: marked.map(|row| MarkedChange::of(event, row)).collect(),
        }
    }
}

impl MarkedChange {
    fn of(event: &ComparedEvent, row: &RowChange) -> Self {
        let change = row.change.relative.map_or(FARTHEST, |relative| relative.ln_1p() / 2_f64.ln());
        let interval = match row.base > 0.0 && row.new > 0.0 {
            true => short_interval(row.change.low, row.change.high),
            false => String::new(),
        };
        let text = format!("{} {interval}", words::relative(row));
        Self {
            names: event.labels.functions(row.row),
            change: change.clamp(-FARTHEST, FARTHEST),
            text: text.trim_end().to_owned(),
        }
    }
}
