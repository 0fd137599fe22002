//! Output for constructed streams, whose right answers are known.

use recrep_format::abi::misc;
use recrep_format::record::LostSamples;

use super::*;

#[test]
fn samples_see_the_names_and_mappings_of_their_own_moment() {
    let place = Place::new();
    for endian in [Endian::Little, Endian::Big] {
        let file = place.put("x.data", two_events(endian, 20).file());
        let answer = json(&["--sort", "comm,dso"], &file);
        // The sample at 90 came before the mapping at 100; a first name counts for the time before
        // it too.
        let first = [
            row("second|lib.so", 20, 20),
            row("first|lib.so", 1, 10),
            row("first|[unknown]", 1, 5),
        ];
        assert_eq!(rows(&answer, 0), first);
        assert_eq!(rows(&answer, 1), [row(":9|[unknown]", 20, 60)]);
        let head: Vec<_> = list(&answer["events"]).iter().map(|e| &e["name"]).collect();
        assert_eq!(head, ["cycles:u", "faults"]);
        assert_eq!(answer["inputs"][0]["records"]["FINISHED_ROUND"], 3);
        assert_eq!(answer["inputs"][0]["complete"], true);
        assert_eq!(list(&answer["warnings"]).len(), 0);
    }
}

#[test]
fn every_key_reads_as_in_perf() {
    let (_place, file) = recorded(&two_events(Endian::Little, 1));
    let one = |key: &str, event| rows(&json(&["--sort", key], &file), event)[0].0.clone();
    assert_eq!(one("pid", 0), "7:second", "the process's last name");
    assert_eq!(one("process", 1), "8::8", "not the thread, which is 9");
    assert_eq!(one("tid", 1), "9::9");
    let named = |key: &str, event: usize| {
        json(&["--sort", key], &file)["events"][event]["rows"][0]["key"].clone()
    };
    let in_module = serde_json::json!({ "sym": "lib.so+0x5010", "cpumode": "user" });
    assert_eq!(named("sym", 0), in_module, "an offset in the module");
    assert_eq!(
        named("symbol", 1),
        serde_json::json!({ "symbol": "0x00000000dead0000", "cpumode": "user" })
    );
    assert_eq!(one("ip", 1), "0xdead0000");
    assert_eq!(one("cpu", 1), "000");
    assert_eq!(one("event", 0), "cycles:u");
    let answer = json(&["--sort", "sym,COMM"], &file);
    assert_eq!(answer["events"][0]["sort"], serde_json::json!(["sym", "COMM"]));
}

#[test]
fn names_that_no_event_has_are_warned_about() {
    let (_place, file) = recorded(&two_events(Endian::Little, 1));
    let warnings =
        |events: &str| json(&["--sort", "comm", "--event", events], &file)["warnings"].clone();
    assert_eq!(warnings("cycles,cycles:u,faults"), serde_json::json!([]));
    let message = "--event: no event is named `cycle`; events of the input: cycles:u, faults";
    assert_eq!(
        warnings("faults,cycle"),
        serde_json::json!([{ "code": "unknown-event", "message": message }])
    );
}

#[test]
fn stats_count_the_samples_of_a_single_event() {
    let stream = Stream::new(Endian::Little).event(Event::new("cycles:u")).task(7, 7).at(100);
    let stream = stream.sample(SampleSpec::at(0x10)).sample(SampleSpec::at(0x20)).round();
    let (_place, file) = recorded(&stream);
    let said = text(&["--stats"], &file);
    assert!(said.ends_with("cycles:u stats:\n          SAMPLE events:          2\n"), "{said}");
}

#[test]
fn stats_are_those_of_the_whole_report() {
    let (_place, file) = recorded(&two_events(Endian::Little, 5));
    let (stats, report) = (json(&["--stats"], &file), json(&[], &file));
    assert_eq!(stats["inputs"], report["inputs"]);
    for (counted, full) in list(&stats["events"]).iter().zip(list(&report["events"])) {
        for number in ["name", "samples", "period", "lost_samples", "sort"] {
            assert_eq!(counted[number], full[number]);
        }
        assert!(!list(&full["rows"]).is_empty());
    }
}

#[test]
fn stats_ignore_sort_keys() {
    let (_place, file) = recorded(&two_events(Endian::Little, 5));
    // A report by a field that no event has is refused, once the formats of the events were read.
    let with = |words: &[&str]| {
        rep().args(words).args(["--sort", "nosuchfield"]).arg(&file).output().unwrap()
    };
    assert_eq!(with(&[]).status.code(), Some(2));
    assert_eq!(with(&["--stats"]).status.code(), Some(0));
}

#[test]
fn several_files_are_one_profile() {
    let place = Place::new();
    let a = place.put("a.data", two_events(Endian::Little, 4).file());
    let b = place.put("b.data", two_events(Endian::Big, 6).file());
    let answer =
        parsed(rep().args(["--json", "--sort", "comm"]).args([&a, &b]).output().unwrap().stdout);
    assert_eq!((list(&answer["inputs"]).len(), list(&answer["events"]).len()), (2, 2));
    assert_eq!(rows(&answer, 0), [row("first", 4, 30), row("second", 10, 10)]);
    assert_eq!(answer["events"][0]["samples"], 14);
}

#[test]
fn filters_remove_rows_and_keep_totals() {
    let (_place, file) = recorded(&two_events(Endian::Little, 10));
    let first = |words: &[&str]| {
        let answer = json(&[&["--sort", "comm,dso"], words].concat(), &file);
        (rows(&answer, 0), answer["events"][0]["samples"].as_u64().unwrap())
    };
    assert_eq!(
        first(&["--comm", "first,other"]),
        (vec![row("first|lib.so", 1, 10), row("first|[unknown]", 1, 5)], 12)
    );
    assert_eq!(
        first(&["--dso", "lib.so"]).0,
        [row("first|lib.so", 1, 10), row("second|lib.so", 10, 10)]
    );
    assert_eq!(first(&["--dso", "/no/such/lib.so"]).0.len(), 2);
    assert_eq!(first(&["--tid", "9"]), (vec![], 12));
    assert_eq!(first(&["--pid", "7", "--limit", "1"]).0.len(), 1);
    assert_eq!(
        first(&["--cpu", "1"]),
        (vec![row("second|lib.so", 10, 10)], 10),
        "as in perf, other CPUs do not count"
    );
    assert_eq!(first(&["--symbol", "main"]), (vec![], 12));
    assert_eq!(first(&["--percent-limit", "30"]).0.len(), 2);
}

#[test]
fn a_group_counts_for_each_of_its_members() {
    let (_place, file) = recorded(&group(|event| event, &SampleSpec::at(0x1000)));
    let answer = json(&["--sort", "comm"], &file);
    assert_eq!(rows(&answer, 0), [row("app", 3, 300)]);
    assert_eq!(rows(&answer, 1), [row("app", 2, 30)]);
}

#[test]
fn text_has_the_layout_of_perf() {
    let stream = two_events(Endian::Little, 4).of(0).lost(3).lost_samples(5);
    let (_place, file) = recorded(&stream);
    let table = text(&["-n", "--sort", "comm,dso"], &file);
    let expected = "\
#
# On: fixture, Linux 6.1.0, 4 CPUs
# Total Lost Samples: 5
# Total Lost Events: 3
#
# Samples: 6 of event 'cycles:u'
# Event count (approx.): 19
# Lost samples: 5
#
# Overhead       Samples  Command  Shared Object
# ........  ............  .......  .............
#
    52.63%             1  first    lib.so
    26.32%             1  first    [unknown]
    21.05%             4  second   lib.so
";
    assert!(table.starts_with(expected), "{table}");
    let separated = text(&["-t", ".", "--sort", "comm,dso"], &file);
    assert!(separated.contains("\n52.63%.first.lib.so"), "{separated}");
    let separated = text(&["-t", "i", "--sort", "comm,dso"], &file);
    assert!(
        separated.contains("\n52.63%if.rstil.b.so\n"),
        "a separator inside a field becomes a dot: {separated}"
    );
}

#[test]
fn control_characters_of_a_file_are_escaped() {
    let stream = Stream::new(Endian::Little)
        .event(Event::new("evil\x1b]0;title\x07"))
        .task(7, 7)
        .at(1)
        .comm("a\x1b[2Jb\n")
        .sample(SampleSpec::at(1));
    let (_place, file) = recorded(&stream);
    let output = run(&["--sort", "comm,event"], &file);
    assert!(
        !output.stdout.iter().any(|b| *b < 0x20 && *b != b'\n'),
        "{:?}",
        String::from_utf8_lossy(&output.stdout)
    );
    let answer = json(&["--sort", "comm"], &file);
    assert_eq!(rows(&answer, 0)[0].0, "a\x1b[2Jb\n", "JSON has its own escapes");
}

#[test]
fn help_names_every_command() {
    let of = |words: &[&str]| super::super::run(rep().args(words));
    let help = of(&["--help"]);
    let (_, rest) = help.split_once("COMMAND`):\n").unwrap();
    let (list, _) = rest.split_once("\n\n").unwrap();
    let named: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let source = include_str!("../../../../../report/src/commands/mod.rs");
    let known: Vec<&str> =
        source.split("name: \"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0)).collect();
    assert!(known.len() > 8 && known == named, "{named:?}, {known:?}");
    for name in named.into_iter().filter(|name| *name != "help") {
        let usage =
            if name == "report" { "Usage: rep".into() } else { format!("Usage: rep {name} ") };
        assert!(of(&[name, "--help"]).contains(&usage), "{name}");
        assert_eq!(of(&["help", name]), of(&[name, "--help"]));
    }
    assert_eq!(of(&["help"]), help);
    for (words, why) in
        [(&["help", "nosuch"][..], "'nosuch'"), (&["help", "mem", "c2c"], "one command")]
    {
        let refused = rep().args(words).output().unwrap();
        assert!(
            refused.status.code() == Some(2)
                && String::from_utf8_lossy(&refused.stderr).contains(why)
        );
    }
}

#[test]
fn samples_that_a_filter_dropped_are_not_lost() {
    let dropped = Body::LostSamples(LostSamples { lost: 1000 });
    let stream =
        two_events(Endian::Little, 4).of(0).lost_samples(5).record(misc::LOST_SAMPLES_BPF, dropped);
    let (_place, file) = recorded(&stream);
    let report = json(&["--sort", "comm"], &file);
    let info = parsed(text(&["info", "--json"], &file));
    for all in [&report["inputs"][0], &report["events"][0], &info] {
        assert_eq!(
            (&all["lost_samples"], &all["filtered_samples"]),
            (&5.into(), &1000.into()),
            "{all}"
        );
    }
    assert_eq!(report["events"][1]["filtered_samples"], 0);
    let said = text(&["--sort", "comm"], &file);
    assert!(said.contains("# Total Lost Samples: 5\n# Total Filtered Samples: 1000\n"), "{said}");
    assert!(said.contains("# Lost samples: 5\n# Filtered samples: 1000\n"), "{said}");
    assert!(text(&["--stats"], &file).contains("LOST_SAMPLES (BPF) events:       1000\n"));
    assert!(text(&["info"], &file).contains("lost: 0 events, 5 samples\nfiltered: 1000 samples\n"));
}

const TEXT: u64 = 0x40_0000;

/// Returns a sample with the same mispredicted branch twice.
fn twice() -> SampleSpec {
    SampleSpec::at(TEXT).branches(&[branch(TEXT, TEXT + 0x10, 1); 2])
}

#[test]
fn equal_branches_are_in_what_is_mapped_at_their_moment() {
    let stream = Stream::new(Endian::Little).event(Event::new("branches:u").branches(BRANCHES));
    let stream = stream.task(7, 7).at(10).map("/no/such/a", TEXT, 0x1000, 0).at(20).sample(twice());
    let stream = stream.at(30).map("/no/such/b", TEXT, 0x1000, 0x10).at(40).sample(twice());
    let stream = stream.task(8, 8).at(15).map("/no/such/a", TEXT, 0x1000, 0).at(50).sample(twice());
    let stream = stream.task(9, 9).at(60).sample(twice());
    let (_place, file) = recorded(&stream);
    let of = |key: &str| rows(&json(&["-b", "-s", key], &file), 0);
    assert_eq!(of("dso_from"), [row("a", 4, 4), row("[unknown]", 2, 2), row("b", 2, 2)]);
    assert_eq!(of("pid,mispredict").len(), 3);
    let to = json(&["-b", "-s", "symbol_to"], &file);
    let to = list(&to["events"][0]["rows"]).iter().map(|row| &row["key"]["symbol_to"]);
    assert_eq!(to.collect::<Vec<_>>(), ["a+0x10", "0x0000000000400010", "b+0x20"]);
}

/// The counter readings of a sample say how often each of its branches counts.
#[test]
fn branches_of_a_group_count_for_each_member() {
    let (_place, file) = recorded(&group(|event| event.branches(BRANCHES), &twice()));
    let answer = json(&["-b", "-s", "comm"], &file);
    assert_eq!(rows(&answer, 0), [row("app", 6, 6)]);
    assert_eq!(rows(&answer, 1), [row("app", 4, 4)]);
}

#[test]
fn a_trace_that_is_not_decoded_is_told() {
    let stream = Stream::new(Endian::Little)
        .event(Event::new("intel_pt//u"))
        .task(7, 7)
        .at(10)
        .comm("traced");
    let stream =
        stream.aux_data(0, 0, &[0; 1536]).aux_data(1536, 1, &[0; 512]).sample(SampleSpec::at(TEXT));
    let (_place, file) = recorded(&stream);
    let answer = json(&["-s", "comm"], &file);
    let codes: Vec<_> = list(&answer["warnings"]).iter().map(|warning| &warning["code"]).collect();
    assert_eq!(codes, ["aux-not-decoded", "aux-truncated"]);
    let message = "2.0 KiB of AUX trace is not decoded here (rep dump shows the records)";
    assert!(answer["warnings"][0]["message"].as_str().unwrap().ends_with(message), "{answer}");
}

#[test]
fn sums_of_times_have_a_unit_in_text_alone() {
    let clock = |name: &str| {
        Event::new(name)
            .with(|attr| (attr.kind, attr.config) = (EventType::SOFTWARE, SwEvent::CPU_CLOCK.0))
    };
    let stream = Stream::new(Endian::Little)
        .event(clock("cpu-clock:u"))
        .event(Event::new("cycles"))
        .task(7, 7);
    let stream = stream.of(0).at(1_000_000_000).sample(SampleSpec::at(0x10).period(5_000_000_000));
    let stream = stream.at(1_100_000_000).sample(SampleSpec::at(0x10).period(798_000_000));
    let (_place, file) = recorded(&stream.of(1).sample(SampleSpec::at(0x10).period(5_000_000_000)));
    let table = text(&["-s", "comm"], &file);
    assert!(table.contains("# Event count (approx.): 5.80 s\n"), "{table}");
    assert!(table.contains("# Event count (approx.): 5000000000\n"), "{table}");
    assert_eq!(json(&[], &file)["events"][0]["period"], 5_798_000_000_u64);
    let line = text(&["timeline", "--time-quantum", "30ms"], &file);
    let heading =
        "# One column is 30 ms, the first from 0.990000000 s; 1 to 9 scale to 1 samples\n";
    assert!(line.contains(heading), "{line}");
}
