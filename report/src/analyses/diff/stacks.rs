//! Rows of whole callchains.

use std::collections::BTreeMap;

use super::args::DiffQuery;
use super::rows::{DiffEvent, EventLabels, Grouped, Grouping};
use crate::compare::matching::{function_text, module_key, module_text};
use crate::compare::{RunValues, Sides, Unit};
use crate::count::Count;
use crate::exports::{FoldedName, FoldedSource, FoldedStack, folded_stacks};
use crate::profile::Profile;

/// The row of all callchains that are too small to be rows.
const SMALL: &str = "(small stacks)";

/// Sums of the callchains of an event, by run: base's runs, then new's.
type Sums = BTreeMap<String, Vec<u64>>;

/// Returns the rows of an event by whole callchains.
pub(super) fn rows(grouping: &Grouping<'_>, event: &DiffEvent, asked: &DiffQuery) -> Grouped {
    let by_samples = grouping.is_even(event);
    let samples = sums(grouping, event, true);
    let sums = if by_samples { samples.clone() } else { sums(grouping, event, false) };
    let mut sides = sides(grouping, &sums, by_samples);
    let of_values = sums.values().map(|runs| split(runs, &sides)).collect();
    let mut texts: Vec<String> = sums.into_keys().collect();
    let mut of_sides: Vec<[u64; 2]> = samples.values().map(|runs| split(runs, &sides)).collect();
    if !asked.is_folded() {
        let small = sides.small_rows(asked.options.min_impact / 2.0);
        (texts, of_sides) = joined(&mut sides, &small, texts, &of_sides);
    }
    let mut totals = [Count::default(); 2];
    for (total, (places, group)) in
        totals.iter_mut().zip(event.places.iter().zip(&grouping.apart.groups))
    {
        for (place, (profile, _)) in places.iter().zip(group) {
            let of_run = place.and_then(|place| profile.events().get(place));
            of_run.into_iter().for_each(|event| total.add(event.total));
        }
    }
    Grouped {
        labels: EventLabels::of_texts(texts),
        sides,
        samples: of_sides,
        sums: of_values,
        totals,
        unresolved: 0.0,
        places: Vec::new(),
    }
}

/// Adds up the callchains of all runs.
fn sums(grouping: &Grouping<'_>, event: &DiffEvent, by_samples: bool) -> Sums {
    let runs: usize = grouping.runs.iter().map(Vec::len).sum();
    let mut sums = Sums::new();
    let sides = event.places.iter().zip(&grouping.apart.groups);
    let all = sides.flat_map(|(places, group)| places.iter().zip(group));
    for (run, (place, (profile, _))) in all.enumerate() {
        for stack in of_run(grouping, profile, by_samples) {
            if Some(stack.event) == *place {
                let of_stack = sums.entry(stack.text).or_insert_with(|| vec![0; runs]);
                of_stack.get_mut(run).into_iter().for_each(|sum| *sum += stack.sum);
            }
        }
    }
    sums
}

fn of_run(grouping: &Grouping<'_>, profile: &Profile, by_samples: bool) -> Vec<FoldedStack> {
    let names = &grouping.apart.names;
    let text: Option<fn(FoldedName<'_>) -> String> = Some(common_text);
    folded_stacks(FoldedSource { profile, query: grouping.query, names, by_samples, text })
}

/// Returns what the name of a frame has in common with those of other builds and processes.
fn common_text(name: FoldedName<'_>) -> String {
    match name {
        FoldedName::Module(module) => module_text(module),
        FoldedName::Function { module, text } => function_text(&module_key(module), text),
    }
}

#[expect(clippy::cast_precision_loss, reason = "sums are exact up to 2^53")]
fn sides(grouping: &Grouping<'_>, sums: &Sums, by_samples: bool) -> Sides {
    let [mut base, mut new] = grouping.runs.clone();
    let mut own = RunValues::new(sums.len(), base.len() + new.len());
    for (row, runs) in sums.values().enumerate() {
        for (run, sum) in runs.iter().enumerate() {
            own.add(row, run, *sum as f64);
        }
    }
    for (runs, group) in [&mut base, &mut new].into_iter().zip(&grouping.apart.groups) {
        for (run, (profile, _)) in runs.iter_mut().zip(group) {
            run.samples = profile.samples();
        }
    }
    Sides {
        base,
        new,
        unit: if by_samples { Unit::Samples } else { Unit::Periods },
        own,
        children: None,
        facts: Vec::new(),
        machines_differ: grouping.machines_differ,
    }
}

/// Returns the sums of both sides.
fn split(runs: &[u64], sides: &Sides) -> [u64; 2] {
    let base = sides.base.len();
    [runs.iter().take(base).sum(), runs.iter().skip(base).sum()]
}

/// Joins small rows to one.
fn joined(
    sides: &mut Sides,
    small: &[bool],
    texts: Vec<String>,
    samples: &[[u64; 2]],
) -> (Vec<String>, Vec<[u64; 2]>) {
    let kept = small.iter().filter(|is_small| !**is_small).count();
    let has_small = kept < small.len();
    let runs = sides.base.len() + sides.new.len();
    let mut own = RunValues::new(kept + usize::from(has_small), runs);
    let (mut names, mut of_sides, mut of_small) = (Vec::new(), Vec::new(), [0, 0]);
    for (((values, is_small), text), counts) in sides.own.rows().zip(small).zip(texts).zip(samples)
    {
        // The joined row is the last one.
        let row = if *is_small { kept } else { names.len() };
        for (run, value) in values.iter().enumerate() {
            own.add(row, run, *value);
        }
        if *is_small {
            of_small.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        } else {
            names.push(text);
            of_sides.push(*counts);
        }
    }
    if has_small {
        names.push(SMALL.to_owned());
        of_sides.push(of_small);
    }
    sides.own = own;
    (names, of_sides)
}
