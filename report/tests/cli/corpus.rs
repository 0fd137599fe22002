//! Real recordings against what perf says of them: runs where `RECREP_CORPUS` names a directory with such files and their
//! goldens (`golden/NAME.json`: record counts, samples for each event, rows by comm and dso).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{json, run};
use serde_json::Value;

type Rows = BTreeMap<String, (u64, u64)>;

#[test]
fn histograms_by_comm_and_dso_agree_with_perf() {
    let Some(corpus) = std::env::var_os("RECREP_CORPUS") else {
        eprintln!("did not run: RECREP_CORPUS names no directory");
        return;
    };
    let corpus = Path::new(&corpus);
    let (mut files, mut compared) = (0, 0);
    for entry in fs::read_dir(corpus.join("golden")).unwrap() {
        let golden: Value = serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
        let name = golden["file"].as_str().unwrap();
        files += 1;
        compared += usize::from(agrees(&golden, &corpus.join(name)));
    }
    eprintln!("{compared} of {files} files have a histogram that was compared");
    assert!(compared > 0);
}

/// Whether there was a histogram to compare; panics where it differs.
fn agrees(golden: &Value, file: &Path) -> bool {
    if golden["perf_ok"] != true {
        assert!(matches!(run(&["--json"], file).status.code(), Some(0 | 1)));
        return false;
    }
    let answer = json(&["--sort", "comm,dso"], file);
    let counts = |events: &Value, count: fn(&Value) -> &Value| {
        let all = events.as_array().unwrap().iter().map(|e| count(e).as_u64().unwrap_or(0));
        let mut all: Vec<u64> = all.filter(|n| *n > 0).collect();
        all.sort_unstable();
        all
    };
    let samples = counts(&golden["events"], |e| &e["counts"]["SAMPLE"]);
    assert_eq!(counts(&answer["events"], |e| &e["samples"]), samples, "{}", file.display());
    let Some(tables) = golden["views"]["comm,dso"].as_array() else { return false };
    let want: Vec<Rows> = tables.iter().map(|table| golden_rows(&table["rows"])).filter(|t| !t.is_empty()).collect();
    let total: u64 = want.iter().flat_map(BTreeMap::values).map(|(samples, _)| samples).sum();
    if total == 0 || total != samples.iter().sum::<u64>() {
        return false; // perf made samples of AUX data
    }
    let events = answer["events"].as_array().unwrap().len();
    let got: Vec<Rows> = (0..events).map(|event| rows(&answer, event)).filter(|t| !t.is_empty()).collect();
    // perf cuts names to the width of its column, which is that of a name that a thread has later.
    let cut = |rows: &Rows| rows.keys().map(|key| key.chars().take(7).collect()).collect::<Vec<String>>();
    if got != want {
        let (got_cut, want_cut): (Vec<_>, Vec<_>) = (got.iter().map(cut).collect(), want.iter().map(cut).collect());
        assert_eq!(got_cut, want_cut, "{}", file.display());
    }
    true
}

fn golden_rows(rows: &Value) -> Rows {
    let pair = |v: &Value| (v[0].as_u64().unwrap(), v[1].as_u64().unwrap());
    rows.as_object().unwrap().iter().map(|(key, counts)| (key.clone(), pair(counts))).collect()
}

fn rows(answer: &Value, event: usize) -> Rows {
    crate::common::rows(answer, event).into_iter().map(|(key, samples, period)| (key, (samples, period))).collect()
}
