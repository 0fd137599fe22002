//! Names are never cut, and are the same in every output format.

use serde_json::json;

use super::*;

const TEXT: u64 = 0x1000;

/// Returns a stream of a thread whose long name is replaced by a short one.
fn renamed() -> Stream {
    let stream = Stream::new(Endian::Little)
        .event(Event::new("cycles:u"))
        .task(7, 7)
        .at(10)
        .comm("a-long-command");
    let stream = stream.map("/no/such/app", TEXT, 0x1000, 0).at(20).sample(SampleSpec::at(TEXT));
    stream
        .at(30)
        .exec("true")
        .map("/no/such/app", TEXT, 0x1000, 0)
        .at(40)
        .sample(SampleSpec::at(TEXT))
}

#[test]
fn command_names_are_whole_in_every_format() {
    let (_place, file) = recorded(&renamed());
    let answer = json(&["-s", "comm"], &file);
    let keys: Vec<&Value> =
        list(&answer["events"][0]["rows"]).iter().map(|row| &row["key"]["comm"]).collect();
    assert_eq!(keys, ["a-long-command", "true"]);
    for words in [
        &["-s", "comm"][..],
        &["-s", "comm", "-t", "|"],
        &["--format", "csv"],
        &["--format", "folded"],
    ] {
        assert!(text(words, &file).contains("a-long-command"), "{words:?}: {}", text(words, &file));
    }
}

#[test]
fn module_names_of_branches_are_whole() {
    let stream = Stream::new(Endian::Little)
        .event(Event::new("branches:u").branches(BRANCHES))
        .task(7, 7)
        .at(10)
        .comm("app");
    let stream = stream.map("/no/such/a-library-with-a-long-name.so", TEXT, 0x1000, 0);
    let (_place, file) = recorded(&stream.at(20).sample(SampleSpec::at(TEXT).branches(&[branch(
        TEXT,
        TEXT + 0x10,
        0,
    )])));
    let name = "a-library-with-a-long-name.so";
    let answer = json(&["-b", "-s", "dso_from,symbol_from,symbol_to"], &file);
    assert_eq!(answer["events"][0]["sort"], json!(["dso_from", "symbol_from", "symbol_to"]));
    let key = json!({
        "dso_from": name, "symbol_from": format!("{name}+0x0"), "symbol_to": format!("{name}+0x10"),
        "cpumode_from": "user", "cpumode_to": "user",
    });
    assert_eq!(answer["events"][0]["rows"][0]["key"], key);
    let table = text(&["-b", "-s", "dso_from,dso_to"], &file);
    assert!(table.contains(&format!("{name}  {name}")), "{table}");
}

/// Samples at the same unmapped address in four CPU modes.
#[test]
fn symbols_of_the_same_name_are_distinct_by_cpu_mode() {
    let stream =
        Stream::new(Endian::Little).event(Event::new("cycles")).task(7, 7).at(10).comm("app");
    let sample = |misc: u16| SampleSpec::at(0x42).misc(misc);
    let stream = stream.sample(sample(1)).sample(sample(2)).sample(sample(3)).sample(sample(0));
    let (_place, file) = recorded(&stream);
    let key = |mode: &str| json!({ "symbol": "0x0000000000000042", "cpumode": mode });
    let answer = json(&["-s", "symbol"], &file);
    let keys: Vec<&Value> =
        list(&answer["events"][0]["rows"]).iter().map(|row| &row["key"]).collect();
    assert_eq!(keys, [&key("hypervisor"), &key("kernel"), &key("unknown"), &key("user")]);
    let csv = text(&["--format", "csv", "-s", "symbol,comm"], &file);
    let want = "event,symbol,comm,cpumode,samples,period,percent
cycles,0x0000000000000042,app,hypervisor,1,1,25.00
cycles,0x0000000000000042,app,kernel,1,1,25.00
";
    assert!(csv.starts_with(want), "{csv}");
    let tree = json(&["--hierarchy", "-s", "symbol,comm"], &file);
    let levels = list(&tree["events"][0]["hierarchy"]);
    assert_eq!(levels.len(), 4);
    let level = json!({
        "key": "symbol", "value": "0x0000000000000042", "cpumode": "kernel",
        "samples": 1, "period": 1, "percent": 25.0,
        "rows": [{ "key": "comm", "value": "app", "samples": 1, "period": 1, "percent": 25.0 }],
    });
    assert_eq!(levels[1], level);
    let table = text(&["-s", "symbol"], &file);
    for cell in ["[k] 0x0000000000000042", "[.] 0x0000000000000042", "[H] 0x0000000000000042"] {
        assert!(table.contains(cell), "{table}");
    }
}

#[test]
fn folded_stacks_include_all_events() {
    let chain = [context::USER, TEXT, TEXT + 8];
    let stream = Stream::new(Endian::Little);
    let stream = stream
        .event(Event::new("cycles:u").sampling(SampleType::CALLCHAIN))
        .event(Event::new("page faults"));
    let stream = stream.event(Event::new("unused")).task(7, 7).at(10).comm("app").map(
        "/no/such/app",
        TEXT,
        0x1000,
        0,
    );
    let stream = stream.of(0).sample(SampleSpec::at(TEXT).period(5).callchain(&chain));
    let (_place, file) = recorded(&stream.of(1).sample(SampleSpec::at(TEXT).period(7)));
    let folded = |words: &[&str]| text(&[&["--format", "folded"], words].concat(), &file);
    assert_eq!(folded(&[]), "cycles:u;app;[app];[app] 5\npage_faults;app;[app] 7\n");
    assert_eq!(folded(&["-n"]), "cycles:u;app;[app];[app] 1\npage_faults;app;[app] 1\n");
    assert_eq!(
        folded(&["--event", "cycles"]),
        "app;[app];[app] 5\n",
        "the only event needs no name"
    );
    // Other filters remove lines, but do not decide whether lines begin with the event's name.
    let said = refusal(run(&["--format", "folded", "--comm", "other"], &file));
    assert_eq!(said, "rep: no sample has comm 'other'; comms are: app\n");
    let only_faults = folded(&["--comm", "app", "--pid", "7", "--dso", "app"]);
    assert!(only_faults.starts_with("cycles:u;"), "{only_faults}");
}

/// A guest's address is not looked up among the mappings of the host, not even the end of a branch.
#[test]
fn guests_samples_are_rows_without_names() {
    let stream = Stream::new(Endian::Little).event(Event::new("cycles").branches(BRANCHES));
    let stream = stream.task(7, 7).at(10).comm("vcpu").map("/no/such/app", TEXT, 0x1000, 0);
    let sample = |misc, period| {
        let branches = [branch(TEXT + 0x20, TEXT + 0x10, 0)];
        SampleSpec::at(TEXT).branches(&branches).misc(misc).period(period)
    };
    let (_place, file) =
        recorded(&stream.sample(sample(2, 1)).sample(sample(4, 10)).sample(sample(5, 100)));
    let row = |symbol: &str, mode: &str, period: u64| {
        serde_json::json!({ "dso": if mode == "user" { "app" } else { "[unknown]" }, "symbol": symbol, "cpumode": mode,
            "period": period })
    };
    let answer = json(&["-s", "dso,symbol"], &file);
    let found: Vec<Value> = list(&answer["events"][0]["rows"])
        .iter()
        .map(|row| {
            let mut found = row["key"].clone();
            found["period"] = row["period"].clone();
            found
        })
        .collect();
    let address = format!("{TEXT:#018x}");
    let expected = [
        row(&address, "guest_user", 100),
        row(&address, "guest_kernel", 10),
        row("app+0x0", "user", 1),
    ];
    assert_eq!(found, expected);
    assert_eq!(answer["warnings"], serde_json::json!([]));
    let shown = text(&["-s", "symbol"], &file);
    assert!(
        shown.contains(&format!("[u] {address}")) && shown.contains(&format!("[g] {address}")),
        "{shown}"
    );
    let ends = json(&["-b", "-s", "dso_from,dso_to"], &file);
    let ends: Vec<_> = list(&ends["events"][0]["rows"])
        .iter()
        .map(|row| (&row["key"]["dso_to"], &row["samples"]))
        .collect();
    assert_eq!(ends, [(&"[unknown]".into(), &2.into()), (&"app".into(), &1.into())]);
    let listed = text(&["script", "-F", "comm,ip,sym,dso"], &file);
    assert_eq!(
        (listed.lines().count(), listed.matches("(/no/such/app)").count()),
        (3, 1),
        "{listed}"
    );
}

/// Samples whose chain is empty, has an unknown context marker, is cut to nothing, or is of a
/// guest.
#[test]
fn a_sample_without_frames_is_a_line_with_its_function() {
    let sample = |chain: &[u64]| SampleSpec::at(TEXT).callchain(chain);
    let stream =
        Stream::new(Endian::Little).event(Event::new("cycles").sampling(SampleType::CALLCHAIN));
    let stream = stream.task(7, 7).at(10).comm("app").map("/no/such/app", TEXT, 0x1000, 0);
    let stream = stream.sample(sample(&[])).sample(sample(&[u64::MAX - 1, TEXT]).period(10));
    let stream = stream.sample(sample(&[context::USER, TEXT, TEXT]).period(100));
    let (_place, file) = recorded(&stream.sample(sample(&[]).misc(4).period(1000)));
    assert_eq!(
        text(&["--format", "folded"], &file),
        "app;[app] 11\napp;[app];[app] 100\napp;[unknown] 1000\n"
    );
    assert_eq!(
        text(&["--format", "folded", "--max-stack", "0"], &file),
        "app;[app] 111\napp;[unknown] 1000\n"
    );
}
