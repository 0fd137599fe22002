//! The words of the text: verdicts, modes, the order of recordings, what would tell more.

use recrep_fixtures::build::Stream;
use recrep_format::endian::Endian;
use recrep_format::feature::Hostname;
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use serde_json::json;

use super::{Recording, SLOWER, Samples, Sides, TEXT, UNCHANGED, name, scattered, start};

/// The loop that is printed where sides were not recorded in turn.
const LOOP: &str = "\
for i in 1 2 3 4 5; do rec -q -o base.$i.data -- ./base/app ARGS; rec -q -o new.$i.data -- ./new/app ARGS; done
rep diff base.*.data -- new.*.data
";

/// Runs whose functions scatter, side after side.
fn apart(functions: &[(u64, f64)], seconds: f64) -> Sides {
    Sides::write(5, 5, |side, number| {
        let start = number as f64 * 2.0 + side as f64 * seconds;
        Recording::at(start).samples(&scattered(functions, side, number))
    })
}

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn a_change_is_told_first() {
    let sides = Sides::of(5, &SLOWER);
    let text = sides.text(&[]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("base: 5 runs, 13,"), "{text}");
    assert_says(lines[0], &["recorded in turn   event cpu-clock, samples", " samples ("]);
    assert!(lines[1].starts_with("CHANGED  1 of 8 functions slower. Total +"), "{text}");
    assert!(lines[2].contains("impact") && lines[2].ends_with("new   function"), "{text}");
    assert_says(lines[3], &[&name(1), "   app", " ms "]);
    assert_says(
        &text,
        &["not marked, 5 % or more of the time (seen from: ", "  seen from   function"],
    );
    assert!(!text.contains("for i in 1 2 3"), "{text}");
    let json = sides.json(&[]);
    assert_eq!(json["verdict"], "changed");
    let row = &json["events"][0]["rows"][0];
    assert_eq!(row["key"], json!({ "dso": "app", "symbol": name(1), "cpumode": "user" }));
    let change = row["change"]["relative"].as_f64().unwrap();
    assert!((change - 0.5).abs() < 0.05, "{row}");
}

#[test]
fn sides_that_are_the_same_say_what_would_have_been_seen() {
    let text = Sides::of(5, &UNCHANGED.map(|(size, factor)| (size * 4, factor))).text(&[]);
    let same =
        "SAME  No change. 25 % or more in any function of 5 % or more would have been seen. Total ";
    assert_says(&text, &[same]);
}

#[test]
fn few_samples_say_how_many_more_runs_help() {
    let few = UNCHANGED.map(|(size, factor)| (size / 10, factor));
    let sides = Sides::of(3, &few);
    // The word is for what only one side has.
    assert!(!sides.text(&[]).contains(" new "), "{}", sides.text(&[]));
    assert_says(
        &sides.text(&[]),
        &[
            "TOO FEW SAMPLES  ",
            "a change below ",
            " would not have been seen; about ",
            " times as long",
        ],
    );
    assert!(sides.json(&[])["needed"]["runs"].as_u64().unwrap() > 3);
    let one = Sides::of(1, &SLOWER);
    assert_says(
        &one.text(&[]),
        &["TOO FEW SAMPLES  One run a side cannot be judged: record 5 runs a side in turn.", LOOP],
    );
    let json = one.json(&[]);
    assert_eq!(json["verdict"], "too-few-samples");
    let rows = json["events"][0]["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["change"]["significant"] == false), "{json}");
}

#[test]
fn the_total_is_told_before_too_few_samples() {
    let sides = Sides::write(3, 3, |side, number| {
        // Runs differ by a third.
        let run = [9, 14, 20][number];
        let more = UNCHANGED.map(|(size, _)| (size * run / 200, 1.84));
        let start = number as f64 * 2.0 + side as f64 * 600.0;
        Recording::at(start).samples(&scattered(&more, side, number))
    });
    let text = sides.text(&[]);
    let [total, few] = ["Total +", "TOO FEW SAMPLES"].map(|word| text.find(word));
    assert!(total.is_some() && total < few, "{text}");
}

#[test]
fn rows_of_a_handful_of_samples_have_no_change() {
    // A function of one sample in base and of 600 a run in new, and one of 3 and 4 samples.
    let sides = Sides::write(3, 3, |side, number| {
        let mut all = scattered(&UNCHANGED, side, number);
        all.push(Samples::of(40, if side == 1 { 600 } else { u64::from(number == 0) }));
        all.push(Samples::of(41, if side == 1 { 4 } else { 3 }));
        Recording::at(start(side, number)).samples(&all)
    });
    let text = sides.text(&["--min-impact", "0", "--resolve", "100"]);
    let line = text.lines().find(|line| line.contains(&name(40))).unwrap();
    assert!(line.contains("×") && !line.contains("000.0"), "{line}");
    let one = Sides::of(1, &[(1000, 1.0), (300, 1.0), (3, 2.0), (2, 0.0), (0, 1.0)]);
    let text = one.text(&[]);
    assert!(!text.contains("app+0x"), "nothing can be judged: {text}");
}

#[test]
fn sides_apart_print_the_loop() {
    let sides = apart(&SLOWER, 840.0);
    assert_says(
        &sides.text(&[]),
        &[
            "recorded 14 min apart",
            "Sides were recorded 14 min apart, not in turn: changes below about 2x cannot be told \
             from the machine's drift.",
            LOOP,
        ],
    );
    let json = sides.json(&[]);
    assert_eq!([&json["in_turn"], &json["apart_seconds"]], [&json!(false), &json!(840.0)]);
}

#[test]
fn without_a_common_clock_the_order_is_unknown() {
    // One file has no wall clock, and its machine was booted at another time.
    let sides = Sides::of(5, &UNCHANGED);
    let stream = |time: u64| {
        let stream = Stream::new(Endian::Little).event(Recording::event("cpu-clock", 4000));
        let stream = stream.feature(&Hostname::new("here")).at(time).task(1, 1).comm("app");
        let stream = stream.map("/nowhere/app", TEXT, 0x1000, 0);
        (Recording { stream, has_chains: false }).samples(&[Samples::of(0, 500)])
    };
    stream(9_000_000_000_000).write(&sides.base[0]);
    let text = sides.text(&[]);
    assert_says(
        &text,
        &[
            "recorded in unknown order",
            "It is not known whether the sides were recorded in turn:",
            LOOP,
        ],
    );
    assert_eq!(sides.json(&[])["apart_seconds"], json!(null));
    // Of one boot, the clock since then tells the order.
    stream(5_000_000_500).write(&sides.base[0]);
    assert_eq!(sides.json(&[])["apart_seconds"].as_f64().map(f64::round), Some(0.0));
}

#[test]
fn machines_that_differ_are_told() {
    let sides = Sides::write(3, 3, |side, number| {
        let recording = Recording::at(start(side, number));
        let kernel = ["6.1.0", "6.12.0"][side];
        recording.on("there", kernel).samples(&scattered(&UNCHANGED, side, number))
    });
    let json = sides.json(&[]);
    assert_eq!(json["in_turn"], false);
    let warnings = json["warnings"].as_array().unwrap();
    let codes: Vec<&str> = warnings.iter().map(|one| one["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"different-kernel"), "{json}");
}

#[test]
fn each_mode_has_its_words() {
    let all = UNCHANGED.map(|(size, _)| (size * 2, 1.17));
    let sides = Sides::of(5, &all);
    assert_says(&sides.text(&[]), &["Times are absolute. All functions share +17 % [", "beyond"]);
    for (mode, words) in [
        ("none", "Times are absolute, and nothing is taken out."),
        ("common", "All functions share +17 %. Rows show what goes beyond it."),
        ("share", "Rows are parts of all samples: if one grows, others shrink."),
        ("time", "Rows are samples a second of the runs' lengths."),
    ] {
        assert_says(&sides.text(&["--normalize", mode]), &[words]);
        assert_eq!(sides.json(&["--normalize", mode])["normalized_by"], mode);
    }
    assert_says(
        &apart(&all, 600.0).text(&[]),
        &["All functions share +17 %: build, machine or frequency. Rows show what goes beyond it."],
    );
    // The first function takes what the others lose.
    let mut fixed = UNCHANGED.map(|(size, _)| (size * 2, 0.7));
    fixed[0].1 = 1.49;
    assert_says(
        &Sides::of(5, &fixed).text(&[]),
        &["The runs have a fixed length. Rows show changes beyond the common −"],
    );
}

#[test]
fn events_that_differ_are_refused() {
    let sides = |event: [(&str, u64); 2]| {
        Sides::write(3, 3, |side, number| {
            let (name, frequency) = event[side];
            let recording = Recording::of(name, frequency, start(side, number));
            recording.samples(&scattered(&UNCHANGED, side, number))
        })
    };
    for events in
        [[("cpu-clock", 4000), ("cpu-clock", 1000)], [("cpu-clock", 4000), ("cycles", 4000)]]
    {
        let sides = sides(events);
        let outcome = sides.diff(&[]).expect(1);
        assert_says(&outcome.stderr, &["the sides differ in the event `cpu-clock`", "4000 Hz in "]);
    }
    let rates = sides([("cpu-clock", 4000), ("cpu-clock", 1000)]);
    assert_eq!(rates.json(&["--allow-different"])["events"][0]["name"], "cpu-clock");
}

#[test]
fn the_line_names_two_sides() {
    let sides = Sides::of(1, &UNCHANGED);
    let (base, new) = (&sides.base[0], &sides.new[0]);
    let two = run(rep().args(["diff", "--json"]).args([base, new])).expect(0).stdout;
    let flag = run(rep().args(["diff", "--json", "--baseline"]).args([base, new])).expect(0).stdout;
    let dashes = run(rep().args(["diff", "--json"]).arg(base).arg("--").arg(new)).expect(0).stdout;
    assert_eq!(two, dashes);
    assert_eq!(two, flag);
    for wrong in [vec![], vec![base], vec![base, new, new]] {
        let outcome = run(rep().arg("diff").args(wrong)).expect(2);
        assert_says(&outcome.stderr, &["two sides are expected"]);
    }
    for wrong in
        [&["--level", "2"][..], &["--min-impact", "x"], &["--normalize", "all"], &["-s", "no-pe"]]
    {
        sides.diff(wrong).expect(2);
    }
    // A directory is the files in it.
    let folder = sides.dir.path().join("runs");
    std::fs::create_dir(&folder).unwrap();
    for number in 0..3 {
        std::fs::copy(new, folder.join(format!("{number}.data"))).unwrap();
    }
    let json = run(rep().args(["diff", "--json"]).arg(base).arg("--").arg(&folder)).expect(0);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["new"].as_array().unwrap().len(), 3);
}

#[test]
fn other_keys_and_formats_compare_too() {
    let sides = Sides::of(5, &SLOWER);
    let json = sides.json(&["-s", "comm,dso"]);
    assert_eq!(json["events"][0]["sort"], json!(["comm", "dso"]));
    assert_eq!(json["events"][0]["rows"][0]["key"], json!({ "comm": "app", "dso": "app" }));
    let csv = sides.text(&["--format", "csv", "--limit", "1"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("event,dso,symbol,cpumode,status,significant,base_samples,"));
    assert!(lines[1].starts_with(&format!("cpu-clock,app,{},user,changed,true,", name(1))));
    assert_eq!(lines.len(), 2);
    let filtered = sides.json(&["--dso", "app", "-c", "app"]);
    assert_eq!(filtered["events"], sides.json(&[])["events"]);
    let none = sides.diff(&["-c", "apq"]).expect(1);
    assert_says(&none.stderr, &["apq"]);
    let coloured = sides.text(&["--stdio-color", "always"]);
    assert_says(&coloured, &["\u{1b}[1m\u{1b}[31mCHANGED\u{1b}[0m"]);
}

#[test]
fn callchains_compare_as_rows_and_folded() {
    let chains = |side: usize, number: usize| {
        let event = super::with_chains(Recording::event("cpu-clock", 4000));
        let mut recording = Recording::with_event(event, start(side, number));
        recording.has_chains = true;
        let with = |function: u64, count: u64, callers: &[u64]| Samples {
            callers: callers.to_vec(),
            ..Samples::of(function, count)
        };
        let slow = if side == 1 { 300 } else { 150 };
        recording.samples(&[
            with(1, 500, &[0]),
            with(2, slow, &[3, 0]),
            with(2, 400, &[4, 0]),
            with(5, 1, &[0]),
        ])
    };
    let sides = Sides::write(3, 3, chains);
    let folded = sides.text(&["--format", "folded"]);
    let expected = "app;[app];[app] 1503 1503\napp;[app];[app];[app] 1650 2100\n";
    assert_eq!(folded, expected);
    let json = sides.json(&["--sort", "stack", "--min-impact", "1"]);
    assert_eq!(json["events"][0]["sort"], json!(["stack"]));
    let rows = json["events"][0]["rows"].as_array().unwrap();
    let keys: Vec<&str> = rows.iter().map(|row| row["key"]["stack"].as_str().unwrap()).collect();
    assert_eq!(keys.len(), 2, "{keys:?}");
    let children = sides.json(&["--children", "-s", "symbol"]);
    let rows = children["events"][0]["rows"].as_array().unwrap();
    let main = rows.iter().find(|row| row["key"]["symbol"] == *name(0)).unwrap();
    assert_eq!(main["base"], json!({ "samples": 3153, "share": 100.0 }));
    sides.diff(&["--sort", "stack", "--children"]).expect(2);
}

/// Runs with callchains: 0 calls all; 1 calls 2, which takes twice as long in new; 3 calls 4, which
/// in new is inlined.
fn with_causes() -> Sides {
    Sides::write(5, 5, |side, number| {
        let event = super::with_chains(Recording::event("cpu-clock", 4000));
        let mut recording = Recording::with_event(event, start(side, number));
        recording.has_chains = true;
        let new = [0, 1][side];
        let (two, three, four) = (400 + 400 * new, 500 + 300 * new, 300 - 300 * new);
        let of = |function: u64, count: u64, callers: &[u64]| Samples {
            callers: callers.to_vec(),
            ..Samples::of(function, count + number as u64 % 3)
        };
        let steady = (10..20).map(|function| of(function, 300, &[0]));
        let changed = [of(1, 20, &[0]), of(2, two, &[1, 0]), of(3, three, &[0])];
        let inlined = (new == 0).then(|| of(4, four, &[3, 0]));
        recording.samples(&steady.chain(changed).chain(inlined).collect::<Vec<_>>())
    })
}

#[test]
fn a_caller_is_marked_because_of_its_callee() {
    let sides = with_causes();
    let json = sides.json(&["--children", "-s", "symbol"]);
    let rows = json["events"][0]["rows"].as_array().unwrap();
    let row =
        |function: u64| rows.iter().find(|row| row["key"]["symbol"] == *name(function)).unwrap();
    assert_eq!(row(1)["change"]["significant"], true);
    assert_eq!(row(1)["because"], json!([{ "symbol": name(2), "cpumode": "user" }]), "{json}");
    assert_eq!(row(2)["because"], json!([]));
    // It stands under what explains it.
    let place = |function: u64| rows.iter().position(|row| row["key"]["symbol"] == *name(function));
    assert!(place(2) < place(1), "{json}");
    assert_says(&sides.text(&["--children"]), &[&format!("   because of {}", name(2))]);
}

#[test]
fn time_that_moved_to_a_caller_is_told_on_both() {
    let sides = with_causes();
    let json = sides.json(&["-s", "symbol"]);
    let rows = json["events"][0]["rows"].as_array().unwrap();
    let row =
        |function: u64| rows.iter().find(|row| row["key"]["symbol"] == *name(function)).unwrap();
    assert_eq!(row(4)["status"], "gone");
    assert_eq!(row(4)["moved_to"], json!({ "symbol": name(3), "cpumode": "user" }), "{json}");
    assert_eq!(row(3)["moved_from"], json!({ "symbol": name(4), "cpumode": "user" }));
    assert_eq!(row(2)["moved_to"], json!(null));
    let text = sides.text(&[]);
    assert_says(
        &text,
        &[&format!("time moved to {}? ", name(3)), &format!("time moved from {}? ", name(4))],
    );
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let sides = Sides::of(5, &SLOWER);
    for options in
        [&["--json"][..], &[], &["--format", "csv"], &["--fail-if", "slower > 0", "--json"]]
    {
        let outputs = [1, 2, 7].map(|threads: usize| {
            let mut command = rep();
            command.env("RAYON_NUM_THREADS", threads.to_string()).arg("diff").args(options);
            run(command.args(&sides.base).arg("--").args(&sides.new)).stdout
        });
        assert!(outputs[0] == outputs[1] && outputs[1] == outputs[2], "{options:?}");
        assert!(!outputs[0].is_empty());
    }
}
