//! Text, JSON, CSV and folded stacks have the same names, with the same samples, in fixtures and in
//! a corpus.

use std::collections::BTreeMap;
use std::path::Path;

use recrep_fixtures::manifest::cases;
use recrep_tests::campaign::originals;
use recrep_tests::forms::{forms, is_full};
use recrep_tests::programs::rep;
use recrep_tests::report::listed;
use recrep_tests::run::run;
use serde_json::Value;

/// Samples of each event, comm, module and function.
type Rows = BTreeMap<[String; 4], u64>;

const SORT: &str = "comm,dso,symbol";

fn said(words: &[&str], file: &Path) -> String {
    let outcome = listed(run(rep().args(words).args(["-s", SORT]).arg(file)));
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}

fn add(rows: &mut Rows, key: [&str; 4], samples: u64) {
    *rows
        .entry(key.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")))
        .or_default() += samples;
}

/// The rows as JSON has them, the same with the letter of the CPU mode before functions, and the
/// name of the event where only one has samples.
fn in_json(file: &Path) -> Option<(Rows, Rows, Option<String>)> {
    let outcome = run(rep().args(["--json", "-s", SORT]).arg(file));
    let answer: Value =
        serde_json::from_slice(&outcome.stdout).ok().filter(|_| outcome.code() == 0)?;
    let (mut rows, mut marked) = (Rows::new(), Rows::new());
    for event in answer["events"].as_array().unwrap() {
        for row in event["rows"].as_array().unwrap() {
            let text = |key: &str| row["key"][key].as_str().unwrap();
            let level = match text("cpumode") {
                "kernel" => 'k',
                "user" => '.',
                _ => 'H',
            };
            let (name, samples) =
                (event["name"].as_str().unwrap(), row["samples"].as_u64().unwrap());
            add(&mut rows, [name, text("comm"), text("dso"), text("symbol")], samples);
            let symbol = format!("[{level}] {}", text("symbol"));
            add(&mut marked, [name, text("comm"), text("dso"), &symbol], samples);
        }
    }
    let mut sampled =
        answer["events"].as_array().unwrap().iter().filter(|event| event["samples"] != 0);
    let first = sampled.next().map(|event| event["name"].as_str().unwrap().to_owned());
    Some((rows, marked, first.filter(|_| sampled.next().is_none())))
}

/// The rows of the table, each alone on its line: the columns are where the headings are.
fn in_text(file: &Path) -> Rows {
    let mut rows = Rows::new();
    let words = ["--no-children", "-g", "none", "-F", "sample,comm,dso,symbol"];
    let outcome = listed(run(rep().args(words).arg(file)));
    let (mut event, mut columns) = (String::new(), Vec::new());
    for line in String::from_utf8_lossy(&outcome.stdout).lines() {
        if let Some((_, name)) = line.split_once(" of event '") {
            name.trim_end_matches('\'').clone_into(&mut event);
        } else if line.starts_with("# ") && line.contains("Command") {
            columns = ["Command", "Shared Object", "Symbol"]
                .map(|heading| line.find(heading).unwrap())
                .to_vec();
        } else if !line.starts_with('#') && !line.is_empty() {
            // Without headings, these are the counts of a file without samples.
            let [comm, dso, symbol] = columns[..] else { continue };
            let samples = line[..comm].trim().parse().unwrap();
            add(
                &mut rows,
                [&event, &line[comm..dso], &line[dso..symbol], &line[symbol..]],
                samples,
            );
        }
    }
    rows
}

fn in_csv(file: &Path) -> Rows {
    let mut rows = Rows::new();
    for line in said(&["--format", "csv"], file).lines().skip(1) {
        let mut cells = Vec::new();
        let mut rest = line;
        while !rest.is_empty() {
            let (cell, more) = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap(),
                None => rest.split_at(rest.find(',').unwrap_or(rest.len())),
            };
            cells.push(cell);
            rest = more.strip_prefix(',').unwrap_or(more);
        }
        add(&mut rows, [cells[0], cells[1], cells[2], cells[3]], cells[5].parse().unwrap());
    }
    rows
}

/// As folded stacks have it: the sort keys come before the frames, with other separators.
fn in_folded(file: &Path, only: Option<&str>) -> Rows {
    let mut rows = Rows::new();
    for line in said(&["--format", "folded", "-n"], file).lines() {
        let (stack, samples) = line.rsplit_once(' ').unwrap();
        let mut frames = stack.split(';');
        let event = only.unwrap_or_else(|| frames.next().unwrap());
        let mut next = || frames.next().unwrap();
        add(&mut rows, [event, next(), next(), next()], samples.parse().unwrap());
    }
    rows
}

/// Compares the names of a file. Returns the number of rows that were compared.
#[track_caller]
fn compare(file: &Path) -> usize {
    let Some((rows, marked, only)) = in_json(file) else { return 0 };
    // What cannot stand on a line is escaped there.
    let is_plain = |text: &String| {
        text.chars().all(|c| c.is_ascii_graphic() || c == ' ') && !text.contains('"')
    };
    if !rows.keys().flatten().all(is_plain) {
        return 0;
    }
    assert_eq!(in_csv(file), rows, "CSV of {}", file.display());
    assert_eq!(in_text(file), marked, "text of {}", file.display());
    let folded_name = |text: &str| text.replace(' ', "_").replace(';', ":");
    let mut folded = Rows::new();
    for (key, samples) in &rows {
        let names = key.each_ref().map(|text| folded_name(text));
        let [event, comm, dso, symbol] = names.each_ref().map(String::as_str);
        add(&mut folded, [only.as_deref().unwrap_or(event), comm, dso, symbol], *samples);
    }
    assert_eq!(in_folded(file, only.as_deref()), folded, "folded stacks of {}", file.display());
    rows.len()
}

#[test]
fn fixtures() {
    let dir = tempfile::tempdir().unwrap();
    let (mut files, mut rows) = (0, 0);
    for case in cases() {
        for form in forms(&case, |form| !form.container.is_pipe()) {
            let file = dir.path().join(format!("{}.{form}.data", case.name));
            std::fs::write(&file, case.bytes(form)).unwrap();
            let compared = compare(&file);
            files += usize::from(compared > 0);
            rows += compared;
        }
    }
    println!("{rows} rows of {files} fixtures have the same names in four forms");
    assert!(files > if is_full() { 80 } else { 50 }, "{files} files");
}

#[test]
fn a_corpus() {
    let Some(folder) = std::env::var_os("RECREP_CORPUS") else {
        println!("did not run: RECREP_CORPUS is not set");
        return;
    };
    let dir = Path::new(&folder);
    let (mut files, mut rows) = (0, 0);
    for (name, _) in originals(dir).unwrap() {
        let compared = compare(&dir.join(name));
        files += usize::from(compared > 0);
        rows += compared;
    }
    println!("{rows} rows of {files} files have the same names in four forms");
    assert!(rows > 0);
}
