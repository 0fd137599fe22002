//! Code that has other names on the two sides: functions that were renamed, split or joined, inlined
//! or extracted. Their rows change, though no time does.
//!
//! ```text
//!   rows that only one side has ─┐   a gone one and a new one, of like callers     renamed, moved
//!   rows that changed           ─┼─► a gone one and several new ones               split
//!                                │   a gone one and callers that gained its time   inlined
//!                                └─► a new one and callers that lost its time      extracted
//!                                               │ the sum did not change
//!                                               ▼
//!                                     rows that are compared as one
//! ```
//!
//! Only functions whose files differ can have other names. Where callchains were recorded, callers
//! must agree; else time alone tells, and more exactly. The smallest groups come first, and those
//! whose sums changed least.

use std::collections::{BTreeMap, BTreeSet};

use super::comparison::Comparison;
use super::result::RowChange;
use super::sides::{RunValues, Sides};

/// Callers of rows in each side's callchains.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowCallers {
    /// By rows, on base's and on new's side: their direct callers.
    pub(crate) of: [BTreeMap<usize, BTreeSet<usize>>; 2],
    /// Rows that are in callchains.
    pub(crate) seen: [BTreeSet<usize>; 2],
}

/// A sum that is less probable by chance has changed.
const CHANGED: f64 = 0.01;

/// Part of the moved time by which a sum may change: another name or place of code may make it
/// faster or slower.
const LOOSE: f64 = 0.25;

/// Most rows that one row's time is looked for in, and most of them that have it together.
const MOST_OTHERS: usize = 8;
const MOST_TOGETHER: usize = 4;

/// What rows of a group have to do with each other.
#[derive(Clone, Copy, PartialEq)]
enum RowRelation {
    /// They have the same callers.
    Siblings,
    /// One calls the other.
    Neighbours,
}

/// A kind of groups: a row, and others that gained what it lost, or the reverse.
struct GroupKind {
    pivot: fn(&RowChange) -> bool,
    others: fn(&RowChange) -> bool,
    relation: RowRelation,
    most: usize,
    /// Part of the moved time by which the sum may change, without and with callers that agree.
    tolerance: [f64; 2],
    needs_callers: bool,
}

fn is_one_sided(row: &RowChange) -> bool {
    row.base == 0.0 || row.new == 0.0
}

fn has_changed(row: &RowChange) -> bool {
    !is_one_sided(row) && row.change.p < CHANGED
}

fn is_marked(row: &RowChange) -> bool {
    has_changed(row) && row.marked
}

/// The kinds of groups, the surest first.
const KINDS: [GroupKind; 6] = [
    // Renamed.
    GroupKind {
        pivot: is_one_sided,
        others: is_one_sided,
        relation: RowRelation::Siblings,
        most: 1,
        tolerance: [0.0; 2],
        needs_callers: false,
    },
    // Split, or joined.
    GroupKind {
        pivot: is_one_sided,
        others: is_one_sided,
        relation: RowRelation::Siblings,
        most: MOST_TOGETHER,
        tolerance: [0.0; 2],
        needs_callers: false,
    },
    // Inlined into a caller, or extracted from it.
    GroupKind {
        pivot: has_changed,
        others: is_one_sided,
        relation: RowRelation::Neighbours,
        most: MOST_TOGETHER,
        tolerance: [0.0, LOOSE],
        needs_callers: false,
    },
    // Renamed, and made a little faster or slower.
    GroupKind {
        pivot: is_one_sided,
        others: is_one_sided,
        relation: RowRelation::Siblings,
        most: 1,
        tolerance: [LOOSE; 2],
        needs_callers: false,
    },
    // Inlined into several callers, or extracted from them.
    GroupKind {
        pivot: is_one_sided,
        others: has_changed,
        relation: RowRelation::Neighbours,
        most: MOST_TOGETHER,
        tolerance: [0.0, LOOSE],
        needs_callers: false,
    },
    // Inlined at some calls only.
    GroupKind {
        pivot: is_marked,
        others: is_marked,
        relation: RowRelation::Neighbours,
        most: 1,
        tolerance: [0.0; 2],
        needs_callers: true,
    },
];

/// A group, and how well its time agrees.
struct MovedGroup {
    rows: Vec<usize>,
    /// Probability of the change of the sum by chance.
    p: f64,
}

impl Comparison {
    /// Returns whether rows may be code that has other names, or time that moved.
    pub(crate) fn has_questions(&self, sides: &Sides) -> bool {
        let marked = self.rows.iter().filter(|row| row.marked).count();
        self.has_enough_runs()
            && (marked > 1 || self.movable(sides).any(|row| is_one_sided(row) || row.marked))
    }

    /// Finds the rows of each group that is one piece of code, the row that stands for it first.
    /// Values are those without callees, as they were compared.
    pub(crate) fn moves(&self, sides: &Sides, callers: Option<&RowCallers>) -> Vec<Vec<usize>> {
        let kinds = KINDS.iter().filter(|kind| !kind.needs_callers || callers.is_some());
        self.groups(sides, &sides.own, callers, kinds)
    }

    /// Finds the same for rows that have hardly any time of their own, after [`Self::moves`]: those
    /// that were renamed, given their values with callees, and frames that only one side has, which
    /// are one with their callers.
    pub(crate) fn moved_frames(
        &self,
        sides: &Sides,
        callers: &RowCallers,
        min_impact: f64,
    ) -> Vec<Vec<usize>> {
        let Some(children) = &sides.children else { return Vec::new() };
        let kinds = KINDS.iter().filter(|kind| kind.is_renaming());
        let mut groups = self.groups(sides, children, Some(callers), kinds);
        let own: Vec<f64> = sides.own.rows().map(|values| values.iter().sum()).collect();
        let least = own.iter().sum::<f64>() * min_impact / 2.0;
        let mut of_callers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for row in self.movable(sides).filter(|row| is_one_sided(row)) {
            let is_grouped = groups.iter().any(|group| group.contains(&row.row));
            if is_grouped || own.get(row.row).is_none_or(|own| *own > least) {
                continue;
            }
            let caller = callers.lasting(row.row, usize::from(row.base == 0.0)).into_iter().next();
            if let Some(caller) = caller {
                of_callers.entry(caller).or_default().push(row.row);
            }
        }
        groups.extend(of_callers.into_iter().map(|(caller, rows)| [vec![caller], rows].concat()));
        groups
    }

    /// Returns the rows that may have other names on the other side, and tell enough.
    fn movable(&self, sides: &Sides) -> impl Iterator<Item = &RowChange> {
        self.rows.iter().filter(|row| {
            sides.facts(row.row).is_rebuilt && row.adjusted_p.is_some() && row.impact != 0.0
        })
    }

    fn groups<'k>(
        &self,
        sides: &Sides,
        values: &RunValues,
        callers: Option<&RowCallers>,
        kinds: impl Iterator<Item = &'k GroupKind>,
    ) -> Vec<Vec<usize>> {
        if !self.has_enough_runs() {
            return Vec::new();
        }
        let mut rows: Vec<&RowChange> = self.movable(sides).collect();
        rows.sort_by(|a, b| b.impact.abs().total_cmp(&a.impact.abs()).then(a.row.cmp(&b.row)));
        let values = values.rows().collect();
        let mut finder = MoveFinder { comparison: self, sides, callers, rows, values };
        let mut found = Vec::new();
        for kind in kinds {
            while let Some(group) = finder.best(kind) {
                finder.rows.retain(|row| !group.rows.contains(&row.row));
                found.push(group.rows);
            }
        }
        found
    }
}

impl GroupKind {
    /// Returns whether its groups are of one function that has another name.
    fn is_renaming(&self) -> bool {
        self.relation == RowRelation::Siblings && self.most == 1
    }
}

impl RowCallers {
    /// Returns the nearest callers of a row on a side that both sides have.
    fn lasting(&self, row: usize, side: usize) -> BTreeSet<usize> {
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut waiting = vec![row];
        while let Some(row) = waiting.pop() {
            if !seen.insert(row) {
                continue;
            }
            for caller in self.direct(row, side) {
                match self.seen.iter().all(|side| side.contains(caller)) {
                    true => _ = found.insert(*caller),
                    false => waiting.push(*caller),
                }
            }
        }
        found
    }

    /// Returns the direct callers of a row on a side.
    fn direct(&self, row: usize, side: usize) -> impl Iterator<Item = &usize> {
        self.of.get(side).and_then(|of| of.get(&row)).into_iter().flatten()
    }

    /// Returns whether a row calls another on a side, itself or by way of functions that only this
    /// side has.
    fn calls(&self, caller: usize, callee: usize) -> bool {
        (0..2).any(|side| {
            self.lasting(callee, side).contains(&caller)
                || self.direct(callee, side).any(|direct| *direct == caller)
        })
    }
}

/// Search for groups among rows that are in none.
struct MoveFinder<'c> {
    comparison: &'c Comparison,
    sides: &'c Sides,
    callers: Option<&'c RowCallers>,
    /// By impact, largest first.
    rows: Vec<&'c RowChange>,
    /// Values of all rows by run.
    values: Vec<&'c [f64]>,
}

impl MoveFinder<'_> {
    /// Returns the best of the smallest groups of a kind.
    fn best(&self, kind: &GroupKind) -> Option<MovedGroup> {
        (1..=kind.most).find_map(|size| {
            let pivots = self.rows.iter().filter(|row| (kind.pivot)(row));
            let groups = pivots.filter_map(|pivot| self.of_pivot(pivot, kind, size));
            groups.max_by(|a, b| a.p.total_cmp(&b.p).then_with(|| b.rows.cmp(&a.rows)))
        })
    }

    /// Returns the best group of a row and so many others.
    fn of_pivot(&self, pivot: &RowChange, kind: &GroupKind, size: usize) -> Option<MovedGroup> {
        let is_other = |row: &&&RowChange| {
            (kind.others)(row)
                && (row.impact > 0.0) != (pivot.impact > 0.0)
                && self.sides.facts(row.row).class == self.sides.facts(pivot.row).class
                && self.are_related(pivot, row, kind.relation)
        };
        // Of several, each is a part; of one, any may be the nearest.
        let (most, largest) = match size {
            1 => (usize::MAX, f64::INFINITY),
            _ => (MOST_OTHERS, pivot.impact.abs()),
        };
        let others = self.rows.iter().filter(is_other).copied();
        let others: Vec<&RowChange> =
            others.filter(|row| row.impact.abs() <= largest).take(most).collect();
        let groups = subsets(others.len(), size).into_iter().filter_map(|chosen| {
            let chosen = chosen.iter().filter_map(|place| others.get(*place).copied());
            self.group(pivot, chosen.collect(), kind)
        });
        groups.max_by(|a, b| a.p.total_cmp(&b.p).then_with(|| b.rows.cmp(&a.rows)))
    }

    /// Returns the group of these rows, unless its time changed.
    fn group(
        &self,
        pivot: &RowChange,
        others: Vec<&RowChange>,
        kind: &GroupKind,
    ) -> Option<MovedGroup> {
        let mut members = vec![pivot];
        members.extend(others);
        let mut sum: Vec<f64> = Vec::new();
        for member in &members {
            let values = self.values.get(member.row).copied().unwrap_or_default();
            sum.resize(values.len(), 0.0);
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        let p = self.comparison.estimate(&sum)?.change.p;
        let left: f64 = members.iter().map(|row| row.impact).sum();
        let moved: f64 = members.iter().map(|row| row.impact.max(0.0)).sum();
        let [alone, with_callers] = kind.tolerance;
        let tolerance = if self.callers.is_some() { with_callers } else { alone };
        if p < CHANGED && left.abs() > tolerance * moved {
            return None;
        }
        // It has the name of what stayed, else of what is new; the largest one, if there are several.
        members.sort_by_key(|row| (is_one_sided(row), row.new == 0.0));
        Some(MovedGroup { rows: members.iter().map(|row| row.row).collect(), p })
    }

    fn are_related(&self, a: &RowChange, b: &RowChange, relation: RowRelation) -> bool {
        let Some(callers) = self.callers else { return true };
        match relation {
            RowRelation::Siblings => {
                let (gone, new) = if a.new == 0.0 { (a.row, b.row) } else { (b.row, a.row) };
                let (base, new) = (callers.lasting(gone, 0), callers.lasting(new, 1));
                base.is_empty() || new.is_empty() || !base.is_disjoint(&new)
            }
            RowRelation::Neighbours => callers.calls(a.row, b.row) || callers.calls(b.row, a.row),
        }
    }
}

/// Returns all choices of so many of so many things, by their places.
fn subsets(all: usize, size: usize) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new()];
    for _ in 0..size {
        let longer = found.iter().flat_map(|chosen: &Vec<usize>| {
            let first = chosen.last().map_or(0, |last| last + 1);
            (first..all).map(move |place| [chosen.as_slice(), &[place]].concat())
        });
        found = longer.collect();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::sides::tests::in_turn;
    use super::super::{Options, RowFacts, compare};
    use super::*;

    /// Returns the groups among rows of these sizes in base and in new, of two builds.
    fn moves(sizes: &[(f64, f64)], callers: Option<&RowCallers>) -> Vec<Vec<usize>> {
        let steady = [(2000.0, 2000.0), (700.0, 700.0), (500.0, 500.0), (300.0, 300.0)];
        let value = |(row, (base, new)): (usize, &(f64, f64))| -> Vec<f64> {
            let sign = |run: usize| if (run + row).is_multiple_of(2) { 1.01 } else { 0.99 };
            (0..10).map(|run| if run < 5 { base } else { new } * sign(run)).collect()
        };
        let all: Vec<Vec<f64>> = sizes.iter().chain(&steady).enumerate().map(value).collect();
        let mut sides = in_turn(&all, 5);
        sides.facts = vec![RowFacts { is_rebuilt: true, ..RowFacts::default() }; all.len()];
        let comparison = compare(&sides, &Options::default()).unwrap();
        let mut found = comparison.moves(&sides, callers);
        found.sort();
        found
    }

    #[test]
    fn a_renamed_function_is_one_of_like_time() {
        assert_eq!(moves(&[(500.0, 0.0), (0.0, 510.0)], None), [[1, 0]]);
        assert_eq!(moves(&[(500.0, 0.0), (0.0, 200.0), (0.0, 505.0)], None), [[2, 0]]);
        // Each has its own, though nothing else tells them apart.
        let found = moves(&[(500.0, 0.0), (300.0, 0.0), (0.0, 305.0), (0.0, 495.0)], None);
        assert_eq!(found, [[2, 1], [3, 0]]);
        // A little slower by its new place, but not twice as slow.
        assert_eq!(moves(&[(500.0, 0.0), (0.0, 580.0)], None), [[1, 0]]);
        assert!(moves(&[(500.0, 0.0), (0.0, 1000.0)], None).is_empty());
        assert!(moves(&[(500.0, 500.0), (400.0, 600.0)], None).is_empty());
    }

    #[test]
    fn parts_of_a_function_have_its_time_together() {
        assert_eq!(moves(&[(600.0, 0.0), (0.0, 400.0), (0.0, 200.0)], None), [[1, 2, 0]]);
        assert_eq!(moves(&[(0.0, 600.0), (400.0, 0.0), (200.0, 0.0)], None), [[0, 1, 2]]);
        // Inlined into one and into two callers, extracted from one.
        assert_eq!(moves(&[(300.0, 700.0), (400.0, 0.0)], None), [[0, 1]]);
        assert_eq!(moves(&[(300.0, 600.0), (200.0, 400.0), (500.0, 0.0)], None), [[0, 1, 2]]);
        assert_eq!(moves(&[(700.0, 300.0), (0.0, 400.0)], None), [[0, 1]]);
        // What changed beside it stays a change.
        let found = moves(&[(300.0, 700.0), (400.0, 0.0), (600.0, 720.0)], None);
        assert_eq!(found, [[0, 1]]);
    }

    #[test]
    fn callers_tell_functions_of_like_time_apart() {
        // Rows 4 and 5 call rows 0 and 1 in base, rows 3 and 2 in new.
        let of = |pairs: [(usize, usize); 2]| {
            pairs.map(|(callee, caller)| (callee, BTreeSet::from([caller]))).into()
        };
        let seen = [[0, 1, 4, 5].into(), [2, 3, 4, 5].into()];
        let callers = RowCallers { of: [of([(0, 4), (1, 5)]), of([(2, 5), (3, 4)])], seen };
        let sizes = [(500.0, 0.0), (500.0, 0.0), (0.0, 500.0), (0.0, 500.0)];
        assert_eq!(moves(&sizes, Some(&callers)), [[2, 1], [3, 0]]);
        // One of another caller is another function.
        let callers = RowCallers { of: [of([(0, 4), (1, 4)]), of([(2, 5), (3, 5)])], ..callers };
        assert!(moves(&sizes, Some(&callers)).is_empty());
        // Time that moved between functions that do not call each other is a change.
        assert!(moves(&[(300.0, 700.0), (400.0, 0.0)], Some(&RowCallers::default())).is_empty());
        let seen = [[0, 1].into(), [0].into()];
        let callers = RowCallers { of: [of([(1, 0), (1, 0)]), BTreeMap::new()], seen };
        assert_eq!(moves(&[(300.0, 650.0), (400.0, 0.0)], Some(&callers)), [[0, 1]]);
    }

    #[test]
    fn subsets_are_all_choices() {
        assert_eq!(subsets(3, 2), [[0, 1], [0, 2], [1, 2]]);
        assert!(subsets(1, 2).is_empty());
    }
}
