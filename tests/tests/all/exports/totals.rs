//! Each event's weights add up to its period in the report, in all formats and of all fixtures.

use std::fs::read;
use std::path::Path;

use opentelemetry_proto::tonic::profiles::v1development::ProfilesData;
use prost::Message as _;
use recrep_fixtures::manifest::cases;
use recrep_tests::forms::forms;
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use serde_json::Value;

use super::export;
use super::firefox::FirefoxProfile;
use super::perfetto::Trace;

/// Name of an event, and the sum of the weights of its samples.
type Total = (String, u64);

/// Reads the totals of a file.
type ReadTotals = fn(&Path) -> Vec<Total>;

/// The formats, each with what reads the totals of a file.
const FORMATS: [(&str, ReadTotals); 4] = [
    ("speedscope", of_speedscope),
    ("pprof", of_profile),
    ("otlp", of_otlp),
    ("perfetto", of_perfetto),
];

fn of_profile(file: &Path) -> Vec<Total> {
    of_report(file, "period")
}

fn of_report(file: &Path, column: &str) -> Vec<Total> {
    let report = run(rep().args(["--json", "-s", "comm"]).arg(file));
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let events = report["events"].as_array().unwrap().iter();
    let total = |event: &Value| {
        (event["name"].as_str().unwrap().to_owned(), event[column].as_u64().unwrap())
    };
    events.map(total).collect()
}

fn of_speedscope(file: &Path) -> Vec<Total> {
    let written: Value = serde_json::from_slice(&read(file).unwrap()).unwrap();
    let profiles = written["profiles"].as_array().unwrap().iter();
    let total = |profile: &Value| {
        let weights = profile["weights"].as_array().unwrap().iter();
        let sum = weights.map(|weight| weight.as_u64().unwrap()).fold(0, u64::wrapping_add);
        (profile["name"].as_str().unwrap().to_owned(), sum)
    };
    profiles.map(total).collect()
}

/// Of profiles of several processes, the sums; numbers of samples are profiles of their own.
fn of_otlp(file: &Path) -> Vec<Total> {
    let data = ProfilesData::decode(&*read(file).unwrap()).unwrap();
    let strings = data.dictionary.unwrap().string_table;
    let mut totals: Vec<Total> = Vec::new();
    let scopes = data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
    for profile in scopes.flat_map(|scope| &scope.profiles) {
        let name = profile.sample_type.unwrap().type_strindex;
        let name = &strings[usize::try_from(name).unwrap()];
        if name == "samples" || name.ends_with(".samples") {
            continue;
        }
        let values = profile.samples.iter().flat_map(|sample| &sample.values);
        let sum = values.fold(0, |sum: u64, value| sum.wrapping_add(value.unsigned_abs()));
        match totals.iter_mut().find(|(known, _)| known == name) {
            Some((_, total)) => *total += sum,
            None => totals.push((name.clone(), sum)),
        }
    }
    totals
}

/// The last sample of each CPU has the sum of its periods.
fn of_perfetto(file: &Path) -> Vec<Total> {
    let trace = Trace::of(&read(file).unwrap());
    trace.events.iter().map(|event| (event.name.clone(), event.counts.values().sum())).collect()
}

/// Weights that are periods add up to them, others to the numbers of samples.
fn assert_firefox(file: &Path, report: &[Total], samples: &[Total], case: &str) {
    let profile = FirefoxProfile::read(file);
    for ((name, period), (_, samples)) in report.iter().zip(samples) {
        let threads = profile.threads_of(name, report.len() > 1);
        let weights: u64 = threads.iter().map(|thread| thread.weights.iter().sum::<u64>()).sum();
        match profile.unit(name) {
            None => assert_eq!(weights, *samples, "{case}: {name}"),
            Some(unit) => {
                let lost = period - weights * unit;
                assert!(lost < unit * threads.len() as u64, "{case}: {name} lacks {lost}");
            }
        }
    }
}

/// Returns whether a file can be exported, and whether the periods of its events have sums that fit
/// into values with a sign: those of others wrap in reports.
fn exact_sums(file: &Path, out: &Path) -> (bool, bool) {
    if export(file, "speedscope", out).code() != 0 {
        return (false, false);
    }
    let written: Value = serde_json::from_slice(&read(out).unwrap()).unwrap();
    let fits = |profile: &Value| {
        let weights = profile["weights"].as_array().unwrap().iter();
        let sum: u128 = weights.map(|weight| u128::from(weight.as_u64().unwrap())).sum();
        sum <= i64::MAX.unsigned_abs().into()
    };
    (true, written["profiles"].as_array().unwrap().iter().all(fits))
}

#[test]
fn weights_add_up_to_the_totals() {
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("perf.data"), dir.path().join("out"));
    let mut files = 0;
    for case in cases() {
        let Some(form) = forms(&case, |form| !form.container.is_pipe()).pop() else { continue };
        std::fs::write(&file, case.bytes(form)).unwrap();
        let report = of_report(&file, "period").into_iter().filter(|(_, sum)| *sum > 0);
        let most = i64::MAX.unsigned_abs();
        let report: Vec<Total> = report.map(|(name, sum)| (name, sum.min(most))).collect();
        let (is_written, is_exact) = exact_sums(&file, &out);
        let names = report.iter().map(|(name, _)| name).collect::<std::collections::BTreeSet<_>>();
        // Totals are looked up by name.
        if names.len() < report.len() {
            continue;
        }
        for (format, totals) in FORMATS {
            let written = export(&file, format, &out);
            if written.code() != 0 {
                assert!(written.stderr.contains("rep: "), "{} {format}: {written:?}", case.name);
                continue;
            }
            if is_written && !is_exact {
                continue;
            }
            let mut found = totals(&out);
            found.retain(|(_, sum)| *sum > 0);
            // Values of pprof have a sign.
            for (_, sum) in &mut found {
                *sum = (*sum).min(most);
            }
            found.sort_by_key(|(name, _)| report.iter().position(|(known, _)| known == name));
            assert_eq!(found, report, "{} as {format}", case.name);
            files += 1;
        }
        if is_exact && export(&file, "firefox", &out).code() == 0 {
            let mut samples = of_report(&file, "samples");
            samples.retain(|(name, _)| names.contains(name));
            assert_firefox(&out, &report, &samples, case.name);
        }
    }
    assert!(files > 20 * FORMATS.len(), "{files} fixtures have samples");
}
