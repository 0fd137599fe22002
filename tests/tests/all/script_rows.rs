//! `rep script --json` and `--csv` have what the text has.

use std::fs;
use std::path::Path;

use recrep_fixtures::recorded;
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use serde_json::Value;

/// Returns what `rep script` prints, if it can.
fn listed(flags: &str, file: &Path) -> Option<String> {
    let outcome = run(rep().arg("script").args(flags.split_whitespace()).arg(file));
    (outcome.code() == 0).then(|| outcome.text().to_owned())
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The beginning of a line of text, from an object.
fn line_of(object: &Value) -> String {
    let time = object["time"].as_u64().unwrap();
    let (seconds, nanoseconds) = (time / 1_000_000_000, time % 1_000_000_000);
    let cpu = object["cpu"].as_i64().unwrap_or(-1);
    format!(
        "{:>16} {:>7}/{:<7} [{cpu:03}] {seconds:>5}.{nanoseconds:09}: {:>10} {}: ",
        object["comm"].as_str().unwrap(),
        object["pid"],
        object["tid"],
        object["period"],
        object["event"].as_str().unwrap()
    )
}

#[test]
fn objects_have_what_lines_have() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let mut compared = 0;
    for recorded in recorded::ALL {
        fs::write(&file, recorded.bytes).unwrap();
        let flags = "-F comm,pid,tid,cpu,time,period,event -G --ns";
        let Some(text) = listed(flags, &file) else { continue };
        let found = objects(&listed(&format!("{flags} --json"), &file).unwrap());
        if found.iter().any(|object| object["time"].is_null()) {
            continue;
        }
        let expected: Vec<String> =
            text.lines().map(|line| line.trim().replace("  ", " ")).collect();
        let lines = found.iter().map(|object| line_of(object).trim().replace("  ", " "));
        // Names of several events are as wide as the longest.
        let squeezed = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = lines.map(|line| squeezed(&line)).collect();
        assert_eq!(lines, expected.iter().map(squeezed).collect::<Vec<_>>(), "{}", recorded.name);
        compared += lines.len();
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn callchains_have_the_frames_of_the_text() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let mut compared = 0;
    for recorded in recorded::ALL {
        fs::write(&file, recorded.bytes).unwrap();
        let Some(text) = listed("-F ip,sym,dso", &file) else { continue };
        let mut frames = Vec::new();
        for object in objects(&listed("-F ip,sym,dso --json", &file).unwrap()) {
            let shown = |frame: &Value| {
                let address = frame["ip"].as_str().map_or("0", |ip| &ip[2..]).to_owned();
                let [sym, dso] =
                    ["sym", "dso"].map(|name| frame[name].as_str().unwrap_or("[unknown]"));
                format!("{address} {sym} ({dso})")
            };
            match object["callchain"].as_array() {
                Some(chain) => frames.extend(chain.iter().map(shown)),
                None => frames.push(shown(&object)),
            }
        }
        let expected = text.lines().map(str::trim).filter(|line| !line.is_empty());
        assert_eq!(frames, expected.collect::<Vec<_>>(), "{}", recorded.name);
        compared += frames.len();
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn rows_have_what_objects_have() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let mut compared = 0;
    for recorded in recorded::ALL {
        fs::write(&file, recorded.bytes).unwrap();
        let Some(table) = listed("-F +pid --csv", &file) else { continue };
        let objects = objects(&listed("-F +pid --json", &file).unwrap());
        let mut csv = csv::Reader::from_reader(table.as_bytes());
        let names = csv.headers().unwrap().clone();
        let rows: Vec<csv::StringRecord> = csv.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), objects.len(), "{}", recorded.name);
        for (row, object) in rows.iter().zip(&objects) {
            for (name, cell) in names.iter().zip(row) {
                match &object[name] {
                    Value::Null => assert_eq!(cell, "", "{name}"),
                    Value::Number(number) => assert_eq!(cell, number.to_string(), "{name}"),
                    Value::String(text) => assert_eq!(cell, text, "{name}"),
                    Value::Array(frames) if name == "callchain" => {
                        assert_eq!(cell.split(';').count(), frames.len().max(1), "{cell}");
                    }
                    other => assert_eq!(cell.is_empty(), other == &Value::Null),
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn filters_and_limits_hold() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let recorded = recorded::ALL.iter().max_by_key(|recorded| recorded.bytes.len()).unwrap();
    fs::write(&file, recorded.bytes).unwrap();
    let all = objects(&listed("--json", &file).unwrap());
    let first = objects(&listed("--json --limit 3", &file).unwrap());
    assert_eq!(first, all[..3]);
    let comm = first[0]["comm"].as_str().unwrap();
    let some = objects(&listed(&format!("--json --comm {comm}"), &file).unwrap());
    let expected: Vec<&Value> = all.iter().filter(|object| object["comm"] == comm).collect();
    assert_eq!(some.iter().collect::<Vec<_>>(), expected);
}
