//! Cases with expected numbers, from the folder that `RECREP_DIFF_CASES` names.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Case {
    value: String,
    base: CaseSide,
    new: CaseSide,
    #[serde(default)]
    callers: BTreeMap<String, Vec<String>>,
    expect: Expected,
    tolerance: Tolerance,
}

#[derive(Deserialize)]
struct CaseSide {
    start: Vec<f64>,
    functions: Vec<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    runs: Vec<f64>,
    #[serde(default)]
    samples: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    in_turn: bool,
    mode: String,
    verdict: String,
    runs_needed: usize,
    degrees: Option<f64>,
    common: ExpectedChange,
    total: ExpectedChange,
    rows: Vec<ExpectedRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedChange {
    relative: f64,
    low: Option<f64>,
    high: Option<f64>,
    p: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedRow {
    function: String,
    status: String,
    significant: bool,
    relative: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    log: f64,
    error: f64,
    dispersion: f64,
    p: f64,
    adjusted_p: Option<f64>,
    impact: f64,
    resolution: f64,
}

#[derive(Clone, Copy, Deserialize)]
struct Tolerance {
    absolute: f64,
    relative: f64,
}

/// Differences found.
struct Differences {
    tolerance: Tolerance,
    found: Vec<String>,
}

impl Differences {
    fn number(&mut self, of: &str, found: Option<f64>, expected: Option<f64>) {
        let limit =
            |expected: f64| self.tolerance.absolute + self.tolerance.relative * expected.abs();
        let is_right = match (found, expected) {
            (Some(found), Some(expected)) => (found - expected).abs() <= limit(expected),
            (found, expected) => found.is_none() && expected.is_none(),
        };
        if !is_right {
            self.found.push(format!("{of}: {found:?} for {expected:?}"));
        }
    }

    fn word(&mut self, of: &str, found: &str, expected: &str) {
        if found != expected {
            self.found.push(format!("{of}: {found} for {expected}"));
        }
    }
}

impl Case {
    fn read(path: &Path) -> Self {
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    fn sides(&self) -> Sides {
        let functions = &self.base.functions;
        let row_of = |name: &str| functions.iter().position(|one| one.name == name).unwrap();
        let shape = (self.base.start.len(), self.new.start.len());
        let mut own = RunValues::new(functions.len(), shape.0 + shape.1);
        let mut children = RunValues::new(functions.len(), shape.0 + shape.1);
        for (side, first) in [(&self.base, 0), (&self.new, shape.0)] {
            for function in &side.functions {
                let row = row_of(&function.name);
                for (run, value) in function.runs.iter().enumerate() {
                    own.add(row, first + run, *value);
                    children.add(row, first + run, *value);
                    for caller in self.callers.get(&function.name).into_iter().flatten() {
                        children.add(row_of(caller), first + run, *value);
                    }
                }
            }
        }
        let unit = if self.value == "samples" { Unit::Samples } else { Unit::Periods };
        let runs = |side: &CaseSide| {
            let runs = side.start.iter().enumerate().map(|(run, start)| {
                let samples = side.functions.iter().map(|one| one.samples.get(run).unwrap_or(&0));
                SideRun { start: Some(*start), samples: samples.sum(), ..SideRun::default() }
            });
            runs.collect()
        };
        Sides {
            base: runs(&self.base),
            new: runs(&self.new),
            unit,
            own,
            children: (!self.callers.is_empty()).then_some(children),
            facts: Vec::new(),
            machines_differ: false,
        }
    }

    fn differences(&self) -> Vec<String> {
        let found = compare(&self.sides(), &Options::default()).unwrap();
        let mut all = Differences { tolerance: self.tolerance, found: Vec::new() };
        let expect = &self.expect;
        all.word("in turn", &found.turns.in_turn.to_string(), &expect.in_turn.to_string());
        all.word("mode", found.mode.word(), &expect.mode);
        all.word("verdict", found.verdict.word(), &expect.verdict);
        let needed = found.needed.map_or(0, |needed| needed.runs.unwrap_or(51));
        all.word("runs needed", &needed.to_string(), &expect.runs_needed.to_string());
        all.number("degrees", found.model.student.degrees(), expect.degrees);
        for (name, change, expected) in
            [("common", found.common, &expect.common), ("total", found.total, &expect.total)]
        {
            all.number(name, change.relative, Some(expected.relative));
            all.number(&format!("{name} p"), Some(change.p), Some(expected.p));
            if expected.low.is_some() {
                all.number(&format!("{name} low"), change.low, expected.low);
                all.number(&format!("{name} high"), change.high, expected.high);
            }
        }
        assert_eq!(found.rows.len(), expect.rows.len());
        for (row, expected) in found.rows.iter().zip(&expect.rows) {
            let name = |of: &str| format!("{} {of}", expected.function);
            all.word(&name("status"), row.status.word(), &expected.status);
            let (marked, significant) = (row.marked, expected.significant);
            all.word(&name("marked"), &marked.to_string(), &significant.to_string());
            all.number(&name("relative"), row.change.relative, expected.relative);
            all.number(&name("low"), row.change.low, expected.low);
            all.number(&name("high"), row.change.high, expected.high);
            all.number(&name("log"), Some(row.log), Some(expected.log));
            all.number(&name("error"), Some(row.error), Some(expected.error));
            all.number(&name("dispersion"), Some(row.dispersion), Some(expected.dispersion));
            all.number(&name("p"), Some(row.change.p), Some(expected.p));
            all.number(&name("adjusted p"), row.adjusted_p, expected.adjusted_p);
            // The cases have new rows' shares in new: impacts are of base's time.
            if expected.relative.is_some() {
                all.number(&name("impact"), Some(row.impact), Some(expected.impact));
            }
            all.number(&name("resolution"), Some(row.resolution), Some(expected.resolution));
        }
        all.found
    }
}

#[test]
fn cases_have_the_expected_numbers() {
    let Some(folder) = std::env::var_os("RECREP_DIFF_CASES") else {
        println!("skipped: RECREP_DIFF_CASES names no folder of cases");
        return;
    };
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut cases: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|name| name == "json")).collect();
    cases.sort();
    assert!(!cases.is_empty(), "no cases");
    let mut wrong = Vec::new();
    for path in &cases {
        let differences = Case::read(path).differences();
        wrong.extend(differences.into_iter().map(|one| format!("{}: {one}", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
