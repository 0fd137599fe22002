//! Sentences of comparisons: the verdict, what was taken out of the rows, how the sides were
//! recorded, and what would tell more.

use super::answer::{ComparedEvent, DiffAnswer};
use super::numbers::{change, counted, length, percent, short_interval, signed};
use crate::compare::{
    Comparison, LEAST_RUNS, Needed, Normalization, Normalize, RowChange, Status, Verdict,
};

/// How to record both sides so that changes can be told from the machine's drift.
pub(super) const LOOP: &str = "\
for i in 1 2 3 4 5; do rec -q -o base.$i.data -- ./base/app ARGS; rec -q -o new.$i.data -- ./new/app ARGS; done
rep diff base.*.data -- new.*.data";

/// Most rows that a verdict names.
const NAMED: usize = 3;

/// Distance from 1 from which on the common change is that of runs of a fixed length.
const FIXED_LENGTH: f64 = 1.0 / 3.0;

/// Returns the word of a verdict.
pub(super) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Changed => "CHANGED",
        Verdict::Same => "SAME",
        Verdict::TooFewSamples => "TOO FEW SAMPLES",
    }
}

/// Returns how the sides were recorded, for the heading.
pub(super) fn recorded(comparison: &Comparison) -> String {
    let turns = comparison.turns;
    match turns.apart_seconds {
        _ if turns.in_turn => "recorded in turn".into(),
        None => "recorded in unknown order".into(),
        Some(seconds) => format!("recorded {} apart", length(seconds)),
    }
}

/// Returns the sentence of the verdict.
pub(super) fn sentence(event: &ComparedEvent, answer: &DiffAnswer<'_>) -> String {
    let comparison = &event.comparison;
    match comparison.verdict {
        Verdict::Changed => changed(event),
        Verdict::Same => {
            let resolve = percent(answer.asked.options.resolve);
            let noun = event.noun;
            let large = comparison.rows.iter().any(|row| row.mean_share() >= 0.05);
            match large {
                true => format!(
                    "No change. {resolve} or more in any {noun} of 5 % or more would have been seen."
                ),
                false => format!(
                    "No change. {resolve} or more in the largest {noun} would have been seen."
                ),
            }
        }
        Verdict::TooFewSamples => too_few(event),
    }
}

/// Returns the name of a row for sentences.
pub(super) fn name(event: &ComparedEvent, row: usize) -> String {
    event
        .rows
        .get(row)
        .map_or_else(String::new, |row| row.cells.get(row.subject).cloned().unwrap_or_default())
}

fn changed(event: &ComparedEvent) -> String {
    let comparison = &event.comparison;
    let marked: Vec<&RowChange> = comparison.rows.iter().filter(|row| row.marked).collect();
    let slower = marked.iter().filter(|row| row.log > 0.0).count();
    let faster = marked.len() - slower;
    let all = counted(comparison.rows.len(), event.noun);
    let rows = match (slower, faster) {
        (0, 0) => format!("No single one of {all}."),
        (slower, 0) => format!("{slower} of {all} slower."),
        (0, faster) => format!("{faster} of {all} faster."),
        (slower, faster) => format!("{slower} of {all} slower, {faster} faster."),
    };
    rows + &total(comparison)
}

/// Returns the sentence of all samples; empty if they say how long runs were let run.
fn total(comparison: &Comparison) -> String {
    let total = comparison.total;
    match total.relative {
        Some(relative) if !comparison.is_cut => {
            format!(" Total {} {}.", change(relative), short_interval(total.low, total.high))
        }
        _ => String::new(),
    }
}

fn too_few(event: &ComparedEvent) -> String {
    let comparison = &event.comparison;
    if !comparison.has_enough_runs() {
        let least = comparison.runs.0.min(comparison.runs.1);
        let runs = if least == 1 { "One run".to_owned() } else { format!("{least} runs") };
        return format!("{runs} a side cannot be judged: record 5 runs a side in turn.");
    }
    let unresolved = || {
        let rows = comparison.unresolved.iter();
        rows.filter_map(|row| comparison.rows.iter().find(|found| found.row == *row))
    };
    let named: Vec<String> = unresolved()
        .take(NAMED)
        .map(|row| {
            let share = percent(row.mean_share());
            format!("{} ({share} of the time)", name(event, row.row))
        })
        .collect();
    let others = unresolved().count() - named.len();
    let others = if others > 0 { format!(" and {others} more") } else { String::new() };
    let worst = unresolved().map(|row| row.resolution).fold(0.0, f64::max);
    let needed = comparison.needed.map(|needed| needs(comparison, needed));
    format!(
        "{}{others}: a change below {} would not have been seen; {}.",
        named.join(", "),
        percent(worst),
        needed.unwrap_or_default()
    )
}

/// Returns what would resolve the rows.
fn needs(comparison: &Comparison, needed: Needed) -> String {
    if !comparison.turns.in_turn {
        return "more runs do not help: record in turn".into();
    }
    let had = comparison.runs.0.min(comparison.runs.1);
    let of_length = match needed.seconds {
        Some(seconds) => format!(" a side of {}", length(seconds)),
        None => " a side".into(),
    };
    let restless = "more samples a run do not help, more runs do";
    match needed.runs {
        None if needed.is_restless => format!("more than 50 runs{of_length} ({restless})"),
        None => format!("more than 50 runs{of_length}"),
        Some(runs) => {
            let more = runs.saturating_sub(had).max(1);
            let plural = if more == 1 { "" } else { "s" };
            let more = format!("about {more} more run{plural}{of_length}");
            match needed.is_restless {
                true => format!("{more} ({restless})"),
                false => format!("{more}, or runs {} times as long", ratio(runs, had)),
            }
        }
    }
}

/// Returns a ratio of numbers of runs with one decimal, rounded up.
fn ratio(a: usize, b: usize) -> String {
    let tenths = (a * 10).div_ceil(b.max(1));
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        _ => format!("{}.{}", tenths / 10, tenths % 10),
    }
}

/// Returns what was taken out of the rows.
pub(super) fn mode(comparison: &Comparison) -> String {
    let common = comparison.common;
    let shared = common.relative.map_or_else(|| change(0.0), change);
    match comparison.mode {
        Normalization::Noise => format!(
            "All functions share {shared}, no more than runs differ among themselves; it is left \
             out."
        ),
        Normalization::Relative if is_of_fixed_length(comparison) => {
            format!("The runs have a fixed length. Rows show changes beyond the common {shared}.")
        }
        Normalization::Relative => format!(
            "All functions share {shared}: build, machine or frequency. Rows show what goes beyond \
             it."
        ),
        Normalization::Absolute => match (common.low, common.high) {
            (Some(low), Some(high)) => {
                let ends = [low, high].map(|end| format!("{:.0}", end * 100.0).replace('-', "−"));
                format!("Times are absolute. All functions share {shared} [{}].", ends.join(", "))
            }
            _ => "Times are absolute.".into(),
        },
        Normalization::Share | Normalization::Asked(Normalize::Share) => {
            "Rows are parts of all samples: if one grows, others shrink.".into()
        }
        Normalization::Asked(Normalize::None) => {
            "Times are absolute, and nothing is taken out.".into()
        }
        Normalization::Asked(Normalize::Common) => {
            format!("All functions share {shared}. Rows show what goes beyond it.")
        }
        Normalization::Asked(Normalize::Time) => {
            "Rows are samples a second of the runs' lengths.".into()
        }
    }
}

/// Returns whether the runs took as long on both sides though all functions changed.
fn is_of_fixed_length(comparison: &Comparison) -> bool {
    let [common, total] = [comparison.common, comparison.total]
        .map(|change| change.relative.unwrap_or_default().ln_1p().abs());
    comparison.is_cut || total < common * FIXED_LENGTH
}

/// Returns what the order of the recordings hides, if it does.
pub(super) fn order(comparison: &Comparison) -> Option<String> {
    let turns = comparison.turns;
    if turns.in_turn {
        return None;
    }
    let drift = "changes below about 2x cannot be told from the machine's drift.";
    Some(match turns.apart_seconds {
        Some(seconds) => {
            format!("Sides were recorded {} apart, not in turn: {drift}", length(seconds))
        }
        None => format!("It is not known whether the sides were recorded in turn: {drift}"),
    })
}

/// Returns whether it is worth telling how to record in turn.
pub(super) fn tells_loop(comparison: &Comparison) -> bool {
    !comparison.turns.in_turn || comparison.runs.0.min(comparison.runs.1) < LEAST_RUNS
}

/// Returns the change of a row.
pub(super) fn relative(row: &RowChange) -> String {
    match (row.status, row.change.relative) {
        (Status::Gone, _) => "gone".into(),
        (_, Some(part)) => format!("{} %", signed(part, 1)),
        (_, None) => "new".into(),
    }
}

/// Returns the rows that are printed though they are not marked: those of 5 % or more, and with too
/// few runs to mark any, those of the largest impact.
pub(super) fn is_listed(row: &RowChange, comparison: &Comparison) -> bool {
    !row.marked && (row.mean_share() >= 0.05 || !comparison.has_enough_runs())
}

/// Returns what callchains say of a row, after its names; empty if they say nothing.
pub(super) fn cause(event: &ComparedEvent, row: usize) -> String {
    let mut text = String::new();
    if let Some(callees) = event.causes.because.get(&row) {
        let callees: Vec<String> = callees.iter().map(|callee| name(event, *callee)).collect();
        text.push_str(&format!("   because of {}", callees.join(", ")));
    }
    for moved in &event.causes.moved {
        let (word, other) = match row {
            row if row == moved.from => ("to", moved.to),
            row if row == moved.to => ("from", moved.from),
            _ => continue,
        };
        text.push_str(&format!("   moved? {word} {}", name(event, other)));
        let together = moved.together.and_then(|together| together.change.relative);
        text.push_str(
            &together.map_or_else(String::new, |both| format!(", both {}", change(both))),
        );
    }
    text
}
