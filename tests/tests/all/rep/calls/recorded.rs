//! Recorded callchains with known frames: their sources, how they are cut, and the rows and trees
//! made from them.

use super::*;

/// Returns a stream in which `main` calls `work`: one sample in `parse`, called by `work`, two in
/// `work`, and one in the kernel, called by `work`.
fn plain() -> Stream {
    stream(Event::new("cycles"))
        .sample(SampleSpec::at(PARSE).callchain(&[context::USER, PARSE, WORK + 4, MAIN + 4]))
        .sample(SampleSpec::at(WORK + 1).callchain(&[context::USER, WORK + 1, MAIN + 4]))
        .sample(SampleSpec::at(WORK + 2).callchain(&[context::USER, WORK + 2, MAIN + 4]))
        .sample(SampleSpec::at(KERNEL).misc(1).callchain(&[
            context::KERNEL,
            KERNEL,
            context::USER,
            WORK + 4,
            MAIN + 4,
        ]))
}

#[test]
fn callers_include_their_callees() {
    let place = Place::of(&plain());
    assert_eq!(
        place.rep("--format folded"),
        "app;main;work 2\napp;main;work;entry 1\napp;main;work;parse 1\n"
    );
    let want = [("[.] main", 4, 0), ("[.] parse", 1, 1), ("[.] work", 4, 2), ("[k] entry", 1, 1)];
    assert_eq!(place.children("", "sym"), rows(&want));
    let want = "
            |
            ---work
               |
               |--25.00%--entry
               |
                --25.00%--parse";
    assert_eq!(place.tree("-s sym -g caller", "main"), want);
}

#[test]
fn a_sample_counts_once_for_callers_that_look_alike() {
    let place = Place::of(&plain());
    assert_eq!(place.children("", "reach"), rows(&[("[.] c", 4, 4)]));
    let both = stream(Event::new("cycles")).map("/a/lib.so", 0x1000, 0x1000, 0).map(
        "/b/lib.so",
        0x2000,
        0x1000,
        0,
    );
    let chain = [context::USER, 0x1004, 0x2004, MAIN + 4];
    let place = Place::of(&both.at(10).sample(SampleSpec::at(0x1004).callchain(&chain)));
    assert_eq!(place.children("", "dso"), rows(&[("[.] [JIT] tid 7", 1, 0), ("[.] lib.so", 1, 1)]));
    assert_eq!(place.children("", "dso_path").len(), 3, "these differ");
}

#[test]
fn a_sample_counts_once_for_functions_of_one_name() {
    // A function that calls another of its name, as code of a JIT that was compiled twice does.
    let chain = [context::USER, PARSE, WORK + 4, MAIN + 4];
    let twice = stream(Event::new("cycles")).sample(SampleSpec::at(PARSE).callchain(&chain));
    let place = Place::of(&twice.sample(SampleSpec::at(MAIN).callchain(&[context::USER, MAIN])));
    let map = [(MAIN, "main"), (WORK, "work"), (PARSE, "work")];
    place.put("root/tmp/perf-7.map", map.map(|(at, name)| format!("{at:x} 10 {name}\n")).concat());
    for key in ["sym", "sym,dso", "comm,sym"] {
        let report = parsed(place.rep(&format!("--json --children -s {key}")));
        let of_work =
            list(&report["events"][0]["rows"]).iter().filter(|row| row["key"]["sym"] == "work");
        let children: u64 = of_work.map(|row| row["children"]["samples"].as_u64().unwrap()).sum();
        assert_eq!(children, 1, "{key}: {report}");
    }
}

#[test]
fn unmapped_callers_are_one_unless_their_addresses_are_shown() {
    let at = |caller: u64| SampleSpec::at(WORK).callchain(&[context::USER, WORK, 0x1000 + caller]);
    let place = Place::of(&stream(Event::new("cycles")).sample(at(1)).sample(at(2)).sample(at(1)));
    assert_eq!(place.rep("--format folded"), "app;[unknown];work 3\n");
    let text = place.rep("--children -g none -s ip");
    let lines = text.lines().filter(|line| line.contains('%'));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
    let work = format!("{WORK:#x}");
    let want = [
        ["100.00%", "100.00%", &work],
        ["66.67%", "0.00%", "0x1001"],
        ["33.33%", "0.00%", "0x1002"],
    ];
    assert_eq!(rows, want, "{text}");
}

#[test]
fn a_chain_is_cut_at_its_far_end() {
    let place = Place::of(&plain());
    assert_eq!(
        place.rep("--format folded --max-stack 2"),
        "app;main;work 2\napp;work;entry 1\napp;work;parse 1\n"
    );
    // With children, the limit counts from the outermost frame.
    let want = [("[.] main", 4, 0), ("[.] parse", 1, 1), ("[.] work", 2, 2), ("[k] entry", 1, 1)];
    assert_eq!(place.children("--max-stack 1", "sym"), rows(&want));
}

#[test]
fn rows_are_grouped_by_parent() {
    let place = Place::of(&plain());
    let parents = |words: &str| -> Vec<(String, String, u64)> {
        let report = parsed(place.rep(&format!("--json -s sym {words}")));
        let text = |row: &Value, key: &str| row["key"][key].as_str().unwrap().to_owned();
        let row =
            |row: &Value| (text(row, "sym"), text(row, "parent"), row["samples"].as_u64().unwrap());
        list(&report["events"][0]["rows"]).iter().map(row).collect()
    };
    let all = |list: &[(&str, &str, u64)]| -> Vec<_> {
        list.iter().map(|(sym, parent, n)| ((*sym).to_owned(), (*parent).to_owned(), *n)).collect()
    };
    // The sampled function is its own parent if its name matches.
    let want = all(&[("work", "work", 2), ("entry", "work", 1), ("parse", "parse", 1)]);
    assert_eq!(parents("-p ^(work|parse)$"), want);
    assert_eq!(parents("-p par -x"), all(&[("parse", "parse", 1)]));
    let outermost = parents("-p . --children").into_iter().filter(|(.., samples)| *samples > 0);
    assert!(
        outermost.clone().count() == 3
            && outermost.into_iter().all(|(_, parent, _)| parent == "main")
    );
}

#[test]
fn ignored_callees_count_as_their_caller() {
    let place = Place::of(&plain());
    assert_eq!(place.rep("--format folded --ignore-callees work"), "app;main;work 4\n");
    assert_eq!(
        place.children("--ignore-callees ^work$", "sym"),
        rows(&[("[.] main", 4, 0), ("[.] work", 4, 4)])
    );
}

#[test]
fn hide_unresolved_removes_frames_without_a_function() {
    let chain = [context::USER, PARSE, CODE + 0x900, MAIN + 4];
    let place =
        Place::of(&stream(Event::new("cycles")).sample(SampleSpec::at(PARSE).callchain(&chain)));
    assert_eq!(place.children("", "sym").len(), 3);
    assert_eq!(place.children("-U", "sym"), rows(&[("[.] main", 1, 0), ("[.] parse", 1, 1)]));
}

#[test]
fn trees_are_below_the_last_rows_of_a_hierarchy() {
    let place = Place::of(&plain());
    let text = place.rep("--hierarchy -s comm,sym -g caller");
    let after = text.split("[.] work").nth(1).unwrap();
    let tree: Vec<&str> = after.lines().skip(1).take(3).map(str::trim_end).collect();
    assert_eq!(tree, ["            |", "            ---main", "               work"], "{text}");
}

#[test]
fn lbr_calls_replace_the_user_part() {
    let kind = BranchSampleType::USER | BranchSampleType::CALL_STACK;
    let calls = [branch(WORK + 8, PARSE, 0), branch(MAIN + 4, WORK, 0)];
    let lost = CODE + 0x800;
    let stream = stream(Event::new("cycles").branches(kind))
        .sample(
            SampleSpec::at(PARSE + 2).callchain(&[context::USER, PARSE + 2, lost]).branches(&calls),
        )
        .sample(
            SampleSpec::at(KERNEL)
                .misc(1)
                .callchain(&[context::KERNEL, KERNEL, context::USER, lost])
                .branches(&calls[1..]),
        )
        .sample(SampleSpec::at(MAIN).callchain(&[context::USER, MAIN]));
    let place = Place::of(&stream);
    assert_eq!(
        place.rep("--format folded"),
        "app;main 1\napp;main;work;entry 1\napp;main;work;parse 1\n"
    );
    assert_eq!(place.listed(""), ["main|work|parse|", "main|work|entry|", "main|"]);
    // As in perf, the calls are cut off only if the user context marker is.
    assert_eq!(place.listed("--max-stack 1"), ["main|work|parse|", "entry|", "main|"]);
    let want = [("[.] main", 3, 1), ("[.] parse", 1, 1), ("[.] work", 2, 0), ("[k] entry", 1, 1)];
    assert_eq!(place.children("", "sym"), rows(&want));
}

#[test]
fn deferred_user_parts_are_joined() {
    let deferred = |cookie| [context::KERNEL, KERNEL, context::USER_DEFERRED, cookie];
    let stream = stream(Event::new("cycles"))
        .sample(SampleSpec::at(KERNEL).misc(1).callchain(&deferred(1)))
        .sample(SampleSpec::at(KERNEL).misc(1).callchain(&deferred(1)))
        .callchain_deferred(1, &[context::USER, WORK + 4, MAIN + 4])
        .sample(SampleSpec::at(KERNEL).misc(1).callchain(&deferred(2)))
        // The third sample gets none: the last part belongs to another thread.
        .task(7, 8)
        .callchain_deferred(2, &[context::USER, PARSE]);
    let place = Place::of(&stream);
    assert_eq!(place.rep("--format folded"), "app;entry 1\napp;main;work;entry 2\n");
    assert_eq!(place.listed(""), ["main|work|entry|", "main|work|entry|", "entry|"]);
    assert_eq!(place.listed("--max-stack 2"), ["work|entry|", "work|entry|", "entry|"]);
}

#[test]
fn deep_callchains_are_whole_unless_a_maximum_is_asked_for() {
    let long: Vec<u64> = [context::USER, PARSE]
        .into_iter()
        .chain(std::iter::repeat_n(WORK, 300))
        .chain([MAIN])
        .collect();
    let deep = stream(Event::new("cycles")).sample(SampleSpec::at(PARSE).callchain(&long));
    let place = Place::of(&deep);
    let frames = |words: &str| place.rep(&format!("--format folded {words}")).split(';').count();
    assert_eq!([frames(""), frames("--max-stack 5")], [303, 6]);
    assert!(place.rep("--format folded").starts_with("app;main;work;"));
}
