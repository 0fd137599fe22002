//! Evaluation of rules over comparisons of a few functions.

use crate::compare::sides::Sides;
use crate::compare::sides::tests::in_turn;
use crate::compare::{Comparison, Options, compare};

use super::*;

/// Functions, their samples a run in base, and how many times as many they have in new.
const FUNCTIONS: [(&str, f64, f64); 9] = [
    ("main", 4000.0, 1.0),
    ("parse", 800.0, 1.5),
    ("parse_line", 700.0, 1.0),
    ("format", 600.0, 0.5),
    ("eat(int)", 500.0, 1.0),
    ("eat(double)", 400.0, 1.0),
    ("hash", 300.0, 1.0),
    ("old", 200.0, 0.0),
    ("fresh", 0.0, 1.0),
];

/// Returns sides of `runs` runs each, which scatter by `spread`.
fn sides(functions: &[(&str, f64, f64)], runs: usize, spread: f64) -> Sides {
    let rows = functions.iter().enumerate().map(|(row, (_, size, factor))| {
        let value = |run: usize| {
            let sign = if (run + row).is_multiple_of(2) { 1.0 } else { -1.0 };
            let size = match (run >= runs, *size == 0.0) {
                (false, _) => *size,
                (true, false) => size * factor,
                (true, true) => 300.0 * factor,
            };
            size * (1.0 + sign * spread)
        };
        (0..2 * runs).map(value).collect()
    });
    in_turn(&rows.collect::<Vec<_>>(), runs)
}

fn compared(runs: usize, spread: f64) -> Comparison {
    compare(&sides(&FUNCTIONS, runs, spread), &Options::default()).unwrap()
}

/// Returns the facts of a comparison, or of a profile like its new side.
fn facts_of(comparison: &Comparison, is_diff: bool) -> RuleFacts<'_> {
    let rows = comparison.rows.iter().map(|row| NamedRow {
        row: row.row,
        names: vec![FUNCTIONS[row.row].0.to_owned(), format!("_Z{}", FUNCTIONS[row.row].0)],
        share: row.new_share,
    });
    let functions = KindFacts { rows: rows.collect(), comparison: is_diff.then_some(comparison) };
    let mut modules = functions.clone();
    for row in &mut modules.rows {
        row.names = vec![format!("lib{}.so", row.names[0])];
    }
    let kinds = [
        (RowKind::Own, functions.clone()),
        (RowKind::Children, functions.clone()),
        (RowKind::Dso, modules),
        (RowKind::Comm, functions),
    ];
    RuleFacts {
        kinds: kinds.into(),
        lost: 0.0005,
        unresolved: 0.02,
        broken: Some(0.1),
        samples: 40_000,
        runs: comparison.runs.0,
        doubts: Vec::new(),
    }
}

fn parsed(texts: &[&str]) -> Vec<GateRule> {
    texts
        .iter()
        .map(|text| GateRule::parse(text).unwrap_or_else(|error| panic!("{error}")))
        .collect()
}

#[track_caller]
fn outcome(facts: &RuleFacts<'_>, text: &str) -> RuleOutcome {
    let rules = parsed(&[text]);
    evaluate(&rules, facts, 0.05).unwrap().judgements[0].outcome
}

#[test]
fn every_subject_holds_and_is_violated() {
    let comparison = compared(5, 0.02);
    let facts = facts_of(&comparison, true);
    for (holds, violated) in [
        ("self(parse) > 20%", "self(parse) > 10%"),
        ("self(_Zparse) > 20%", "self(_Zparse) > 10%"),
        ("children(main) > 60%", "children(main) > 20%"),
        ("dso(libparse.so) >= 20%", "dso(libparse.so) >= 10%"),
        ("comm(pars?) < 5%", "comm(pars?) < 20%"),
        ("self(eat(int)) > 20%", "self(eat(int)) > 1%"),
        ("delta(self, parse) > 80%", "delta(self, parse) > 10%"),
        ("delta(children, parse) > 55% surely", "delta(children, parse) > 10% surely"),
        ("delta(dso, libformat.so) < -80%", "delta(dso, libformat.so) < -20%"),
        ("delta(comm, parse) > 55% any", "delta(comm, parse) > 45% any"),
        ("delta(self, parse*) > 60%", "delta(self, parse*) > 20%"),
        ("impact(self, *) > 20%", "impact(self, *) > 1%"),
        ("impact(self, parse) > 10%", "impact(self, parse) > 1% surely"),
        ("impact(self, fresh) > 20%", "impact(self, fresh) > 1% surely"),
        ("delta(self, old) > 0%", "delta(self, old) <= -100%"),
        ("delta(total) > 60%", "delta(total) > 0.5% any"),
        ("new > 10%", "new > 1%"),
        ("gone > 10%", "gone > 1%"),
        ("lost > 0.1%", "lost > 0.01%"),
        ("unresolved > 5%", "unresolved > 1%"),
        ("broken > 20%", "broken > 5%"),
        ("samples < 1000", "samples < 100000"),
        ("runs < 3", "runs <= 5"),
        ("slower > 3", "slower > 1"),
        ("faster > 2", "faster > 1"),
    ] {
        assert_eq!(outcome(&facts, holds), RuleOutcome::Holds, "{holds}");
        assert_eq!(outcome(&facts, violated), RuleOutcome::Violated, "{violated}");
    }
}

#[test]
fn all_violations_are_listed_farthest_first() {
    let comparison = compared(5, 0.02);
    let facts = facts_of(&comparison, true);
    let rules = parsed(&["impact(self, *) > 1%", "self(eat*) > 1%", "slower > 100"]);
    let report = evaluate(&rules, &facts, 0.05).unwrap();
    let names = |at: usize| -> Vec<&str> {
        let findings = report.judgements[at].findings.iter();
        findings.map(|found| found.name.as_deref().unwrap()).collect()
    };
    assert_eq!((names(0), names(1)), (vec!["parse", "fresh"], vec!["eat(int)", "eat(double)"]));
    assert!(report.judgements[0].value.is_some_and(|value| value > 0.04));
    // A rule that holds has a value, too.
    assert_eq!(report.judgements[2].value, Some(2.0));
    assert!(report.judgements[2].findings.is_empty());
    assert!(report.fails(false));
}

#[test]
fn a_single_profile_has_shares_and_no_changes() {
    let comparison = compared(5, 0.02);
    let facts = facts_of(&comparison, false);
    assert_eq!(outcome(&facts, "self(parse) > 10%"), RuleOutcome::Violated);
    for text in ["delta(self, parse) > 1%", "impact(self, *) > 1%", "new > 0", "slower > 0"] {
        let rules = parsed(&[text]);
        let error = evaluate(&rules, &facts, 0.05).unwrap_err();
        assert_eq!(error.to_string(), format!("`{text}` needs a second side to compare with"));
    }
}

#[test]
fn what_cannot_be_answered_fails() {
    let comparison = compared(5, 0.02);
    let mut facts = facts_of(&comparison, true);
    for text in ["self(nothing) > 1%", "delta(self, none*) > 1% any", "dso(parse) > 1%"] {
        let rules = parsed(&[text]);
        let report = evaluate(&rules, &facts, 0.05).unwrap();
        assert_eq!(report.judgements[0].reason, Some(Reason::NoMatch), "{text}");
        assert!(report.fails(false), "{text}");
    }
    facts.broken = None;
    assert_eq!(outcome(&facts, "broken > 100%"), RuleOutcome::Closed);
    // Two runs a side.
    let few = compared(2, 0.02);
    let few = facts_of(&few, true);
    for text in ["delta(self, hash) > 99%", "impact(self, *) > 99%", "new > 99%", "slower > 99"] {
        assert_eq!(outcome(&few, text), RuleOutcome::Closed, "{text}");
    }
    assert_eq!(outcome(&few, "delta(self, hash) > 99% any"), RuleOutcome::Holds);
    assert_eq!(outcome(&few, "self(hash) > 99%"), RuleOutcome::Holds);
    // The total of runs that someone ended.
    let mut cut = sides(&FUNCTIONS, 5, 0.02);
    cut.base[0].is_cut = true;
    let cut = compare(&cut, &Options::default()).unwrap();
    let cut = facts_of(&cut, true);
    assert_eq!(outcome(&cut, "delta(total) > 99%"), RuleOutcome::Closed);
}

#[test]
fn inputs_that_cannot_be_trusted_fail() {
    let comparison = compared(5, 0.02);
    let mut facts = facts_of(&comparison, true);
    let rules = parsed(&["self(parse) > 99%"]);
    assert!(!evaluate(&rules, &facts, 0.05).unwrap().fails(true));
    facts.doubts.push("a.data is truncated".to_owned());
    assert!(evaluate(&rules, &facts, 0.05).unwrap().fails(false));
    facts.doubts.clear();
    facts.lost = 0.002;
    let report = evaluate(&rules, &facts, 0.05).unwrap();
    assert!(report.fails(false) && report.doubts[0].starts_with("0.2 % of the samples were lost"));
    let allowed = parsed(&["self(parse) > 99%", "lost > 5%"]);
    assert!(!evaluate(&allowed, &facts, 0.05).unwrap().fails(true));
}

#[test]
fn noise_leaves_a_rule_open() {
    let comparison = compared(3, 0.4);
    let facts = facts_of(&comparison, true);
    let rules = parsed(&["delta(self, hash) > 5%"]);
    let report = evaluate(&rules, &facts, 0.05).unwrap();
    let judgement = &report.judgements[0];
    assert_eq!(
        (judgement.outcome, judgement.reason),
        (RuleOutcome::Open, Some(Reason::NotSignificant))
    );
    assert_eq!(judgement.findings[0].name.as_deref(), Some("hash"));
    assert!(!report.fails(false) && report.fails(true));
    // A change of ten times would have been seen.
    assert_eq!(outcome(&facts, "delta(self, hash) > 900%"), RuleOutcome::Holds);
    assert_eq!(outcome(&facts, "delta(self, parse) > 5% any"), RuleOutcome::Violated);
}

#[test]
fn sides_apart_are_told() {
    let mut apart = sides(&FUNCTIONS, 5, 0.02);
    apart.new.iter_mut().for_each(|run| run.start = Some(900.0));
    let comparison = compare(&apart, &Options::default()).unwrap();
    let facts = facts_of(&comparison, true);
    let compares = parsed(&["slower > 100"]);
    let shares = parsed(&["self(parse) > 99%"]);
    assert!(evaluate(&compares, &facts, 0.05).unwrap().is_apart);
    assert!(!evaluate(&shares, &facts, 0.05).unwrap().is_apart);
}

#[test]
fn a_rule_may_only_warn() {
    let comparison = compared(5, 0.02);
    let facts = facts_of(&comparison, true);
    let mut rules = parsed(&["self(parse) > 1%", "self(nothing) > 1%"]);
    rules.iter_mut().for_each(|rule| rule.warn = true);
    let report = evaluate(&rules, &facts, 0.05).unwrap();
    assert!(report.judgements.iter().all(|one| one.outcome == RuleOutcome::Warned));
    assert!(!report.fails(true));
}

/// Rows that are asked for by name are few, those of a wild card are the comparison's: a change
/// that stands out among few questions does not among many.
#[test]
fn questions_by_name_are_a_family_of_their_own() {
    let mut functions = vec![("parse", 250.0, 1.17)];
    functions.extend([("other", 250.0, 1.0); 40]);
    let comparison = compare(&sides(&functions, 5, 0.06), &Options::default()).unwrap();
    let row = &comparison.rows[0];
    assert!(row.change.p < 0.05 && !row.marked, "{row:?}");
    let rows = comparison.rows.iter().map(|row| NamedRow {
        row: row.row,
        names: vec![functions[row.row].0.to_owned()],
        share: row.new_share,
    });
    let functions = KindFacts { rows: rows.collect(), comparison: Some(&comparison) };
    let facts = RuleFacts { kinds: [(RowKind::Own, functions)].into(), ..RuleFacts::default() };
    assert_eq!(outcome(&facts, "delta(self, parse) > 5%"), RuleOutcome::Violated);
    assert_eq!(outcome(&facts, "delta(self, par*) > 5%"), RuleOutcome::Open);
    // With forty more questions it is one of many again.
    let rules = parsed(&["delta(self, parse) > 5%", "delta(self, other) > 5%"]);
    let report = evaluate(&rules, &facts, 0.05).unwrap();
    assert_eq!(report.judgements[0].outcome, RuleOutcome::Open);
}
