//! Compares `rep` on real recordings with perf. Needs `RECREP_CORPUS`, a directory with recordings
//! and perf's answers (`golden/NAME.json`: record counts, samples for each event, some histograms
//! with whole names).

use super::*;

type Rows = BTreeMap<String, (u64, u64)>;

#[test]
fn histograms_agree_with_perf() {
    let Some(corpus) = needs::corpus() else { return };
    let (mut files, mut compared) = (0, 0);
    for entry in fs::read_dir(corpus.join("golden")).unwrap() {
        let golden = parsed(fs::read(entry.unwrap().path()).unwrap());
        let name = golden["file"].as_str().unwrap();
        files += 1;
        compared += agrees(&golden, &corpus.join(name));
    }
    eprintln!("{compared} histograms of {files} files were compared");
    assert!(compared > 0);
}

/// Histograms in the golden files: name, flags and sort keys.
const VIEWS: [(&str, &[&str], &str); 3] = [
    ("comm,dso", &[], "comm,dso"),
    ("mem,tlb,snoop,locked,local_weight", &["--mem-mode"], "mem,tlb,snoop,locked,local_weight"),
    ("branch:dso_from,dso_to,mispredict", &["-b"], "dso_from,dso_to,mispredict"),
];

/// Compares the histograms of a file and returns their number; panics if one differs.
fn agrees(golden: &Value, file: &Path) -> usize {
    if golden["perf_ok"] != true {
        assert!(matches!(run(&["--json"], file).status.code(), Some(0 | 1)));
        return 0;
    }
    let answer = json(&["--sort", "comm,dso"], file);
    let counts = |events: &Value, count: fn(&Value) -> &Value| {
        let all = list(events).iter().map(|e| count(e).as_u64().unwrap_or(0));
        let mut all: Vec<u64> = all.filter(|n| *n > 0).collect();
        all.sort_unstable();
        all
    };
    let samples = counts(&golden["events"], |e| &e["counts"]["SAMPLE"]);
    assert_eq!(counts(&answer["events"], |e| &e["samples"]), samples, "{}", file.display());
    let mut compared = 0;
    for (view, flags, keys) in VIEWS {
        let Some(tables) = golden["views"][view].as_array() else { continue };
        let want =
            tables.iter().map(|table| serde_json::from_value(table["rows"].clone()).unwrap());
        let want: Vec<Rows> = want.filter(|rows: &Rows| !rows.is_empty()).collect();
        let total: u64 = want.iter().flat_map(BTreeMap::values).map(|(samples, _)| samples).sum();
        if total == 0 || (view == "comm,dso" && total != samples.iter().sum::<u64>()) {
            continue; // perf synthesized samples from AUX data
        }
        let answer = json(&[flags, &["--sort", keys]].concat(), file);
        let events = list(&answer["events"]).iter();
        let got: Vec<Rows> =
            events.map(|event| rows(event, keys)).filter(|t| !t.is_empty()).collect();
        assert_eq!(got, want, "{view} of {}", file.display());
        compared += 1;
    }
    compared
}

fn rows(event: &Value, keys: &str) -> Rows {
    let mut rows = Rows::new();
    for row in list(&event["rows"]) {
        let key: Vec<&str> =
            keys.split(',').map(|key| row["key"][key].as_str().unwrap().trim()).collect();
        let (samples, period) = rows.entry(key.join("|")).or_default();
        *samples += row["samples"].as_u64().unwrap();
        *period += row["period"].as_u64().unwrap();
    }
    rows
}
