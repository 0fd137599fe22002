//! `rep info`: what it tells of the header is what `perf report --header-only` tells.

use std::collections::BTreeMap;
use std::path::Path;

use recrep_fixtures::manifest::cases;
use recrep_fixtures::recorded;
use recrep_tests::forms::forms;
use recrep_tests::programs::{rep, workload};
use recrep_tests::record::record;
use recrep_tests::run::run;
use recrep_tests::{needs, perf};
use serde_json::Value;

fn info(file: &Path) -> Value {
    let outcome = run(rep().args(["info", "--json"]).arg(file)).expect(0);
    serde_json::from_slice(&outcome.stdout).unwrap()
}

fn feature<'a>(info: &'a Value, name: &str) -> Option<&'a Value> {
    let found =
        info["features"].as_array().unwrap().iter().find(|feature| feature["name"] == name)?;
    Some(&found["value"])
}

/// perf's header, by the words before the colon.
fn header(file: &Path) -> BTreeMap<String, String> {
    let outcome = run(perf::perf().args(["report", "--header-only", "-i"]).arg(file)).expect(0);
    let line = |line: &str| {
        let (name, value) = line.strip_prefix("# ")?.split_once(':')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    outcome.text().lines().filter_map(line).collect()
}

/// Holds one file's header against perf's; gives how many values were compared.
#[track_caller]
fn held(file: &Path) -> usize {
    let (info, header) = (info(file), header(file));
    let mut compared = 0;
    let mut same = |name: &str, ours: Option<String>| {
        if let Some(theirs) = header.get(name) {
            assert_eq!(ours.as_ref(), Some(theirs), "{name} of {}", file.display());
            compared += 1;
        }
    };
    let text = |name: &str| feature(&info, name).map(|value| value.as_str().unwrap().to_owned());
    for (line, name) in [
        ("hostname", "HOSTNAME"),
        ("os release", "OSRELEASE"),
        ("perf version", "VERSION"),
        ("arch", "ARCH"),
        ("cpudesc", "CPUDESC"),
        ("cpuid", "CPUID"),
    ] {
        same(line, text(name));
    }
    let number = |value: &Value| Some(value.as_u64()?.to_string());
    same("nrcpus online", feature(&info, "NRCPUS").and_then(|cpus| number(&cpus["online"])));
    same("nrcpus avail", feature(&info, "NRCPUS").and_then(|cpus| number(&cpus["available"])));
    same("data offset", number(&info["container"]["data"]["offset"]));
    same("data size", number(&info["container"]["data"]["size"]));
    same("feat offset", number(&info["container"]["feature_table"]));
    let missing: Vec<&str> =
        info["missing_features"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for name in header.get("missing features").map_or("", String::as_str).split_whitespace() {
        // In perf's words.
        assert!(missing.contains(&name), "{name} is not among {missing:?}, {}", file.display());
        compared += 1;
    }
    compared
}

#[test]
fn records_are_counted_as_the_manifest_counts_them() {
    let dir = tempfile::tempdir().unwrap();
    for case in cases() {
        // `dump` counts the records of all forms.
        for form in forms(&case, |_| true) {
            let path = dir.path().join(format!("{}.{form}", case.name));
            std::fs::write(&path, case.bytes(form)).unwrap();
            let info = info(&path);
            let mut counts: BTreeMap<String, u64> =
                serde_json::from_value(info["records"].clone()).unwrap();
            // rep counts the containers, as perf does; the manifest does not.
            counts.remove("COMPRESSED");
            let expected =
                case.counts(form).into_iter().map(|(kind, count)| (kind.to_string(), count));
            assert_eq!(counts, expected.collect(), "{}", path.display());
            let expected = if form.container.is_pipe() { "pipe" } else { "file" };
            assert_eq!(info["container"]["mode"], expected, "{}", path.display());
        }
    }
}

#[test]
fn text_and_json_tell_of_the_same_features() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flat");
    for file in recorded::ALL {
        std::fs::write(&path, file.bytes).unwrap();
        let text = run(rep().arg("info").arg(&path)).expect(0);
        for feature in info(&path)["features"].as_array().unwrap() {
            let line = format!("  {} (", feature["name"].as_str().unwrap());
            assert!(text.text().contains(&line), "{}: {line}", file.name);
            assert!(!feature["value"].is_null(), "{}: {feature}", file.name);
        }
    }
}

/// Tests that record.
mod live {
    use super::*;

    #[test]
    fn headers_say_what_perf_says_of_them() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let spin = workload("hot --ms 20");
        for (name, recorder) in
            [("perf", perf::record as fn(&Path, &str, &[String]) -> _), ("rec", record)]
        {
            let file = dir.path().join(name);
            recorder(&file, "-e cpu-clock -g", &spin);
            let compared = held(&file);
            assert!(compared > 15, "{name}: {compared}");
        }
        for file in recorded::ALL.iter().filter(|file| !file.is_pipe) {
            let path = dir.path().join(file.name);
            std::fs::write(&path, file.bytes).unwrap();
            assert!(held(&path) > 15, "{}", file.name);
        }
    }

    #[test]
    fn rec_tells_of_the_machine_what_perf_tells() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let spin = workload("hot --ms 20");
        let told = |name: &str, recorder: fn(&Path, &str, &[String]) -> _| {
            let file = dir.path().join(name);
            recorder(&file, "-e cpu-clock", &spin);
            let outcome =
                run(perf::perf().args(["report", "--header-only", "-I", "-i"]).arg(&file))
                    .expect(0);
            outcome.text().lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let (by_perf, by_rec) = (told("perf", perf::record), told("rec", record));
        // What is of the recording, what changes meanwhile, and what has no order.
        let own = "captured|header|data |feat |perf version|cmdline|event |time of|sample \
                   duration|missing|nr_|pmu mappings|bpf|btf|context|clockid: |reference time|=====";
        let of_machine = |line: &&String| {
            !own.split('|').any(|own| line.trim_start_matches("# ").starts_with(own))
        };
        let fixed = |lines: &[String]| -> Vec<String> {
            let cut = |line: &String| line.split(", free =").next().unwrap().to_owned();
            lines.iter().filter(of_machine).map(cut).collect()
        };
        // perf says what its clock showed only if that was chosen (-k).
        assert!(by_rec.iter().any(|line| line.starts_with("# reference time: ")), "{by_rec:?}");
        let (by_perf, by_rec) = (fixed(&by_perf), fixed(&by_rec));
        assert!(by_perf.iter().any(|line| line.contains("sibling")), "{by_perf:?}");
        assert_eq!(by_rec, by_perf);
    }
}
