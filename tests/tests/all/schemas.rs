//! JSON output is what its published schema says, and nothing else.

use std::collections::BTreeSet;
use std::fs;

use jsonschema::Validator;
use recrep_counts::{Event, Format, Measure, Place, Printer, Report, Threshold};
use recrep_fixtures::recorded;
use recrep_tests::programs::{rec, rep, workspace};
use recrep_tests::run::run;
use serde_json::{Value, json};

use crate::rep::calls::critical_path::answer_of_two_threads;

fn schema(name: &str) -> Validator {
    let package = if name == "recrep-stat-1.json" { "record" } else { "report" };
    let path = workspace().join(package).join("docs/schema").join(name);
    let schema: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
fn assert_valid(schema: &Validator, answer: &Value, what: &str) {
    let errors: Vec<String> = schema
        .iter_errors(answer)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {errors:#?}");
}

/// A schema that takes everything shows nothing: without any of its required fields, and with a
/// field more, an answer is refused.
#[track_caller]
fn assert_strict(schema: &Validator, answer: &Value) {
    let fields: Vec<String> = answer.as_object().unwrap().keys().cloned().collect();
    for field in fields.iter().filter(|field| !["group", "gates"].contains(&field.as_str())) {
        let mut without = answer.clone();
        without.as_object_mut().unwrap().remove(field);
        assert!(!schema.is_valid(&without), "without {field}");
    }
    let mut with = answer.clone();
    with["events"][0]["more"] = json!(1);
    assert!(!schema.is_valid(&with), "with a field more");
}

#[test]
fn reports() {
    let schema = schema("recrep-report-1.json");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let mut rows = 0;
    for recorded in recorded::ALL {
        fs::write(&file, recorded.bytes).unwrap();
        for flags in ["", "-H -s comm,symbol", "--group", "-b", "-s symbol --children", "--stats"] {
            let mut command = rep();
            command.args(["--json", "--limit", "20"]).args(flags.split_whitespace()).arg(&file);
            let outcome = run(&mut command);
            // What was not recorded is refused.
            let Ok(answer) = serde_json::from_slice(&outcome.stdout) else { continue };
            assert_valid(&schema, &answer, &format!("{} {flags}", recorded.name));
            rows += answer["events"][0]["rows"].as_array().map_or(0, Vec::len);
            assert_strict(&schema, &answer);
        }
        // What is left of a torn file has a warning.
        fs::write(&file, &recorded.bytes[..recorded.bytes.len() / 2]).unwrap();
        let outcome = run(rep().args(["--json", "-F", "overhead,sample,weight,symbol"]).arg(&file));
        if let Ok(answer) = serde_json::from_slice(&outcome.stdout) {
            assert_valid(&schema, &answer, recorded.name);
        }
    }
    assert!(rows > 0);
}

#[test]
fn comparisons() {
    let schema = schema("recrep-diff-1.json");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let mut rows = 0;
    for recorded in recorded::ALL {
        fs::write(&file, recorded.bytes).unwrap();
        for flags in [
            "",
            "-b",
            "--mem-mode",
            "--children",
            "--sort stack",
            "--fail-if samples<9 --fail-if delta(total)>1%",
        ] {
            let mut command = rep();
            command.args(["diff", "--json"]).args(flags.split_whitespace());
            let outcome = run(command.args([&file, &file]));
            let Ok(answer) = serde_json::from_slice(&outcome.stdout) else { continue };
            assert_valid(&schema, &answer, &format!("{} {flags}", recorded.name));
            rows += answer["events"][0]["rows"].as_array().map_or(0, Vec::len);
            if answer["events"][0].is_object() {
                assert_strict(&schema, &answer);
            }
        }
    }
    assert!(rows > 0);
}

#[test]
fn annotations() {
    let schema = schema("recrep-annotate-1.json");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let mut functions = 0;
    for recorded in recorded::ALL {
        fs::write(&file, recorded.bytes).unwrap();
        for flags in ["", "--limit 1", "--percent-limit 10 --trust-paths"] {
            let mut command = rep();
            command.args(["annotate", "--json"]).args(flags.split_whitespace());
            let outcome = run(command.arg("-i").arg(&file));
            let Ok(answer) = serde_json::from_slice(&outcome.stdout) else { continue };
            assert_valid(&schema, &answer, &format!("{} {flags}", recorded.name));
            functions += answer["events"][0]["functions"].as_array().map_or(0, Vec::len);
            assert_strict(&schema, &answer);
        }
    }
    assert!(functions > 0);
}

#[test]
fn samples() {
    let schema = schema("recrep-script-1.json");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let mut names = BTreeSet::new();
    for recorded in recorded::ALL {
        fs::write(&file, recorded.bytes).unwrap();
        for flags in ["", "-F +pid,misc,srcline,dsoff,symoff --inline", EVERY_FIELD] {
            let mut command = rep();
            command.args(["script", "--json", "--limit", "20"]).args(flags.split_whitespace());
            for line in run(command.arg(&file)).text().lines() {
                let answer: Value = serde_json::from_str(line).unwrap();
                assert_valid(&schema, &answer, &format!("{} {flags}", recorded.name));
                names.extend(answer.as_object().unwrap().keys().cloned());
                let mut without = answer.clone();
                without.as_object_mut().unwrap().remove("schema");
                assert!(!schema.is_valid(&without));
                let mut with = answer;
                with["more"] = json!(1);
                assert!(!schema.is_valid(&with), "with a field more");
            }
        }
    }
    for name in ["schema", "callchain", "brstack", "ip", "sym", "dso", "time", "cgroup"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
}

/// Fails unless an object of an answer, by its JSON pointer, needs each of these fields and takes no
/// others.
#[track_caller]
fn assert_closed(schema: &Validator, answer: &Value, object: &str, needed: &[&str]) {
    let mut with = answer.clone();
    with.pointer_mut(object).unwrap()["more"] = json!(1);
    assert!(!schema.is_valid(&with), "{object} with a field more");
    for field in needed {
        let mut without = answer.clone();
        let fields = without.pointer_mut(object).and_then(Value::as_object_mut).unwrap();
        assert!(fields.remove(*field).is_some(), "{object} has no {field}");
        assert!(!schema.is_valid(&without), "{object} without {field}");
    }
}

#[test]
fn critical_paths() {
    let schema_of_path = schema("recrep-critical-path-1.json");
    let path = ["tid", "comm", "period"];
    let threads = answer_of_two_threads("critical-path");
    assert_valid(&schema_of_path, &threads, "threads");
    assert_closed(&schema_of_path, &threads, "", &["schema", "inputs", "paths", "warnings"]);
    assert_closed(&schema_of_path, &threads, "/paths/0", &path);
    let kinds = ["thread", "period", "running", "runnable", "preempted", "waiting", "unknown"];
    assert_closed(&schema_of_path, &threads, "/paths/0/threads/0", &kinds);
    let steps = answer_of_two_threads("critical-path --steps");
    assert_valid(&schema_of_path, &steps, "steps");
    let step = ["time", "period", "thread", "what", "where"];
    assert_closed(&schema_of_path, &steps, "/paths/0/steps/0", &step);

    let of_report = schema("recrep-report-1.json");
    for flags in ["", "-s wait,switch", "-g caller", "--what-if parse=-50%"] {
        let answer = answer_of_two_threads(&format!("--critical-path {flags}"));
        assert_valid(&of_report, &answer, flags);
        let fields = ["schema", "inputs", "events", "broken_stacks", "warnings"];
        assert_closed(&of_report, &answer, "", &fields);
        let path = ["tid", "comm", "period", "kinds", "threads", "changes"];
        assert_closed(&of_report, &answer, "/critical_paths/0", &path);
        if flags.contains("what-if") {
            let fields = ["name", "percent", "on_path", "saved", "first_order"];
            assert_closed(&of_report, &answer, "/critical_paths/0/what_if/0", &fields);
        }
    }

    let of_waits = schema("recrep-waits-1.json");
    for flags in ["", "--by object", "--by waker,thread"] {
        let answer = answer_of_two_threads(&format!("waits {flags}"));
        assert_valid(&of_waits, &answer, flags);
        let row = ["count", "waited", "runnable", "max", "p99", "wakers"];
        assert_closed(&of_waits, &answer, "/waits/0", &row);
        assert_closed(&of_waits, &answer, "/waits/0/wakers/0", &["kind", "count", "waited"]);
    }
}

/// Fields of samples of all kinds.
const EVERY_FIELD: &str = "-F comm,pid,tid,cpu,time,event,trace,period,addr,data_src,weight,\
    ins_lat,retire_lat,ip,sym,symoff,dso,cgroup,iregs,uregs,brstack,phys_addr,data_page_size,\
    code_page_size,misc";

#[test]
fn metrics_of_counts() {
    let schema = schema("recrep-stat-1.json");
    let mut report = Report::new("'x'".to_owned(), vec![Event::named("cycles")]);
    for (value, met) in [(Some(1.5), Some(true)), (None, None)] {
        report.metrics.push(Measure {
            name: "share".to_owned(),
            unit: "%".to_owned(),
            value,
            threshold: Some(Threshold { condition: "share > 1".to_owned(), met }),
            place: Place::Core(0, 0, 1),
            cgroup: Some("a".to_owned()),
            event: met.map(|_| 0),
        });
    }
    let mut text = Vec::new();
    Printer::new(Format::Json).print(&report, &mut text).unwrap();
    let answer: Value = serde_json::from_slice(&text).unwrap();
    assert_valid(&schema, &answer, "metrics");
    for field in ["name", "value", "unit"] {
        let mut without = answer.clone();
        without["metrics"][0].as_object_mut().unwrap().remove(field);
        assert!(!schema.is_valid(&without), "without {field}");
    }
}

/// Tests that record.
mod live {
    use super::*;

    #[test]
    fn counts() {
        let schema = schema("recrep-stat-1.json");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("counts.json");
        for flags in ["", "-r 2", "-A", "--per-core", "-d", "-I 1 --summary", "--metric-only"] {
            let mut command = rec();
            command.args(["stat", "-j", "-e", "task-clock,faults"]);
            command.arg("-o").arg(&file).args(flags.split_whitespace()).arg("true");
            run(&mut command);
            let text = fs::read_to_string(&file).unwrap();
            assert!(!text.is_empty(), "{flags}");
            for line in text.lines() {
                let answer: Value = serde_json::from_str(line).unwrap();
                assert_valid(&schema, &answer, flags);
                for field in ["schema", "target", "runs", "seconds", "counts"] {
                    let mut without = answer.clone();
                    without.as_object_mut().unwrap().remove(field);
                    assert!(!schema.is_valid(&without), "{flags}: without {field}");
                }
                let mut with = answer.clone();
                with["more"] = json!(1);
                assert!(!schema.is_valid(&with), "{flags}: with a field more");
            }
        }
    }
}
