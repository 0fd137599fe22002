//! What can be compared besides samples: branches, weights of memory accesses, times of waiting.

use recrep_fixtures::build::{Event, SampleSpec};
use recrep_format::abi::{
    AttrFlags, BranchEntry, BranchFlags, BranchSampleType, EventType, SampleType, SwEvent,
};
use serde_json::Value;

use super::{Recording, Sides, TEXT, USER, name, start};

/// Address in a function.
fn address(function: u64) -> u64 {
    TEXT + function * super::FUNCTION + 0x10
}

/// Returns runs whose stream `add` fills, given the side and the number of a run.
fn sides(event: &Event, add: impl Fn(Recording, u64, u64) -> Recording) -> Sides {
    Sides::write(4, 4, |side, number| {
        let recording = Recording::with_event(event.clone(), start(side, number));
        add(recording, side as u64, number as u64)
    })
}

/// Returns the relative change of the row with this text in its key.
#[track_caller]
fn change(answer: &Value, text: &str) -> f64 {
    let rows = answer["events"][0]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"].to_string().contains(text));
    let row = row.unwrap_or_else(|| panic!("{text}: {answer}"));
    row["change"]["relative"].as_f64().unwrap()
}

#[test]
fn branches_are_compared_by_their_ends() {
    let event = Recording::event("cpu-clock", 4000).sampling(SampleType::BRANCH_STACK);
    let sides = sides(&event.branches(BranchSampleType::ANY), |mut recording, side, number| {
        for function in 1..9 {
            let twice = if function == 3 { 1 + side } else { 1 };
            for _ in 0..100 * twice + number {
                let (from, to) = (address(0), address(function));
                let stack = [BranchEntry { from, to, flags: BranchFlags(0) }];
                let spec = SampleSpec::at(to).branches(&stack).period(250_000);
                recording.stream = recording.stream.sample(spec);
            }
        }
        recording
    });
    let answer = sides.json(&["-b"]);
    assert_eq!(answer["events"][0]["sort"], serde_json::json!(["symbol_from", "symbol_to"]));
    assert!((change(&answer, &name(3)) - 1.0).abs() < 0.1, "{answer}");
    assert!(change(&answer, &name(4)).abs() < 0.1, "{answer}");
    sides.diff(&["-b", "--children"]).expect(2);
}

#[test]
fn memory_accesses_are_compared_by_their_weights() {
    let fields = SampleType::WEIGHT | SampleType::DATA_SRC | SampleType::ADDR;
    let event = Recording::event("cpu-clock", 4000).sampling(fields);
    let sides = sides(&event, |mut recording, side, number| {
        for function in 1..9 {
            let weight = if function == 3 { 30 + 30 * side } else { 30 };
            for access in 0..100 {
                let spec = SampleSpec::at(address(function)).weight(weight + (access + number) % 3);
                recording.stream = recording.stream.sample(spec.period(250_000));
            }
        }
        recording
    });
    assert!((change(&sides.json(&["--mem-mode"]), &name(3)) - 1.0).abs() < 0.1);
    assert!(change(&sides.json(&[]), &name(3)).abs() < 0.1, "there are as many samples");
    sides.diff(&["--mem-mode", "-b"]).expect(2);
}

#[test]
fn times_of_waiting_are_compared() {
    let switches = Event::new("context-switches")
        .counting(EventType::SOFTWARE, SwEvent::CONTEXT_SWITCHES.0)
        .sampling(SampleType::CALLCHAIN)
        .with(|attr| (attr.sample_period, attr.flags) = (1, attr.flags - AttrFlags::FREQ));
    let sides = sides(&Recording::event("cpu-clock", 4000), |mut recording, side, number| {
        let mut stream = recording.stream.event(switches.clone());
        let mut time = 5_000_001_000;
        for wait in 0..100 {
            let chain = [USER, address(2), address(1)];
            stream = stream.of(0).at(time).sample(SampleSpec::at(address(1)).period(250_000));
            let spec = SampleSpec::at(address(2)).callchain(&chain);
            stream = stream.of(1).at(time + 100).sample(spec).at(time + 110).switch(true);
            let length = 100_000 * (1 + side) + (wait + number) % 7 * 1000;
            stream = stream.at(time + 110 + length).switch(false);
            time += 1_000_000;
        }
        recording.stream = stream;
        recording
    });
    for (mode, least) in [("--off-cpu", 0.8), ("--wall", 0.1)] {
        let answer = sides.json(&[mode, "-s", "comm"]);
        assert!(change(&answer, "app") > least, "{mode}: {answer}");
        assert_eq!(answer["verdict"], "changed", "{mode}");
    }
    let text = sides.text(&["--off-cpu", "-s", "comm"]);
    assert!(text.contains("event off-cpu, periods"), "{text}");
    sides.diff(&["--off-cpu", "--wall"]).expect(2);
}
