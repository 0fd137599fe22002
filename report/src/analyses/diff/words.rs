//! Sentences of comparisons: the verdict, what was taken out of the rows, how the sides were
//! recorded, and what would tell more.

use super::answer::ComparedEvent;
use super::numbers::{change, change_cell, counted, interval, length, percent, short_interval};
use super::rows::JoinedRows;
use crate::compare::{
    Comparison, LEAST_RUNS, Needed, Normalization, Normalize, Options, RowChange, Status, Verdict,
};

/// How to record both sides so that changes can be told from the machine's drift.
pub(super) const LOOP: &str = "\
for i in 1 2 3 4 5; do rec -q -o base.$i.data -- ./base/app ARGS; rec -q -o new.$i.data -- ./new/app ARGS; done
rep diff base.*.data -- new.*.data";

/// Distance from 1 from which on the common change is that of runs of a fixed length.
const FIXED_LENGTH: f64 = 1.0 / 3.0;

/// Returns the word of a verdict.
fn verdict(verdict: Verdict) -> &'static str {
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

/// What is said of an event first.
pub(super) struct Headline {
    /// The total, where the verdict does not have it.
    pub(super) total: Option<String>,
    /// The word of the verdict, and its sentences.
    pub(super) word: &'static str,
    pub(super) text: String,
    /// Sentences on what hides changes, or seems to be one.
    pub(super) notes: Vec<String>,
}

impl Headline {
    pub(super) fn of(event: &ComparedEvent, options: &Options) -> Self {
        let comparison = &event.comparison;
        let is_first = comparison.verdict == Verdict::TooFewSamples;
        let sentences = [sentence(event, options), mode(comparison)];
        Self {
            total: total(comparison).filter(|_| is_first),
            word: verdict(comparison.verdict),
            text: sentences.join(" ").trim_end().to_owned(),
            notes: joined(event).into_iter().chain(order(comparison)).collect(),
        }
    }
}

/// Returns the sentence of the verdict.
fn sentence(event: &ComparedEvent, options: &Options) -> String {
    let comparison = &event.comparison;
    match comparison.verdict {
        Verdict::Changed => changed(event),
        Verdict::Same => {
            let resolve = percent(options.resolve);
            let noun = event.noun;
            let large = comparison.rows.iter().any(|row| row.mean_share() >= LARGE);
            let seen = match large {
                true => format!("any {noun} of 5 % or more"),
                false => format!("the largest {noun}"),
            };
            let total = total(comparison).map_or_else(String::new, |total| format!(" {total}"));
            format!("No change. {resolve} or more in {seen} would have been seen.{total}")
        }
        Verdict::TooFewSamples => too_few(event),
    }
}

/// Returns the name of a row for sentences.
pub(super) fn name(event: &ComparedEvent, row: usize) -> String {
    event.labels.subject(row).to_owned()
}

/// Returns the names of rows for sentences, separated by commas.
fn names(event: &ComparedEvent, rows: &[usize]) -> String {
    rows.iter().map(|row| name(event, *row)).collect::<Vec<String>>().join(", ")
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
    let total = total(comparison).map_or_else(String::new, |total| format!(" {total}"));
    rows + &total
}

/// Returns the sentence of all samples; `None` if they say how long runs were let run.
fn total(comparison: &Comparison) -> Option<String> {
    let total = comparison.shown_total;
    let relative = total.relative.filter(|_| !comparison.is_cut)?;
    Some(format!("Total {} {}.", change(relative), short_interval(total.low, total.high)))
}

/// Most groups of rows that a sentence names.
const JOINED: usize = 5;

/// Returns what is compared as one piece of code, though it has other names on the two sides.
fn joined(event: &ComparedEvent) -> Option<String> {
    let all = &event.causes.joined;
    let groups = all.iter().take(JOINED).map(|(row, joined)| {
        let others = lineage(event, joined);
        format!("{} ({others})", name(event, *row))
    });
    let groups = groups.collect::<Vec<String>>().join("; ");
    let more = all.len().saturating_sub(JOINED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    (!all.is_empty())
        .then(|| format!("Same code under other names, compared as one: {groups}{more}."))
}

/// Returns what else a row stands for.
fn lineage(event: &ComparedEvent, joined: &JoinedRows) -> String {
    let JoinedRows { is_in_base, gone, new, both } = joined;
    let mut parts = Vec::new();
    match is_in_base {
        _ if gone.is_empty() => {}
        true => parts.push(format!("with {}, only in base", names(event, gone))),
        false => parts.push(format!("was {}", names(event, gone))),
    }
    if !new.is_empty() {
        parts.push(format!("with {}, only in new", names(event, new)));
    }
    if !both.is_empty() {
        parts.push(format!("with {}", names(event, both)));
    }
    parts.join("; ")
}

fn too_few(event: &ComparedEvent) -> String {
    let comparison = &event.comparison;
    if !comparison.has_enough_runs() {
        let least = comparison.runs.0.min(comparison.runs.1);
        let runs = if least == 1 { "One run".to_owned() } else { format!("{least} runs") };
        return format!("{runs} a side cannot be judged: record 5 runs a side in turn.");
    }
    let rows = || comparison.rows.iter().filter(|row| comparison.unresolved.contains(&row.row));
    let worst = rows().map(|row| row.resolution).fold(0.0, f64::max);
    // The smallest one asks for most samples, as a rule.
    let smallest = rows().min_by(|a, b| a.mean_share().total_cmp(&b.mean_share()));
    let Some(smallest) = smallest else { return String::new() };
    let others = match comparison.unresolved.len().saturating_sub(1) {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let (name, share) = (name(event, smallest.row), percent(smallest.mean_share()));
    let least = percent(worst);
    let needed = comparison.needed.map(|needed| needs(comparison, needed));
    format!(
        "{name} ({share} of the time){others}: a change below {least} would not have been seen; {}.",
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
fn mode(comparison: &Comparison) -> String {
    let common = comparison.common;
    let shared = common.relative.map_or_else(|| change(0.0), change);
    match comparison.mode {
        Normalization::Noise if shared == change(0.0) => String::new(),
        Normalization::Noise => format!(
            "Rows and total are without {shared} that all functions have in common: runs of one \
             side differ by as much."
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
fn order(comparison: &Comparison) -> Option<String> {
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

/// Samples of both sides below which a row's change is not printed: it could be anything.
const TELLING: f64 = 20.0;

/// Share of the time from which on a row is large.
const LARGE: f64 = 0.05;

/// Returns the change of a row; empty if it has hardly any samples.
pub(super) fn relative(row: &RowChange) -> String {
    match (row.status, row.change.relative) {
        (Status::Gone, _) => "gone".into(),
        (Status::New, _) => "new".into(),
        _ if row.base + row.new < TELLING => String::new(),
        (_, Some(part)) => change_cell(part),
        (_, None) => "new".into(),
    }
}

/// Returns the interval of a row's change; empty if it has hardly any samples, or only one side has.
pub(super) fn row_interval(row: &RowChange) -> String {
    match row.base == 0.0 || row.new == 0.0 || row.base + row.new < TELLING {
        true => String::new(),
        false => interval(row.change.low, row.change.high),
    }
}

/// Returns the rows that are printed though they are not marked: those of 5 % or more; with too few
/// runs to mark any, those that changed beyond how much runs are assumed to differ.
pub(super) fn is_listed(row: &RowChange, comparison: &Comparison, options: &Options) -> bool {
    let is_told = match comparison.has_enough_runs() {
        true => row.mean_share() >= LARGE,
        false => {
            row.adjusted_p.is_some_and(|p| p < options.level)
                && row.impact.abs() >= options.min_impact
        }
    };
    is_told && !row.marked
}

/// Returns what is said of a row after its names: other names that it had, and what callchains tell.
pub(super) fn cause(event: &ComparedEvent, row: &RowChange) -> String {
    let mut text = String::new();
    let (status, row) = (row.status, row.row);
    if let Some(joined) = event.causes.joined.get(&row) {
        text.push_str(&format!("   {}", lineage(event, joined)));
    } else if status == Status::Renamed
        && let Some(was) = event.labels.names(row).first()
    {
        text.push_str(&format!("   was {was}"));
    }
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
        text.push_str(&format!("   time moved {word} {}?", name(event, other)));
        let together = moved.together.and_then(|together| together.change.relative);
        text.push_str(
            &together.map_or_else(String::new, |both| format!(" {} together", change(both))),
        );
    }
    text
}
