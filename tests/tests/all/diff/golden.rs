//! Cases with expected numbers, from recordings with these counts. The folder is that of
//! `RECREP_DIFF_CASES`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::{Recording, Samples, Sides, name, with_chains};

#[derive(Deserialize)]
struct Case {
    value: String,
    base: CaseSide,
    new: CaseSide,
    #[serde(default)]
    callers: BTreeMap<String, Vec<String>>,
    expect: Value,
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
    runs: Vec<u64>,
    #[serde(default)]
    samples: Vec<u64>,
}

#[derive(Clone, Copy, Deserialize)]
struct Tolerance {
    absolute: f64,
    relative: f64,
}

impl Case {
    fn sides(&self) -> Sides {
        let side = |side: usize| if side == 0 { &self.base } else { &self.new };
        Sides::write(self.base.start.len(), self.new.start.len(), |of, run| {
            let event = Recording::event("cpu-clock", 4000);
            let has_chains = !self.callers.is_empty();
            let event = if has_chains { with_chains(event) } else { event };
            let mut recording = Recording::with_event(event, side(of).start[run]);
            recording.has_chains = has_chains;
            for (number, function) in side(of).functions.iter().enumerate() {
                recording = recording.samples(&self.samples(number, function, run));
            }
            recording
        })
    }

    /// The samples of a function in a run; sums of periods are spread over their samples.
    fn samples(&self, number: usize, function: &Function, run: usize) -> Vec<Samples> {
        let place = |name: &String| {
            self.base.functions.iter().position(|one| one.name == *name).unwrap() as u64
        };
        let callers = self.callers.get(&function.name).into_iter().flatten();
        let callers: Vec<u64> = callers.map(place).collect();
        let of = |count: u64, period: u64| Samples {
            function: number as u64,
            count,
            period,
            callers: callers.clone(),
        };
        if self.value == "samples" {
            return vec![of(function.runs[run], 250_000)];
        }
        let (sum, count) = (function.runs[run], function.samples[run]);
        let (Some(each), Some(rest)) = (sum.checked_div(count), sum.checked_rem(count)) else {
            return Vec::new();
        };
        vec![of(rest, each + 1), of(count - rest, each)]
    }

    fn differences(&self) -> Vec<String> {
        let sides = self.sides();
        let options: &[&str] = if self.callers.is_empty() {
            &["-s", "symbol"]
        } else {
            &["-s", "symbol", "--children"]
        };
        let found = sides.json(options);
        let event = &found["events"][0];
        let expect = &self.expect;
        let mut wrong = Vec::new();
        let mut same = |what: &str, found: &Value, expected: &Value| {
            let is_same = match (found.as_f64(), expected.as_f64()) {
                (Some(found), Some(expected)) => {
                    let limit = self.tolerance.absolute + self.tolerance.relative * expected.abs();
                    (found - expected).abs() <= limit
                }
                _ => found == expected,
            };
            if !is_same {
                wrong.push(format!("{what}: {found} for {expected}"));
            }
        };
        same("in turn", &found["in_turn"], &expect["in_turn"]);
        same("mode", &found["normalized_by"], &expect["mode"]);
        same("verdict", &found["verdict"], &expect["verdict"]);
        same("runs needed", &found["needed"]["runs"], &expect["runs_needed"]);
        same("degrees", &event["degrees"], &expect["degrees"]);
        for change in ["common", "total"] {
            for part in ["relative", "p"] {
                same(change, &event[change][part], &expect[change][part]);
            }
        }
        let rows = event["rows"].as_array().unwrap();
        assert_eq!(rows.len(), expect["rows"].as_array().unwrap().len());
        for (number, function) in self.base.functions.iter().enumerate() {
            let expected = expect["rows"].as_array().unwrap().iter();
            let expected = expected.clone().find(|row| row["function"] == *function.name);
            let Some(expected) = expected else { continue };
            let key = name(number as u64);
            let row = rows.iter().find(|row| row["key"]["symbol"] == *key);
            let row = row.unwrap_or_else(|| panic!("no row {key}: {found}"));
            let what = |of: &str| format!("{} {of}", function.name);
            same(&what("status"), &row["status"], &expected["status"]);
            let parts = ["significant", "relative", "low", "high", "p", "adjusted_p"];
            // The cases have new rows' shares in new: impacts are of base's time.
            let impact = Some("impact").filter(|_| !expected["relative"].is_null());
            for part in parts.into_iter().chain(impact).chain(["resolution"]) {
                same(&what(part), &row["change"][part], &expected[part]);
            }
        }
        wrong
    }
}

#[test]
fn cases_have_the_expected_numbers_from_recordings() {
    let Some(folder) = std::env::var_os("RECREP_DIFF_CASES") else {
        println!("skipped: RECREP_DIFF_CASES names no folder of cases");
        return;
    };
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let is_case = |path: &std::path::PathBuf| path.extension().is_some_and(|name| name == "json");
    let mut cases: Vec<_> = files.filter(is_case).collect();
    cases.sort();
    assert!(!cases.is_empty(), "no cases");
    let mut wrong = Vec::new();
    for path in &cases {
        let case = read(path);
        let differences = case.differences();
        wrong.extend(differences.into_iter().map(|one| format!("{}: {one}", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn read(path: &Path) -> Case {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
