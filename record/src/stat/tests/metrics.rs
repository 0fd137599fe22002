//! Metrics of tables written by hand, of a kernel with given counts.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::machine::sources::EventSources;
use crate::stat::metrics::MetricRequest;

/// A CPU with slots, and two memory controllers.
const PMUS: &[(&str, &str)] = &[
    ("cpu/type", "4"),
    ("cpu/format/event", "config:0-7"),
    ("cpu/format/umask", "config:8-15"),
    ("cpu/format/cmask", "config:24-31"),
    ("cpu/events/slots", "event=0x00,umask=0x4"),
    ("cpu/events/topdown-retiring", "event=0x00,umask=0x80"),
    ("uncore_imc_0/type", "20"),
    ("uncore_imc_0/cpumask", "0"),
    ("uncore_imc_0/format/event", "config:0-7"),
    ("uncore_imc_1/type", "21"),
    ("uncore_imc_1/cpumask", "0"),
    ("uncore_imc_1/format/event", "config:0-7"),
];

const TABLE: &str = r#"[
    {"EventName": "A.ONE", "EventCode": "0x10"},
    {"EventName": "B.TWO", "EventCode": "0x20", "SampleAfterValue": "1003"},
    {"EventName": "C.THREE", "EventCode": "0x30"},
    {"EventName": "READS", "EventCode": "0x4", "Unit": "iMC", "ScaleUnit": "64Bytes"},
    {"MetricName": "share", "MetricExpr": "A.ONE / B.TWO", "ScaleUnit": "100%", "MetricGroup": "Both;Most",
        "MetricThreshold": "share > 0.2"},
    {"MetricName": "rest", "MetricExpr": "1 - share", "MetricGroup": "Both;Apart",
        "MetricgroupNoGroup": "Apart"},
    {"MetricName": "three", "MetricExpr": "cpu@C.THREE\\,cmask\\=1@ / A.ONE", "MetricGroup": "Most;Apart",
        "MetricgroupNoGroup": "Apart"},
    {"MetricName": "alone", "MetricExpr": "A.ONE + B.TWO", "MetricConstraint": "NO_GROUP_EVENTS"},
    {"MetricName": "smt", "MetricExpr": "A.ONE if #SMT_on else B.TWO", "MetricGroup": "Most"},
    {"MetricName": "missing", "MetricExpr": "NO.SUCH / A.ONE", "MetricGroup": "Most"},
    {"MetricName": "mean_reads", "MetricExpr": "READS / source_count(READS)"},
    {"MetricName": "retiring", "MetricExpr": "A.ONE + topdown\\-retiring + 0 * slots",
        "MetricGroup": "TopdownL1"},
    {"MetricName": "speed", "MetricExpr": "A.ONE / duration_time"},
    {"MetricName": "constant", "MetricExpr": "2 * #num_cpus_online"},
    {"MetricName": "loop", "MetricExpr": "pool + 1"},
    {"MetricName": "pool", "MetricExpr": "loop + 1"},
    {"MetricName": "more", "MetricExpr": "A.ONE@cmask\\=2@ + SLOTS"},
    {"MetricName": "blind", "MetricExpr": "A.ONE", "MetricThreshold": "blind > 1 & missing > 2"},
    {"MetricName": "zero", "MetricExpr": "A.ONE / (B.TWO - B.TWO)"}
]"#;

/// The machine's files, and the table.
struct Fake {
    machine: TempDir,
    tables: TempDir,
}

impl Fake {
    fn new() -> Self {
        let (machine, tables) = (sysfs::machine(PMUS), tempfile::tempdir().unwrap());
        let write = |path: &str, text: &str| {
            std::fs::write(tables.path().join(path), text).unwrap();
        };
        std::fs::create_dir(tables.path().join("model")).unwrap();
        write("mapfile.csv", "Family-model,Version,Filename,EventType\nTest-6-1,v1,model,core\n");
        write("model/all.json", TABLE);
        Self { machine, tables }
    }

    /// Counts for metrics. Returns the output, and the messages.
    fn run(
        &self,
        kernel: &CountingKernel,
        metrics: MetricRequest,
        line: &str,
    ) -> Result<(String, String)> {
        let dir = tempfile::tempdir().unwrap();
        let (out, said) = (dir.path().join("out"), dir.path().join("said"));
        let line = format!("rec stat -o {} {line}", out.display());
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let mut settings = parse(&words).unwrap();
        let sysfs = self.machine.path().join("sys");
        let sources = EventSources::new(&sysfs, None);
        settings.sources = sources.with_tables(self.tables.path(), Some("Test-6-1")).unwrap();
        settings.machine = Machine { online: vec![0, 1], sysfs, ..Machine::default() };
        settings.metrics = metrics;
        let file = std::fs::File::create(&said).unwrap();
        let messages = Messages::to(Verbosity::Normal, Box::new(file));
        crate::stat::run(&settings, kernel, &messages)?;
        let read = |path| std::fs::read_to_string(path).unwrap();
        Ok((read(out), read(said)))
    }

    /// Counts for metrics of these names. Returns the JSON.
    fn json(&self, kernel: &CountingKernel, names: &[&str], line: &str) -> Value {
        let (text, _) = self.run(kernel, request(names), &format!("-j {line}")).unwrap();
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    }
}

fn request(names: &[&str]) -> MetricRequest {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    MetricRequest { names, ..MetricRequest::default() }
}

/// Counts 300 of A.ONE for two thirds of the time, 1500 of B.TWO, 60 of C.THREE; the memory
/// controllers 10 and 20.
fn kernel() -> CountingKernel {
    CountingKernel::new(|attr, _| {
        Some(match (attr.kind.0, attr.config & 0xff) {
            (20, _) => [10, 1000, 1000],
            (21, _) => [20, 1000, 1000],
            (_, 0x10) => [300, 3000, 2000],
            (_, 0x20) => [1500, 3000, 3000],
            (_, 0x30) => [60, 3000, 3000],
            _ => [7, 3000, 3000],
        })
    })
}

/// The events that were opened, with the config of the leader of each.
fn opened(kernel: &CountingKernel) -> Vec<(u64, Option<u64>)> {
    let opened = kernel.opened.lock().unwrap();
    let mut counters: Vec<_> = opened.values().collect();
    counters.sort_unstable_by_key(|counter| counter.number);
    let leader = |fd: RawFd| opened[&fd].attr.config;
    counters.iter().map(|one| (one.attr.config, one.leader.map(leader))).collect()
}

fn values(found: &Value) -> Vec<(String, Value)> {
    let metrics = found["metrics"].as_array().unwrap().iter();
    let pair =
        |metric: &Value| (metric["name"].as_str().unwrap().to_owned(), metric["value"].clone());
    metrics.map(pair).collect()
}

fn named(pairs: &[(&str, Value)]) -> Vec<(String, Value)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

#[test]
fn multiplexed_counts_are_scaled_before_they_are_divided() {
    let (fake, kernel) = (Fake::new(), kernel());
    // 300 * 3 / 2 = 450; of a group the times are the leader's, so 1500 * 3 / 2 = 2250.
    let found = fake.json(&kernel, &["share"], "true");
    let expected = json!([{
        "name": "share", "value": 20.0, "unit": "%", "index": 0,
        "threshold": {"condition": "share > 0.2", "met": false}
    }]);
    assert_eq!(found["metrics"], expected);
    let events = found["counts"].as_array().unwrap().iter().map(|count| &count["event"]);
    assert_eq!(events.collect::<Vec<_>>(), ["A.ONE", "B.TWO"]);
    assert_eq!(opened(&kernel), [(0x10, None), (0x20, Some(0x10))]);
    // Alone each has its own time: 450 / 1500.
    let ungrouped = MetricRequest { no_group: true, ..request(&["share"]) };
    let (text, _) = fake.run(&kernel, ungrouped, "true").unwrap();
    assert!(text.contains("A.ONE                    #     30.0 %  share (!)"), "{text}");
    let no_threshold = MetricRequest { no_threshold: true, no_group: true, ..request(&["share"]) };
    let (text, _) = fake.run(&kernel, no_threshold, "true").unwrap();
    assert!(text.contains("30.0 %  share ") && !text.contains("(!)"), "{text}");
}

#[test]
fn events_are_shared() {
    let (fake, kernel) = (Fake::new(), kernel());
    let found = fake.json(&kernel, &["both"], "true");
    assert_eq!(values(&found), named(&[("share", json!(20.0)), ("rest", json!(0.8))]));
    assert_eq!(opened(&kernel).len(), 2, "those of the one are those of the other");
    let apart = MetricRequest { no_merge: true, ..request(&["Both"]) };
    let kernel = self::kernel();
    fake.run(&kernel, apart, "true").unwrap();
    let pair = [(0x10, None), (0x20, Some(0x10))];
    assert_eq!(opened(&kernel), [pair, pair].concat());
    // Groups that differ have their own; without groups all have the same.
    let kernel = self::kernel();
    fake.json(&kernel, &["share", "three"], "true");
    let three = [(0x0100_0030, None), (0x10, Some(0x0100_0030))];
    assert_eq!(opened(&kernel), [pair, three].concat());
    let kernel = self::kernel();
    let found = fake.json(&kernel, &["Apart"], "true");
    assert_eq!(opened(&kernel), [0x10, 0x20, 0x0100_0030].map(|config| (config, None)));
    assert_eq!(values(&found), named(&[("rest", json!(0.7)), ("three", json!(60.0 / 450.0))]));
}

#[test]
fn constraints_and_branches_of_a_metric() {
    let (fake, kernel) = (Fake::new(), kernel());
    let found = fake.json(&kernel, &["alone", "smt"], "true");
    assert_eq!(values(&found), named(&[("alone", json!(1950.0)), ("smt", json!(1500.0))]));
    let singles = [0x10, 0x20, 0x20].map(|config| (config, None));
    assert_eq!(opened(&kernel), singles, "without SMT the first branch needs no event");
}

#[test]
fn a_group_that_does_not_fit_is_split() {
    let fake = Fake::new();
    // The kernel takes no members.
    let kernel = CountingKernel { refuse_members: true, ..kernel() };
    let found = fake.json(&kernel, &["share"], "true");
    assert_eq!(values(&found), named(&[("share", json!(30.0))]));
    assert_eq!(opened(&kernel), [(0x10, None), (0x20, None)]);
}

#[test]
fn slots_lead_their_group() {
    let (fake, kernel) = (Fake::new(), kernel());
    let topdown = MetricRequest { topdown: Some(0), ..MetricRequest::default() };
    let (text, _) = fake.run(&kernel, topdown.clone(), "--metric-only -x, true").unwrap();
    assert_eq!(opened(&kernel), [(0x400, None), (0x8000, Some(0x400)), (0x10, Some(0x400))]);
    assert_eq!(text.lines().rev().take(2).collect::<Vec<_>>(), ["307.00", "retiring"]);
    let deep = MetricRequest { topdown: Some(2), ..topdown };
    let error = fake.run(&kernel, deep, "true").unwrap_err().to_string();
    assert!(error.contains("--td-level 2: the last level of this CPU's tables is 1"), "{error}");
}

#[test]
fn events_of_several_pmus_are_one() {
    let (fake, kernel) = (Fake::new(), kernel());
    let found = fake.json(&kernel, &["mean_reads"], "-a true");
    assert_eq!(values(&found), named(&[("mean_reads", json!(15.0))]), "30 counts, 2 sources");
    assert_eq!(found["counts"].as_array().unwrap().len(), 1);
    let found = fake.json(&kernel, &["mean_reads"], "-a --no-merge true");
    assert_eq!(values(&found), named(&[("mean_reads", json!(15.0))]));
    assert_eq!(found["counts"].as_array().unwrap().len(), 2);
    // Two sets of the same events are not added up.
    let apart = MetricRequest { no_merge: true, ..request(&["mean_reads", "mean_reads:u"]) };
    let (text, _) = fake.run(&kernel, apart, "-a -x, true").unwrap();
    assert_eq!(text.matches(",15.00,mean_reads").count(), 2, "{text}");
}

#[test]
fn places_runs_intervals_and_cgroups() {
    let (fake, kernel) = (Fake::new(), kernel());
    let found = fake.json(&kernel, &["rest"], "-a -A true");
    let cpus = found["metrics"].as_array().unwrap().iter().map(|metric| &metric["cpu"]);
    assert_eq!(cpus.collect::<Vec<_>>(), [0, 1]);
    let found = fake.json(&kernel, &["rest"], "-r 3 true");
    assert_eq!(values(&found), named(&[("rest", json!(0.8))]));
    let found = fake.json(&kernel, &["rest"], "-I 20 --interval-count 2 sleep 60");
    assert_eq!(values(&found), named(&[("rest", Value::Null)]), "nothing more was counted");
    let (text, _) = fake.run(&kernel, request(&["zero"]), "true").unwrap();
    assert!(text.contains("#      nan zero"), "{text}");
}

#[test]
fn times_and_constants() {
    let (fake, kernel) = (Fake::new(), kernel());
    let found = fake.json(&kernel, &["speed", "constant"], "true");
    let elapsed = found["seconds"]["elapsed"]["mean"].as_f64().unwrap();
    let speed = found["metrics"][0]["value"].as_f64().unwrap();
    assert!((speed * elapsed - 450.0).abs() < 1e-6, "{found}");
    assert_eq!(found["metrics"][1], json!({"name": "constant", "value": 4.0, "unit": ""}));
    // Events of -e come first.
    let found = fake.json(&kernel, &["share"], "-e faults true");
    assert_eq!(
        (&found["counts"][0]["event"], &found["metrics"][0]["index"]),
        (&json!("faults"), &json!(1))
    );
}

#[test]
fn what_cannot_be_computed_is_told() {
    let (fake, kernel) = (Fake::new(), kernel());
    let error = |name: &str| fake.run(&kernel, request(&[name]), "true").unwrap_err().to_string();
    for (name, part) in [
        ("shar", "no metric or group 'shar' for this CPU; did you mean 'share'?"),
        ("loop", "in a circle: loop → pool → loop"),
        ("missing", "metric 'missing': "),
        ("share:x", "modifier"),
    ] {
        let error = error(name);
        assert!(error.contains(part) && error.contains(name), "{name}: {error}");
    }
    let (_, said) = fake.run(&kernel, request(&["Most"]), "true").unwrap();
    assert!(said.contains("-M Most: left out are missing; metric 'missing': "), "{said}");
}

#[test]
fn a_threshold_that_is_unknown_does_not_matter() {
    let (fake, kernel) = (Fake::new(), kernel());
    let (text, said) = fake.run(&kernel, request(&["blind"]), "-j true").unwrap();
    let found: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let expected = json!([{"name": "blind", "value": 450.0, "unit": "", "index": 0}]);
    assert_eq!(found["metrics"], expected);
    assert!(said.contains("the thresholds are unknown of blind; metric 'blind': "), "{said}");
}

#[test]
fn named_events_take_terms_and_capitals() {
    let (fake, kernel) = (Fake::new(), kernel());
    let found = fake.json(&kernel, &["more"], "true");
    assert_eq!(opened(&kernel), [(0x400, None), (0x0200_0010, Some(0x400))]);
    assert_eq!(values(&found), named(&[("more", json!(307.0))]));
}

#[test]
fn modifiers_go_to_every_event() {
    let (fake, kernel) = (Fake::new(), kernel());
    let found = fake.json(&kernel, &["three:u"], "true");
    let events = found["counts"].as_array().unwrap().iter().map(|count| &count["event"]);
    assert_eq!(events.collect::<Vec<_>>(), ["cpu/C.THREE,cmask=1/u", "A.ONE:u"]);
    assert_eq!(found["metrics"][0]["name"], "three:u");
    let attrs = kernel.attrs.lock().unwrap();
    assert!(attrs.iter().all(|attr| attr.flags.contains(AttrFlags::EXCLUDE_KERNEL)));
}
