//! Data sets for engines: the queries of fleet.md answer as rep does, and what is written is whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_fixtures::manifest::cases;
use recrep_fixtures::recorded;
use recrep_format::abi::{SampleType, context};
use recrep_format::endian::Endian;
use recrep_format::feature::Hostname;
use recrep_tests::needs;
use recrep_tests::programs::{rep, workspace};
use recrep_tests::run::{Outcome, run};
use serde_json::Value;

/// Writes recordings as files of a folder, and returns their paths.
fn recordings(folder: &Path) -> Vec<PathBuf> {
    fs::create_dir_all(folder).unwrap();
    let mut files = Vec::new();
    let mut add = |name: &str, bytes: &[u8]| {
        let path = folder.join(format!("{name}.data"));
        fs::write(&path, bytes).unwrap();
        files.push(path);
    };
    for recorded in recorded::ALL {
        add(recorded.name, recorded.bytes);
    }
    for case in cases() {
        if let Some(form) = case.forms().next() {
            add(&format!("{}-{form}", case.name), &case.bytes(form));
        }
    }
    files.retain(|file| is_answered(file));
    files
}

/// Returns whether a recording can be reported, and its periods are numbers that all engines have.
fn is_answered(file: &Path) -> bool {
    let is_reported = run(rep().arg("--json").arg(file)).code() == 0;
    let samples = run(rep().args(["script", "--json", "-F", "period"]).arg(file));
    let mut samples =
        samples.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    is_reported && samples.all(|sample| sample["period"].as_u64().unwrap() < 1 << 52)
}

/// Exports recordings into the data set `fleet` of a folder.
fn export(folder: &Path, flags: &str, files: &[PathBuf]) -> Outcome {
    let mut command = rep();
    command.args(["export", "--format", "parquet", "--demangle", "no", "-o"]);
    command.arg(folder.join("fleet/")).args(flags.split_whitespace());
    run(command.args(files))
}

/// Queries beside those of fleet.md: all functions, and all stacks by their functions.
const MORE: &str = r"
Totals:

```sql
SELECT event, count(*), sum(period) FROM samples GROUP BY event
```

All functions:

```sql
SELECT event, module, function, cpumode, count(*), sum(period) FROM samples GROUP BY ALL
```

Stacks:

```sql
WITH texts AS (
  SELECT calls.stack AS stack, string_agg(function, ';' ORDER BY place DESC) AS text
  FROM calls JOIN frames ON frames.frame = calls.frame GROUP BY calls.stack
)
SELECT event, text, sum(period) FROM samples JOIN texts ON texts.stack = samples.stack GROUP BY ALL
```

Recordings:

```sql
SELECT event, sum(samples), sum(period) FROM recordings GROUP BY event
```
";

/// Sums of rows by the texts before them.
type Sums = BTreeMap<Vec<String>, Vec<u64>>;

fn sums(rows: &Value, texts: usize) -> Sums {
    let mut sums = Sums::new();
    for row in rows.as_array().unwrap() {
        let (key, numbers) = row.as_array().unwrap().split_at(texts);
        let key = key.iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect();
        let numbers = numbers.iter().map(|number| number.as_u64().unwrap());
        add(&mut sums, key, &numbers.collect::<Vec<_>>());
    }
    sums
}

fn add(sums: &mut Sums, key: Vec<String>, numbers: &[u64]) {
    let sum = sums.entry(key).or_insert_with(|| vec![0; numbers.len()]);
    sum.iter_mut().zip(numbers).for_each(|(sum, number)| *sum = sum.saturating_add(*number));
}

/// Returns what rep reports of recordings: totals of events, and rows by module and function.
fn reported(files: &[PathBuf]) -> (Sums, Sums) {
    let (mut totals, mut functions) = (Sums::new(), Sums::new());
    for file in files {
        let mut command = rep();
        command.args(["--json", "--no-children", "-s", "dso,symbol", "--demangle", "no"]);
        let outcome = run(command.arg(file)).expect(0);
        let answer: Value = serde_json::from_slice(&outcome.stdout).unwrap();
        for event in answer["events"].as_array().unwrap() {
            let count = |of: &Value| [&of["samples"], &of["period"]].map(|n| n.as_u64().unwrap());
            let name = event["name"].as_str().unwrap().to_owned();
            if count(event)[0] > 0 {
                add(&mut totals, vec![name.clone()], &count(event));
            }
            for row in event["rows"].as_array().unwrap() {
                let texts =
                    ["dso", "symbol", "cpumode"].map(|key| row["key"][key].as_str().unwrap());
                let key = std::iter::once(name.as_str()).chain(texts).map(str::to_owned).collect();
                add(&mut functions, key, &count(row));
            }
        }
    }
    (totals, functions)
}

/// Returns the stacks of recordings, from an export of another format.
fn exported_stacks(files: &[PathBuf]) -> Sums {
    let mut stacks = Sums::new();
    for file in files {
        let mut command = rep();
        command.args(["export", "--format", "speedscope", "--labels", "none", "--demangle", "no"]);
        let outcome = run(command.arg(file));
        // A profile without samples is no file.
        let Ok(answer) = serde_json::from_slice::<Value>(&outcome.stdout) else { continue };
        let frames = answer["shared"]["frames"].as_array().unwrap();
        for profile in answer["profiles"].as_array().unwrap() {
            let weights = profile["weights"].as_array().unwrap();
            for (sample, weight) in profile["samples"].as_array().unwrap().iter().zip(weights) {
                let numbers = sample.as_array().unwrap().iter();
                let numbers = numbers.map(|n| usize::try_from(n.as_u64().unwrap()).unwrap());
                let names = numbers.map(|n| frames[n]["name"].as_str().unwrap());
                // The table of frames has that in a column of its own.
                let names = names.map(|name| name.trim_end_matches(" (inlined)"));
                let text = names.collect::<Vec<_>>().join(";");
                let key = vec![profile["name"].as_str().unwrap().to_owned(), text];
                add(&mut stacks, key, &[weight.as_u64().unwrap()]);
            }
        }
    }
    stacks
}

/// Answers of DuckDB.
struct Answers {
    /// Those to the queries of fleet.md, by the lines before them.
    of_page: BTreeMap<String, Value>,
    /// Those to [`MORE`].
    more: [Value; 4],
}

/// Runs all queries over the data set of a folder.
#[track_caller]
fn answers(python: &Path, folder: &Path) -> Answers {
    let page = fs::read_to_string(workspace().join("report/docs/fleet.md")).unwrap();
    let titles: Vec<String> = page
        .split("```sql\n")
        .collect::<Vec<_>>()
        .windows(2)
        .filter(|pair| !pair[1].starts_with("-- "))
        .map(|pair| pair[0].trim_end().lines().last().unwrap().trim_end_matches(':').to_owned())
        .collect();
    assert!(titles.len() >= 8, "{titles:?}");
    fs::write(folder.join("fleet.md"), page + MORE).unwrap();
    let mut command = Command::new(python);
    command.arg(workspace().join("tests/fleet/queries.py")).arg("duckdb");
    let outcome = run(command.arg(folder.join("fleet.md")).arg(folder).arg("--json"));
    let mut answers: Vec<Value> = serde_json::from_slice(&outcome.expect(0).stdout).unwrap();
    let more = answers.split_off(titles.len()).try_into().unwrap();
    Answers { of_page: titles.into_iter().zip(answers).collect(), more }
}

#[test]
fn queries_answer_as_rep() {
    let Some(python) = needs::duckdb() else { return };
    let dir = tempfile::tempdir().unwrap();
    let files = recordings(&dir.path().join("files"));
    assert!(files.len() > 24, "{}", files.len());
    let (old, new) = files.split_at(files.len() / 2);
    for (week, version, files) in [("2026-W47", "1.3", old), ("2026-W48", "1.4", new)] {
        let flags =
            format!("--label week={week} --label version={version} --partition week,host,event");
        export(dir.path(), &flags, files).expect(0);
    }
    let Answers { of_page, more: [totals, functions, stacks, recordings] } =
        &answers(&python, dir.path());
    assert!(of_page.values().filter(|rows| rows[0].is_array()).count() >= 6);
    let (expected_totals, expected_functions) = reported(&files);
    assert_eq!(sums(totals, 1), expected_totals);
    assert_eq!(sums(functions, 4), expected_functions);
    assert!(expected_functions.len() > 30, "{}", expected_functions.len());
    let first = &of_page["The hottest functions of all hosts"][0];
    let most = expected_functions.values().map(|sums| sums[1]).max().unwrap();
    assert_eq!(first[4].as_u64().unwrap(), most);
    let of_recordings: Sums =
        sums(recordings, 1).into_iter().filter(|(_, sums)| sums[0] > 0).collect();
    assert_eq!(of_recordings, expected_totals);
    assert_stacks(&sums(stacks, 2), &exported_stacks(&files));
}

/// Asserts that stacks are the same; those with a frame without a name read otherwise elsewhere.
#[track_caller]
fn assert_stacks(found: &Sums, expected: &Sums) {
    let is_named = |(key, _): &(&Vec<String>, &Vec<u64>)| {
        let has_name =
            |name: &str| !(name.is_empty() || name.contains(['[', '+']) || name.starts_with("0x"));
        key[1].split(';').all(has_name)
    };
    let named = |all: &Sums| -> Sums {
        all.iter().filter(is_named).map(|(key, sums)| (key.clone(), sums.clone())).collect()
    };
    assert_eq!(named(found), named(expected));
    assert!(named(found).len() > 10, "{}", named(found).len());
}

/// Where the functions of [`NAMES`] begin, one after the other.
const CODE: u64 = 0x10_0000;
const NAMES: [&str; 5] = ["main", "serve", "keep", "malloc", "_int_malloc"];

/// A recording of a host: `serve` calls `keep` and `malloc`, and `keep` calls `malloc`.
fn recording_of(host: u64, pid: u32) -> Vec<u8> {
    let at = |name: &str| {
        CODE + 0x10 * NAMES.iter().position(|known| *known == name).unwrap() as u64 + 4
    };
    // Innermost first, by periods that differ from host to host.
    let stacks = [
        (&["_int_malloc", "malloc", "keep", "serve", "main"][..], 1000 + host),
        (&["malloc", "serve", "main"], 100 + host % 7),
        (&["keep", "serve", "main"], 10),
        (&["serve", "main"], 1),
    ];
    let mut stream = Stream::new(Endian::NATIVE)
        .event(Event::new("cycles:u").sampling(SampleType::CALLCHAIN))
        .feature(&Hostname::new(&format!("host-{host}")))
        .task(pid, pid)
        .at(1)
        .comm("app")
        .map("//anon", CODE, 0x1000, 0)
        .at(10);
    for (names, period) in stacks {
        let mut chain = vec![context::USER];
        chain.extend(names.iter().map(|name| at(name)));
        stream = stream.sample(SampleSpec::at(at(names[0])).period(period).callchain(&chain));
    }
    if host == 3 {
        stream = stream.lost_samples(12);
    }
    stream.file()
}

#[test]
fn recordings_of_many_hosts_are_one_data_set() {
    let Some(python) = needs::duckdb() else { return };
    let hosts = if std::env::var_os("RECREP_FULL").is_some() { 1000 } else { 100 };
    let named =
        (0..).zip(NAMES).map(|(place, name)| format!("{:x} 10 {name}\n", CODE + 16 * place));
    let (pid, map) = super::exports::jit_map(6, named.collect::<String>().as_bytes());
    let dir = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = (0..hosts)
        .map(|host| {
            let path = dir.path().join(format!("host-{host}.data"));
            fs::write(&path, recording_of(host, pid)).unwrap();
            path
        })
        .collect();
    let (old, new) = files.split_at(files.len() / 2);
    for (week, version, files) in [("2026-W47", "1.3", old), ("2026-W48", "1.4", new)] {
        let flags = format!(
            "--trust-paths --label week={week} --label version={version} --partition week,host,event"
        );
        export(dir.path(), &flags, files).expect(0);
    }
    let mut command = rep();
    command.args(["--json", "--no-children", "--trust-paths", "-s", "dso,symbol"]);
    let report = run(command.args(&files)).expect(0);
    fs::remove_file(map).unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let event = &report["events"][0];
    let Answers { of_page, more: [totals, functions, stacks, recordings] } =
        answers(&python, dir.path());
    let total = ["samples", "period"].map(|name| event[name].as_u64().unwrap());
    assert_eq!(total[0], 4 * hosts);
    for answer in [&totals, &recordings] {
        assert_eq!(sums(answer, 1), [(vec!["cycles:u".to_owned()], total.to_vec())].into());
    }
    let by_function: BTreeMap<String, Vec<u64>> =
        sums(&functions, 4).into_iter().map(|(key, sums)| (key[2].clone(), sums)).collect();
    let rows = event["rows"].as_array().unwrap().iter();
    let row = |row: &Value| {
        let sums = ["samples", "period"].map(|name| row[name].as_u64().unwrap());
        (row["key"]["symbol"].as_str().unwrap().to_owned(), sums.to_vec())
    };
    assert_eq!(by_function, rows.map(row).collect());
    // What the recordings were made of.
    let each = |period: fn(u64) -> u64| (0..hosts).map(period).sum::<u64>();
    let (kept, served) = (each(|host| 1000 + host), each(|host| 100 + host % 7));
    let stack = |text: &str, sum| (vec!["cycles:u".to_owned(), text.to_owned()], vec![sum]);
    let expected = [
        stack("main;serve;keep;malloc;_int_malloc", kept),
        stack("main;serve;malloc", served),
        stack("main;serve;keep", 10 * hosts),
        stack("main;serve", hosts),
    ];
    assert_eq!(sums(&stacks, 2), expected.into());
    let callers = of_page["Who calls malloc, whatever it does below"].as_array().unwrap();
    let callers: Vec<_> = callers.iter().map(|row| (row[2].as_str().unwrap(), &row[3])).collect();
    assert_eq!(callers, [("keep", &Value::from(kept)), ("serve", &Value::from(served))]);
    let losing = "Hosts that lose samples, and those whose recordings are not complete";
    assert_eq!(of_page[losing][0][0], "host-3");
    assert!(of_page.values().all(|rows| rows[0].is_array()), "{:?}", of_page.keys());
}

#[test]
fn a_data_set_is_written_once() {
    let dir = tempfile::tempdir().unwrap();
    let files = recordings(&dir.path().join("files"));
    let [one, other, ..] = &files[..] else { panic!("too few files") };
    export(dir.path(), "", std::slice::from_ref(one)).expect(0);
    let again = export(dir.path(), "", std::slice::from_ref(one));
    assert_eq!(again.code(), 1);
    assert!(again.stderr.contains("exists: remove it"), "{}", again.stderr);
    let folder = dir.path().join("other");
    fs::create_dir(&folder).unwrap();
    let copy = folder.join(other.file_name().unwrap());
    fs::copy(other, &copy).unwrap();
    let same = export(dir.path(), "", &[other.clone(), copy]);
    assert_eq!(same.code(), 1);
    assert!(same.stderr.contains("name the files differently"), "{}", same.stderr);
    // What failed leaves no file that is not complete.
    let names = fs::read_dir(dir.path().join("fleet/samples")).unwrap();
    let names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| name.starts_with("part-")), "{names:?}");
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let files = recordings(&dir.path().join("files"));
    let mut written = Vec::new();
    for threads in ["1", "3"] {
        let file = dir.path().join(format!("{threads}.parquet"));
        let mut command = rep();
        command.args(["export", "--format", "parquet", "--lines", "-o"]).arg(&file);
        let largest = files.iter().max_by_key(|file| file.metadata().unwrap().len()).unwrap();
        run(command.arg(largest).env("RAYON_NUM_THREADS", threads)).expect(0);
        let tables = ["parquet", "stacks.parquet", "frames.parquet", "recordings.parquet"];
        written.push(tables.map(|end| fs::read(file.with_extension(end)).unwrap()));
    }
    assert!(written[0] == written[1]);
    assert!(written[0].iter().all(|bytes| bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")));
}

#[test]
fn options_of_data_sets_are_checked() {
    let refused = |flags: &str, why: &str| {
        let outcome = run(rep().arg("export").args(flags.split_whitespace()).arg("x.data"));
        assert_eq!(outcome.code(), 2, "{flags}");
        assert!(outcome.stderr.contains(why), "{flags}: {}", outcome.stderr);
    };
    refused("--format parquet", "name a directory");
    refused("--format parquet -o x/ --label a", "NAME=VALUE");
    refused("--format parquet -o x/ --label pid=1", "such a column");
    refused("--format parquet -o x/ --label a=1 --label a=2", "such a column");
    refused("--format parquet -o x/ --partition week", "a --label");
    refused("--format parquet -o x/ --partition host,host", "twice");
    refused("--format parquet -o x/ --labels comm", "--labels");
    refused("--partition host -o x", "--format parquet");
    refused("--format speedscope --lines -o x", "--format parquet");
}
