//! `--branch-history`: branches in front of callers, with known answers.

use super::*;

const GOOD: u64 = 2;
const BAD: u64 = 1;

fn cycles(cycles: u64) -> u64 {
    cycles << 4
}

/// Returns a stream with branch stacks and without callchains.
fn bare() -> Stream {
    let stream = Stream::new(Endian::Little).event(Event::new("cycles").branches(BRANCHES));
    stream.task(7, 7).comm("app").map("//anon", CODE, 0x1000, 0).at(10)
}

/// Returns a stream with two samples in `parse`, called by `work`, which `main` called from two
/// places.
fn two_ways() -> Stream {
    let sample = |last, from, first| {
        SampleSpec::at(PARSE + 8)
            .branches(&[branch(WORK + 4, PARSE, last), branch(from, WORK, GOOD | first)])
    };
    bare()
        .sample(sample(GOOD | cycles(5), MAIN + 2, cycles(9)).period(3))
        .sample(sample(BAD | cycles(8), MAIN + 6, cycles(7)).period(1))
}

/// Returns a tree of one path.
fn path(frames: &[&str]) -> String {
    format!("\n            |\n            ---{}", frames.join("\n               "))
}

#[test]
fn trees_show_the_branches_before_samples() {
    let place = Place::of(&two_ways());
    let want = "
            |
            ---parse +0 (predicted:50.0%)
               work +4 (cycles:6)
               work +0
               |
               |--75.00%--main +2 (cycles:9)
               |
                --25.00%--main +6 (cycles:7)";
    assert_eq!(place.tree("--branch-history --no-children -s comm,sym", "parse"), want);
    // With -G the branches are in the order in which they were taken.
    let want = "
            |
            |--75.00%--main +2 (cycles:9)
            |          work +0
            |          work +4 (cycles:5)
            |          parse +0
            |
             --25.00%--main +6 (cycles:7)
                       work +0
                       work +4 (cycles:8)
                       parse +0 (predicted:0.0%)";
    assert_eq!(
        place.tree("--branch-history -G --no-children -s comm,sym --limit 1", "parse"),
        want
    );
}

#[test]
fn iterations_of_a_loop_are_counted_and_shown_once() {
    let turn = |took| branch(PARSE + 8, PARSE, GOOD | cycles(took));
    let enter = branch(MAIN + 2, PARSE, GOOD | cycles(1));
    let stack = [turn(2), turn(40), enter];
    let place = Place::of(&bare().sample(SampleSpec::at(PARSE + 4).branches(&stack)));
    let want = path(&[
        "parse +0",
        "parse +8 (cycles:2)",
        "parse +0",
        "main +2 (cycles:1 iter:1 avg_cycles:40)",
    ]);
    assert_eq!(place.tree("--branch-history --no-children -s comm,sym", "parse"), want);
}

#[test]
fn branches_come_before_callers_in_every_format() {
    let chain = [context::USER, PARSE + 8, WORK + 6, MAIN + 8, MAIN + 4];
    let stack = [branch(WORK + 4, PARSE, GOOD)];
    let place = Place::of(
        &stream(Event::new("cycles").branches(BRANCHES))
            .sample(SampleSpec::at(PARSE + 8).callchain(&chain).branches(&stack)),
    );
    // The outermost caller is dropped to make room for the branch.
    let with_calls = "app;main +8;work +6;parse +8;work +4;parse +0 1\n";
    assert_eq!(place.rep("--branch-history --format folded"), with_calls);
    let shown = place.tree("--branch-history --no-children -g callee -s comm,sym", "parse");
    assert!(
        shown.ends_with(
            "parse +0\n               work +4\n               parse +8 \
                             (calltrace)\n               work +6 (calltrace)\n               main \
                             +8 (calltrace)"
        ),
        "{shown}"
    );
    // -g branch groups by function and leaves out the properties of branches.
    for (graph, want) in [
        ("branch", &["parse", "work", "parse", "work", "main"][..]),
        ("address", &["parse +8", "work +6", "main +8", "main +4"]),
        ("srcline", &["parse", "work", "main", "main"]),
    ] {
        let words = format!("-g {graph},callee --no-children -s comm,sym");
        assert_eq!(place.tree(&words, "parse"), path(want), "{graph}");
    }
    let want = [("[.] main", 1, 0), ("[.] parse", 1, 1), ("[.] work", 1, 0)];
    assert_eq!(place.children("--branch-history", "sym"), rows(&want));
    assert_eq!(place.children("--branch-history --max-stack 1", "sym"), rows(&want[..]));
    assert_eq!(place.children("--branch-history -S nothing", "sym"), []);
}

#[test]
fn children_include_branches() {
    let place = Place::of(&two_ways());
    let want = [("[.] main", 2, 0), ("[.] parse", 2, 2), ("[.] work", 2, 0)];
    assert_eq!(place.children("--branch-history", "sym"), rows(&want));
    assert_eq!(
        place.children("--branch-history --max-stack 1", "sym"),
        rows(&[("[.] main", 2, 0), ("[.] parse", 2, 2), want[2]][..])
    );
    assert_eq!(
        place.children("--branch-history --ignore-callees ^work$", "sym"),
        rows(&[("[.] main", 2, 0), ("[.] work", 2, 2)])
    );
    // Text has the column by default only if callchains were recorded.
    assert!(!place.rep("--branch-history").contains("Children"));
    assert!(place.rep("--branch-history --children").contains("Children"));
}

#[test]
fn filters_apply_to_samples_not_frames() {
    let place = Place::of(&two_ways());
    let folded = "app;main +2;work +0;work +4;parse +0 3\napp;main +6;work +0;work +4;parse +0 1\n";
    assert_eq!(place.rep("--branch-history --format folded --comm app"), folded);
    assert_eq!(
        place.rep("--branch-history --format folded --max-stack 1"),
        "app;work +4;parse +0 4\n"
    );
    let said = super::super::refusal(
        place.command("--branch-history --format folded --comm other").output().unwrap(),
    );
    assert_eq!(said, "rep: no sample has comm 'other'; comms are: app\n");
}

#[test]
fn a_file_without_branches_and_callchains_is_refused() {
    let stream = Stream::new(Endian::Little).event(Event::new("cycles")).sample(SampleSpec::at(1));
    let said = refusal(&stream, &["--branch-history"]);
    assert!(said.contains("record with -b"), "{said}");
}
