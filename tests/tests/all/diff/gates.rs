//! Gates: each subject passes and fails, what cannot be trusted fails, and errors say where.

use std::path::Path;

use recrep_tests::programs::rep;
use recrep_tests::run::run;

use super::{Recording, SLOWER, Samples, Sides, UNCHANGED, name, scattered, start, with_chains};

/// Five runs a side; the last two functions are gone and new.
fn changed() -> Sides {
    Sides::write(5, 5, |side, number| {
        let event = with_chains(Recording::event("cpu-clock", 4000));
        let mut recording = Recording::with_event(event, start(side, number));
        recording.has_chains = true;
        let mut functions = SLOWER;
        functions[3].1 = 0.5;
        let mut all = scattered(&functions, side, number);
        all.push(Samples::of(if side == 0 { 20 } else { 21 }, 200));
        for samples in &mut all {
            samples.callers = vec![30];
        }
        recording.samples(&all)
    })
}

#[test]
fn each_subject_passes_and_fails() {
    let sides = changed();
    let slow = name(1);
    let rules: [(String, String); 24] = [
        (format!("self({slow}) > 10%"), format!("self({slow}) > 50%")),
        ("self(app+*) > 30%".into(), "self(app+*) > 60%".into()),
        (format!("children({}) >= 100%", name(30)), format!("children({}) < 100%", name(30))),
        ("dso(app) > 90%".into(), "dso(app) < 90%".into()),
        ("comm(app) > 90%".into(), "comm(app) < 90%".into()),
        (format!("delta(self, {slow}) > 10%"), format!("delta(self, {slow}) > 80%")),
        (format!("delta(self, {slow}) > 10% surely"), format!("delta(self, {slow}) > 49% surely")),
        ("delta(self, *) < -30%".into(), "delta(self, app+0x?10) < -60%".into()),
        (
            format!("delta(self, {}) > -5% any", name(0)),
            format!("delta(self, {}) > 9% any", name(0)),
        ),
        (format!("delta(children, {slow}) > 10%"), format!("delta(children, {slow}) > 80%")),
        ("delta(dso, app) > 0%".into(), "delta(dso, app) > 30%".into()),
        ("delta(comm, app) > 0%".into(), "delta(comm, app) > 30%".into()),
        ("delta(total) > 0%".into(), "delta(total) > 20%".into()),
        (format!("impact(self, {slow}) > 2%"), format!("impact(self, {slow}) > 40%")),
        ("impact(self, *) > 2%".into(), "impact(self, *) > 40%".into()),
        ("new > 1%".into(), "new > 50%".into()),
        ("gone > 1%".into(), "gone > 50%".into()),
        ("lost >= 0%".into(), "lost > 1%".into()),
        ("unresolved > 50%".into(), "unresolved < 50%".into()),
        ("broken > 50%".into(), "broken < 50%".into()),
        ("samples > 1000".into(), "samples < 1000".into()),
        ("runs < 6".into(), "runs < 5".into()),
        ("slower > 1".into(), "slower > 9".into()),
        ("faster > 1".into(), "faster > 9".into()),
    ];
    let (fails, passes): (Vec<String>, Vec<String>) = rules.into_iter().unzip();
    let said = sides.diff(&options(&fails)).expect(3).stderr;
    for rule in &fails {
        assert!(said.contains(&format!("violated: {rule}: ")), "{rule}: {said}");
    }
    assert!(said.contains("gates: FAILED"), "{said}");
    let outcome = sides.diff(&options(&passes)).expect(0);
    assert!(outcome.stderr.contains("gates: passed"), "{}", outcome.stderr);
    assert!(!outcome.stdout.is_empty(), "the comparison is printed in any case");
}

/// Returns the options with these rules.
fn options(rules: &[String]) -> Vec<&str> {
    rules.iter().flat_map(|rule| ["--fail-if", rule.as_str()]).collect()
}

#[test]
fn a_report_has_the_rules_of_one_side() {
    let sides = changed();
    let rules: [(String, String); 8] = [
        (format!("self({}) > 10%", name(1)), format!("self({}) > 50%", name(1))),
        (format!("children({}) >= 100%", name(30)), format!("children({}) < 100%", name(30))),
        ("dso(a?p) > 90%".into(), "dso(app) < 90%".into()),
        ("comm(app) > 90%".into(), "comm(app) < 90%".into()),
        ("lost >= 0%".into(), "lost > 1%".into()),
        ("unresolved > 50%".into(), "unresolved < 50%".into()),
        ("samples > 1000".into(), "samples < 1000".into()),
        ("runs < 6".into(), "runs < 5".into()),
    ];
    let (fails, passes): (Vec<String>, Vec<String>) = rules.into_iter().unzip();
    let said = sides.report(&options(&fails)).expect(3).stderr;
    for rule in &fails {
        assert!(said.contains(&format!("violated: {rule}: ")), "{rule}: {said}");
    }
    sides.report(&[&options(&passes)[..], &["--json"]].concat()).expect(0);
    for rule in ["delta(self, main) > 1%", "impact(self, *) > 1%", "new > 0", "slower > 0"] {
        let outcome = sides.report(&["--fail-if", rule]).expect(2);
        assert!(outcome.stderr.contains("needs a second side"), "{}", outcome.stderr);
    }
    sides.report(&["--fail-if", "runs < 3", "--stats"]).expect(2);
}

#[test]
fn all_violations_are_listed_then_every_rule() {
    let sides = changed();
    let rules = ["--fail-if", "slower > 0", "--fail-if", "new > 0", "--fail-if", "runs < 3"];
    let said = sides.diff(&rules).expect(3).stderr;
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("rep: violated: slower > 0: "), "{said}");
    assert!(lines[1].starts_with("rep: violated: new > 0: app+"), "{said}");
    assert_eq!(lines.len(), 6, "{said}");
    assert!(lines[2].starts_with("rep: violated    slower > 0") && lines[4].contains("holds"));
    assert_eq!(lines[5], "rep: gates: FAILED");
    let json = sides.diff(&[&["--json"][..], &rules].concat()).expect(3).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["gates"]["failed"], true);
    assert_eq!(json["gates"]["rules"][2]["outcome"], "holds");
}

#[test]
fn what_could_have_changed_unseen_is_open() {
    // Twice the work, recorded apart: too few samples to call any single function slower.
    let sides = Sides::write(3, 3, |side, number| {
        // Runs differ by a third.
        let run = [9, 14, 20][number];
        let twice = UNCHANGED.map(|(size, _)| (size * run / 200, 2.2));
        let start = number as f64 * 2.0 + side as f64 * 600.0;
        Recording::at(start).samples(&scattered(&twice, side, number))
    });
    let outcome = sides.diff(&["--fail-if", "slower > 0", "--strict"]).expect(3);
    assert!(outcome.stderr.contains("open: slower > 0: too few samples"), "{}", outcome.stderr);
    let outcome = sides.diff(&["--fail-if", "slower > 0"]).expect(0);
    assert!(outcome.stderr.contains("open: slower > 0: "), "{}", outcome.stderr);
    // More functions than could have changed are no question.
    sides.diff(&["--fail-if", "slower > 20", "--strict"]).expect(0);
}

#[test]
fn ci_reads_the_rules_of_a_report() {
    let sides = changed();
    let rules = ["--fail-if", "runs < 9", "--fail-if", "samples < 10"];
    let github = sides.report(&[&["--format", "github"][..], &rules].concat()).expect(3);
    let text = github.text();
    assert!(text.starts_with("::error title=runs < 9::violated: runs < 9"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    let junit = sides.report(&[&["--format", "junit"][..], &rules].concat()).expect(3);
    let text = junit.text();
    assert!(text.contains(r#"<testsuite name="rep" tests="3" failures="1">"#), "{text}");
    for format in ["github", "junit"] {
        let outcome = sides.report(&["--format", format]).expect(2);
        assert!(outcome.stderr.contains("give some (--fail-if, --rules)"), "{}", outcome.stderr);
    }
}

#[test]
fn a_file_has_rules_with_reasons() {
    let sides = changed();
    let path = sides.dir.path().join("rules.toml");
    let rules = |text: &str| {
        std::fs::write(&path, text).unwrap();
        sides.diff(&["--rules", path.to_str().unwrap()])
    };
    let outcome = rules("[[rule]]\nfail-if = \"slower > 0\"\nwhy = \"ask the parser team\"\n");
    assert!(outcome.expect(3).stderr.contains("ask the parser team"));
    rules("[[rule]]\nfail-if = \"slower > 0\"\nwarn = true\n").expect(0);
    rules("min-impact = \"90%\"\n[[rule]]\nfail-if = \"slower > 1\"\n").expect(0);
    let outcome = rules("level = 0.05\n[[rule]]\nfail-if = \"self(f > 1%\"\n").expect(2);
    assert!(outcome.stderr.contains("rules.toml: line 3: column 12: "), "{}", outcome.stderr);
    rules("levl = 1\n").expect(2);
    rules("").expect(2);
    sides.diff(&["--rules", "/nowhere/rules.toml"]).expect(2);
}

#[test]
fn a_wrong_rule_says_its_column() {
    let sides = Sides::of(1, &UNCHANGED);
    let outcome = sides.diff(&["--fail-if", "self(f) > x"]).expect(2);
    let expected =
        "rep: --fail-if: column 11: expected a number, found `x`\n  self(f) > x\n            ^\n";
    assert_eq!(outcome.stderr, expected);
    sides.report(&["--fail-if", "self f > 1%"]).expect(2);
    sides.diff(&["--strict"]).expect(2);
}

/// Checks that a rule that holds fails all the same, with these words.
#[track_caller]
fn assert_closed(sides: &Sides, rule: &str, words: &str) {
    let outcome = sides.diff(&["--fail-if", rule]).expect(3);
    assert!(outcome.stderr.contains(words), "`{words}` is not in:\n{}", outcome.stderr);
}

#[test]
fn what_cannot_be_trusted_fails() {
    let rule = "samples < 10";
    let with = |change: &dyn Fn(&Path)| {
        let sides = Sides::of(3, &UNCHANGED);
        sides.diff(&["--fail-if", rule]).expect(0);
        change(&sides.new[1]);
        sides
    };
    let unreadable = with(&|path| std::fs::write(path, "no recording").unwrap());
    assert_closed(&unreadable, rule, "new.1.data");
    let missing = with(&|path| std::fs::remove_file(path).unwrap());
    assert_closed(&missing, rule, "new.1.data");
    let cut = with(&|path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    });
    assert_closed(&cut, rule, "truncated");
    let damaged = with(&|path| {
        let mut bytes = std::fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 64].fill(0xff);
        std::fs::write(path, bytes).unwrap();
    });
    assert_closed(&damaged, rule, "new.1.data: ");
    let empty = with(&|path| _ = Recording::at(6.0).write(path));
    assert_closed(&empty, rule, "there are no samples in it");
    let lossy = with(&|path| {
        let mut recording = Recording::at(6.0).samples(&scattered(&UNCHANGED, 1, 1));
        recording.stream = recording.stream.lost_samples(50);
        recording.write(path);
    });
    assert_closed(&lossy, rule, "of the samples were lost");
    lossy.diff(&["--fail-if", "lost > 5%"]).expect(0);

    let sides = Sides::of(3, &UNCHANGED);
    assert_closed(&sides, "self(no_such) > 5%", "no row has this name on either side");
    assert_closed(&sides, "delta(self, no_such) > 5%", "no row has this name on either side");
    let two = Sides::of(2, &UNCHANGED);
    let slow = format!("delta(self, {}) > 5%", name(0));
    assert_closed(&two, &slow, "changes need 3 runs a side");
    two.diff(&["--fail-if", &format!("{slow} any")]).expect(0);
    let rates = Sides::write(3, 3, |side, number| {
        let recording = Recording::of("cpu-clock", [4000, 1000][side], start(side, number));
        recording.samples(&scattered(&UNCHANGED, side, number))
    });
    assert_closed(&rates, rule, "the sides differ in the event `cpu-clock`");
    // All of a side, but not all files.
    let side = Sides::of(1, &UNCHANGED);
    std::fs::write(&side.new[0], "no recording").unwrap();
    assert_closed(&side, rule, "the new side cannot be read");
    std::fs::write(&side.base[0], "no recording").unwrap();
    side.diff(&["--fail-if", rule]).expect(1);
}

#[test]
fn a_report_on_what_cannot_be_trusted_fails() {
    let sides = Sides::of(2, &UNCHANGED);
    sides.report(&["--fail-if", "samples < 10"]).expect(0);
    std::fs::write(&sides.new[1], "no recording").unwrap();
    sides.report(&["--fail-if", "samples < 10"]).expect(3);
    Recording::at(0.0).write(&sides.new[0]);
    let empty = run(rep().args(["--fail-if", "samples < 0"]).arg(&sides.new[0])).expect(3);
    assert!(empty.stderr.contains("there are no samples in it"), "{}", empty.stderr);
    run(rep().args(["--fail-if", "samples < 10"]).arg(&sides.new[1])).expect(1);
}

#[test]
fn noise_fails_only_a_strict_job() {
    let few = UNCHANGED.map(|(size, factor)| (size / 10, factor));
    let sides = Sides::of(3, &few);
    let rule = format!("delta(self, {}) > 1%", name(0));
    let outcome = sides.diff(&["--fail-if", &rule]).expect(0);
    assert!(outcome.stderr.contains("open: "), "{}", outcome.stderr);
    sides.diff(&["--strict", "--fail-if", &rule]).expect(3);
}
