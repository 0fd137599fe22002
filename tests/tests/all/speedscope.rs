//! `rep export --format speedscope`: what it has is what folded lines have.

use std::collections::BTreeMap;

use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{SampleType, context};
use recrep_format::endian::Endian;
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use serde_json::{Value, json};

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

/// Stacks of the first event, outermost frame first, with their weights.
fn stacks(file: &Value) -> BTreeMap<String, u64> {
    let frames: Vec<&str> = file["shared"]["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|frame| frame["name"].as_str().unwrap())
        .collect();
    let profile = &file["profiles"][0];
    let samples = profile["samples"].as_array().unwrap().iter().map(|stack| {
        let names: Vec<&str> =
            numbers(stack).into_iter().map(|id| frames[usize::try_from(id).unwrap()]).collect();
        names.join(";")
    });
    samples.zip(numbers(&profile["weights"])).collect()
}

#[test]
fn stacks_are_merged_and_begin_with_the_label() {
    let (pid, code) = (std::process::id(), 0x10_0000u64);
    let map = format!("/tmp/perf-{pid}.map");
    std::fs::write(&map, format!("{code:x} 40 leaf;a\n{:x} 40 main\n", code + 0x40)).unwrap();
    let chain = [context::USER, code + 4, code + 0x48];
    let sample = |period| SampleSpec::at(code + 4).period(period).callchain(&chain);
    let stream = Stream::new(Endian::NATIVE)
        .event(Event::new("cpu-clock").sampling(SampleType::CALLCHAIN))
        .task(pid, pid)
        .comm("two words")
        .map("//anon", code, 0x200, 0)
        .at(10)
        .sample(sample(5))
        .sample(sample(7))
        .sample(SampleSpec::at(code + 0x50).period(1));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    std::fs::write(&file, stream.file()).unwrap();
    let command = || {
        let mut command = rep();
        command.args(["export", "--format", "speedscope", "--trust-paths"]);
        command
    };
    let out = dir.path().join("out");
    run(command().arg(&file).arg("-o").arg(&out)).expect(0);
    let answer: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    run(command().args(["--labels", "none"]).arg(&file).arg("-o").arg(&out)).expect(0);
    let unlabelled: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    std::fs::remove_file(&map).unwrap();
    // As in folded lines, an empty callchain has no frame.
    let expected = [("two words".to_owned(), 1), ("two words;main;leaf;a".to_owned(), 12)];
    assert_eq!(stacks(&answer), expected.into());
    assert_eq!(stacks(&unlabelled), [(String::new(), 1), ("main;leaf;a".to_owned(), 12)].into());
    let profile = &answer["profiles"][0];
    assert_eq!((&profile["type"], &profile["name"]), (&json!("sampled"), &json!("cpu-clock")));
    assert_eq!((&profile["startValue"], &profile["endValue"]), (&json!(0), &json!(13)));
}
