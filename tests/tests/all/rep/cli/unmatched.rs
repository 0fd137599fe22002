//! Filters that no sample passes, and recordings without samples: exit status 1, and what there is
//! instead.

use super::*;

/// Threads of two processes, in two modules, on two CPUs.
fn stream() -> Stream {
    let stream =
        Stream::new(Endian::Little).event(Event::new("cycles:u")).event(Event::new("faults"));
    let stream = stream.task(7, 7).at(1_000_000_000).comm("server").map(
        "/no/such/libparse.so",
        0x1000,
        0x1000,
        0,
    );
    let stream = stream.of(0).on_cpu(1).at(1_500_000_000).sample(SampleSpec::at(0x1010).period(3));
    let stream = stream.task(9, 10).comm("worker").map("/no/such/app", 0x8000, 0x1000, 0);
    stream.of(1).on_cpu(4).at(2_000_000_000).sample(SampleSpec::at(0x8010).period(5)).round()
}

/// Runs `rep`, which must find nothing, and returns the last line of its message.
#[track_caller]
fn said(words: &[&str], file: &Path) -> String {
    refusal(run(words, file)).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn each_filter_lists_what_samples_have() {
    let (_place, file) = recorded(&stream());
    for (words, message) in [
        (&["--comm", "wroker"][..], "no sample has comm 'wroker'; near comms are: worker"),
        (&["--comms", "a,b"], "no sample has comm 'a' or 'b'; comms are: server, worker"),
        (&["--dso", "libparse"], "no sample has module 'libparse'; near modules are: libparse.so"),
        (
            &["--dso", "/no/such/lib"],
            "no sample has module '/no/such/lib'; near modules are: /no/such/app, \
             /no/such/libparse.so",
        ),
        (&["--pid", "10"], "no sample has pid 10; pids are: 7, 9"),
        (&["--tid", "9"], "no sample has tid 9; tids are: 10, 7"),
        (&["--cpu", "0,2-3"], "no sample has CPU 0 or 2 or 3; CPUs are: 1, 4"),
        (
            &["--event", "cycle"],
            "no event with samples is named 'cycle'; near events are: cycles:u",
        ),
        (
            &["-S", "main"],
            "no sample has function 'main'; the recording has no functions with names",
        ),
        (
            &["--symbol-filter", "ma"],
            "no sample has a function whose name contains 'ma'; the recording has no functions \
                                      with names",
        ),
        (&["-U"], "no sample has a known function; `rep modules` says why"),
        (
            &["--time", "3,4"],
            "no sample is in the times of --time; samples are from 1.500000000 to 2.000000000 s",
        ),
        (
            &["--comm", "server", "--cpu", "4"],
            "samples pass each filter, but none passes all of them; leave one out",
        ),
    ] {
        assert_eq!(said(words, &file), format!("rep: {message}"), "{words:?}");
        let answer = json(words, &file);
        let reason = list(&answer["warnings"]).last().unwrap().clone();
        assert_eq!(
            reason,
            serde_json::json!({ "code": "no-match", "message": message }),
            "{words:?}"
        );
        let rows =
            list(&answer["events"]).iter().map(|event| list(&event["rows"]).len()).sum::<usize>();
        assert_eq!(rows, 0, "{words:?}");
    }
}

/// What a file has instead is looked up with the symbols that all files share.
#[test]
fn functions_of_a_file_keep_their_names_where_another_has_no_match() {
    let place = Place::new();
    let start = 0xffff_ffff_c000_1000;
    let file = |name: &str, pid| {
        let stream = Stream::new(Endian::Little).event(Event::new("cycles")).task(pid, pid).at(1);
        let stream = stream.ksymbol(start, 0x80, 1, 0, "bpf_prog_abcd_count");
        place.put(name, stream.at(2).sample(SampleSpec::at(start + 8).misc(1)).file())
    };
    let files = [file("a.data", 7), file("b.data", 9)];
    let words = ["--json", "-s", "symbol", "--pid", "9", "-S", "bpf_prog_abcd_count"];
    let command = &mut rep();
    let answer = parsed(run_json(command.env("RAYON_NUM_THREADS", "1").args(words).args(&files)));
    assert_eq!(answer["events"][0]["rows"][0]["key"]["symbol"], "bpf_prog_abcd_count");
}

#[test]
fn the_other_commands_say_it_too() {
    let (_place, file) = recorded(&stream());
    let message = "rep: no sample has comm 'wroker'; near comms are: worker";
    for words in [
        &["script"][..],
        &["timeline"],
        &["-s", "pid"],
        &["--format", "folded"],
        &["-q"],
        &["--hierarchy"],
    ] {
        assert_eq!(said(&[words, &["--comm", "wroker"]].concat(), &file), message, "{words:?}");
    }
    for (words, message) in [
        (&["--tid", "9"][..], "no sample has tid 9; tids are: 10, 7"),
        (
            &["--time", "3,4"],
            "no sample is in the times of --time; samples are from 1.500000000 to 2.000000000 s",
        ),
        (
            &["-S", "main"],
            "no sample has function 'main'; the recording has no functions with names",
        ),
        (&["-S", "0x1234"], "no sample passes --symbols, --switch-on and --switch-off"),
        (
            &["--comm", "server", "--cpu", "4"],
            "samples pass each filter, but none passes all of them; leave one out",
        ),
    ] {
        assert_eq!(
            said(&[&["script"], words].concat(), &file),
            format!("rep: {message}"),
            "{words:?}"
        );
    }
    // Records of other kinds are an answer.
    let shown = text(&["script", "--show-task-events", "--tid", "9"], &file);
    assert!(shown.contains("PERF_RECORD_COMM"), "{shown}");
    assert_eq!(text(&["script", "--limit", "0"], &file), "");
}

#[test]
fn accesses_are_not_found_in_tables_and_lists() {
    let event =
        Event::new("loads").sampling(SampleType::ADDR | SampleType::DATA_SRC | SampleType::WEIGHT);
    let stream = Stream::new(Endian::Little).event(event).task(7, 7).at(10).comm("app");
    let (_place, file) = recorded(&stream.sample(SampleSpec::at(0x1010).period(3)).round());
    for (words, message) in [
        (&["--comm", "other"][..], "no sample has comm 'other'; comms are: app"),
        (&["--type", "store"], "no access is a STORE; --type selects by kind"),
    ] {
        assert_eq!(said(&[&["mem"], words].concat(), &file), format!("rep: {message}"));
        let listed = run(&[&["mem", "-D"], words].concat(), &file);
        let said = String::from_utf8(listed.stderr).unwrap();
        assert_eq!(
            (listed.status.code(), said),
            (Some(1), format!("rep: {message}\n")),
            "{words:?}"
        );
    }
    assert_eq!(
        said(&["c2c", "--comm", "other"], &file),
        "rep: no sample has comm 'other'; comms are: app"
    );
}

#[test]
fn values_of_a_list_that_match_nothing_are_warned_about() {
    let (place, file) = recorded(&stream());
    for (words, message) in [
        (&["--comms", "worker,sever"][..], "no sample has comm 'sever'; near comms are: server"),
        (&["--pid", "7,8"], "no sample has pid 8; pids are: 7, 9"),
        (
            &["--dsos", "app,libpars"],
            "no sample has module 'libpars'; near modules are: libparse.so",
        ),
    ] {
        let answer = json(words, &file);
        let warnings = list(&answer["warnings"]);
        assert_eq!(warnings.last().unwrap()["message"], message, "{words:?}");
        assert_eq!(codes(&answer).last(), Some(&"unmatched-value"));
        let listed = run(&[&["script"], words].concat(), &file);
        assert!(listed.status.success() && !listed.stdout.is_empty(), "{words:?}");
        assert!(String::from_utf8(listed.stderr).unwrap().contains(message), "{words:?}");
    }
    // Idle CPUs of a range are usual, and what another input has is there.
    assert!(!codes(&json(&["--cpu", "0-9"], &file)).contains(&"unmatched-value"));
    let other =
        Stream::new(Endian::Little).event(Event::new("cycles:u")).task(3, 3).at(5).comm("other");
    let other = place.put("y.data", other.sample(SampleSpec::at(1)).round().file());
    let both = |comms: &str| json(&["--comms", comms, other.to_str().unwrap()], &file);
    assert!(!codes(&both("server,other")).contains(&"unmatched-value"));
    let answer = both("server,other,third");
    let message = "no sample has comm 'third'; comms are: other, server, worker";
    assert_eq!(list(&answer["warnings"]).last().unwrap()["message"], message);
    assert!(!codes(&both("other")).contains(&"no-match"), "one of two inputs has it");
}

#[test]
fn a_recording_without_samples_is_no_answer() {
    let (_place, file) =
        recorded(&Stream::new(Endian::Little).event(Event::new("cycles:u")).task(7, 7).comm("app"));
    for words in [
        &[][..],
        &["script"],
        &["timeline"],
        &["--format", "folded"],
        &["--format", "csv"],
        &["--comm", "app"],
    ] {
        assert_eq!(said(words, &file), "rep: there are no samples in the recording", "{words:?}");
    }
    // The records of other types are an answer in JSON.
    assert_eq!(codes(&json(&[], &file)), ["no-samples"]);
    assert_eq!(codes(&json(&["--comm", "app"], &file)), ["no-match"]);
    for words in [&["--stats"][..], &["info"], &["dump"], &["script", "--show-task-events"]] {
        assert!(run(words, &file).status.success(), "{words:?}");
    }
}
