//! What rules need to be counted: columns and callchains.

use std::collections::BTreeSet;

use crate::cli::Gates;
use crate::compare::rules::{RowKind, RuleSubject};
use crate::query::{Column, SortKey};

/// Returns the kind of rows that a subject is about, if it is about rows.
fn kind(subject: &RuleSubject) -> Option<RowKind> {
    match subject {
        RuleSubject::Share(kind, _)
        | RuleSubject::Delta(kind, _)
        | RuleSubject::Impact(kind, _) => Some(*kind),
        RuleSubject::Lost | RuleSubject::Samples | RuleSubject::Runs => None,
        // Functions that are new, gone, slower or faster, those without a name or callers.
        _ => Some(RowKind::Own),
    }
}

/// Returns the kinds of rows that rules are about.
pub(super) fn kinds(gates: &Gates) -> BTreeSet<RowKind> {
    gates.rules.rules.iter().filter_map(|rule| kind(&rule.subject)).collect()
}

/// Returns the columns of a kind of rows.
pub(super) fn keys(kind: RowKind) -> &'static [(&'static str, SortKey)] {
    match kind {
        RowKind::Own | RowKind::Children => {
            &[("dso", SortKey::Dso), ("symbol", SortKey::Symbol), ("cpumode", SortKey::CpuMode)]
        }
        RowKind::Dso => &[("dso", SortKey::Dso)],
        RowKind::Comm => &[("comm", SortKey::Comm)],
    }
}

/// Adds the columns that the rules need.
pub(super) fn add_columns(columns: &mut Vec<Column>, gates: &Gates) {
    for (name, key) in kinds(gates).into_iter().flat_map(keys) {
        if columns.iter().all(|have| have.key != *key) {
            columns.push(Column { typed: (*name).into(), key: *key });
        }
    }
}

/// Returns whether a rule is about callchains.
pub(super) fn need_chains(gates: &Gates) -> bool {
    kinds(gates).contains(&RowKind::Children)
        || gates.rules.rules.iter().any(|rule| rule.subject == RuleSubject::Broken)
}
